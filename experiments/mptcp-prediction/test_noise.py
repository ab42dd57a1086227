"""What transfers with the same RTTs differ by: drawn with a known spread, and found again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pathcast.lab.experiment import Experiment
from pathcast.predict.resample import Assessment

EXPERIMENT = Experiment(Path(__file__).parent)
NOISE = EXPERIMENT.module("noise")


def score(repeats, wide=1.0):
    """50 MB/s, less 0.1 a ms of RTT1, with a spread of 2 MB/s; `wide` times that where RTT1 is much the larger one."""
    rtts = np.array([(a, b) for a in range(120, 181, 4) for b in range(120, 181, 4) for _ in range(repeats)], float)
    spread = np.where(rtts[:, 0] / rtts[:, 1] > 1.2, wide, 1.0) * 2.0
    actual = 8e6 * (50 - 0.1 * (rtts[:, 0] - 150) + spread * np.random.default_rng(5).normal(size=len(rtts)))
    return EXPERIMENT.module("evaluation").Score(rtts, actual, rtts, Assessment(None, actual[None], actual[None]))


def test_the_spread_between_repetitions_is_found_whatever_the_rtts_do():
    found = score(20)
    assert NOISE.noise(found) == pytest.approx(16e6, rel=0.03)
    assert NOISE.noise(found, paths=1) == pytest.approx(16e6, rel=0.03)
    assert found.actual.std() > 1.2 * 16e6
    assert "standard deviation of 20" in NOISE.unpredictable_alone(found) or "of 19" in NOISE.unpredictable_alone(found)


def test_a_wider_last_row_is_told_apart():
    found = score(20, wide=3.0)
    here = found.rtts[:, 0] / found.rtts[:, 1] > 1.2
    assert NOISE.noise(found, here) == pytest.approx(48e6, rel=0.1)
    there, everywhere = (float(word) for word in NOISE.last_row(found).replace("%", "").split() if word[0].isdigit())
    assert there == pytest.approx(100 * 6 / 47, rel=0.15)
    assert everywhere < 0.7 * there


def test_where_nothing_came_twice_nothing_is_said():
    found = score(1)
    assert (NOISE.noise(found), NOISE.unpredictable(found), NOISE.last_row(found)) == (None, "", "")
    assert NOISE.noise(found, paths=1) is not None
