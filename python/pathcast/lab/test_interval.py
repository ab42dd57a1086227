"""Intervals cover what they ought to, and decide only with their whole width."""

import math

import numpy as np
import pytest

from pathcast.lab.experiment import Undecided
from pathcast.lab.interval import Interval, both


def test_a_means_interval_is_students():
    found = Interval.mean([1.0, 2.0, 3.0, math.nan])
    assert (found.value, found.n) == (2.0, 3)
    # 4.3027 for two degrees of freedom, deviation 1
    assert found.half == pytest.approx(4.302653 / math.sqrt(3))
    assert (found.low, found.high) == pytest.approx((2.0 - found.half, 2.0 + found.half))
    with pytest.raises(Undecided, match="two seeds"):
        Interval.mean([1.0, math.nan])


def test_what_is_everywhere_the_same_has_no_width():
    found = Interval.mean([0.1] * 7)
    assert (found.low, found.high) == (found.value, found.value)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    # R: binom.test(hits, n)$conf.int
    [(0, 10, 0.0, 0.3084971), (10, 10, 0.6915029, 1.0), (3, 10, 0.06673951, 0.6524529), (50, 50, 0.9288783, 1.0)],
)
def test_a_shares_interval_is_exact(hits, n, low, high):
    found = Interval.share([True] * hits + [False] * (n - hits))
    assert (found.value, found.n) == (hits / n, n)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6)


def test_a_share_of_nothing_is_undecided():
    with pytest.raises(Undecided, match="no observations"):
        Interval.share([])


def test_the_bootstrap_covers_a_median_and_is_the_same_twice():
    draw, covered = np.random.default_rng(3), 0
    for _ in range(60):
        covered += (
            Interval.bootstrap(draw.exponential(1.0, 60), np.median, 400).within(math.log(2), math.log(2)) is None
        )
    # 57 of 60 in the mean; 50 or fewer once in a thousand times if it is 95 %
    assert covered >= 51
    rows = draw.normal(size=30)
    assert Interval.bootstrap(rows, np.mean) == Interval.bootstrap(rows, np.mean)


def test_only_the_whole_interval_decides():
    found = Interval(1.0, 0.5, 1.5, 9)
    limits = (0.4, 0.5, 1.0, 1.5, 1.6)
    assert [found.at_least(x) for x in limits] == [True, True, None, None, False]
    assert [found.above(x) for x in limits] == [True, None, None, False, False]
    assert [found.at_most(x) for x in limits] == [False, None, None, True, True]
    assert [found.below(x) for x in limits] == [False, False, None, None, True]
    assert [found.within(x, 1.6) for x in limits] == [True, True, None, None, False]
    assert [Interval(0.0, low, low + 1, 9).sign for low in (-2, -0.5, 1)] == [-1, 0, 1]


def test_without_width_the_value_decides():
    found = Interval(1.0, 1.0, 1.0, 9)
    assert (found.at_least(1.0), found.above(1.0), found.at_most(1.0), found.below(1.0)) == (True, False, True, False)


def test_times_a_negative_number_its_ends_change_places():
    assert Interval(1.0, 0.5, 2.0, 9).times(-2) == Interval(-2.0, -4.0, -1.0, 9)


def test_parts_together():
    assert [both(True, True), both(True, None), both(None, False), both()] == [True, None, False, True]


def test_how_it_is_told():
    assert str(Interval(1.0, 0.9, 1.1, 9)) == "1.000 ± 0.100"
    assert Interval(0.042, 0.039, 0.045, 9).percent() == "+4.2 ± 0.3 %"
    assert Interval(0.5, 0.3, 0.6, 9).percent(sign=False) == "50.0 (30.0 to 60.0) %"
