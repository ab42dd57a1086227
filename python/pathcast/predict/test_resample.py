"""Errors on unseen samples: every sample is unseen once a repeat, nothing of it leaks; every search is another."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from pathcast.predict.resample import assess, split


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
    key, found = assess("a", Nearest(), X, Y, folds=5, repeats=3, searches=4, random_state=0)
    assert key == "a"
    assert np.array_equal(found.trained, Y[None])
    assert np.array_equal(found.unseen, np.ones((3, 20)))


def test_folds_are_those_of_every_predictor():
    class Mean(Nearest):
        def predict(self, X):
            return np.full(len(X), np.mean(list(self.known_.values())))

    drawn = [assess("a", Mean(), X, y, 5, 2, 1, 7)[1].unseen for y in (Y, 2 * Y)]
    assert np.allclose(2 * drawn[0], drawn[1])
    assert not np.array_equal(drawn[0][0], drawn[0][1])


@pytest.mark.parametrize(("share", "n"), [(0.75, 5), (0.05, 19)])
def test_a_split_tests_all_that_it_does_not_train_on(share, n):
    key, errors = split(("b", share), Nearest(), X, Y, share, 4, 0)
    assert key == ("b", share)
    assert [e["n"] for e in errors] == [n] * 4
    assert all(e["rmse_bps"] > 90 for e in errors)


def test_every_search_draws_other_folds():
    class Drawn(Nearest):
        def __init__(self, random_state=0):
            self.random_state = random_state

        def predict(self, X):
            return np.full(len(X), self.random_state)

    found = assess("a", Drawn(), X, Y, folds=5, repeats=2, searches=3, random_state=0)[1]
    assert found.trained.tolist() == [[n] * 20 for n in range(3)]
    assert found.unseen.tolist() == [[n] * 20 for n in range(2)]
