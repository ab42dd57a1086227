"""One measurement of one direction in a network of its own, and what was true meanwhile, by the ledgers around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathcast.errors import PathcastError
from pathcast.worlds.measurement import Direction, Measurement, Request
from pathcast.worlds.topology import Topology

from .network import Truth, truth

# IP bytes of the packets that delays are of, and of the large ones
SMALL, LARGE = 120, 1400
# cross traffic alone, before the measurement begins [s]
SETTLE_S = 0.5


def measured(world: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a sample in `sim` or `emu`. Raises PathcastError (`late`) where the emulator was.

    about: as for `observed`, `direction` (`out` or `in`), and `tcp` if cross traffic is not the links' own, but real:
    then what other real packets took counts.
    """
    direction = about["direction"]
    request = {"directions": (direction,), **about["request"]}
    found, before, after = observed(world, {**about, "request": request})
    if found is None:
        return {"refused": "no-answer"}
    own = found.paths[0].directions[direction].bytes if about.get("tcp") else None
    back = {"out": "in", "in": "out"}[direction]
    return columns(found, direction, truth(before, after, direction, own), truth(before, after, back))


def observed(world: str, about: Mapping[str, Any]) -> tuple[Measurement | None, Mapping[str, Any], Mapping[str, Any]]:
    """What was measured, None where nothing answered, and the ledgers before and after it.

    about: `text` of the scenario, `request` (as `Request` has it), and `settle_s` if not half a second. Raises
    PathcastError (`late`) where the emulator was.
    """
    if world == "sim":
        from pathcast.worlds.sim import Sim as World
    else:
        from pathcast.worlds.emu import Emu as World
    with World(Topology.parse(about["text"])) as network:
        network.wait(about.get("settle_s", SETTLE_S))
        with network.judged() as verdict:
            before = network.ledger()
            try:
                found: Measurement | None = network.measure(request=Request(**about["request"]))
            except PathcastError as error:
                if error.code != "no-answer":
                    raise
                found = None
            after = network.ledger()
    if found is not None:
        verdict.check()
    return found, before, after


def columns(found: Measurement, direction: str, true: Truth, back: Truth) -> dict[str, Any]:
    """Of the direction, rates in bit/s; back: the truth of the other one, for round trips. `refused`: why there is no
    available bandwidth."""
    of: Direction = found.paths[0].directions[direction]
    rate, capacity, delay = of.available_bps, of.capacity_bps, of.delay_s
    size = delay.packet_bytes or SMALL

    def error(value: float | None, right: float) -> float | None:
        return None if value is None or right <= 0 else value / right - 1

    return {
        "value_bps": rate.value,
        "low_bps": rate.low if rate.value is not None else None,
        "high_bps": rate.high if rate.value is not None else None,
        "truth_bps": true.available_bps,
        "relative_error": error(rate.value, true.available_bps),
        "refused": rate.why,
        "capacity_bps": capacity.value,
        "capacity_low_bps": capacity.low if capacity.value is not None else None,
        "capacity_high_bps": capacity.high if capacity.value is not None else None,
        "capacity_truth_bps": true.capacity_bps,
        "capacity_error": error(capacity.value, true.capacity_bps),
        "delay_s": delay.minimum.value,
        "delay_truth_s": true.delay_s(size),
        "delay_bound_s": delay.error,
        "loss": of.loss.share,
        "seconds": found.elapsed_s,
        "bytes": found.probe_bytes,
        # idle round trips, from which the paper's wait would follow
        "rtt_small_s": true.delay_s(SMALL) + back.delay_s(SMALL),
        "rtt_large_s": true.delay_s(LARGE) + back.delay_s(LARGE),
    }
