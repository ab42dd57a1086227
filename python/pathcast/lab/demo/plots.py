"""The demo's plot: what was forecast of every choice, and what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathcast.results.style import BLUE, VERMILION


def forecasts(rounds: Sequence[Mapping[str, Any]], world: str) -> Any:
    """Of every choice its median and 90 % interval, and the transfer's time where it was sent; a panel a round."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import ScalarFormatter

    figure, axes = plt.subplots(1, len(rounds), figsize=(8.4, 2.3), sharex=True, squeeze=False)
    for ax, round in zip(axes[0], rounds, strict=True):
        options = [one for one in reversed(round["options"]) if one["duration_s"]["value"] is not None]
        for at, option in enumerate(options):
            value, low, high = (option["duration_s"][name] for name in ("value", "low", "high"))
            label = "forecast, 90 % interval" if not at else None
            error = [[value - low], [(high or 10 * value) - value]]
            ax.errorbar([value], [at], xerr=error, fmt="|", color=BLUE, ms=9, lw=4, alpha=0.6, label=label)
            if option["sent"]:
                ax.plot(option["sent"]["duration_s"], at, "D", color=VERMILION, ms=5, zorder=3)
        ax.plot([], [], "D", color=VERMILION, ms=5, label="what came")
        chosen = (round["chosen"], round["chosen_control"])
        names = [
            " + ".join(one["paths"]) + (" (chosen)" if (one["paths"], one["control"]) == chosen else "")
            for one in options
        ]
        ax.set(title=round["told"], xscale="log", xlabel=f"duration in {world} [s]", ylim=(-0.6, len(options) - 0.4))
        ax.set_yticks(range(len(options)), names)
        ax.xaxis.set_major_formatter(ScalarFormatter())
    axes[0][0].legend(loc="lower right")
    return figure
