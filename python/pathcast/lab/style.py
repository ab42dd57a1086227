"""How every plot of pathcast looks: Okabe and Ito's colours, which colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
COLOURS = {"multi": BLUE, "single": VERMILION, "cdf": ORANGE, "placebo": "#999999"}
LABELS = {
    "multi": "multi-probe SVR",
    "single": "single-probe SVR",
    "cdf": "CDF matching",
    "placebo": "multi-probe, wrong probes",
}

_SETTINGS = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "pathcast",
    "svg.fonttype": "none",
}


@contextmanager
def style() -> Iterator[None]:
    """Draws off screen in our style."""
    import matplotlib

    matplotlib.use("Agg")
    with matplotlib.rc_context(_SETTINGS):
        yield
