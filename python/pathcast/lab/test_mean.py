"""Means with intervals."""

import math

import pytest

from pathcast.lab.experiment import Undecided
from pathcast.lab.mean import Mean


def test_the_interval_is_students():
    found = Mean.of([1.0, 2.0, 3.0, math.nan])
    assert (found.mean, found.n) == (2.0, 3)
    # 4.3027 for two degrees of freedom, deviation 1
    assert found.half == pytest.approx(4.302653 / math.sqrt(3))
    assert (found.low, found.high) == (2.0 - found.half, 2.0 + found.half)


def test_sides_of_zero():
    sides = {value: (Mean(value, 1.0, 5).sign, Mean(value, 1.0, 5).positive) for value in (-2.0, -0.5, 0.5, 2.0)}
    assert sides == {-2.0: (-1, False), -0.5: (0, False), 0.5: (0, None), 2.0: (1, True)}


def test_one_value_is_no_mean():
    with pytest.raises(Undecided, match="two seeds"):
        Mean.of([1.0, math.nan])
