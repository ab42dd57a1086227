"""The slides' findings, and what we add to them, as functions of the results. plan.toml states each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from .cells import (
    WITH_PAGES,
    Cell,
    apart,
    available,
    fairness,
    fluctuation,
    growth,
    growth_by_load,
    losses,
    over_loads,
    share,
    start,
    throughput,
)
from .recommend import chosen

NAMES = {
    "none": "no background",
    "reno": "Reno",
    "nice": "Nice",
    "lp": "LP",
    "ledbatpp": "LEDBAT++",
    "imtcp_bg": "ImTCP-bg",
    "recommended": "ImTCP-bg, recommended",
    "plain": "ImTCP-bg, small = 0",
    "unyielding": "ImTCP-bg, small = 1",
}
OURS, PLAIN, UNYIELDING = "imtcp_bg", "plain", "unyielding"
OTHERS = ("nice", "lp")
FIVE = 5
# packets of a path below which it is small for ImTCP-bg, and how many times the queueing delay counts there
SMALL, YIELD = 50, 2.5


def _own(claim: Claim) -> str:
    """Which ImTCP-bg a claim is about: with its rules for small paths, or without."""
    return claim.threshold.get("own", OURS)


def _three(claim: Claim) -> tuple[str, ...]:
    return (*OTHERS, _own(claim))


def _cell(claim: Claim, connections: int = 1) -> Cell:
    return Cell(claim.threshold["network"], claim.seeds, connections)


def _reno(results: Results, claim: Claim, cell: Cell) -> Finding:
    verdict, found = Verdict(), {one: throughput(results, cell, one) for one in ("reno", *_three(claim))}
    for control in _three(claim):
        more = Interval.mean(found["reno"] - found[control])
        verdict.details.append(
            f"{NAMES[control]} {found[control].mean() / 1e6:.2f} Mbit/s, Reno {more.told(1e-6, '.2f')} more"
        )
        verdict.needs(more.above(0), f"no more than {NAMES[control]}")
    grown = Interval.mean(growth(results, cell, "reno"))
    verdict.needs(grown.above(claim.threshold["grows"]), f"page times grow by {grown.percent()}")
    busy = replace(cell, loads=WITH_PAGES)
    used = throughput(results, busy, "reno").mean() / over_loads(available(results, busy)).mean()
    why = (
        f"Beside pages it uses {100 * used:.0f} % of what is available: their bursts cut its window before it has "
        "filled the buffer, and it grows by a packet a round trip."
    )
    return verdict.finding(f"{found['reno'].mean() / 1e6:.1f} Mbit/s; page times grow by {grown.percent()}", why)


def e1_reno(results: Results, claim: Claim) -> Finding:
    """E1: Reno."""
    return _reno(results, claim, _cell(claim))


def _quiet(results: Results, cell: Cell, controls: Sequence[str], most: float, verdict: Verdict) -> list[str]:
    told = []
    for control in controls:
        found = Interval.mean(growth(results, cell, control))
        by_load = growth_by_load(results, cell, control).groupby("load").mean()
        told.append(f"{NAMES[control]} {found.percent()}")
        verdict.details.append(f"{told[-1]}, most at a load of {by_load.idxmax()} %: {100 * by_load.max():+.0f} %")
        verdict.needs(found.at_most(most), told[-1])
    return told


def e1_quiet(results: Results, claim: Claim) -> Finding:
    """E1: page times beside the three."""
    verdict = Verdict()
    told = _quiet(results, _cell(claim), _three(claim), claim.threshold["most"], verdict)
    why = "Its queue, and what it takes of the buffer from the pages' bursts, cost time."
    return verdict.finding(", ".join(told), why)


def ledbatpp(results: Results, claim: Claim) -> Finding:
    """Not in the slides: page times beside LEDBAT++."""
    verdict, rtt_ms = Verdict(), results.plan.setup["network"][claim.threshold["network"]]["rtt_ms"]
    (told,) = _quiet(results, _cell(claim), ("ledbatpp",), claim.threshold["most"], verdict)
    why = f"Its target is a queue of 60 ms, and the whole buffer is {rtt_ms} ms: it yields to losses only."
    return verdict.finding(told, why)


def _why_slow(results: Results, cell: Cell, own: str = OURS) -> str:
    network = results.plan.setup["network"][cell.network]
    packets = network["rate_mbit"] * 1e3 * network["rtt_ms"] / 8 / (network["mss"] + network["header"])
    small = packets < SMALL
    if small and own == PLAIN:
        return "Two packets in a row look like somebody's queue there, and it is often held at two."
    falls = f"falls by {YIELD:g} times the queueing delay, for the pages' sake (cause-small-one)"
    return (
        f"When pages come its window {falls if small else 'shrinks with the RTT'}; then it "
        "grows as Reno's does, by a packet a round trip."
    )


def _closest(results: Results, cell: Cell, own: str, least: float, verdict: Verdict) -> list[str]:
    found = {control: apart(results, cell, control) for control in (own, *OTHERS)}
    told = [f"{NAMES[own]} {100 * found[own].mean():.1f} %"]
    for control in OTHERS:
        further = Interval.mean(found[control] - found[own])
        told.append(f"{NAMES[control]} {100 * found[control].mean():.1f} %")
        verdict.details.append(f"{cell.network}: {NAMES[control]} is {further.percent()} of the link further away")
        verdict.needs(further.above(least), f"{NAMES[control]} is {further.percent()} further away")
    return told


def e1_closest(results: Results, claim: Claim) -> Finding:
    """E1: the distance from the true available bandwidth."""
    verdict, cell, own = Verdict(), _cell(claim), _own(claim)
    told = _closest(results, cell, own, claim.threshold["least"], verdict)
    return verdict.finding(f"{', '.join(told)} of the link away", _why_slow(results, cell, own))


def small_one(results: Results, claim: Claim) -> Finding:
    """Not in the slides: what ImTCP-bg's rules for small paths do."""
    cell, verdict = _cell(claim), Verdict()
    grown, nearer = Interval.mean(growth(results, cell, UNYIELDING)), _nearer(results, [cell], UNYIELDING)
    verdict.needs(grown.above(claim.threshold["grows"]), f"page times grow by {grown.percent()}")
    verdict.needs(nearer.above(claim.threshold["nearer"]), f"nearer by {nearer.percent()} of the link")
    ours = f"page times grow by {grown.percent()}; nearer by {nearer.percent()} of the link"
    return verdict.finding(ours, "It is as quiet without them, or no nearer.")


def _nearer(results: Results, cells: Sequence[Cell], own: str) -> Interval:
    """By how much it is nearer to the available bandwidth than the register's, mean over networks."""
    every = (apart(results, cell, OURS) - apart(results, cell, own) for cell in cells)
    return Interval.mean(sum(every) / len(cells))


def e2_reno(results: Results, claim: Claim) -> Finding:
    """E2: Reno."""
    return _reno(results, claim, _cell(claim, FIVE))


def e2_nice(results: Results, claim: Claim) -> Finding:
    """E2: Nice's throughput with few connections."""
    cell, least, own, verdict = _cell(claim, FIVE), claim.threshold["least"], _own(claim), Verdict()
    one, five, other = (share(results, cell, *of) for of in (("nice", 1), ("nice", FIVE), (own, 1)))
    for found, told in ((five, "Nice with five"), (other, f"{NAMES[own]} with one")):
        more = Interval.mean(found - one)
        verdict.details.append(f"{told}: {more.percent()} of what is available more")
        verdict.needs(more.above(least), f"{told} has {more.percent()} more")
    ours = (
        f"of what is available Nice has {100 * one.mean():.0f} % with one connection, {100 * five.mean():.0f} % with "
        f"five; {NAMES[own]} {100 * other.mean():.0f} % with one"
    )
    return verdict.finding(ours, "Our Nice is not that slow by itself.")


def e2_lp_losses(results: Results, claim: Claim) -> Finding:
    """E2: LP's losses at joins."""
    found, verdict = losses(results, _cell(claim, FIVE), "lp"), Verdict()
    every, more = found["with"] == 1, Interval.mean(found["after"] - found["before"])
    # a mean of what is 1 throughout has no spread; of seeds of which all have it at least so many do
    with_ = Interval.share(every, found["after"]) if every.all() else Interval.mean(found["with"])
    verdict.needs(with_.at_least(claim.threshold["share"]), f"losses at {with_.percent(False)} of the joins")
    verdict.needs(more.above(claim.threshold["more"]), f"{more.told(form='.1f')} segments more after a join")
    before, after = found["before"].mean(), found["after"].mean()
    ours = f"losses at {with_.percent(False)} of the joins; {before:.1f} segments before, {after:.1f} after"
    return verdict.finding(ours, "A new connection leaves slow start before the buffer is full.")


def e2_lp_start(results: Results, claim: Claim) -> Finding:
    """E2: LP's first 20 s."""
    found, verdict = Interval.mean(start(results, _cell(claim, FIVE), "lp")), Verdict()
    verdict.needs(found.at_most(claim.threshold["most"]), "it is not low")
    why = (
        "Slow start gives it more than the others have in its first 5 s; its losses are repaired by SACK, without a "
        "timeout, and from then on it has as much as they."
    )
    why = why.replace("by SACK, ", "") if "ns-2" in claim.threshold["network"] else why
    return verdict.finding(f"{found.told(form='.2f')} times what the others have in its first 20 s", why)


def _one(results: Results, cell: Cell, own: str, least: float | None, verdict: Verdict) -> str:
    found = {control: share(results, cell, control, 1) for control in (own, *OTHERS)}
    mean = Interval.mean(found[own])
    told = f"{NAMES[own]} with one {mean.percent(sign=False)} of what is available"
    if least is not None:
        verdict.needs(mean.at_least(least), f"{mean.percent(sign=False)}")
    for control in OTHERS:
        more = Interval.mean(found[own] - found[control])
        verdict.details.append(f"{NAMES[control]} with one {100 * found[control].mean():.0f} %, {more.percent()} less")
        verdict.needs(more.above(0), f"no more than {NAMES[control]}")
    return told


def e2_one(results: Results, claim: Claim) -> Finding:
    """E2: ImTCP-bg with one connection."""
    verdict, cell, own = Verdict(), _cell(claim, FIVE), _own(claim)
    told = _one(results, cell, own, claim.threshold["least"], verdict)
    return verdict.finding(told, _why_slow(results, cell, own))


def e2_steady(results: Results, claim: Claim) -> Finding:
    """E2: fluctuation."""
    verdict, cell, own = Verdict(), _cell(claim, FIVE), _own(claim)
    found = {control: fluctuation(results, cell, control) for control in (own, "reno", *OTHERS)}
    for control in ("reno", *OTHERS):
        more = Interval.mean(found[control] - found[own])
        verdict.details.append(f"{NAMES[control]} fluctuates by {more} more")
        verdict.needs(more.above(claim.threshold["least"]), f"{NAMES[control]} by no more")
    why = "Reno takes what pages leave, and keeps its place when they come; the others make room for each of them. "
    told = ", ".join(f"{NAMES[control]} {of.mean():.2f}" for control, of in found.items())
    return verdict.finding(told, why + _why_slow(results, cell, own))


def _fair(results: Results, claim: Claim, own: str, verdict: Verdict) -> str:
    cell = _cell(claim, FIVE)
    found = {control: fairness(results, cell, control) for control in (own, *OTHERS)}
    ours = Interval.mean(found[own])
    verdict.needs(ours.at_least(claim.threshold["least"]), f"Jain's index {ours}")
    for control in OTHERS:
        below = Interval.mean(found[control] - found[own])
        verdict.details.append(f"{NAMES[control]}: Jain's index {found[control].mean():.3f}, {below} above")
        verdict.needs(below.at_most(claim.threshold["below"]), f"below {NAMES[control]} by {below}")
    return f"Jain's index {ours}"


def e2_fair(results: Results, claim: Claim) -> Finding:
    """E2: Jain's index."""
    verdict, own = Verdict(), _own(claim)
    told = _fair(results, claim, own, verdict)
    return verdict.finding(told, _why_slow(results, _cell(claim, FIVE), own))


def small_several(results: Results, claim: Claim) -> Finding:
    """Not in the slides: the same with five flows."""
    cell, verdict = _cell(claim, FIVE), Verdict()
    more = Interval.mean(growth(results, cell, UNYIELDING) - growth(results, cell, OURS))
    verdict.needs(more.above(claim.threshold["grows"]), "page times grow no more without them")
    fair = _fair(results, claim, UNYIELDING, verdict)
    one = _one(results, cell, UNYIELDING, None, verdict)
    return verdict.finding(f"page times grow by {more.percent()} more; {fair}; {one}")


def small_paths(results: Results, claim: Claim) -> Finding:
    """Not in the slides: quiet and closest on other small paths."""
    verdict, told, cells = Verdict(), [], [Cell(name, claim.seeds) for name in claim.threshold["networks"]]
    for cell in cells:
        (grown,) = _quiet(results, cell, (OURS,), claim.threshold["most"], verdict)
        _closest(results, cell, OURS, claim.threshold["least"], verdict)
        told.append(f"{cell.network}: page times {grown.removeprefix(NAMES[OURS] + ' ')}")
    return verdict.finding("; ".join(told), _why_slow(results, cells[0]))


def recommended(results: Results, claim: Claim) -> Finding:
    """Whether the plan's setting is the rule's."""
    found, table = chosen(results, claim.threshold["most"])
    setup = results.plan.setup["control"]["recommended"]
    plan = (setup["delta"], setup["gamma"])

    def told(setting: tuple[int, int]) -> str:
        row = table.loc[setting]
        return (
            f"delta {setting[0] / 1000:g}, gamma {setting[1] / 1000:g}: page times {100 * row['growth']:+.1f} % on the "
            f"network where they grow most, {100 * row['apart']:.1f} % of the link away"
        )

    quiet = int((table["growth"] <= claim.threshold["most"]).sum())
    details = (f"{quiet} of {len(table)} settings are quiet",)
    if found == plan:
        return Finding(told(found), True, None, details)
    return Finding(told(found), False, f"the plan has {told(plan) if plan in table.index else plan}", details)


def elsewhere(results: Results, claim: Claim) -> Finding:
    """The recommended setting on other networks and seeds: growth in each, and by how much it is nearer."""
    verdict, told = Verdict(), []
    cells = [Cell(name, claim.seeds) for name in claim.threshold["networks"]]
    for cell in cells:
        found = Interval.mean(growth(results, cell, "recommended"))
        told.append(found.value)
        verdict.details.append(f"{cell.network}: page times {found.percent()}")
        verdict.needs(found.at_most(claim.threshold["most"]), f"{cell.network}: page times {found.percent()}")
    nearer = _nearer(results, cells, "recommended")
    verdict.needs(nearer.at_least(claim.threshold["worse"]), f"nearer by {nearer.percent()}")
    ours = f"page times {100 * min(told):+.1f} to {100 * max(told):+.1f} %; nearer by {nearer.percent()} of the link"
    return verdict.finding(ours)


_E1 = {"reno": e1_reno, "quiet": e1_quiet, "closest": e1_closest}
_E2 = {
    "reno": e2_reno,
    "nice": e2_nice,
    "lp-losses": e2_lp_losses,
    "lp-start": e2_lp_start,
    "one": e2_one,
    "steady": e2_steady,
    "fair": e2_fair,
}
CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **{f"core-e1-{what}-{on}": of for on in ("10", "20", "100", "ns2") for what, of in _E1.items()},
    **{f"core-e2-{what}-{on}": of for on in ("10", "100", "ns2") for what, of in _E2.items()},
    # without our rules for small paths
    **{f"plain-e1-{what}-{on}": _E1[what] for on in ("10", "ns2") for what in ("quiet", "closest")},
    **{f"plain-e2-{what}-{on}": _E2[what] for on in ("10", "ns2") for what in ("nice", "one", "steady", "fair")},
    **{f"ledbatpp-{network}": ledbatpp for network in ("10", "20", "100")},
    "cause-small-one": small_one,
    "cause-small-several": small_several,
    "open-recommended": recommended,
    "open-recommended-elsewhere": elsewhere,
    "small-paths": small_paths,
}
