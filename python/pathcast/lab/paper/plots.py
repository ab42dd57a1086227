"""The demo's plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathcast.results.style import BLUE, COLOURS, GREEN, LABELS, ORANGE, SKY


def predictions(rounds: Sequence[Mapping[str, Any]], world: str) -> Any:
    """Predicted against measured throughput of the unseen rounds, one panel a predictor, with the 10 % band."""
    import matplotlib.pyplot as plt
    import numpy as np

    unseen = [r for r in rounds if r["unseen"] and r["left_out"] is None]
    names = ("cdf", "single", "multi")
    figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.1), sharex=True, sharey=True)
    actual = np.array([r["actual_bps"] for r in unseen]) / 1e6
    predicted = {n: np.array([r["predicted_bps"][n] for r in unseen]) / 1e6 for n in names}
    every = np.concatenate([actual, *predicted.values()]) if len(actual) else np.array([1.0])
    low, high = every.min() * 0.9, every.max() * 1.1
    line = np.array([low, high])
    for ax, name in zip(axes, names, strict=True):
        ax.fill_between(line, line / 1.1, line * 1.1, color="#000000", alpha=0.08, lw=0, label="within 10 %")
        ax.plot(line, line, color="#000000", lw=0.6)
        ax.plot(actual, predicted[name], "o", color=COLOURS[name], ms=5)
        ax.set(title=LABELS[name], xlim=(low, high), ylim=(low, high), aspect="equal")
    axes[0].set_ylabel("predicted [Mbit/s]")
    axes[1].set_xlabel(f"measured in {world} [Mbit/s]")
    axes[0].legend(loc="upper left")
    return figure


def shares(points: Sequence[Mapping[str, Any]], world: str) -> Any:
    """The share of bytes on subflow 1 by transfer size (the paper's figure 4)."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5.2, 3.4))
    pairs = list(dict.fromkeys(tuple(p["rtt_s"]) for p in points))
    for rtts, colour, marker in zip(pairs, (BLUE, ORANGE, GREEN, SKY), "osD^", strict=False):
        own = [p for p in points if tuple(p["rtt_s"]) == rtts]
        label = "RTT " + " / ".join(f"{r * 1e3:.0f}" for r in rtts) + " ms"
        ax.plot([p["bytes"] for p in own], [100 * p["share"] for p in own], marker=marker, color=colour, label=label)
    ax.axhline(50, color="#000000", lw=0.6)
    ax.set(xscale="log", xlabel=f"transfer size in {world} [bytes]", ylabel="bytes on subflow 1 [%]", ylim=(0, 104))
    ax.legend()
    return figure


def surface(rounds: Sequence[Mapping[str, Any]], world: str) -> Any:
    """Probe throughputs of both paths and the transfer's (the paper's figure 7, seen from above)."""
    import matplotlib.pyplot as plt

    counted = [r for r in rounds if r["left_out"] is None]
    figure, ax = plt.subplots(figsize=(4.6, 3.6))
    for unseen, marker, label in ((False, "o", "training"), (True, "s", "unseen")):
        own = [r for r in counted if r["unseen"] is unseen]
        if own:
            points = ax.scatter(
                [r["probes_bps"][0] / 1e6 for r in own],
                [r["probes_bps"][1] / 1e6 for r in own],
                c=[r["actual_bps"] / 1e6 for r in own],
                vmin=min(r["actual_bps"] for r in counted) / 1e6,
                vmax=max(r["actual_bps"] for r in counted) / 1e6,
                marker=marker,
                label=label,
                cmap="cividis",
                edgecolors="#000000",
                linewidths=0.4,
            )
    if counted:
        figure.colorbar(points, label=f"MPTCP transfer in {world} [Mbit/s]")
        ax.legend()
    ax.set(xlabel="probe on path 1 [Mbit/s]", ylabel="probe on path 2 [Mbit/s]", xscale="log", yscale="log")
    return figure
