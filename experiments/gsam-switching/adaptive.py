"""The open problem: adaptive start against the best of all other controllers, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd
from scipy.stats import t

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval, same
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from .cells import Network
from .networks import network

OURS = "adaptive_start"
OTHERS = ("lia", "gsam", "subflow_switch", "gsam_default", "lisa", "css", "hystartpp")
ONE_LINK = ("tcp", "rtt_ms", "bytes", "subflows")
SECOND = ("tcp", "rate_mbit", "rtt_ms", "queue", "paths", "bytes")
DRAWN = ("tcp", "network", "bytes")
KEYS = {
    "open": ONE_LINK,
    "second": SECOND,
    "large": SECOND,
    "third": DRAWN,
    "third-large": DRAWN,
    "fourth": DRAWN,
    "fourth-large": DRAWN,
}
NETWORKS: tuple[Network, ...] = (("paper", 150), ("paper", 300), ("linux", 150), ("linux", 300))


def ratios(results: Results, grid: str, choose: Iterable[int], judge: Iterable[int]) -> pd.DataFrame:
    """Of each cell: the best of the others on the seeds of `choose`; on those of `judge` our mean over its mean.

    Columns: the cell's keys, `best`, `ours_s` and `best_s` [s], `ratio`, `half` of its 95 % interval (not a number for
    a single seed, or where all have the same), `seeds` (those of `judge` that both have), means of `drops` and
    `timeouts`, and of the best's as `best_drops` and `best_timeouts`; `tied`, another that was as fast as the best on
    the seeds of `choose`, the slowest on those of `judge`, and the ratio over it, `over_tied`; `cell` in words and, but
    for `open`, the `shape` of its network. `open` also has the seeds of `main`. Raises Undecided where no cell has
    samples of all.
    """
    first, then = tuple(choose), tuple(judge)
    return results.once(lambda every: _ratios(every, grid, first, then), f"ratios {grid} {first} {then}")


def _ratios(results: Results, grid: str, choose: tuple[int, ...], judge: tuple[int, ...]) -> pd.DataFrame:
    frame = results.frame
    if frame.empty or not (frame["grid"] == grid).any():
        raise Undecided(f"no sample of grid `{grid}` has a result")
    keys = list(KEYS[grid])
    frame = frame[frame["grid"].isin(("main", "open") if grid == "open" else (grid,))]
    frame = frame[frame["control"].isin((OURS, *OTHERS))]

    def means(seeds: tuple[int, ...], column: str = "completion_s") -> pd.DataFrame:
        kept = frame[frame["seed"].isin(seeds)]
        table = kept.pivot_table(index=keys, columns="control", values=column, aggfunc="mean", observed=True)
        return table.reindex(columns=[OURS, *OTHERS])

    first, then = means(choose)[list(OTHERS)].dropna(), means(judge).dropna()
    cells = first.index.intersection(then.index)
    if cells.empty:
        raise Undecided(
            f"grid `{grid}` has no cell with samples of every controller on the seeds to choose and to judge"
        )
    first, then = first.loc[cells], then.loc[cells]
    best = first.idxmin(axis=1)

    def of_best(table: pd.DataFrame) -> list[float]:
        return [table.at[cell, control] for cell, control in best.items()]

    found = pd.DataFrame({"best": best, "ours_s": then[OURS], "best_s": of_best(then)})
    found["ratio"] = found["ours_s"] / found["best_s"]
    for column in ("drops", "timeouts"):
        table = means(judge, column).loc[cells]
        found[column], found[f"best_{column}"] = table[OURS], of_best(table)
    tied = then[list(OTHERS)].where(first.eq(first.min(axis=1), axis=0)).idxmax(axis=1)
    found["tied"] = tied.where(tied != best, "")
    found["over_tied"] = found["ours_s"] / [then.at[cell, control] for cell, control in tied.items()]
    found = found.join(_intervals(frame[frame["seed"].isin(judge)], keys, found[["best", "ratio"]]))
    found = found.reset_index()
    points = found[keys].to_dict("records")
    if grid == "open":
        told = [f"RTT {p['rtt_ms']:g} ms, n = {p['subflows']:g}" for p in points]
    else:
        networks = [network(p, results.plan.setup) for p in points]
        told = [str(one) for one in networks]
        found["shape"] = [one.shape for one in networks]
    found["cell"] = [f"{where}, {p['bytes']}" for where, p in zip(told, points, strict=True)]
    return found


def _intervals(frame: pd.DataFrame, keys: list[str], found: pd.DataFrame) -> pd.DataFrame:
    """`half` of the 95 % interval of each cell's ratio of means, and its `seeds`: pairs of the same seed.

    To the first order the ratio errs by the mean of (ours - ratio * best) over the best's mean: Student's t of that.
    """
    each = frame.pivot_table(index=[*keys, "seed"], columns="control", values="completion_s", observed=True)
    of = each.reset_index(level="seed", drop=True).index
    kept = of.isin(found.index)
    each, of = each[kept], of[kept]
    column = each.columns.get_indexer(found["best"].reindex(of))
    best = pd.Series(each.to_numpy()[range(len(each)), column], each.index)
    errors = (each[OURS] - found["ratio"].reindex(of).to_numpy() * best).dropna()
    cells = errors.groupby(level=keys)
    n = cells.size().reindex(found.index)
    half = t.ppf(0.975, n - 1) * cells.std() / n**0.5 / best[errors.index].groupby(level=keys).mean()
    return pd.DataFrame(
        {"half": half.mask(cells.agg(same).reindex(found.index, fill_value=True).astype(bool)), "seeds": n}
    )


def judged(
    results: Results, seeds: Mapping[str, Any], grid: str, networks: Iterable[Network] | None, tcp: str
) -> pd.DataFrame:
    """The cells that are judged; seeds: the first and the last to `choose` and to `judge` on.

    Also `exchanged` and `exchanged_best`: the ratio with the seeds to choose and to judge exchanged, and the best of
    then; not a number where adaptive start has no samples on the former.
    """
    first, last = seeds["choose"]
    begin, end = seeds["judge"]
    choose, judge = range(first, last + 1), range(begin, end + 1)
    found = ratios(results, grid, choose, judge)
    keys = list(KEYS[grid])
    try:
        other = ratios(results, grid, judge, choose).set_index(keys)[["ratio", "best"]]
        found = found.join(other.rename(columns={"ratio": "exchanged", "best": "exchanged_best"}), on=keys)
    except Undecided:
        found = found.assign(exchanged=math.nan, exchanged_best="")
    found = found[found["tcp"] == tcp]
    if networks is not None:
        found = found[found["rtt_ms"].isin([rtt for _, rtt in networks])]
    if found.empty:
        raise Undecided(f"grid `{grid}` has no results with TCP {tcp} in these networks")
    return found


def slower(ratio: float, half: float = math.nan) -> str:
    """`+4.2 ± 0.3 %`; without an interval `+4.2 %`."""
    return f"{100 * (ratio - 1):+.1f}{'' if math.isnan(half) else f' ± {100 * half:.1f}'} %"


def seeds(found: pd.DataFrame) -> str:
    """On how many seeds cells are judged: `3`, or `2 to 3`."""
    least, most = found["seeds"].min(), found["seeds"].max()
    return f"{most}" if least == most else f"{least} to {most}"


def _cell(row: pd.Series) -> str:
    """A cell that is behind: by how much, and what both controllers lost there."""
    over = f"{row['cell']}: {slower(row['ratio'], row['half'])} of {row['best']} ("
    if row["tied"]:
        over += f"{slower(row['over_tied'])} of {row['tied']}, as fast on the seeds to choose on; "
    lost = f"drops {row['drops']:.0f} against {row['best_drops']:.0f}, "
    return over + lost + f"timeouts {row['timeouts']:.1f} against {row['best_timeouts']:.1f})"


def _verdict(found: pd.DataFrame, threshold: dict[str, Any]) -> Finding:
    """A cell is within a bound if its whole interval is, beyond if that is, or a ratio that is the same for all seeds.

    A single seed has no interval.
    """
    most, verdict = threshold["most"], Verdict()
    shares = {}
    for bound in (most, threshold.get("all")):
        if bound is not None:
            ends = found["ratio"] - found["half"], found["ratio"] + found["half"]
            over = found["ratio"] > 1 + bound
            beyond = (ends[0] > 1 + bound) | (over & found["half"].isna() & (found["seeds"] > 1))
            shares[bound] = Interval(
                float((~over).mean()), float((ends[1] <= 1 + bound).mean()), float(1 - beyond.mean()), len(found)
            )
    if found["seeds"].max() == 1:
        verdict.needs(None, "one seed a cell has no interval")
    for bound, wanted in zip(shares, (threshold.get("share", 1.0), 1.0), strict=False):
        share = shares[bound]
        told = f"of the cells {100 * share.low:.1f} to {100 * share.high:.1f} % are within {100 * bound:.0f} %"
        if found["seeds"].max() > 1:
            verdict.needs(share.at_least(wanted), told)
    over = found[found["ratio"] > 1 + most].sort_values("ratio", ascending=False)
    verdict.details = [_cell(row) for _, row in over.head(8).iterrows()]
    if len(over):
        verdict.details.append(_summary(over, most))
    worst = found.loc[found["ratio"].idxmax()]
    ours = f"within {100 * most:.0f} % in {len(found) - len(over)} of {len(found)} cells, worst "
    alike = int((found["half"].isna() & (found["seeds"] > 1)).sum())
    one_run = f"; {alike} cells the same in all runs" if alike else ""
    return verdict.finding(ours + slower(worst.ratio, worst.half) + one_run)


def _summary(shown: pd.DataFrame, bound: float) -> str:
    """Of all cells beyond the bound: for certain or not, on which paths, and who loses more."""
    certain = int((shown["ratio"] - shown["half"] > 1 + bound).sum())
    said = [f"beyond {100 * bound:.0f} %: {len(shown)} (with the whole interval: {certain})"]
    if "shape" in shown:
        said.append(", ".join(f"{count} ({shape})" for shape, count in shown["shape"].value_counts().items()))
    more = [int((shown[column] > shown[f"best_{column}"]).sum()) for column in ("drops", "timeouts")]
    said.append(f"adaptive start drops nothing in {int((shown['drops'] == 0).sum())}, more than the best in {more[0]}")
    return "; ".join(said) + f", and has more timeouts in {more[1]}."


def first_grid(tcp: str, networks: tuple[Network, ...]) -> Callable[[Results, Claim], Finding]:
    """In no cell of the first grid slower by more than the threshold."""

    def claim_function(results: Results, claim: Claim) -> Finding:
        return _verdict(judged(results, claim.threshold, "open", networks, tcp), claim.threshold)

    return claim_function


def other_grid(grid: str, tcp: str) -> Callable[[Results, Claim], Finding]:
    """In so many cells of another grid, and nowhere by more than `all`."""

    def claim_function(results: Results, claim: Claim) -> Finding:
        return _verdict(judged(results, claim.threshold, grid, None, tcp), claim.threshold)

    return claim_function


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    "open-small": first_grid("paper", NETWORKS[:1]),
    "open-one-way": first_grid("paper", NETWORKS[1:2]),
    "open-linux": first_grid("linux", NETWORKS[2:]),
    "open-second-grid": other_grid("second", "paper"),
    "open-second-grid-linux": other_grid("second", "linux"),
    "open-third-grid": other_grid("third", "paper"),
    "open-third-grid-linux": other_grid("third", "linux"),
    "open-fourth-grid": other_grid("fourth", "paper"),
    "open-fourth-grid-linux": other_grid("fourth", "linux"),
    "open-fourth-100MB": other_grid("fourth-large", "paper"),
    "open-fourth-100MB-linux": other_grid("fourth-large", "linux"),
}
