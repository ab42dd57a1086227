"""The paper's findings, and what we add to them, as functions of the results. plan.toml states each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict
from pathcast.predict import fraction_within

from .evaluation import MULTI, RELATIONS, SINGLE, Drawings, Score, Scores, judged_network, scores, shares
from .noise import last_row, unpredictable, unpredictable_alone
from .open_claims import CLAIMS as OPEN
from .telling import kbps
from .telling import percent as _percent

LARGER = ("single 128KB", "single 256KB", "single 512KB", "single 2MB", "single 8MB", "single 32MB", "single 128MB")
SLOWER, FASTER = "150/120", "120/150"


def _network(results: Results, claim: Claim) -> str:
    return claim.threshold.get("network", judged_network(results))


def _pair(found: Scores, one: str, other: str, network: str, unseen: bool = False) -> str:
    a, b = found(one, network), found(other, network)
    return f"{kbps(a.error(unseen))} and {kbps(b.error(unseen))} KB/s"


def _near(score: Score) -> str:
    """What the share within 10 % is worth: a predictor that always says the median has some of it too."""
    share = fraction_within(np.full_like(score.actual, np.median(score.actual)), score.actual)
    apart = score.actual.std(ddof=1) / score.actual.mean()
    return (
        f"The data spread by {_percent(apart)} of their mean only: whoever always says their median is within 10 % for "
        f"{_percent(share)}"
    )


def _follows(score: Score, path: int) -> tuple[float, float]:
    """Spearman's rho of a path's RTT with the first probe, and with the data."""
    rtt = score.rtts[:, path]
    return float(spearmanr(rtt, score.probes[:, 0]).statistic), float(spearmanr(rtt, score.actual).statistic)


def reduction(results: Results, claim: Claim) -> Finding:
    """Training error, as in the paper; what is left of it on unseen samples is said beside."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    trained, unseen = (found.reduction(MULTI, SINGLE, network, of) for of in (False, True))
    one, other = found(MULTI, network), found(SINGLE, network)
    each = [1 - a / b for a, b in zip(_by_search(one), _by_search(other), strict=False)]
    verdict.details = [
        f"training: {trained.percent(False)} ({_pair(found, MULTI, SINGLE, network)})",
        f"by single searches: {', '.join(f'{100 * value:.1f}' for value in each)} %",
        f"unseen: {unseen.percent(False)} ({_pair(found, MULTI, SINGLE, network, unseen=True)})",
    ]
    verdict.needs(trained.at_least(claim.threshold["least"]), f"{trained.percent(False)} in training")
    why = unpredictable(one) or "The single probe knows as much."
    return verdict.finding(f"{trained.percent(False)} in training; unseen: {unseen.percent(False)}", why)


def _by_search(score: Score) -> np.ndarray:
    """Training RMSE of each search [bit/s]."""
    errors: np.ndarray = np.sqrt(np.mean((score.found.trained - score.actual) ** 2, axis=1))
    return errors


def unseen(results: Results, claim: Claim) -> Finding:
    """On samples that were not trained on."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    value = found.reduction(MULTI, SINGLE, network, unseen=True)
    verdict.needs(value.at_least(claim.threshold["least"]), value.percent(False))
    ours = f"{value.percent(False)} ({_pair(found, MULTI, SINGLE, network, unseen=True)})"
    return verdict.finding(ours, unpredictable(found(MULTI, network)))


def cheap(results: Results, claim: Claim) -> Finding:
    """Beside a single probe of 32 MB."""
    found, network, other, verdict, told = scores(results), _network(results, claim), "single 32MB", Verdict(), []
    for name, of in (("training", False), ("unseen", True)):
        value = found.reduction(MULTI, other, network, of)
        told.append(f"{name}: {value.percent(False)} lower")
        verdict.details.append(f"{told[-1]} ({_pair(found, MULTI, other, network, of)})")
        verdict.needs(value.at_least(claim.threshold["least"]), told[-1])
    why = "a probe of 32 MB comes out of slow start over both paths, as the data do"
    return verdict.finding("; ".join(told), why)


def cheap_128mb(results: Results, claim: Claim) -> Finding:
    """Beside a single probe of 128 MB."""
    found, network, other, verdict = scores(results), _network(results, claim), "single 128MB", Verdict()
    value = found.reduction(MULTI, other, network, unseen=False)
    ours = f"{value.percent(False)} lower ({_pair(found, MULTI, other, network)})"
    verdict.needs(value.at_least(claim.threshold["least"]), f"{value.percent(False)} lower")
    return verdict.finding(ours, "half of the data as a probe share their fate: its losses are like theirs")


def equal_bytes(results: Results, claim: Claim) -> Finding:
    """Tables 3 and 4, size by size."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    told, sizes = [], ("128KB", "256KB", "512KB")
    for size in sizes:
        pair = (f"multi {size}", f"single {size}")
        lower = found.reduction(*pair, network, unseen=False)
        points = found.interval(pair, network, lambda one, two: one.fraction() - two.fraction())
        told.append(f"{size}: {_percent(lower.value)}, {100 * points.value:.1f} points")
        verdict.details.append(f"{size}: RMSE {lower.percent(False)} lower, {points.told(100, '+.1f', ' points')}")
        verdict.needs(lower.at_least(claim.threshold["least"]), f"{size}: RMSE {lower.percent(False)} lower")
        verdict.needs(points.at_least(claim.threshold["points"]), f"{size}: {points.told(100, '+.1f', ' points')}")
    most = max(found(f"single {size}", network).fraction() for size in sizes)
    why = f"The single probe has up to {_percent(most)} within 10 %. {_near(found(MULTI, network))}"
    return verdict.finding("; ".join(told), why)


def flat(results: Results, claim: Claim) -> Finding:
    """Table 3: larger probes."""
    found, network, verdict, told = scores(results), _network(results, claim), Verdict(), []
    for size in ("256KB", "512KB"):
        gain = found.reduction(f"multi {size}", MULTI, network, unseen=False)
        told.append(f"{size}: {gain.percent(False)} lower")
        verdict.needs(gain.at_most(claim.threshold["most"]), told[-1])
    return verdict.finding(", ".join(told), "the longer probe says more")


def larger(results: Results, claim: Claim) -> Finding:
    """Table 4: larger single probes."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    for before, label in pairwise(LARGER):
        more = found.reduction(label, before, network, unseen=False).times(-1)
        told = f"{label.removeprefix('single ')}: {more.percent()} from the one before"
        verdict.details.append(told)
        verdict.needs(more.at_most(claim.threshold["most"]), told)
    last = found.reduction(LARGER[-1], LARGER[0], network, unseen=False)
    verdict.details.append(f"the last is {last.percent(False)} lower than the first")
    verdict.needs(last.at_least(claim.threshold["last"]), verdict.details[-1])
    worst = max(LARGER, key=lambda label: found(label, network).error())
    probe, data = _follows(found(worst, network), path=1)
    why = f"The probe of {worst.split()[1]} goes with RTT2 by a rho of {probe:+.2f}, the data by {data:+.2f}"
    errors = [kbps(found(label, network).error()) for label in LARGER]
    return verdict.finding(f"{', '.join(errors)} KB/s", why)


def contrast(results: Results, claim: Claim) -> Finding:
    """Table 2: errors."""
    found, network, verdict, labels = scores(results), _network(results, claim), Verdict(), ("single 64KB", "tcp 64KB")
    both, tcp = (found(label, network) for label in labels)
    ratio = found.interval(labels, network, lambda one, two: one.error() / two.error())
    points = found.interval(labels, network, lambda one, two: two.fraction() - one.fraction())
    verdict.needs(ratio.above(claim.threshold["ratio"]), f"{ratio.told(form='.2f')} times the RMSE")
    verdict.needs(points.at_least(claim.threshold["points"]), f"{points.told(100, '+.1f', ' points')}")
    verdict.details = [f"{_pair(found, *labels, network)}; {_percent(both.fraction())} and {_percent(tcp.fraction())}"]
    ours = f"{ratio.told(form='.2f')} times; {points.told(100, '+.1f', ' points')}"
    return verdict.finding(ours, " ".join(filter(None, (f"{_near(both)}.", unpredictable_alone(tcp)))))


def rank(results: Results, claim: Claim) -> Finding:
    """Table 2: Spearman's rho."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    tcp, both = (found.interval((label,), network, lambda one: one.rho()) for label in ("tcp 64KB", "single 64KB"))
    most = claim.threshold["mptcp"]
    verdict.needs(tcp.at_least(claim.threshold["tcp"]), f"{tcp.told(form='.2f')} of plain TCP")
    verdict.needs(both.within(-most, most), f"{both.told(form='.2f')} of Multipath TCP")
    rho = _follows(found("single 64KB", network), path=0)[1]
    why = f"The probe knows RTT1, and RTT1 by itself orders the MPTCP data by a rho of {rho:.2f} here. "
    why += unpredictable_alone(found("tcp 64KB", network))
    return verdict.finding(f"{tcp.told(form='.2f')} and {both.told(form='.2f')}", why.strip())


def _relations(found: Scores, label: str, network: str, unseen: bool = False) -> list[float]:
    rows = found(label, network).by_relation(unseen)
    if any(row != row for row in rows):
        raise Undecided("not every relation of the RTTs has samples")
    return rows


def _rows(rows: list[float]) -> str:
    return ", ".join(f"{100 * row:.1f}" for row in rows) + " %"


def single_fails(results: Results, claim: Claim) -> Finding:
    """Table 5: the single probe's rows 4 to 6 against its rows 1 to 3."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    rows = _relations(found, SINGLE, network)

    def gap(one: Drawings) -> np.ndarray:
        rows = one.by_relation()
        return np.min(rows[:3], axis=0) - np.max(rows[3:6], axis=0)

    below = found.interval((SINGLE,), network, gap)
    verdict.needs(below.above(claim.threshold["gap"]), f"lower by {below.told(100, '.1f', ' points')}")
    verdict.details = [f"lower by {below.told(100, '.1f', ' points')}"]
    weak = ", ".join(f"{RELATIONS[n][0]} ({_percent(rows[n])})" for n in sorted(range(7), key=rows.__getitem__)[:3])
    return verdict.finding(f"rows as in table 5: {_rows(rows)}", f"its weakest rows are {weak}")


def weak_spot(results: Results, claim: Claim) -> Finding:
    """Table 5: multi-probe's last row."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    rows, single = (_relations(found, label, network) for label in (MULTI, SINGLE))

    def others(one: Drawings) -> np.ndarray:
        rows = one.by_relation()
        return np.min(rows[:-1], axis=0) - rows[-1]

    own = found.interval((MULTI,), network, others)
    than = found.interval((MULTI, SINGLE), network, _last_row)
    worst = verdict.needs(
        own.above(claim.threshold["gap"]), f"lower than the others by {own.told(100, '.1f', ' points')}"
    )
    verdict.needs(
        than.above(claim.threshold["gap"]), f"lower than the single probe's by {than.told(100, '.1f', ' points')}"
    )
    why = "There is no weak spot there: parameters are searched for, and all rows fitted alike"
    if worst:
        why = last_row(found(MULTI, network))
    return verdict.finding(f"multi-probe: {_rows(rows)}; single probe there {_percent(single[-1])}", why)


def _last_row(one: Drawings, two: Drawings) -> np.ndarray:
    """How much less the first has in table 5's last row, in training."""
    less: np.ndarray = two.by_relation()[-1] - one.by_relation()[-1]
    return less


def open_c(results: Results, claim: Claim) -> Finding:
    """The paper's open problem with that row."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    rows, single = (_relations(found, label, network, unseen=True) for label in (MULTI, SINGLE))

    def beside(one: Drawings) -> np.ndarray:
        rows = one.by_relation(unseen=True)
        return rows[-1] - np.mean(rows[:-1], axis=0)

    def more(one: Drawings, two: Drawings) -> np.ndarray:
        return one.by_relation(unseen=True)[-1] - two.by_relation(unseen=True)[-1]

    apart = found.interval((MULTI,), network, beside)
    better = found.interval((MULTI, SINGLE), network, more)
    verdict.needs(apart.at_least(claim.threshold["least"]), f"{apart.told(100, '+.1f', ' points')} from the others")
    verdict.needs(better.at_least(0), f"{better.told(100, '+.1f', ' points')} from the single probe")
    verdict.details = [
        f"{_percent(rows[-1])} there, in the other rows {_rows(rows[:-1])}; the single probe {_percent(single[-1])}"
    ]
    ours = (
        f"{apart.told(100, '+.1f', ' points')} from the mean of the others, {better.told(100, '+.1f')} from the single"
    )
    return verdict.finding(ours, f"the search does not mend it. {last_row(found(MULTI, network))}".strip())


def _split(found: Scores, share: float, network: str, key: str) -> np.ndarray:
    """RMSE [bit/s] or fraction of table 6 by split; raises Undecided if the share is much less than the paper's 26."""
    trained, least = int(share * len(found(MULTI, network).actual)), found.settings["least_trained"]
    if trained < least:
        raise Undecided(f"{_percent(share)} are {trained} samples, fewer than {least}")
    return np.array([errors[key] for errors in found.splits[share]])


def few(results: Results, claim: Claim) -> Finding:
    """Table 6: a twentieth."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    errors, fractions = (_split(found, 0.05, network, key) for key in ("rmse_bps", "fraction_within_10pct"))
    single = found(SINGLE, network)
    lower, points = Interval.mean(1 - errors / single.error()), Interval.mean(fractions - single.fraction())
    verdict.details = [
        f"{kbps(errors.mean())} KB/s, {_percent(fractions.mean())} on the rest; single probe in training: "
        f"{kbps(single.error())} KB/s, {_percent(single.fraction())}"
    ]
    verdict.needs(lower.at_least(claim.threshold["least"]), f"RMSE {lower.percent(False)} lower")
    verdict.needs(points.at_least(claim.threshold["points"]), f"{points.told(100, '+.1f', ' points')}")
    return verdict.finding(f"RMSE {lower.percent(False)} lower, {points.told(100, '+.1f', ' points')}")


def order(results: Results, claim: Claim) -> Finding:
    """Table 6: what fewer samples cost."""
    found, network, verdict = scores(results), _network(results, claim), Verdict()
    most, least = (_split(found, share, network, "rmse_bps") for share in (0.75, 0.05))
    more = Interval.mean(least / most - 1)
    told = f"{more.percent(False)} more"
    verdict.needs(more.above(claim.threshold["more"]), told)
    verdict.needs(more.at_most(claim.threshold["most"]), told)
    verdict.details = [f"{kbps(most.mean())} KB/s with 75 %, {kbps(least.mean())} with 5 %"]
    why = "fewer samples cost nothing" if more.value <= 0 else "a twentieth is too little here"
    return verdict.finding(told, why)


def cdf(results: Results, claim: Claim) -> Finding:
    """SVR and CDF matching on the same probe."""
    found, network, verdict, told = scores(results), _network(results, claim), Verdict(), []
    for size in ("64KB", "128KB"):
        lower = found.reduction(f"single {size}", f"cdf {size}", network, unseen=True)
        told.append(f"{size}: {lower.percent(False)} lower")
        verdict.needs(lower.above(claim.threshold["least"]), told[-1])
    return verdict.finding("; ".join(told))


def share_small(results: Results, claim: Claim) -> Finding:
    """Figure 4: 64 KB."""
    verdict, least = Verdict(), shares(results, _network(results, claim))["64KB"].groupby("pair").min()
    for pair, share in least.items():
        verdict.needs(share >= claim.threshold["least"], f"{_percent(share)} at {pair}")
    ours = ", ".join(f"{pair}: {_percent(share)}" for pair, share in least.items())
    return verdict.finding(f"at least {ours}", "subflow 2 has joined before all is sent")


def _at(results: Results, claim: Claim, pairs: Sequence[str]) -> Any:
    frame = shares(results, _network(results, claim))
    if not set(pairs) <= set(frame.index):
        raise Undecided(f"no samples at {' and '.join(pairs)} ms")
    return frame


def share_rises(results: Results, claim: Claim) -> Finding:
    """Figure 4: up to 16 MB."""
    frame, verdict = _at(results, claim, (SLOWER,)).loc[[SLOWER]], Verdict()
    sizes = list(frame.columns)[: list(frame.columns).index("16MB") + 1]
    for size, more in pairwise(sizes):
        step = Interval.mean(frame[more] - frame[size])
        told = f"{more} has {step.told(100, '+.1f', ' points')} more than {size}"
        verdict.details.append(told)
        verdict.needs(step.at_most(claim.threshold["most"]), told)
    rise = Interval.mean(frame[sizes[0]] - frame[sizes[-1]])
    told = f"it rises by {rise.told(100, '.1f', ' points')}"
    verdict.needs(rise.at_least(claim.threshold["rise"]), told)
    return verdict.finding(f"{told}, from {_percent(frame[sizes[-1]].mean())} at 16MB")


def share_large(results: Results, claim: Claim) -> Finding:
    """Figure 4: 256 MB."""
    frame, verdict = _at(results, claim, (SLOWER, FASTER))[results.plan.setup["data"]], Verdict()
    slower, faster = (Interval.mean(frame.loc[[pair]]) for pair in (SLOWER, FASTER))
    told = [f"{pair}: {one.percent(False)}" for pair, one in ((SLOWER, slower), (FASTER, faster))]
    verdict.needs(slower.at_most(claim.threshold["slower"]), told[0])
    verdict.needs(faster.at_least(claim.threshold["faster"]), told[1])
    return verdict.finding(", ".join(told), f"at {SLOWER} ms subflow 1 is a second ahead")


CLAIMS: dict[str, Callable[[Results, Claim], Any]] = {
    "core-reduction": reduction,
    "core-reduction-unseen": unseen,
    "core-cheap": cheap,
    "cheap-128MB": cheap_128mb,
    "tables-3-4": equal_bytes,
    "table-3-flat": flat,
    "table-4": larger,
    "table-2-error": contrast,
    "table-2-rank": rank,
    "table-5-single": single_fails,
    "table-5-weak": weak_spot,
    "open-c": open_c,
    "table-6": few,
    "table-6-order": order,
    "cdf": cdf,
    "share-small": share_small,
    "share-rises": share_rises,
    "share-large": share_large,
    "today": unseen,
    "short": unseen,
    "deep": unseen,
    **OPEN,
}
