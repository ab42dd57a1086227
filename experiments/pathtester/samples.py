"""One measurement of one direction, and what was true meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.lab.measuring.network import Cross, Link, Truth, toml
from pathcast.lab.measuring.once import once
from pathcast.worlds.measurement import Direction, Measurement, Request
from pathcast.worlds.topology import Topology

# IP bytes of the packets that delays are of, and of the large ones
SMALL, LARGE = 120, 1400


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The network's text, and what is asked for; raises PathcastError for a label without a setup."""
    for key in ("network", "method"):
        if point[key] not in setup[key]:
            raise usage(f"plan.toml: there is no [setup.{key}.{point[key]}]")
    # a point may have a value of its own
    about = {"queue": setup["queue"], **setup["network"][point["network"]]}
    about |= {key: point[key] for key in about if key in point}
    cross = ()
    if point.get("cross"):
        way = {"out": "ab", "in": "ba"}[point["direction"]]
        cross = (Cross(point["kind"], f"{point['cross']}Mbit", way),)
    rate = f'{{ ab = "{about["out"]}", ba = "{about["back"]}" }}'
    link = Link(rate, f'"{about["queue"]}"', f'"{about["delay"]}"', cross=cross)
    return {
        # the same draws for every method: seeds are compared in pairs
        "text": toml((link,), f'"{setup["access"]}"', point["seed"], "pathtester"),
        "direction": point["direction"],
        "request": {**setup["method"][point["method"]], "seed": point["seed"]},
    }


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """What was found and what was true, rates in bit/s; `refused`: why there is no value. Raises PathcastError."""
    direction = scenario["direction"]
    request = Request(directions=(direction,), **scenario["request"])
    run = once(world, Topology.parse(scenario["text"]), request)
    if not run.verdict.valid:
        late_ms, lost = run.verdict.release_error.get("p99_s", 0) * 1e3, run.verdict.dropped_unmodelled
        raise PathcastError(
            "late", f"the emulator was late: p99 {late_ms:.2f} ms, {lost} packets lost beside the links"
        )
    back = {"out": "in", "in": "out"}[direction]
    return columns(run.found, direction, run.truth(direction), run.truth(back))


def columns(found: Measurement, direction: str, true: Truth, back: Truth) -> dict[str, Any]:
    """Of the direction; back: the truth of the other one, for round trips."""
    of: Direction = found.paths[0].directions[direction]
    rate, capacity, delay = of.available_bps, of.capacity_bps, of.delay_s
    size = delay.packet_bytes or SMALL

    def error(value: float | None, right: float) -> float | None:
        return None if value is None else value / right - 1

    return {
        "value_bps": rate.value,
        "low_bps": rate.low if rate.value is not None else None,
        "high_bps": rate.high if rate.value is not None else None,
        "truth_bps": true.available_bps,
        "relative_error": error(rate.value, true.available_bps),
        "refused": rate.why,
        "capacity_bps": capacity.value,
        "capacity_truth_bps": true.capacity_bps,
        "capacity_error": error(capacity.value, true.capacity_bps),
        "delay_s": delay.minimum,
        "delay_truth_s": true.delay_s(size),
        "delay_bound_s": delay.error,
        "loss": of.loss,
        "seconds": found.elapsed_s,
        "bytes": found.probe_bytes,
        # idle round trips, from which the paper's wait would follow
        "rtt_small_s": true.delay_s(SMALL) + back.delay_s(SMALL),
        "rtt_large_s": true.delay_s(LARGE) + back.delay_s(LARGE),
    }
