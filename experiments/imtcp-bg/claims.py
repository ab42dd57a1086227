"""The slides' findings, and what we add to them, as functions of the results. plan.toml states each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.mean import Mean
from pathcast.lab.plan import Claim

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
}
OURS, PLAIN = "imtcp_bg", "plain"
OTHERS = ("nice", "lp")
QUIET = (*OTHERS, OURS)
FIVE = 5
# packets of a path below which it is small for ImTCP-bg, and how many times the queueing delay counts there
SMALL, YIELD = 50, 2.5


@dataclass(frozen=True)
class Part:
    """One condition of a claim: what was found, and whether it holds (None: the interval does not say)."""

    told: str
    holds: bool | None
    why: str = ""


def _above(told: str, found: Mean, bar: float, why: str = "") -> Part:
    """Whether it is above the bar: the whole interval; false where the mean is not, None where only the mean is."""
    return Part(told, True if found.low > bar else None if found.mean > bar else False, why)


def _below(told: str, found: Mean, bar: float, why: str = "") -> Part:
    """Whether it is at most the bar, in the same way."""
    return Part(told, True if found.high <= bar else None if found.mean <= bar else False, why)


def _judged(parts: Sequence[Part]) -> Finding:
    """All must hold; the first that does not gives the reason."""
    ours = "; ".join(part.told for part in parts)
    wrong = [part for part in parts if part.holds is False]
    open_ = [part for part in parts if part.holds is None]
    if wrong:
        whys = dict.fromkeys(part.why for part in wrong if part.why)
        return Finding(ours, False, f"not so: {'; '.join(part.told for part in wrong)}. {' '.join(whys)}".strip())
    if open_:
        told = "; ".join(part.told for part in open_)
        return Finding(ours, None, f"the interval reaches over the threshold: {told}")
    return Finding(ours, True)


def _mbit(bps: float) -> str:
    return f"{bps / 1e6:.2f} Mbit/s"


def _cell(claim: Claim, connections: int = 1) -> Cell:
    return Cell(claim.threshold["network"], claim.seeds, connections)


def _reno(results: Results, claim: Claim, cell: Cell) -> Finding:
    found = {control: throughput(results, cell, control) for control in ("reno", *QUIET)}
    parts = [Part(f"Reno {_mbit(found['reno'].mean())}", True)]
    for control in QUIET:
        told = f"{NAMES[control]} {_mbit(found[control].mean())}"
        parts.append(_above(told, Mean.of(found["reno"] - found[control]), 0.0))
    grown = Mean.of(growth(results, cell, "reno"))
    busy = replace(cell, loads=WITH_PAGES)
    used = throughput(results, busy, "reno").mean() / over_loads(available(results, busy)).mean()
    why = (
        f"Beside pages it uses {100 * used:.0f} % of what is available: their bursts cut its window before it has "
        "filled the buffer, and it grows by a packet a round trip."
    )
    return _judged([*parts, _above(f"page times grow by {grown.percent()}", grown, claim.threshold["grows"], why)])


def e1_reno(results: Results, claim: Claim) -> Finding:
    """E1: Reno."""
    return _reno(results, claim, _cell(claim))


def _quiet(results: Results, claim: Claim, controls: Sequence[str], why: str) -> Finding:
    cell, parts = _cell(claim), []
    for control in controls:
        found = Mean.of(growth(results, cell, control))
        by_load = growth_by_load(results, cell, control).groupby("load").mean()
        most = f"most at a load of {by_load.idxmax()} %: {100 * by_load.max():+.0f} %"
        told = f"{NAMES[control]} {found.percent()} ({most})"
        parts.append(_below(told, found, claim.threshold["most"], why))
    return _judged(parts)


def e1_quiet(results: Results, claim: Claim) -> Finding:
    """E1: page times beside the three."""
    return _quiet(
        results, claim, QUIET, "Its queue, and what it takes of the buffer from the pages' bursts, cost time."
    )


def ledbatpp(results: Results, claim: Claim) -> Finding:
    """Not in the slides: page times beside LEDBAT++."""
    rtt_ms = results.plan.setup["network"][claim.threshold["network"]]["rtt_ms"]
    why = f"Its target is a queue of 60 ms, and the whole buffer is {rtt_ms} ms: it yields to losses only."
    return _quiet(results, claim, ("ledbatpp",), why)


def _why_slow(results: Results, cell: Cell) -> str:
    network = results.plan.setup["network"][cell.network]
    packets = network["rate_mbit"] * 1e3 * network["rtt_ms"] / 8 / (network["mss"] + network["header"])
    falls = f"falls by {YIELD:g} times the queueing delay, for the pages' sake (cause-small-one)"
    return (
        f"When pages come its window {falls if packets < SMALL else 'shrinks with the RTT'}; then it grows as Reno's "
        "does, by a packet a round trip."
    )


def _closest(results: Results, cell: Cell, least: float) -> list[Part]:
    found = {control: apart(results, cell, control) for control in (OURS, *OTHERS)}
    parts = [Part(f"{NAMES[OURS]} {100 * found[OURS].mean():.1f} % of the link away", True)]
    for control in OTHERS:
        difference = Mean.of((found[control] - found[OURS]).dropna())
        told = f"{NAMES[control]} {100 * found[control].mean():.1f} % (difference {difference.percent()})"
        parts.append(_above(told, difference, least, _why_slow(results, cell)))
    return parts


def e1_closest(results: Results, claim: Claim) -> Finding:
    """E1: the distance from the true available bandwidth."""
    return _judged(_closest(results, _cell(claim), claim.threshold["least"]))


def small_one(results: Results, claim: Claim) -> Finding:
    """Not in the slides: what ImTCP-bg's rules for small paths do."""
    cell = _cell(claim)
    grown, nearer = Mean.of(growth(results, cell, PLAIN)), _nearer(results, [cell], PLAIN)
    why = "It is as quiet without them, or no nearer."
    return _judged(
        [
            _above(f"page times grow by {grown.percent()}", grown, claim.threshold["grows"], why),
            _above(_told_nearer(nearer), nearer, claim.threshold["nearer"], why),
        ]
    )


def _nearer(results: Results, cells: Sequence[Cell], own: str) -> Mean:
    """By how much it is nearer to the available bandwidth than the register's, mean over networks."""
    return Mean.of(sum(apart(results, cell, OURS) - apart(results, cell, own) for cell in cells) / len(cells))


def _told_nearer(nearer: Mean) -> str:
    return f"nearer to the available bandwidth than the register's by {nearer.percent()} of the link"


def e2_reno(results: Results, claim: Claim) -> Finding:
    """E2: Reno."""
    return _reno(results, claim, _cell(claim, FIVE))


def e2_nice(results: Results, claim: Claim) -> Finding:
    """E2: Nice's throughput with few connections."""
    cell, least = _cell(claim, FIVE), claim.threshold["least"]
    one, five, other = (share(results, cell, *of) for of in (("nice", 1), ("nice", FIVE), (OURS, 1)))
    why = "Our Nice is not that slow by itself."
    return _judged(
        [
            Part(f"Nice with one connection {100 * one.mean():.0f} % of what is available", True),
            _above(f"with five {100 * five.mean():.0f} %", Mean.of(five - one), least, why),
            _above(f"ImTCP-bg with one {100 * other.mean():.0f} %", Mean.of(other - one), least, why),
        ]
    )


def e2_lp_losses(results: Results, claim: Claim) -> Finding:
    """E2: LP's losses at joins."""
    found = losses(results, _cell(claim, FIVE), "lp")
    with_, more = found["with"].mean(), Mean.of(found["after"] - found["before"])
    why = "A new connection leaves slow start before the buffer is full."
    told = f"{found['before'].mean():.1f} lost segments before, {found['after'].mean():.1f} after"
    return _judged(
        [
            Part(f"losses at {100 * with_:.0f} % of the joins", bool(with_ >= claim.threshold["share"]), why),
            _above(told, more, claim.threshold["more"], why),
        ]
    )


def e2_lp_start(results: Results, claim: Claim) -> Finding:
    """E2: LP's first 20 s."""
    found = Mean.of(start(results, _cell(claim, FIVE), "lp"))
    why = (
        "Slow start gives it more than the others have in its first 5 s; its losses are repaired by SACK, without a "
        "timeout, and from then on it has as much as they."
    )
    told = f"{found.mean:.2f} ± {found.half:.2f} of what the others have in its first 20 s"
    return _judged([_below(told, found, claim.threshold["most"], why)])


def _one(results: Results, cell: Cell, own: str, least: float | None) -> list[Part]:
    found = {control: share(results, cell, control, 1) for control in (own, *OTHERS)}
    mean, why = Mean.of(found[own]), _why_slow(results, cell)
    told = f"{NAMES[own]} with one {mean.percent(sign=False)} of what is available"
    parts = [Part(told, True) if least is None else _above(told, mean, least, why)]
    for control in OTHERS:
        told = f"{NAMES[control]} {100 * found[control].mean():.0f} %"
        parts.append(_above(told, Mean.of(found[own] - found[control]), 0.0, why))
    return parts


def e2_one(results: Results, claim: Claim) -> Finding:
    """E2: ImTCP-bg with one connection."""
    return _judged(_one(results, _cell(claim, FIVE), OURS, claim.threshold["least"]))


def e2_steady(results: Results, claim: Claim) -> Finding:
    """E2: fluctuation."""
    cell = _cell(claim, FIVE)
    found = {control: fluctuation(results, cell, control) for control in ("reno", *QUIET)}
    parts = [Part(f"ImTCP-bg {found[OURS].mean():.2f}", True)]
    for control in ("reno", *OTHERS):
        told = f"{NAMES[control]} {found[control].mean():.2f}"
        why = "Reno takes what pages leave, and keeps its place when they come; the others make room for each of them."
        why = why if control == "reno" else _why_slow(results, cell)
        parts.append(_above(told, Mean.of(found[control] - found[OURS]), claim.threshold["least"], why))
    return _judged(parts)


def _fair(results: Results, claim: Claim, own: str) -> list[Part]:
    cell = _cell(claim, FIVE)
    found = {control: Mean.of(fairness(results, cell, control)) for control in (own, *OTHERS)}
    others, ours = min(found[control].mean for control in OTHERS), found[own]
    why = _why_slow(results, cell)
    told = "; ".join(f"{NAMES[control]} {found[control].mean:.3f}" for control in OTHERS)
    near = ours.mean >= others - claim.threshold["below"]
    first = f"{NAMES[own]} {ours.mean:.3f} ± {ours.half:.3f}"
    return [_above(first, ours, claim.threshold["least"], why), Part(told, near, why)]


def e2_fair(results: Results, claim: Claim) -> Finding:
    """E2: Jain's index."""
    return _judged(_fair(results, claim, OURS))


def small_several(results: Results, claim: Claim) -> Finding:
    """Not in the slides: the same with five flows."""
    cell = _cell(claim, FIVE)
    more = Mean.of(growth(results, cell, PLAIN) - growth(results, cell, OURS))
    told = f"page times grow by {more.percent()} more than with the rules"
    grown = _above(told, more, claim.threshold["grows"], "They cost pages no less with them.")
    return _judged([grown, *_fair(results, claim, PLAIN), *_one(results, cell, PLAIN, None)])


def small_paths(results: Results, claim: Claim) -> Finding:
    """Not in the slides: quiet and closest on other small paths."""
    parts = []
    for name in claim.threshold["networks"]:
        cell = Cell(name, claim.seeds)
        found = Mean.of(growth(results, cell, OURS))
        why = "There it is not quiet enough."
        parts.append(_below(f"{name}: page times {found.percent()}", found, claim.threshold["most"], why))
        parts += _closest(results, cell, claim.threshold["least"])
    return _judged(parts)


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
    ours = f"{quiet} of {len(table)} settings are quiet; chosen: {told(found)}"
    if found == plan:
        return Finding(ours, True)
    return Finding(ours, False, f"the plan has {told(plan) if plan in table.index else plan}")


def elsewhere(results: Results, claim: Claim) -> Finding:
    """The recommended setting on other networks and seeds: growth in each, and by how much it is nearer."""
    cells = [Cell(name, claim.seeds) for name in claim.threshold["networks"]]
    parts = []
    for cell in cells:
        found = Mean.of(growth(results, cell, "recommended"))
        why = "There the setting is not quiet enough."
        parts.append(_below(f"{cell.network}: page times {found.percent()}", found, claim.threshold["most"], why))
    nearer = _nearer(results, cells, "recommended")
    told = _told_nearer(nearer)
    return _judged([*parts, Part(told, nearer.high >= claim.threshold["worse"], "The register's is nearer.")])


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **{
        f"core-e1-{what}-{network}": function
        for network in ("10", "20", "100")
        for what, function in (("reno", e1_reno), ("quiet", e1_quiet), ("closest", e1_closest))
    },
    **{
        f"core-e2-{what}-{network}": function
        for network in ("10", "100")
        for what, function in (
            ("reno", e2_reno),
            ("nice", e2_nice),
            ("lp-losses", e2_lp_losses),
            ("lp-start", e2_lp_start),
            ("one", e2_one),
            ("steady", e2_steady),
            ("fair", e2_fair),
        )
    },
    **{f"ledbatpp-{network}": ledbatpp for network in ("10", "20", "100")},
    "cause-small-one": small_one,
    "cause-small-several": small_several,
    "open-recommended": recommended,
    "open-recommended-elsewhere": elsewhere,
    "small-paths": small_paths,
}
