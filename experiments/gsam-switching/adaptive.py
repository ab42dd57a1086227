"""The open problem: adaptive start against the best of all other controllers, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.plan import Claim

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

    Columns: the cell's keys, `best`, `ours_s` and `best_s` [s], `ratio`, `drops` and `timeouts` (ours, means), `cell`
    in words and, but for `open`, the `shape` of its network. `open` also has the seeds of `main`. Raises Undecided
    where no cell has samples of all.
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
    found = pd.DataFrame({"best": best, "ours_s": then[OURS]})
    found["best_s"] = [then.at[cell, control] for cell, control in best.items()]
    found["ratio"] = found["ours_s"] / found["best_s"]
    for column in ("drops", "timeouts"):
        found[column] = means(judge, column)[OURS].reindex(cells)
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


def judged(results: Results, claim: Claim, grid: str, networks: Iterable[Network] | None, tcp: str) -> pd.DataFrame:
    """The cells that a claim is about."""
    first, last = claim.threshold["choose"]
    begin, end = claim.threshold["judge"]
    found = ratios(results, grid, range(first, last + 1), range(begin, end + 1))
    found = found[found["tcp"] == tcp]
    if networks is not None:
        found = found[found["rtt_ms"].isin([rtt for _, rtt in networks])]
    if found.empty:
        raise Undecided(f"grid `{grid}` has no results with TCP {tcp} in these networks")
    return found


def _verdict(found: pd.DataFrame, most: float, share: float, beyond: float | None, why: str) -> Finding:
    over = found[found["ratio"] > 1 + most].sort_values("ratio", ascending=False)
    worst = float(found["ratio"].max()) - 1
    within = len(found) - len(over)
    ours = f"within {100 * most:.0f} % in {within} of {len(found)} cells; worst {100 * worst:+.1f} %, "
    ours += f"median {100 * (float(found['ratio'].median()) - 1):+.1f} %"
    if within >= share * len(found) and (beyond is None or worst <= beyond):
        return Finding(ours, True)
    shown = over if beyond is None or within < share * len(found) else over[over["ratio"] > 1 + beyond]
    listed = "; ".join(
        f"{row['cell']}: {100 * (row['ratio'] - 1):+.1f} % of {row['best']}" for _, row in shown.head(4).iterrows()
    )
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    return Finding(ours, False, f"{listed}{more}. {why}".strip())


# What traces of windows, of what is in flight, of queues and of losses say of the cells that are behind
PAPER_WHY = "Expected, not traced: the last packets of a transfer that fits into the path leave paced."
FIRST_LINUX_WHY = (
    "Traced: over a full path each newcomer still begins with ten packets, which overflow the queue of 50 where there "
    "are five subflows or more; else the bottleneck idles for some milliseconds of a round, because the data that "
    "Linux's scheduler has already handed out waits at a subflow whose window is small."
)
LINUX_WHY = (
    "Traced: Linux's scheduler hands out the stream in pieces of 64 KB up to twice the windows ahead; a subflow whose "
    "window is held waits with what it was given, and may need a round more for it, while others keep the queue full. "
    "In grid `second` 16 of the 38 cells are within 2 % by the time at which the last byte arrives: the last packet of "
    "the subflow that ends last is an odd one, and its delayed ACK takes 40 ms more."
)
UNLIKE_WHY = (
    "Traced in the third grid: the last packet or two go over the far path, since the near window is held at what the "
    "path takes while the other controllers' has grown on; or a slow far path begins with ten packets, or holds six in "
    "its queue, and the near one is done before they are."
)
LARGE_WHY = (
    "Traced: that is congestion avoidance, and chance. Its subflows lose one after the other and not together as LIA's "
    "do, their windows part, and without SACK some losses of the smaller one end in timeouts."
)
LARGE_LINUX_WHY = "The times of any controller differ by about as much between two seeds there."


def first_grid(tcp: str, networks: tuple[Network, ...], why: str) -> Callable[[Results, Claim], Finding]:
    """In no cell of the first grid slower by more than the threshold."""

    def claim_function(results: Results, claim: Claim) -> Finding:
        return _verdict(judged(results, claim, "open", networks, tcp), claim.threshold["most"], 1.0, None, why)

    return claim_function


def other_grid(grid: str, tcp: str, why: str) -> Callable[[Results, Claim], Finding]:
    """In so many cells of another grid, and nowhere by more than `all`."""

    def claim_function(results: Results, claim: Claim) -> Finding:
        threshold = claim.threshold
        found = judged(results, claim, grid, None, tcp)
        return _verdict(found, threshold["most"], threshold.get("share", 1.0), threshold.get("all"), why)

    return claim_function


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    "open-small": first_grid("paper", NETWORKS[:1], PAPER_WHY),
    "open-one-way": first_grid("paper", NETWORKS[1:2], PAPER_WHY),
    "open-linux": first_grid("linux", NETWORKS[2:], FIRST_LINUX_WHY),
    "open-second-grid": other_grid("second", "paper", UNLIKE_WHY),
    "open-second-grid-linux": other_grid("second", "linux", LINUX_WHY),
    "open-100MB": other_grid("large", "paper", LARGE_WHY),
    "open-100MB-linux": other_grid("large", "linux", LARGE_LINUX_WHY),
    "open-third-grid": other_grid("third", "paper", UNLIKE_WHY),
    "open-third-grid-linux": other_grid("third", "linux", LINUX_WHY),
    "open-third-100MB": other_grid("third-large", "paper", LARGE_WHY),
    "open-third-100MB-linux": other_grid("third-large", "linux", LARGE_LINUX_WHY),
    "open-fourth-grid": other_grid("fourth", "paper", UNLIKE_WHY),
    "open-fourth-grid-linux": other_grid("fourth", "linux", LINUX_WHY),
    "open-fourth-100MB": other_grid("fourth-large", "paper", LARGE_WHY),
    "open-fourth-100MB-linux": other_grid("fourth-large", "linux", LARGE_LINUX_WHY),
}
