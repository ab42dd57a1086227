"""How far apart transfers with the same RTTs are: what no predictor can know, for the reasons of verdicts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .evaluation import RELATIONS, Score
from .telling import kbps, percent


def noise(score: Score, here: np.ndarray | None = None, paths: int = 2) -> float | None:
    """Standard deviation of transfers whose first `paths` paths have the same RTTs [bit/s].

    None where no RTTs came twice. `here`: a mask, of those samples only.
    """
    rtts, actual = (score.rtts, score.actual) if here is None else (score.rtts[here], score.actual[here])
    names = [str(n) for n in range(paths)]
    same = pd.DataFrame({"y": actual, **{name: rtts[:, int(name)] for name in names}}).groupby(names)["y"]
    variances = same.var(ddof=1)[same.size() > 1]
    return float(variances.mean() ** 0.5) if len(variances) else None


def unpredictable(score: Score) -> str:
    """Between repetitions of one pair of RTTs, and in all."""
    known = noise(score)
    return "" if known is None else f"Two transfers with the same RTTs differ by {_beside_all(known, score)}."


def unpredictable_alone(score: Score) -> str:
    """Of plain TCP over path 1, whatever the other path's RTT."""
    known = noise(score, paths=1)
    if known is None:
        return ""
    return f"Plain TCP transfers over paths of the same RTT differ by {_beside_all(known, score)}"


def _beside_all(known: float, score: Score) -> str:
    everything = kbps(float(score.actual.std(ddof=1)))
    return f"a standard deviation of {kbps(known)} KB/s, all together by {everything}"


def last_row(score: Score) -> str:
    """In table 5's last row, beside all of them."""
    belongs = RELATIONS[-1][1](score.rtts[:, 0], score.rtts[:, 1])
    there, everywhere = noise(score, belongs), noise(score)
    if there is None or everywhere is None:
        return ""
    shares = (percent(there / score.actual[belongs].mean()), percent(everywhere / score.actual.mean()))
    return (
        f"Two transfers with the same RTTs differ there by a standard deviation of {shares[0]} of their mean, "
        f"everywhere by {shares[1]}"
    )
