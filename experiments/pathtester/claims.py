"""The paper's findings, its open problems, and what we add, as functions of the results. plan.toml states each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.plan import Claim

from .cells import (
    ADSL_OUT,
    CROSS,
    IMPROVED,
    INWARDS,
    LINES,
    NEW,
    OLD,
    PATHLOAD,
    TABLE_5,
    Case,
    adsl,
    exponents,
    less,
    poisson,
    runs,
    some,
    table_1,
    table_5,
)
from .verdicts import Verdict, finding, percent

CAPACITY = (*TABLE_5, *(poisson(c) for c in CROSS[1:]), *ADSL_OUT, table_1("out"), *INWARDS)
RANGES = ("old", "old-16", "old-17", "old-18", "old-19", "old-20")


def core(results: Results, claim: Claim) -> Finding:
    """One row of table 5: better than the paper's numbers, and than its tool here."""
    limit, case, verdict = claim.threshold, table_5(claim.threshold["cross"]), Verdict()
    new, improved = (runs(results, case, method) for method in (NEW, IMPROVED))
    error, time_s = float(new["size"].max()), float(new["seconds"].max())
    verdict.ours = [
        f"at most {100 * error:.2f} % off in at most {time_s:.2f} s, {len(new)} runs",
        f"improved: {percent(improved['size'].mean())} off in {improved['seconds'].mean():.2f} s",
    ]
    verdict.needs(error < limit["error"], "it is no more exact than the paper's")
    verdict.needs(time_s < limit["time_s"], "it is no quicker than the paper's")
    exact = _more_exact(results, case, IMPROVED, NEW, limit["equal"])
    verdict.needs(exact, "it is no more exact than the improved tool here")
    quicker = less(results, case, "seconds", IMPROVED, NEW).positive
    verdict.needs(quicker, "it is no quicker than the improved tool here")
    return verdict.finding()


def _more_exact(results: Results, case: Case, than: str, method: str, equal: float) -> bool | None:
    both = [runs(results, case, one)["size"].mean() for one in (than, method)]
    return True if max(both) <= equal else less(results, case, "size", than, method).positive


def _versus(
    results: Results, cases: Iterable[Case], worse: str, better: str, columns: dict[str, str], why: str = ""
) -> Finding:
    """Whether the second method has less of each column in every case; columns: how each is told."""
    verdict = Verdict()
    for case in cases:
        one, other = (runs(results, case, method) for method in (worse, better))
        told = f"{percent(other['size'].mean())} for {percent(one['size'].mean())}"
        verdict.ours.append(f"{case.name}: {told}, {other['seconds'].mean():.1f} s for {one['seconds'].mean():.1f} s")
        for column, word in columns.items():
            verdict.needs(less(results, case, column, worse, better).positive, f"{case.name}: not {word}")
    return verdict.finding(why)


def new_old(results: Results, claim: Claim) -> Finding:
    """Ours beside the old tool."""
    return _versus(results, (*TABLE_5, *ADSL_OUT), OLD, NEW, {"size": "more exact", "seconds": "quicker"})


def improved_error(results: Results, claim: Claim) -> Finding:
    """The paper's tool beside the one before."""
    return _versus(results, (*TABLE_5, *ADSL_OUT), OLD, IMPROVED, {"size": "more exact"})


def pathload_error(results: Results, claim: Claim) -> Finding:
    """The paper's tool beside Pathload."""
    why = "the paper's Pathload was 46 to 59 % off, and its authors blame losses in the emulator; here little is lost"
    return _versus(results, TABLE_5, PATHLOAD, IMPROVED, {"size": "more exact"}, why)


def pathload_time(results: Results, claim: Claim) -> Finding:
    """With cross traffic."""
    return _versus(results, TABLE_5[1:], PATHLOAD, IMPROVED, {"seconds": "quicker"})


def pathload_idle(results: Results, claim: Claim) -> Finding:
    """Without."""
    why = "the improved algorithm as it is printed needs no more here: most of the paper's 69 s must have been waits"
    return _versus(results, TABLE_5[:1], IMPROVED, PATHLOAD, {"seconds": "quicker"}, why)


def equal_bytes(results: Results, claim: Claim) -> Finding:
    """Ours with the paper's bytes."""
    short = {case: runs(results, case, "new-300kB") for case in TABLE_5}
    improved = {case: runs(results, case, IMPROVED) for case in TABLE_5}
    most = max(int(found["bytes"].max()) for found in short.values())
    least = min(int(found["bytes"].min()) for found in improved.values())
    verdict = Verdict()
    for case in TABLE_5:
        verdict.ours.append(
            f"{case.name}: {percent(short[case]['size'].mean())} for {percent(improved[case]['size'].mean())}"
        )
        exact = _more_exact(results, case, IMPROVED, "new-300kB", claim.threshold["equal"])
        verdict.needs(exact, f"{case.name}: not more exact")
    verdict.ours.append(f"at most {most / 1e3:.0f} kB for {least / 1e3:.0f}")
    verdict.needs(most <= least, "it sends more")
    why = "on an idle line late stamps can only lower what is found, and few probes do not show that they are late"
    return verdict.finding(why)


def new_bytes(results: Results, claim: Claim) -> Finding:
    """Ours by itself."""
    ratios = {
        case.name: runs(results, case, NEW)["bytes"].mean() / runs(results, case, IMPROVED)["bytes"].mean()
        for case in TABLE_5
    }
    why = "it takes what the capacity asks for; `--budget` is for those who want less (equal-bytes)"
    wrong = [name for name, ratio in ratios.items() if ratio > claim.threshold["most"]]
    return finding((f"{name}: {ratio:.1f} times" for name, ratio in ratios.items()), wrong, why)


def improved_time(results: Results, claim: Claim) -> Finding:
    """Tables 2, 3 and 6."""
    ours, wrong = [], []
    for case in ADSL_OUT:
        old, improved = (runs(results, case, method)["seconds"].mean() for method in (OLD, IMPROVED))
        ours.append(f"{case.name}: {improved:.1f} s for {old:.1f}")
        if improved > claim.threshold["most"] * old:
            wrong.append(f"{case.name}: {percent(improved / old)} of the time")
    return finding(ours, wrong)


def table_1_range(results: Results, claim: Claim) -> Finding:
    """Which ranges find something at 100 kbit/s."""
    limit, case = claim.threshold, table_1("out")
    ours, wrong, times, missing = [], [], [], []
    for method in (*limit["without"], *limit["with"]):
        found = some(results, case, method)
        if found is None:
            missing.append(exponents(method))  # fewer in real time
            continue
        share, time_s = found["value_bps"].notna().mean(), found["seconds"].mean()
        told = f"{found['value_bps'].mean() / 1e6:.3f} Mbit/s" if share else "nothing"
        ours.append(f"{exponents(method)}: {told} in {time_s:.0f} s")
        if method in limit["without"] and share:
            wrong.append(f"{method} finds something")
        if method in limit["with"]:
            times.append(time_s)
            if found["size"].max() > limit["error"]:
                wrong.append(f"{method} is {percent(found['size'].max())} off")
    if not times:
        raise Undecided("no results of the old tool at 100 kbit/s")
    if times != sorted(times):
        wrong.append("a wider range is quicker")
    return finding(ours, wrong, missing=missing)


def table_1_widest(results: Results, claim: Claim) -> Finding:
    """Up to 2^20 us."""
    found = runs(results, table_1("out"), "old-20")
    share = float(found["value_bps"].notna().mean())
    why = "our waits follow the train's length, so that its last gaps cost time only"
    wrong = [f"a value in {percent(share)} of the runs"] if share > claim.threshold["most"] else []
    told = f"{found['value_bps'].mean() / 1e6:.3f} Mbit/s" if share else "nothing"
    return finding([f"{told} in {found['seconds'].mean():.0f} s"], wrong, why)


def table_1_capacity(results: Results, claim: Claim) -> Finding:
    """Pairs of packets at 100 Mbit/s."""
    every = {method: some(results, table_1("in"), method) for method in RANGES}
    found = [one for one in every.values() if one is not None]
    if not found:
        raise Undecided("no results of the old tool at 100 Mbit/s")
    missing = [exponents(method) for method, one in every.items() if one is None]
    times = min(one["capacity_error"].astype(float).mean() + 1 for one in found)
    why = (
        "pairs of 1400 octets are 112 us apart there; exact stamps show it, those of a kernel are tens of microseconds "
        "late, and hosts that take packets in batches see less between them"
    )
    wrong = ["not so much"] if times < claim.threshold["least"] else []
    return finding([f"{times:.2f} times, or more"], wrong, why, missing)


def old_slow(results: Results, claim: Claim) -> Finding:
    """Where the old tool's gaps end."""
    limit, ours, wrong, missing = claim.threshold, [], [], []
    for rate in (*limit["without"], *limit["with"]):
        run = some(results, Case.of(rate, ("slow",), out=rate), OLD)
        if run is None:
            missing.append(rate)  # fewer in real time
            continue
        found = run["value_bps"]
        share = found.notna().mean()
        ours.append(f"{rate}: {found.mean() / 1e6:.2f} Mbit/s" if share else f"{rate}: nothing")
        if (rate in limit["without"]) == bool(share):
            wrong.append(f"{rate}: {'something' if share else 'nothing'}")
    if not ours:
        raise Undecided("no results on slow lines")
    why = "the longest gap, 2^15 us, is 342 kbit/s with 1400 octets: what is above that is answered by it"
    return finding(ours, wrong, why, missing)


def improved_range(results: Results, claim: Claim) -> Finding:
    """100 kbit/s and 100 Mbit/s."""
    worst = {c.name: float(runs(results, c, IMPROVED)["size"].max()) for c in (table_1("out"), table_1("in"))}
    wrong = [name for name, error in worst.items() if error > claim.threshold["most"]]
    why = "a train of seven lasts 0.7 ms at 100 Mbit/s, and stamps of a busy host are late by a tenth of that"
    return finding((f"{name}: at most {percent(error)} off" for name, error in worst.items()), wrong, why)


def improved_load(results: Results, claim: Claim) -> Finding:
    """From row to row."""
    means = [float(runs(results, case, IMPROVED)["size"].mean()) for case in TABLE_5]
    steps = zip(means, means[1:], TABLE_5[1:], strict=False)
    wrong = [f"less at {case.name}" for a, b, case in steps if b - a < claim.threshold["least"]]
    why = (
        "two errors: the first trains, on their way down, read too high, the more so the more cross traffic; and a "
        "train of seven that met one packet of it too many is followed by one at that rate, which can read no more"
    )
    return finding([", ".join(map(percent, means))], wrong, why)


def improved_low(results: Results, claim: Claim) -> Finding:
    """The error's sign."""
    means = {case.name: float(runs(results, case, IMPROVED)["relative_error"].mean()) for case in TABLE_5[1:]}
    wrong = [f"{name}: {percent(error, '+')}" for name, error in means.items() if error > claim.threshold["most"]]
    why = (
        "beside a FIFO a train that comes at S leaves at S C / (S + X), more than what is left: the mean holds the "
        "first trains, and with much cross traffic is too high"
    )
    return finding((f"{name}: {percent(error, '+')}" for name, error in means.items()), wrong, why)


def cause_queue(results: Results, claim: Claim) -> Finding:
    """The authors' explanation."""
    queue, ours, wrong = claim.threshold["queue"], [], []
    for case, cross in zip(TABLE_5, CROSS, strict=True):
        short = runs(results, Case.of(case.name, ("queue",), cross=cross, queue=queue), IMPROVED)
        long = runs(results, case, IMPROVED)["relative_error"].mean()
        error = short["relative_error"].mean()
        ours.append(
            f"{case.name}: {percent(error, '+')} for {percent(long, '+')}, {percent(short['loss'].mean())} lost"
        )
        if error - long > claim.threshold["most"]:
            wrong.append(case.name)
    why = "not by so much: of trains of seven only the first, at full speed, overflows a short queue"
    return finding(ours, wrong, why)


def _inside(results: Results, method: str) -> tuple[float, float, str]:
    """Share of runs with the truth in the interval, median of half of it over the capacity; and told by row."""
    parts, rows = [], []
    for case in TABLE_5:
        found = runs(results, case, method)
        parts.append(found)
        rows.append(_held(found).mean())
    found = pd.concat(parts)
    share, half = _held(found).mean(), (found["high_bps"] - found["low_bps"]) / 2 / found["capacity_truth_bps"]
    by_row, width = ", ".join(map(percent, rows)), percent(half.median())
    told = f"{percent(share)} ({by_row} by row); half of it is {width} of the capacity"
    return float(share), float(half.median()), told


def _held(found: pd.DataFrame) -> pd.Series:
    return (found["low_bps"] <= found["truth_bps"]) & (found["truth_bps"] <= found["high_bps"])


def improved_interval(results: Results, claim: Claim) -> Finding:
    """Equation (1)."""
    share, _, told = _inside(results, IMPROVED)
    wrong = ["not so often"] if share < claim.threshold["least"] else []
    why = "receive rates on the way down are no normal sample; where all are alike, the interval has no width"
    return finding([told], wrong, why)


def new_interval(results: Results, claim: Claim) -> Finding:
    """Ours."""
    share, half, told = _inside(results, NEW)
    wrong = []
    if share < claim.threshold["least"]:
        wrong.append("not so often")
    if half > claim.threshold["half"]:
        wrong.append("not so narrow")
    why = (
        "beside even traffic there is little but a bias of a few thousandths, which is as large as half the interval; "
        "that is calibrated over random paths (docs/measure.md)"
    )
    return finding([told], wrong, why)


def delay_improved(results: Results, claim: Claim) -> Finding:
    """Tables 3 and 6."""
    ours, wrong = [], []
    for case in ADSL_OUT:
        found = runs(results, case, IMPROVED)
        times = float((found["delay_s"] / found["delay_truth_s"]).mean())
        ours.append(
            f"{case.name}: {1e3 * found['delay_s'].mean():.1f} ms for {1e3 * found['delay_truth_s'].mean():.1f}"
        )
        if times < claim.threshold["least"]:
            wrong.append(f"{case.name}: {times:.3f} times")
    why = "delays here are pathcast's with every method: what comes late counts too, so that no wait can spoil them"
    return finding(ours, wrong, why)


def open_1(results: Results, claim: Claim) -> Finding:
    """Capacity."""
    worst = {}
    for method in (NEW, IMPROVED):
        errors = {case.name: runs(results, case, method)["capacity_error"].abs().fillna(1.0).max() for case in CAPACITY}
        name = max(errors, key=errors.__getitem__)
        worst[method] = (float(errors[name]), name)
    (new, where), (clusters, there) = worst[NEW], worst[IMPROVED]
    wrong = []
    if new > claim.threshold["most"]:
        wrong.append(f"{percent(new)} off ({where})")
    if new > max(clusters, claim.threshold["most"]):
        wrong.append("the clusters are more exact")
    why = "one pair decides for each position in a train, and stamps of a busy host are late by tens of microseconds"
    ours = (f"at most {100 * new:.2f} % off ({where})", f"clusters: at most {100 * clusters:.2f} % ({there})")
    return finding(ours, wrong, why)


def open_2(results: Results, claim: Claim) -> Finding:
    """Delay and distance."""
    limit = claim.threshold
    cases = (*(adsl(line, "out") for line in LINES), Case.of("distance", ("distance",)))
    found = pd.concat([runs(results, case, NEW) for case in cases])
    lost, off = float(found["loss"].max()), float((found["delay_s"] - found["delay_truth_s"]).abs().max())
    paper = found["rtt_large_s"] * 120 / 1400 / found["rtt_small_s"]
    wrong = []
    if lost > limit["lost"]:
        wrong.append(f"{percent(lost)} of the packets are lost")
    if not off <= limit["most_s"]:
        wrong.append("delays are further off")
    ours = (
        f"{percent(lost)} lost, at most {1e6 * off:.0f} µs off",
        "the paper's rule would wait for 120 octets "
        f"{percent(paper.min())} to {percent(paper.max())} of their round trip",
    )
    return finding(ours, wrong)


def open_3(results: Results, claim: Claim) -> Finding:
    """The other direction."""
    worst = {case.name: float(runs(results, case, NEW)["size"].max()) for case in INWARDS}
    wrong = [f"{name}: {percent(error)}" for name, error in worst.items() if error > claim.threshold["most"]]
    why = (
        "of 100 Mbit/s the reports come back over 100 kbit/s, too late for the rate that they steer; a host that is "
        "never late, as in the simulator, forgives it"
    )
    return finding((f"{name}: at most {percent(error)} off" for name, error in worst.items()), wrong, why)


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **{f"core-table5-{cross:g}": core for cross in CROSS},
    "new-old": new_old,
    "equal-bytes": equal_bytes,
    "new-bytes": new_bytes,
    "improved-error": improved_error,
    "improved-time": improved_time,
    "table-1-range": table_1_range,
    "table-1-widest": table_1_widest,
    "table-1-capacity": table_1_capacity,
    "old-slow": old_slow,
    "improved-range": improved_range,
    "improved-load": improved_load,
    "improved-low": improved_low,
    "cause-queue": cause_queue,
    "improved-interval": improved_interval,
    "new-interval": new_interval,
    "pathload-error": pathload_error,
    "pathload-time": pathload_time,
    "pathload-idle": pathload_idle,
    "delay-improved": delay_improved,
    "open-1": open_1,
    "open-2": open_2,
    "open-3": open_3,
}
