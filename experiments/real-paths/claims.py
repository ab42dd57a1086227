"""How right, how dear, and how honest `measure` is over the judged profiles, a source counting once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

# the two classes that are never mixed, by the bottleneck's rate [bit/s]
SLOW_BPS = 1e6
CLASSES: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "below 1 Mbit/s": lambda frame: frame["rate_bps"] < SLOW_BPS,
    "above 1 Mbit/s": lambda frame: frame["rate_bps"] >= SLOW_BPS,
}
# where the runs are too few for two
TOGETHER: dict[str, Callable[[pd.DataFrame], pd.Series]] = {"all": lambda frame: frame["rate_bps"] > 0}


def runs(results: Results, directions: str) -> pd.DataFrame:
    """All that finished, with `off` (|value / truth - 1|, infinite without a value) and `inside`. Raises Undecided."""
    frame = results.frame
    if frame.empty or (frame := frame[frame["directions"] == directions]).empty:
        raise Undecided("none of its runs is there")
    frame = frame.reindex(columns=[*dict.fromkeys([*frame.columns, "value_bps", "low_bps", "high_bps"])])
    numbers = frame[["value_bps", "low_bps", "high_bps"]].astype(float)
    off = (numbers["value_bps"] / frame["truth_bps"] - 1).abs().fillna(np.inf)
    inside = (numbers["low_bps"] <= frame["truth_bps"]) & (frame["truth_bps"] <= numbers["high_bps"])
    return frame.assign(off=off, inside=inside, half_width=(numbers["high_bps"] - numbers["low_bps"]) / 2)


def judged(results: Results, claim: Claim) -> pd.DataFrame:
    """Those that count. Raises Undecided."""
    frame = runs(results, claim.threshold["directions"])
    if (frame := frame[frame["judged"].astype(bool)]).empty:
        raise Undecided("none of its runs is of a path that is judged")
    return frame


def share(frame: pd.DataFrame, so: pd.Series) -> Interval:
    """Of the runs of a source, in the mean over sources; where all runs of each source agree, of the sources."""
    means = so.groupby(frame["source"]).mean()
    if set(means) <= {0.0, 1.0}:
        return Interval.share(means)
    return Interval.bootstrap(means, np.mean)


def median(frame: pd.DataFrame, column: str) -> Interval:
    """Of the runs of a source; of the sources."""
    return Interval.bootstrap(frame.groupby("source")[column].median(), np.median)


def _by_class(results: Results, claim: Claim, part: Callable[[pd.DataFrame], tuple[bool | None, str]]) -> Finding:
    """part: whether a class's runs meet it, and how that is told."""
    frame, verdict, told = judged(results, claim), Verdict(), []
    for name, condition in (TOGETHER if claim.threshold.get("together") else CLASSES).items():
        here = frame[condition(frame)]
        if here["source"].nunique() < 2:
            verdict.missing.append(f"paths of two sources {name}")
            continue
        met, words = part(here)
        told.append(f"{name} {words}")
        verdict.needs(met, f"{name} {words}")
        verdict.details.append(f"{name}: {words}; {len(here)} runs of {here['source'].nunique()} sources")
    return verdict.finding("; ".join(told) or "nothing")


def within(results: Results, claim: Claim) -> Finding:
    """A run without a value misses."""
    bar = claim.threshold

    def part(here: pd.DataFrame) -> tuple[bool | None, str]:
        found = share(here, here["off"] <= bar["off"])
        return found.at_least(bar["least"]), found.percent(sign=False)

    return _by_class(results, claim, part)


def cost(results: Results, claim: Claim) -> Finding:
    """Seconds or bytes of the whole measurement."""
    bar = claim.threshold
    scale, form, unit = {"seconds": (1.0, ".1f", " s"), "bytes": (1e-6, ".2f", " MB")}[bar["column"]]

    def part(here: pd.DataFrame) -> tuple[bool | None, str]:
        found = median(here, bar["column"])
        return found.at_most(bar["most"]), found.told(scale, form, unit)

    return _by_class(results, claim, part)


def inside(results: Results, claim: Claim) -> Finding:
    """A run without an interval is not inside."""
    bar = claim.threshold

    def part(here: pd.DataFrame) -> tuple[bool | None, str]:
        found = share(here, here["inside"])
        return found.within(bar["least"], bar["most"]), found.percent(sign=False)

    return _by_class(results, claim, part)


_KINDS = {"within": within, "time": cost, "bytes": cost, "inside": inside}
CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **{f"{name}{end}": make for end in ("", "-out") for name, make in _KINDS.items()},
    "within-emu": within,
}
