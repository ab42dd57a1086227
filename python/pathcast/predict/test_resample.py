"""Errors on unseen samples: every sample is unseen once a repeat, nothing of it leaks, the interval covers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from pathcast.predict.resample import assess, reduction, split


class Nearest(RegressorMixin, BaseEstimator):
    """Knows what it was shown, and of everything else nothing."""

    def fit(self, X, y):
        self.known_ = dict(zip(X[:, 0], y, strict=True))
        return self

    def predict(self, X):
        return np.array([self.known_.get(x, 1.0) for x in X[:, 0]])


X = np.arange(20.0)[:, None]
Y = 100 + X[:, 0]


def test_what_is_predicted_was_not_trained_on():
    key, found = assess("a", Nearest(), X, Y, folds=5, repeats=3, random_state=0)
    assert key == "a"
    assert np.array_equal(found.trained, Y)
    assert np.array_equal(found.unseen, np.ones((3, 20)))


def test_folds_are_those_of_every_predictor():
    class Mean(Nearest):
        def predict(self, X):
            return np.full(len(X), np.mean(list(self.known_.values())))

    drawn = [assess("a", Mean(), X, y, 5, 2, 7)[1].unseen for y in (Y, 2 * Y)]
    assert np.allclose(2 * drawn[0], drawn[1])
    assert not np.array_equal(drawn[0][0], drawn[0][1])


@pytest.mark.parametrize(("share", "n"), [(0.75, 5), (0.05, 19)])
def test_a_split_tests_all_that_it_does_not_train_on(share, n):
    key, errors = split(("b", share), Nearest(), X, Y, share, 4, 0)
    assert key == ("b", share)
    assert [e["n"] for e in errors] == [n] * 4
    assert all(e["rmse_bps"] > 90 for e in errors)


def test_a_reduction_is_that_of_the_rmse():
    actual = np.full(8, 10.0)
    found = reduction(actual + 1, actual - 2, actual, range(8), 200, 0)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    repeated = reduction(np.array([actual + 1, actual - 1]), actual + 2, actual, range(8), 200, 0)
    assert repeated.value == pytest.approx(0.5)


def test_its_interval_covers_the_truth_and_is_wider_over_dependent_samples():
    rng, covered, widths = np.random.default_rng(5), 0, []
    for trial in range(60):
        actual = np.full(100, 1000.0)
        good, bad = (np.repeat(s * rng.standard_normal(50), 2) for s in (1.0, 2.0))
        pairs = reduction(actual + good, actual + bad, actual, np.repeat(range(50), 2), 300, trial)
        alone = reduction(actual + good, actual + bad, actual, range(100), 300, trial)
        covered += pairs.low <= 0.5 <= pairs.high
        widths.append((pairs.high - pairs.low) / (alone.high - alone.low))
    assert covered >= 51
    assert np.mean(widths) > 1.2
