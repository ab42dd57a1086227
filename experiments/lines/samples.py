"""One measurement of a line, or of two paths at once, and what was true meanwhile and for some minutes after."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

from pathcast.errors import PathcastError
from pathcast.worlds.measurement import Direction, Measurement, Request, Value
from pathcast.worlds.topology import Topology

from .greedy import beside
from .lines import bound, draw, one_path
from .pairs import pair
from .shipped import TOPOLOGIES, shipped
from .truth import END, Ledger, between, carried, since

# others' traffic alone before the measurement begins [s]: TCP has found its rate
SETTLE_S, SETTLE_TCP_S = 1.0, (6.0, 40.0)
# for so long after it others' traffic is watched [s]
NEXT_S = 120.0
# a long flow of its own shows the standing delay and what TCP gets: it is let settle for so long, and watched for as
# long again [s]
STANDING_S = 8.0


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The network's text, what the line is, and what is asked for."""
    grid, seed, effort = point["grid"], point["seed"], point["effort"]
    if grid == "shipped":
        return {**shipped(point["line"], point["direction"], seed), "again": True, "case": {}, "effort": effort}
    fair, managed = point.get("fair", False), point.get("managed", False)
    policed = grid == "policed"
    if policed:
        # nothing passes a policer that would fill the queue behind it
        fair, managed = False, False
    # the same lines with every effort
    name = f"{'policed' if policed else grid.removeprefix('usual-')} {fair} {managed} {point['cross']} {seed}"
    if grid == "pairs":
        two = pair(f"{name} {point['shared']}", seed, point["shared"], fair, managed, point["cross"])
        line = two["line"]
        about = {"text": two["text"], "case": two["columns"], "pair": True}
    else:
        line = draw(name, fair, managed, point["cross"], policed)
        if world == "emu" and line.flows:
            # real transfers go towards the server
            line = replace(line, direction="out")
        about = {"text": one_path(line, seed, world), "case": line.columns()}
    settle = SETTLE_TCP_S[0] + SETTLE_TCP_S[1] * line.rtt_s if line.flows else SETTLE_S
    return {
        **about,
        "rates": [(0.0, bound(line))] if line.policed_bps else [list(step) for step in line.rates],
        "direction": line.direction,
        "settle_s": round(settle, 3),
        "seed": seed,
        "again": False,
        "effort": effort,
        "flow": grid != "pairs",
    }


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """What was found and what was true: rates in bit/s, times in s, losses as shares of packets."""
    if world == "sim":
        from pathcast.worlds.sim import Sim as World
    else:
        from pathcast.worlds.emu import Emu as World
    about, direction = scenario, scenario["direction"]
    base = str(TOPOLOGIES) if "topology" in about else None
    topology = Topology.parse(about["text"], [f"seed={about['seed']}"] if base else [], base=base)
    flows = 0 if world == "sim" else about["case"].get("flows", 0)
    with World(topology) as network, beside(network, flows) if flows else nullcontext():
        network.wait(about["settle_s"])
        names = [path.name for path in network.paths][: 2 if about.get("pair") else 1]
        with network.judged() as verdict:
            before = network.ledger()
            try:
                request = Request(
                    directions=about.get("asked", (direction,)), seed=about["seed"], effort=about["effort"]
                )
                found: Measurement | None = network.measure(names, request=request)
            except PathcastError as error:
                if error.code != "no-answer":
                    raise
                found = None
            after = network.ledger()
        if found is not None:
            verdict.check()
        row = dict(about["case"])
        if about.get("pair"):
            return row | _shared(found, direction)
        link = about.get("topology", about.get("link", "line")) + END[direction]
        of = None if found is None else found.paths[0].directions[direction]
        row |= _true(about, before, after, link, of)
        next_s = about.get("next_s", NEXT_S)
        if about["case"].get("kind", "idle") != "idle" and world == "sim" and next_s:
            network.wait(next_s)
            later = carried(after, network.ledger(), link)
            row["next_truth_bps"] = (later.virtual + later.bytes) * 8 / later.seconds
    if about.get("flow") and world == "sim":
        row["standing_s"], row["tcp_truth_bps"] = flow(about, link)
    return row | (_found(of) if of else {"refused": "no-answer"})


def _true(about: Mapping[str, Any], before: Ledger, after: Ledger, link: str, of: Direction | None) -> dict[str, Any]:
    was = carried(before, after, link)
    begin_s, end_s = since(before), since(after)
    if of is not None and of.probed_s is not None and len(about.get("asked", ())) > 1:
        # each direction has a time of its own
        begin_s, end_s = (since(before) + at for at in of.probed_s)
    mean, least, most = between(about["rates"], begin_s, end_s, about["again"])
    others = was.virtual * 8 / was.seconds
    if about["case"].get("flows") and of is not None:
        own = of.bytes * (1 - was.dropped / max(1, was.packets))
        others = max(0.0, was.bytes - own) * 8 / was.seconds
    passed = was.packets - was.queue - was.policer
    of_line = about["case"].get("rate_bps") or 0.0
    return {
        "rate_mean_bps": mean,
        "rate_least_bps": least,
        # a policer's burst passes at the line's own rate
        "rate_most_bps": max(most, about.get("most_bps", 0.0), of_line if about["case"].get("policed_bps") else 0.0),
        "load_truth_bps": others,
        "available_truth_bps": max(0.0, mean - others),
        "wire_truth": was.wire / max(1, passed),
        "dropped_truth": was.dropped / max(1, was.packets),
        "seconds": was.seconds,
    }


def flow(about: Mapping[str, Any], link: str) -> tuple[float, float]:
    """Mean wait at the line [s] beside a long TCP flow of cubic, in a network of its own, and what that gets [bit/s]:
    its share of what real flows do, which are all of its kind."""
    from pathcast.worlds.sim import Sim

    to = {"out": "server", "in": "client"}[about["direction"]]
    text = about["text"] + f'\n[[traffic]]\nkind = "tcp"\npath = "path"\nto = "{to}"\n'
    with Sim(Topology.parse(text)) as network:
        network.wait(STANDING_S + about["settle_s"])
        before = network.ledger()
        network.wait(STANDING_S)
        was = carried(before, network.ledger(), link)
    passed = was.packets - was.dropped
    rate = was.bytes * 8 / was.seconds * passed / max(1, passed + was.wire)
    return was.waited_s / max(1, passed + was.wire), rate / (about.get("case", {}).get("flows", 0) + 1)


# columns, and where they stand in a direction's document
ENTRIES = {
    "capacity": ("capacity_bps",),
    "available": ("available_bps",),
    "depth": ("queue", "depth_s"),
    "depth_of_bytes": ("queue", "depth_bytes"),
    "is_fair": ("queue", "fair"),
    "is_managed": ("queue", "managed"),
    "is_policed": ("policer", "probability"),
    "policer_rate": ("policer", "rate_bps"),
    "policer_burst": ("policer", "burst_bytes"),
    "random_loss": ("loss", "random"),
    "load_now": ("cross", "load_bps"),
    "load_next": ("cross", "mean_bps"),
    "elastic": ("cross", "elastic"),
    "tcp": ("cross", "tcp_bps"),
    "variation": ("rate_variation", "cv"),
    "variation_scale": ("rate_variation", "scale_s"),
    "gathered": ("aggregation_s",),
}


def _found(of: Direction) -> dict[str, Any]:
    document = asdict(of)
    row: dict[str, Any] = {"bytes": of.bytes}
    for name, keys in ENTRIES.items():
        entry: Any = document
        for key in keys:
            entry = entry[key]
        row |= {name: entry["value"], f"{name}_low": entry["low"], f"{name}_high": entry["high"]}
        row[f"{name}_why"] = entry["why"]
    return row | {"lost": document["loss"]["lost"], "probes": document["loss"]["packets"]}


def _shared(found: Measurement | None, direction: str) -> dict[str, Any]:
    if found is None:
        return {"refused": "no-answer"}
    first = found.paths[0]
    told = [one.probability for one in first.shared_with if one.direction == direction]
    entry = told[0] if told else Value(None, why="not-looked-for")
    row = {"is_shared": entry.value, "is_shared_why": entry.why}
    return row | {"seconds": found.elapsed_s, "bytes": found.probe_bytes}
