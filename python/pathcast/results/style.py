"""How every plot and page of pathcast looks: Okabe and Ito's colours, which colour-blind readers can tell apart."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
COLOURS = {"multi": BLUE, "single": VERMILION, "cdf": ORANGE, "placebo": "#999999"}
LABELS = {
    "multi": "multi-probe SVR",
    "single": "single-probe SVR",
    "cdf": "CDF matching",
    "placebo": "multi-probe, wrong probes",
}

# the style sheet of pages
PAGE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #666; --line: #ddd; --ground: #fff; --mark: #eef5fa }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #a0a0a0; --line: #3a3a3a; --ground: #161616; --mark: #1d2b36 }
  img { background: #fff; border-radius: 4px }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 62rem;
  margin: 2rem auto; padding: 0 1.2rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
p.lead { color: var(--soft); margin-top: 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem }
th, td { padding: .28rem .8rem .28rem 0; text-align: right; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left } tr.mark td { background: var(--mark); font-weight: 600 }
.warning { border-left: 4px solid #d55e00; padding-left: .8rem }
img { max-width: 100% } .scroll { overflow-x: auto } code { font-size: .9em } small { color: var(--soft) }
"""

_SETTINGS: Any = {
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
    matplotlib = _matplotlib()
    matplotlib.use("Agg")
    with matplotlib.rc_context(_SETTINGS):
        yield


def _matplotlib() -> Any:
    """matplotlib with the settings that it is shipped with.

    It would take those of a `matplotlibrc` of the current directory first, which may be another user's, and can name
    modules to import and programs to run.
    """
    if "matplotlib" in sys.modules:
        return sys.modules["matplotlib"]
    found = importlib.util.find_spec("matplotlib")
    shipped = Path(found.origin).parent / "mpl-data" / "matplotlibrc" if found and found.origin else None
    before, here = os.environ.get("MATPLOTLIBRC"), os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        os.chdir("/")  # of the whole process: nothing runs beside the drawing of plots
        os.environ["MATPLOTLIBRC"] = str(shipped)
        return importlib.import_module("matplotlib")
    finally:
        os.fchdir(here)
        os.close(here)
        os.environ.pop("MATPLOTLIBRC")
        if before is not None:
            os.environ["MATPLOTLIBRC"] = before
