"""Tables and the figure of the problems that the paper leaves open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.results.style import BLUE, VERMILION

from .evaluation import MULTI, SINGLE, Scores, judged_network, scores
from .features import featured
from .open_problems import BOTH, FEW, LARGE, LAST, MEASURED, PAST, SETTINGS, samples, scale_key, wan_scores
from .telling import kbps, percent

# IP bytes of a TCP connection on which nothing is sent: SYN, SYN/ACK (60 each), ACK, FIN, FIN, ACK (52)
_HANDSHAKE = 328
# label: probes and bytes for m paths
_COST: dict[str, Callable[[int], tuple[str, int]]] = {
    MULTI: lambda m: (f"{m}", m * 64_000),
    "rtt": lambda m: (f"{m} handshakes", m * _HANDSHAKE),
    "single+rtt 64KB": lambda m: ("1", 64_000),
    FEW: lambda m: ("1", 128_000),
    "single+rtt 256KB": lambda m: ("1", 256_000),
    SINGLE: lambda m: ("1", 128_000),
}
_MANY = 8
_ANCHORS = (
    ("Mirza et al., path properties by an oracle", "87 %", "-"),
    ("Mirza et al., by practical probes", "nearly 50 %", "-"),
    ("Mirza et al., history alone", "about 30 %", "-"),
    ("Liu et al., per edge, linear", "-", "7.0 %"),
    ("Liu et al., per edge, non-linear", "-", "4.6 %"),
)
_WAN = (SINGLE, MULTI, FEW, LARGE, MEASURED, SETTINGS, PAST, BOTH, LAST)


def _kilobytes(bytes: float) -> str:
    return f"{bytes / 1e3:,.1f} KB" if bytes < 10_000 else f"{bytes / 1e3:,.0f} KB"


def _over(found: Scores, label: str, other: str, network: str) -> str:
    return "-" if label == other else found.reduction(label, other, network, unseen=True).percent()


def few(results: Results) -> Table:
    """Fewer probes than paths: what they cost and how good they are."""
    network, frame, rows = judged_network(results), featured(results), []
    for label, cost in _COST.items():
        (two, small), (many, large) = cost(2), cost(_MANY)
        told = (label, two, _kilobytes(small), many, _kilobytes(large), _known(frame, label))
        try:
            found = scores(results)
            one = found(label, network)
            better = _over(found, label, MULTI, network)
            rows.append((*told, kbps(one.error(unseen=True)), percent(one.fraction(unseen=True)), better))
        except Undecided:
            rows.append((*told, "-", "-", "-"))
    costs = ("probes, 2 paths", "bytes, 2 paths", f"probes, {_MANY} paths", f"bytes, {_MANY} paths")
    return (
        "predictor",
        *costs,
        "RTT 2 known",
        "RMSE, unseen",
        "within 10 %, unseen",
        "lower than multi's (95 %)",
    ), rows


def _known(frame: Any, label: str) -> str:
    """In how many samples of the grid of RTTs subflow 2 had joined before the probe's end."""
    name = f"mptcp_{label.split()[-1]}_rtt2_s"
    if not label.startswith("single+rtt") or name not in frame or "rtt1_ms" not in frame:
        return "-"
    return percent(float(frame.loc[frame["rtt1_ms"].notna(), name].notna().mean()))


def few_networks(results: Results) -> Table:
    """The same on every network."""
    found, rows = scores(results), []
    for network in results.plan.setup["network"]:
        try:
            told = [kbps(found(label, network).error(unseen=True)) for label in (MULTI, FEW, "rtt")]
            rows.append((network, *told, *(_over(found, label, MULTI, network) for label in (FEW, "rtt"))))
        except Undecided:
            continue
    labels = (MULTI, FEW, "rtt")
    head = (f"{label}: RMSE, unseen" for label in labels)
    return ("network", *head, *(f"{label}: lower than multi's (95 %)" for label in labels[1:])), rows


def wan(results: Results) -> Table:
    """Every predictor on the WAN's samples, and what is published."""
    found, rows = wan_scores(results), []
    scales = results.plan.setup["wan"]["scales"]
    for label in _WAN:
        try:
            told = [cell for scale in scales for cell in _errors(found, label, scale_key(scale))]
        except Undecided:
            continue
        rows.append((label, _bytes(results, label), *told))
    rows += [(name, "-", "-", within, median, "-", *("-",) * 4 * len(scales[1:])) for name, within, median in _ANCHORS]
    what = ("RMSE", "within 10 %", "median error", "lower than multi's (95 %)")
    return ("predictor", "bytes sent before", *(f"{scale}: {name}" for scale in scales for name in what)), rows


def _errors(found: Scores, label: str, network: str) -> tuple[str, ...]:
    one = found(label, network)
    errors = (kbps(one.error(unseen=True)), percent(one.fraction(unseen=True)), percent(one.unseen_median))
    return (*errors, _over(found, label, MULTI, network))


def _bytes(results: Results, label: str) -> str:
    """Of probes; measuring, in the mean."""
    frame = samples(results)
    measuring = float(frame["measure_bytes"].mean())
    sent = {SINGLE: 128e3, MULTI: 128e3, FEW: 128e3, LARGE: 32e6, MEASURED: 128e3 + measuring, BOTH: 256e6 + measuring}
    sent |= {PAST: 256e6, LAST: 256e6, SETTINGS: 0}
    return "-" if not sent[label] else f"{sent[label] / 1e6:.3g} MB"


def wan_kinds(results: Results) -> Table:
    """What makes predicting hard: median errors by what the paths are like."""
    found, frame = wan_scores(results), samples(results)
    key, labels = scale_key(results.plan.setup["wan"]["scales"][0]), (MULTI, MEASURED, PAST, LAST)
    try:
        scored = [found(label, key) for label in labels]
    except Undecided:
        return ("paths", "samples", *labels), []
    lossy = (frame["path1_loss"] > 0).astype(int) + (frame["path2_loss"] > 0)
    greedy = (frame["path1_kind"] == "tcp") | (frame["path2_kind"] == "tcp")
    classes = {
        "all": lossy >= 0,
        "no random loss": lossy == 0,
        "random loss on one path": lossy == 1,
        "random loss on both": lossy == 2,
        "greedy TCP on a path or both": greedy,
        "no greedy TCP": ~greedy,
        "neither random loss nor greedy TCP": (lossy == 0) & ~greedy,
    }
    rows = []
    for name, belongs in classes.items():
        here = belongs.to_numpy()
        errors = [np.abs(one.found.unseen[:, here] / one.actual[here] - 1) for one in scored]
        rows.append((name, str(int(here.sum())), *(percent(_median(error)) for error in errors)))
    return ("paths", "samples", *(f"{label}: median error" for label in labels)), rows


def _median(errors: np.ndarray) -> float:
    """As `Score.unseen_median`: of each repeat of the folds, then their mean. Shape (repeats, samples)."""
    return float(np.mean(np.median(errors, axis=1)))


def wan_figure(results: Results) -> Any:
    """Predicted against actual, each sample by a model that has not seen it; grey: within 10 %."""
    import matplotlib.pyplot as plt

    drawn, axes = plt.subplots(1, 3, figsize=(8.4, 3.1), sharex=True, sharey=True)
    key = scale_key(results.plan.setup["wan"]["scales"][0])
    for ax, label, colour in zip(axes, (MULTI, MEASURED, BOTH), (VERMILION, BLUE, BLUE), strict=True):
        try:
            one = wan_scores(results)(label, key)
        except Undecided as reason:
            ax.set_axis_off()
            ax.text(0, 1, str(reason), va="top", wrap=True)
            continue
        ends = np.array([one.actual.min(), one.actual.max()]) / 1e6
        ax.fill_between(ends, ends / 1.1, ends * 1.1, color="#bbbbbb", lw=0, label="within 10 %")
        ax.loglog(one.actual / 1e6, one.found.unseen[0] / 1e6, ".", ms=3, color=colour, label="a sample")
        ax.set_title(label)
        ax.set_xlabel("data [Mbit/s]")
    axes[0].set_ylabel("predicted [Mbit/s]")
    if axes[0].lines:
        axes[0].legend()
    return drawn


TABLES: dict[str, Callable[[Results], Table]] = {
    "open-a": few,
    "open-a-networks": few_networks,
    "open-b": wan,
    "open-b-kinds": wan_kinds,
}
FIGURES: dict[str, Callable[[Results], Any]] = {"wan": wan_figure}
