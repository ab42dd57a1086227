"""Metrics against their definitions and laws; the placebo passes and fails where it should."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.predict.evaluate import derangement, fraction_within, placebo, rmse, rpe, summarise

throughput = st.floats(1e3, 1e11)
pairs = st.lists(st.tuples(throughput, throughput), min_size=1, max_size=30)


def test_by_hand():
    predicted, actual = [110.0, 100.0, 100.0, 100.0], [100.0, 110.0, 105.0, 200.0]
    assert rpe(predicted, actual) == pytest.approx([0.1, -0.1, -0.05, -1.0])
    assert rmse(predicted, actual) == pytest.approx(np.sqrt((100 + 100 + 25 + 10000) / 4))


def test_the_bound_itself_is_outside():
    # 0.25 is exact in binary, so that the sample is on the bound and not beside it
    assert fraction_within([125.0, 100.0, 124.0], [100.0, 125.0, 100.0], bound=0.25) == pytest.approx(1 / 3)


@given(pairs)
def test_rpe_changes_sign_when_the_two_are_exchanged(values):
    a, b = np.array(values).T
    assert np.array_equal(rpe(a, b), -rpe(b, a))


@given(pairs, st.floats(1e-3, 1e3))
def test_rpe_has_no_unit_and_rmse_has_one(values, factor):
    a, b = np.array(values).T
    assert np.allclose(rpe(a * factor, b * factor), rpe(a, b), rtol=1e-6, atol=1e-9)
    # of two that are nearly the same what is left of rounding the products remains
    rounding = 1e-15 * factor * max(*a, *b)
    assert rmse(a * factor, b * factor) == pytest.approx(factor * rmse(a, b), rel=1e-6, abs=rounding)


@given(pairs)
def test_perfection_and_bounds(values):
    a, b = np.array(values).T
    assert summarise(b, b) == {
        "rmse_bps": 0.0,
        "fraction_within_10pct": 1.0,
        "median_abs_rpe": 0.0,
        "n": len(b),
    }
    found = summarise(a, b)
    assert 0 <= found["fraction_within_10pct"] <= 1
    assert np.max(np.abs(a - b)) / np.sqrt(len(a)) <= found["rmse_bps"] * (1 + 1e-9)
    assert fraction_within(a, b, 0.05) <= fraction_within(a, b, 0.1)


@pytest.mark.parametrize(
    ("predicted", "actual", "words"),
    [
        ([1.0], [1.0, 2.0], "shape"),
        ([[1.0]], [[1.0]], "shape"),
        ([], [], "no prediction"),
        ([0.0], [1.0], r"predicted\[0\] is 0.0"),
        ([1.0, 1.0], [1.0, np.nan], r"actual\[1\] is nan"),
    ],
)
def test_refusals(predicted, actual, words):
    with pytest.raises(ValueError, match=words):
        summarise(predicted, actual)


@given(st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_a_derangement_moves_everything(n, seed):
    order = derangement(n, np.random.default_rng(seed))
    assert sorted(order) == list(range(n))
    assert not np.any(order == np.arange(n))


class Echo:
    def predict(self, X):
        return np.asarray(X)[:, 0]


class Constant:
    def predict(self, X):
        return np.full(len(X), 50.0)


def test_placebo_passes_for_one_who_reads_and_fails_for_one_who_does_not():
    y = np.random.default_rng(1).uniform(10, 100, 40)
    good = placebo(Echo(), y[:, None] * 1.01, y)
    assert good["passed"]
    assert good["rmse_ratio"] > 5
    assert good == placebo(Echo(), y[:, None] * 1.01, y)
    bad = placebo(Constant(), y[:, None], y)
    assert not bad["passed"]
    assert bad["p_value"] == 1.0
    noise = placebo(Echo(), np.random.default_rng(2).uniform(10, 100, (40, 1)), y)
    assert not noise["passed"]


def test_placebo_needs_rounds():
    with pytest.raises(ValueError, match="over 4 rounds"):
        placebo(Echo(), np.ones((4, 1)), np.ones(4))
    with pytest.raises(ValueError, match="below 19"):
        placebo(Echo(), np.ones((9, 1)), np.ones(9), repeats=5)
    with pytest.raises(ValueError, match="no derangement"):
        derangement(1, np.random.default_rng(0))
