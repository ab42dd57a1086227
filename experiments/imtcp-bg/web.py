"""The foreground of the paper's slides: pages of Pareto distributed sizes (mean 60 KB) that web nodes ask for.

A node asks after exponentially distributed times, whether or not the page before has arrived (so did sessions of ns-2's
web traffic): what is asked for, and when, is the same whatever runs beside it. Sizes are the n quantiles of the
distribution in random order, scaled to its mean: with so heavy a tail the loads of two runs of independent draws would
differ by a factor.
"""

from __future__ import annotations

import random


def count(nodes: int, think_s: float, duration_s: float) -> int:
    """Pages that `nodes` ask for in `duration_s`."""
    return round(nodes * duration_s / think_s)


def pages(n: int, duration_s: float, mean_bytes: int, shape: float, about: str) -> list[tuple[float, int]]:
    """Times [s] and sizes [byte] of `n` pages in 0 to `duration_s`, in order of time; the same for the same `about`.

    The requests of many nodes with exponential times between them are a Poisson process; given their number, their
    times are uniform.
    """
    draw = random.Random(about)
    quantiles = [((i + 0.5) / n) ** (-1 / shape) for i in range(n)]
    scale = mean_bytes * n / sum(quantiles) if n else 0
    sizes = [max(1, round(scale * one)) for one in quantiles]
    draw.shuffle(sizes)
    times = sorted(draw.uniform(0, duration_s) for _ in range(n))
    return list(zip(times, sizes, strict=True))
