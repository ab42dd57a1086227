"""One measurement of one direction of a line that is not still, and what the links' ledger says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathcast.errors import PathcastError
from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

from ..measuring.measured import LARGE
from .lines import TOPOLOGIES, between, draw, shipped


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The line's text, its rates, and what is asked for."""
    if point["grid"] == "shipped":
        return shipped(point["line"], point["direction"], point["seed"], LARGE)
    return draw(point["line"], point["load"], point["seed"])


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """What was found, and what was true from its begin to its end: rates in bit/s, losses as shares of packets."""
    about, direction = scenario, scenario["direction"]
    base = str(TOPOLOGIES) if "topology" in about else None
    sets = [f"seed={about['seed']}"] if base else []
    with Sim(Topology.parse(about["text"], sets, base=base)) as network:
        network.wait(about["settle_s"])
        before = network.ledger()
        path = network.paths[0].name
        try:
            request = Request(directions=(direction,), **about["request"])
            found = network.measure([path], request=request).paths[0].directions[direction]
        except PathcastError as error:
            if error.code != "no-answer":
                raise
            return {"refused": error.code}
        after = network.ledger()
    rate, capacity = found.available_bps, found.capacity_bps
    begin_s, end_s = (ledger["groups"][0]["since_start_s"] for ledger in (before, after))
    mean, least, most = between([tuple(step) for step in about["rates"]], begin_s, end_s)
    cross, offered, lost = _carried(before, after, {"out": "/ab", "in": "/ba"}[direction])
    available = mean - cross * 8 / (end_s - begin_s)
    return {
        "value_bps": rate.value,
        "low_bps": rate.low if rate.value is not None else None,
        "high_bps": rate.high if rate.value is not None else None,
        "refused": rate.why,
        "truth_bps": available,
        "capacity_bps": capacity.value,
        "capacity_low_bps": capacity.low if capacity.value is not None else None,
        "capacity_high_bps": capacity.high if capacity.value is not None else None,
        "capacity_refused": capacity.why,
        "rate_mean_bps": mean,
        "rate_least_bps": least,
        "rate_most_bps": most,
        "loss": found.loss.share,
        "loss_truth": lost / max(1, offered),
        "discipline": found.queue.discipline,
        "seconds": end_s - begin_s,
        "bytes": found.bytes,
    }


def _carried(before: Mapping[str, Any], after: Mapping[str, Any], end: str) -> tuple[int, int, int]:
    """Between two ledgers, in one direction: bytes of cross traffic that entered; packets of the measurement that were
    offered to the first link, and that were dropped on any."""
    old = {link["name"]: link["counters"] for group in before["groups"] for link in group["links"]}
    cross = offered = lost = 0
    for group in after["groups"]:
        for link in group["links"]:
            if not link["name"].endswith(end):
                continue
            was, now = old[link["name"]], link["counters"]
            cross += now["cross"]["entered"]["bytes"] - was["cross"]["entered"]["bytes"]
            offered = max(offered, now["offered"]["packets"] - was["offered"]["packets"])
            lost += sum(now["dropped"][kind]["packets"] - was["dropped"][kind]["packets"] for kind in now["dropped"])
    return cross, offered, lost
