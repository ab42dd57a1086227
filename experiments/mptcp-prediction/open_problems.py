"""The predictors nearer to a real WAN, the paper's open problem: on unseen samples of networks drawn by wan.py.

Beside those of evaluation.py: `multi+measured`, the two probes and each path's available bandwidth and capacity by
`pathcast measure`; `past 256MB`, an earlier transfer like the one to be predicted, and `past+measured`; `last 256MB`,
which takes the earlier one's throughput as it is; `settings`, what the paths were drawn as, which nobody knows. Those
that learn go through the same search, with logarithms and without.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Results
from pathcast.predict import MultiProbeSVR
from pathcast.predict.resample import Assessment

from .evaluation import MULTI, SINGLE, Key, Score, Scores, Task, assessed
from .features import ROUND_BITS, featured

MEASURED, SETTINGS, LAST, BOTH = "multi+measured", "settings", "last 256MB", "past+measured"
FEW, LARGE, PAST = "single+rtt 128KB", "single 32MB", "past 256MB"


def columns(data: str) -> dict[str, tuple[str, ...]]:
    """By label, what each predictor that learns looks at; `data`: the size that is to be predicted."""
    probes, past = ("tcp1_64KB_bps", "tcp2_64KB_bps"), (f"past_{data}_bps",)
    measured = tuple(f"path{n}_{what}_bps" for what in ("available", "capacity") for n in (1, 2))
    drawn = tuple(
        f"path{n}_{what}" for what in ("free_bps", "rate_bps", "round_bps", "queue_bytes", "loss") for n in (1, 2)
    )
    return {
        SINGLE: ("mptcp_128KB_bps",),
        FEW: ("mptcp_128KB_bps", "mptcp_128KB_round1_bps", "mptcp_128KB_round2_bps"),
        MULTI: probes,
        MEASURED: (*probes, *measured),
        LARGE: ("mptcp_32MB_bps",),
        PAST: past,
        BOTH: (*past, *measured),
        SETTINGS: drawn,
    }


def scale_key(scale: str) -> str:
    """What stands for a network in the scores of this page."""
    return f"wan, {scale}"


def samples(results: Results) -> pd.DataFrame:
    """The WAN's samples that have all that any predictor needs, so that all are held against the same."""
    return results.once(_samples, "wan samples")


def _samples(results: Results) -> pd.DataFrame:
    frame = featured(results)
    if frame.empty or "path1_rate_bps" not in frame:
        return frame.iloc[:0]
    frame = frame[frame["path1_rate_bps"].notna()]
    made: dict[str, Any] = {}
    for n in (1, 2):
        rate, rtt = frame[f"path{n}_rate_bps"], frame[f"path{n}_rtt_s"]
        # of a line that greedy connections fill, a connection more has its part
        greedy = 1 / (1 + frame[f"path{n}_flows"])
        made[f"path{n}_free_bps"] = rate * np.where(frame[f"path{n}_kind"] == "tcp", greedy, 1 - frame[f"path{n}_load"])
        made[f"path{n}_round_bps"] = ROUND_BITS / rtt
        made[f"path{n}_queue_bytes"] = frame[f"path{n}_queue_bdp"] * rate * rtt / 8
    data = results.plan.setup["data"]
    needed = {f"mptcp_{data}_bps", *(name for names in columns(data).values() for name in names)}
    return frame.assign(**made).dropna(subset=sorted(needed))


def lacking(results: Results) -> str:
    """How many finished samples have not all that any predictor needs, and count nowhere; nothing if there are none."""
    frame = results.frame
    finished = int((frame["grid"] == "wan").sum()) if "grid" in frame else 0
    left = finished - len(samples(results))
    return f"{left} of {finished} samples, in which something was not measured" if left > 0 else ""


def wan_scores(results: Results) -> Scores:
    """Every predictor, by scale and label."""
    return results.once(_scores, "wan scores")


def _scores(results: Results) -> Scores:
    setup = results.plan.setup
    settings, data = setup["evaluation"], setup["data"]
    rows = samples(results)
    if len(rows) < settings["least"]:
        return Scores({}, {}, settings)
    actual = rows[f"mptcp_{data}_bps"].to_numpy(float)
    # no two samples have the same: each is a group of its own
    rtts = 1e3 * rows[["path1_rtt_s", "path2_rtt_s"]].to_numpy(float)
    tasks: dict[Key, Task] = {}
    for scale in setup["wan"]["scales"]:
        predictor = MultiProbeSVR(scale=scale, cv=settings["folds"], repeats=1)
        for label, names in columns(data).items():
            tasks[scale_key(scale), label] = (predictor, rows[list(names)].to_numpy(float), actual, rtts)
    length = "quick" if results.quick else "whole"
    scored = assessed(tasks, settings, setup["wan"]["repeats"][length], lambda _: 1)
    before = rows[f"past_{data}_bps"].to_numpy(float)
    last = Score(before[:, None], actual, rtts, Assessment(None, before[None], before[None]))
    return Scores({**scored, **{(scale_key(scale), LAST): last for scale in setup["wan"]["scales"]}}, {}, settings)
