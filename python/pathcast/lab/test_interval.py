"""Intervals cover what they ought to, and decide only with their whole width."""

import math

import numpy as np
import pytest

from pathcast.lab.experiment import Undecided
from pathcast.lab.interval import Interval, both


def test_a_means_interval_is_students():
    found = Interval.mean([1.0, 2.0, 3.0])
    assert (found.value, found.n) == (2.0, 3)
    # 4.3027 for two degrees of freedom, deviation 1
    assert found.half == pytest.approx(4.302653 / math.sqrt(3))
    assert (found.low, found.high) == pytest.approx((2.0 - found.half, 2.0 + found.half))
    with pytest.raises(Undecided, match="two seeds"):
        Interval.mean([1.0, math.nan])


def test_a_seed_without_a_value_is_told_and_nothing_holds_without_it():
    found = Interval.mean([1.0, 2.0, 3.0, math.nan, None])
    assert (found.low, found.high, found.n) == (Interval.mean([1, 2, 3]).low, Interval.mean([1, 2, 3]).high, 3)
    assert str(found) == "2.000 ± 2.484 (3 of 5 seeds)"
    assert (found.at_least(-9), found.above(9), found.at_most(9), found.within(-9, 9)) == (None, False, None, None)
    assert found.times(-1).but == "3 of 5 seeds"


# an idle line in the simulator has the same value whatever the seed, but for rounding
@pytest.mark.parametrize("values", [[0.1] * 7, [0.1, 0.1 + 1e-9, *[0.1] * 5], [2e9, 2e9 + 1, *[2e9] * 5]])
def test_runs_that_are_all_the_same_are_one_run_which_can_say_no_and_not_yes(values):
    found = Interval.mean(values)
    assert (found.n, found.but, found.sign) == (1, "the same in all 7 runs", 0)
    assert math.isnan(found.half)
    x = found.value
    assert [found.at_least(x - 1), found.above(x - 1), found.at_most(x + 1), found.below(x + 1)] == [None] * 4
    assert [found.at_least(x + 1), found.above(x), found.at_most(x - 1), found.below(x)] == [False] * 4
    assert found.within(x - 1, x + 1) is None
    assert found.times(1 / x).told() == "1.000 (the same in all 7 runs)"
    assert found.times(1 / x).percent() == "+100.0 % (the same in all 7 runs)"


def test_what_differs_by_a_little_is_not_the_same_and_its_width_is_not_told_as_zero():
    found = Interval.mean([0.5, 0.50001, 0.50002])
    assert (found.n, found.but, found.above(0.49)) == (3, "", True)
    assert found.percent() == "+50.0 ± 0.002 %"


def test_identical_runs_are_one_trial_of_a_share_too():
    alike = [Interval.share([True] * 20, [0.3] * 20), Interval.share([False] * 20, [math.nan] * 20)]
    for found in alike:
        assert (found.n, found.but) == (1, "the same in all 20 runs")
        assert found.within(0, 1) is None
    assert (alike[0].below(0.5), alike[1].above(0.5)) == (False, False)
    assert Interval.share([True] * 20, range(20)) == Interval.share([True] * 20)
    # by a second number they can be told apart
    assert Interval.share([True] * 20, [[0.3, n] for n in range(20)]).n == 20
    assert Interval.share([False] * 20, [[math.nan, 1.0]] * 20).n == 1
    # a value in some runs only: the seed matters
    assert Interval.share([True, True], [0.3, math.nan]).n == 2
    assert Interval.share([True, False], [0.3, 0.3]).n == 2


def test_draws_that_are_all_the_same_hold_nothing():
    found = Interval.bootstrap(np.ones(30), np.mean, 50)
    assert (found.at_least(0.5), found.at_least(1.5), found.but) == (None, False, "the same in all 50 draws")


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


def test_of_an_interval_without_width_the_ends_decide():
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
