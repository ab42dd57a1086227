"""The paper's findings, and what we add to them, as functions of the results. plan.toml states each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.plan import Claim
from pathcast.predict import fraction_within

from .evaluation import MULTI, RELATIONS, SINGLE, Score, Scores, judged_network, scores, shares
from .noise import last_row, unpredictable, unpredictable_alone
from .open_claims import CLAIMS as OPEN
from .telling import kbps
from .telling import percent as _percent

LARGER = ("single 128KB", "single 256KB", "single 512KB", "single 2MB", "single 8MB", "single 32MB", "single 128MB")
SLOWER, FASTER = "150/120", "120/150"


def _network(results: Results, claim: Claim) -> str:
    return claim.threshold.get("network", judged_network(results))


def _pair(found: Scores, one: str, other: str, network: str) -> str:
    a, b = found(one, network), found(other, network)
    return f"{kbps(a.rmse)} and {kbps(b.rmse)} KB/s"


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
    """Training error, as in the paper."""
    found, network = scores(results), _network(results, claim)
    value = found.reduction(MULTI, SINGLE, network, unseen=False).value
    ours = f"{_percent(value)} ({_pair(found, MULTI, SINGLE, network)})"
    if value >= claim.threshold["least"]:
        return Finding(ours, True)
    return Finding(ours, False, unpredictable(found(MULTI, network)) or "The single probe knows as much.")


def unseen(results: Results, claim: Claim) -> Finding:
    """On samples that were not trained on."""
    found, network = scores(results), _network(results, claim)
    value = found.reduction(MULTI, SINGLE, network, unseen=True)
    a, b = found(MULTI, network), found(SINGLE, network)
    ours = f"{value} ({kbps(a.unseen_rmse)} and {kbps(b.unseen_rmse)} KB/s)"
    if value.low >= claim.threshold["least"]:
        return Finding(ours, True)
    why = "the interval reaches below" if value.value >= claim.threshold["least"] else "it is less"
    return Finding(ours, False, f"{why}. {unpredictable(a)}".strip())


def cheap(results: Results, claim: Claim) -> Finding:
    """Beside a single probe of 32 MB."""
    found, network, other = scores(results), _network(results, claim), "single 32MB"
    trained = found.reduction(MULTI, other, network, unseen=False).value
    value = found.reduction(MULTI, other, network, unseen=True)
    ours = f"training: {_percent(trained)} lower ({_pair(found, MULTI, other, network)}); unseen: {value} lower"
    if trained >= claim.threshold["least"] and value.low >= claim.threshold["least"]:
        return Finding(ours, True)
    return Finding(ours, False, "a probe of 32 MB comes out of slow start over both paths, as the data do")


def cheap_128mb(results: Results, claim: Claim) -> Finding:
    """Beside a single probe of 128 MB."""
    found, network, other = scores(results), _network(results, claim), "single 128MB"
    value = found.reduction(MULTI, other, network, unseen=False).value
    ours = f"{_percent(value)} lower ({_pair(found, MULTI, other, network)})"
    if value >= claim.threshold["least"]:
        return Finding(ours, True)
    return Finding(ours, False, "half of the data as a probe share their fate: its losses are like theirs")


def equal_bytes(results: Results, claim: Claim) -> Finding:
    """Tables 3 and 4, size by size."""
    found, network = scores(results), _network(results, claim)
    told, lower, points = [], [], []
    for size in ("128KB", "256KB", "512KB"):
        one, other = (found(f"{kind} {size}", network) for kind in ("multi", "single"))
        lower.append(found.reduction(f"multi {size}", f"single {size}", network, unseen=False).value)
        points.append(one.fraction - other.fraction)
        told.append(f"{size}: {_percent(lower[-1])}, {100 * points[-1]:.1f} points")
    wrong = []
    if min(lower) < claim.threshold["least"]:
        wrong.append("the RMSE is not that much lower")
    if min(points) < claim.threshold["points"]:
        most = max(found(f"single {size}", network).fraction for size in ("128KB", "256KB", "512KB"))
        wrong.append(
            f"not so many more samples are within 10 %, where the single probe has up to {_percent(most)}. "
            f"{_near(found(MULTI, network))}"
        )
    return Finding("; ".join(told), not wrong, "; ".join(wrong) or None)


def flat(results: Results, claim: Claim) -> Finding:
    """Table 3: larger probes."""
    found, network = scores(results), _network(results, claim)
    gains = {size: found.reduction(f"multi {size}", MULTI, network, unseen=False).value for size in ("256KB", "512KB")}
    ours = ", ".join(f"{size}: {_percent(gain)} lower" for size, gain in gains.items())
    if max(gains.values()) <= claim.threshold["most"]:
        return Finding(ours, True)
    return Finding(ours, False, "the longer probe says more")


def larger(results: Results, claim: Claim) -> Finding:
    """Table 4: larger single probes."""
    found, network = scores(results), _network(results, claim)
    errors = [found(label, network).rmse for label in LARGER]
    ours = ", ".join(kbps(error) for error in errors) + " KB/s"
    up = [
        f"{LARGER[n].removeprefix('single ')}: {_percent(errors[n] / errors[n - 1] - 1)} more than the one before"
        for n in range(1, len(errors))
        if errors[n] / errors[n - 1] - 1 > claim.threshold["most"]
    ]
    last = 1 - errors[-1] / errors[0]
    if last < claim.threshold["last"]:
        up.append(f"the last is {_percent(last)} lower than the first")
    if not up:
        return Finding(ours, True)
    worst = max(LARGER, key=lambda label: found(label, network).rmse)
    probe, data = _follows(found(worst, network), path=1)
    why = f"The probe of {worst.split()[1]} goes with RTT2 by a rho of {probe:+.2f}, the data by {data:+.2f}"
    return Finding(ours, False, f"{'; '.join(up)}. {why}")


def contrast(results: Results, claim: Claim) -> Finding:
    """Table 2: errors."""
    found, network = scores(results), _network(results, claim)
    both, tcp = found("single 64KB", network), found("tcp 64KB", network)
    ratio, points = both.rmse / tcp.rmse, tcp.fraction - both.fraction
    ours = (
        f"{kbps(both.rmse)} and {kbps(tcp.rmse)} KB/s, {ratio:.2f} times; {_percent(both.fraction)} and "
        f"{_percent(tcp.fraction)}"
    )
    wrong = []
    if ratio < claim.threshold["ratio"]:
        wrong.append(f"not {claim.threshold['ratio']:g} times the RMSE. {unpredictable_alone(tcp)}".strip())
    if points < claim.threshold["points"]:
        wrong.append(f"{100 * points:.1f} points")
    return Finding(ours, not wrong, f"{'; '.join(wrong)}. {_near(both)}" if wrong else None)


def rank(results: Results, claim: Claim) -> Finding:
    """Table 2: Spearman's rho."""
    found, network = scores(results), _network(results, claim)
    alone = found("tcp 64KB", network)
    tcp, both = alone.rho, found("single 64KB", network).rho
    ours = f"{tcp:.2f} and {both:.2f}"
    wrong = []
    if tcp < claim.threshold["tcp"]:
        wrong.append(unpredictable_alone(alone) or "the order of plain TCP transfers is less certain")
    if abs(both) > claim.threshold["mptcp"]:
        rho = _follows(found("single 64KB", network), path=0)[1]
        wrong.append(f"the probe knows RTT1, and RTT1 by itself orders the MPTCP data by a rho of {rho:.2f} here")
    return Finding(ours, not wrong, "; ".join(wrong) or None)


def _relations(found: Scores, label: str, network: str, unseen: bool = False) -> list[float]:
    rows = found(label, network).by_relation(unseen)
    if any(row != row for row in rows):
        raise Undecided("not every relation of the RTTs has samples")
    return rows


def _rows(rows: list[float]) -> str:
    return ", ".join(f"{100 * row:.1f}" for row in rows) + " %"


def single_fails(results: Results, claim: Claim) -> Finding:
    """Table 5: the single probe's rows 4 to 6 against its rows 1 to 3."""
    rows = _relations(scores(results), SINGLE, _network(results, claim))
    ours = f"rows as in table 5: {_rows(rows)}"
    if max(rows[3:6]) < min(rows[:3]) - claim.threshold["gap"]:
        return Finding(ours, True)
    weak = ", ".join(f"{RELATIONS[n][0]} ({_percent(rows[n])})" for n in sorted(range(7), key=rows.__getitem__)[:3])
    return Finding(ours, False, f"its weakest rows are {weak}")


def weak_spot(results: Results, claim: Claim) -> Finding:
    """Table 5: multi-probe's last row."""
    found, network = scores(results), _network(results, claim)
    rows, single = (_relations(found, label, network) for label in (MULTI, SINGLE))
    ours = f"multi-probe: {_rows(rows)}; single probe there {_percent(single[-1])}"
    gap = claim.threshold["gap"]
    if rows[-1] < min(rows[:-1]) - gap and rows[-1] < single[-1] - gap:
        return Finding(ours, True)
    if rows[-1] < min(rows[:-1]) - gap:
        why = f"it is at its worst there, but no worse than the single probe. {last_row(found(MULTI, network))}"
        return Finding(ours, False, why.strip())
    return Finding(ours, False, "there is no weak spot there: parameters are searched for, and all rows fitted alike")


def open_c(results: Results, claim: Claim) -> Finding:
    """The paper's open problem with that row."""
    found, network = scores(results), _network(results, claim)
    rows, single = (_relations(found, label, network, unseen=True) for label in (MULTI, SINGLE))
    apart = rows[-1] - sum(rows[:-1]) / (len(rows) - 1)
    ours = (
        f"{_percent(rows[-1])}, {100 * apart:+.1f} points from the mean of the others ({_rows(rows[:-1])}); single "
        f"probe {_percent(single[-1])}"
    )
    if apart >= claim.threshold["least"] and rows[-1] >= single[-1]:
        return Finding(ours, True)
    return Finding(ours, False, f"the search does not mend it. {last_row(found(MULTI, network))}".strip())


def _split(found: Scores, share: float, network: str) -> tuple[float, float]:
    """Mean RMSE [bit/s] and fraction of table 6; raises Undecided where the share is much less than the paper's 26."""
    trained, least = int(share * len(found(MULTI, network).actual)), found.settings["least_trained"]
    if trained < least:
        raise Undecided(f"{_percent(share)} are {trained} samples, fewer than {least}")
    errors = found.splits[share]
    return tuple(sum(e[key] for e in errors) / len(errors) for key in ("rmse_bps", "fraction_within_10pct"))


def few(results: Results, claim: Claim) -> Finding:
    """Table 6: a twentieth."""
    found, network = scores(results), _network(results, claim)
    error, fraction = _split(found, 0.05, network)
    single = found(SINGLE, network)
    ours = (
        f"{kbps(error)} KB/s, {_percent(fraction)} on the rest; single probe in training: {kbps(single.rmse)} KB/s, "
        f"{_percent(single.fraction)}"
    )
    lower, points = 1 - error / single.rmse, fraction - single.fraction
    if lower >= claim.threshold["least"] and points >= claim.threshold["points"]:
        return Finding(ours, True)
    return Finding(ours, False, f"RMSE {_percent(lower)} lower, {100 * points:+.1f} points")


def order(results: Results, claim: Claim) -> Finding:
    """Table 6: what fewer samples cost."""
    found, network = scores(results), _network(results, claim)
    most, least = _split(found, 0.75, network)[0], _split(found, 0.05, network)[0]
    more = least / most - 1
    ours = f"{kbps(most)} KB/s with 75 %, {kbps(least)} with 5 %: {_percent(more)} more"
    if claim.threshold["more"] < more <= claim.threshold["most"]:
        return Finding(ours, True)
    return Finding(ours, False, "fewer samples cost nothing" if more <= 0 else "a twentieth is too little here")


def cdf(results: Results, claim: Claim) -> Finding:
    """SVR and CDF matching on the same probe."""
    found, network = scores(results), _network(results, claim)
    sizes = ("64KB", "128KB")
    lower = [found.reduction(f"single {size}", f"cdf {size}", network, unseen=True) for size in sizes]
    ours = "; ".join(f"{size}: {one}" for size, one in zip(sizes, lower, strict=True))
    if min(one.low for one in lower) >= claim.threshold["least"]:
        return Finding(ours, True)
    return Finding(ours, False, "it is not for certain: an interval reaches below zero")


def share_small(results: Results, claim: Claim) -> Finding:
    """Figure 4: 64 KB."""
    least = shares(results, _network(results, claim))["64KB"].groupby("pair").min()
    ours = ", ".join(f"{pair}: {_percent(share)}" for pair, share in least.items())
    if least.min() >= claim.threshold["least"]:
        return Finding(ours, True)
    return Finding(ours, False, "subflow 2 has joined before all is sent")


def share_rises(results: Results, claim: Claim) -> Finding:
    """Figure 4: up to 16 MB."""
    frame = shares(results, _network(results, claim))
    if SLOWER not in frame.index:
        raise Undecided(f"no sample at {SLOWER} ms")
    means = frame.loc[[SLOWER]].mean()
    means = means.iloc[: list(means.index).index("16MB") + 1]
    steps = {size: means.iloc[n + 1] - means.iloc[n] for n, size in enumerate(means.index[1:])}
    rise = float(means.iloc[0] - means.iloc[-1])
    ours = ", ".join(f"{size} {_percent(share)}" for size, share in means.items())
    wrong = [f"{size} has {100 * step:.1f} points more than the size before it" for size, step in steps.items()]
    wrong = [told for told, step in zip(wrong, steps.values(), strict=True) if step > claim.threshold["most"]]
    if rise < claim.threshold["rise"]:
        wrong.append(f"it rises by {100 * rise:.1f} points")
    return Finding(ours, not wrong, "; ".join(wrong) or None)


def share_large(results: Results, claim: Claim) -> Finding:
    """Figure 4: 256 MB."""
    frame = shares(results, _network(results, claim))
    means = frame.groupby("pair")[results.plan.setup["data"]].mean()
    if not {SLOWER, FASTER} <= set(means.index):
        raise Undecided(f"no samples at {SLOWER} and {FASTER} ms")
    ours = ", ".join(f"{pair}: {_percent(share)}" for pair, share in means.items())
    wrong = []
    if means[SLOWER] > claim.threshold["slower"]:
        wrong.append(f"at {SLOWER} ms subflow 1, a second ahead, keeps {_percent(means[SLOWER])}")
    if means[FASTER] < claim.threshold["faster"]:
        wrong.append(f"at {FASTER} ms subflow 1 has {_percent(means[FASTER])}")
    return Finding(ours, not wrong, "; ".join(wrong) or None)


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
