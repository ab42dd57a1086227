"""How good a predictor is on samples that it was not trained on: folds, random splits, an interval by bootstrap [G].

Hamazaki, Abe, Kato show training error in their tables 2 to 5 and random splits in table 6. Everything here searches
and fits a predictor anew for every training set, so that nothing of a test set is known to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import RepeatedKFold, ShuffleSplit

from pathcast.predict.evaluate import Errors, summarise


@dataclass(frozen=True)
class Assessment:
    """A predictor on n samples: the model of all of them, and predictions [bit/s]."""

    model: Any
    # shape (n,): of the samples that it was fitted on
    trained: np.ndarray
    # shape (repeats, n): each by a model of the other folds
    unseen: np.ndarray


@dataclass(frozen=True)
class Reduction:
    """1 - RMSE / RMSE of another predictor, with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


def assess(
    key: Hashable, predictor: Any, X: Any, y: Any, folds: int, repeats: int, random_state: int
) -> tuple[Hashable, Assessment]:
    """Fits on everything, and `repeats` times on all but one of `folds` folds; returns `key` with it.

    X: (n, columns), y: (n,) [bit/s], arrays. The folds depend on n and `random_state` only: predictors can be compared
    sample by sample. Raises ValueError as the predictor's `fit`, or for fewer samples than folds.
    """
    model = clone(predictor).fit(X, y)
    unseen = np.empty((repeats, len(y)))
    drawn = RepeatedKFold(n_splits=folds, n_repeats=repeats, random_state=random_state).split(X)
    for n, (fit, test) in enumerate(drawn):
        unseen[n // folds, test] = clone(predictor).fit(X[fit], y[fit]).predict(X[test])
    return key, Assessment(model, model.predict(X), unseen)


def split(
    key: Hashable, predictor: Any, X: Any, y: Any, share: float, splits: int, random_state: int
) -> tuple[Hashable, list[Errors]]:
    """Fits on a random `share` of the samples, 0..1, and sums up the errors on the others, `splits` times.

    Returns `key` with it. Raises ValueError as the predictor's `fit`.
    """
    drawn = ShuffleSplit(n_splits=splits, train_size=share, test_size=None, random_state=random_state).split(X)
    return key, [summarise(clone(predictor).fit(X[fit], y[fit]).predict(X[test]), y[test]) for fit, test in drawn]


def reduction(
    predicted: np.ndarray, other: np.ndarray, actual: np.ndarray, groups: Sequence[Any], draws: int, random_state: int
) -> Reduction:
    """By how much `predicted` has a lower RMSE than `other`, and its 95 % interval by bootstrap over groups.

    predicted, other: (n,) or (repeats, n); squared errors are averaged over repeats. groups: one label a sample; a
    drawing takes as many whole groups as there are, with replacement: repetitions of a setting are not independent.
    """
    _, group = np.unique(np.asarray(groups), return_inverse=True, axis=0)
    count = int(group.max()) + 1
    sums = []
    for guess in (predicted, other):
        squares = np.mean((np.atleast_2d(guess) - actual) ** 2, axis=0)
        sums.append(np.bincount(group.ravel(), weights=squares, minlength=count))
    chosen = np.random.default_rng(random_state).integers(0, count, (draws, count))
    drawn = 1 - np.sqrt(sums[0][chosen].sum(axis=1) / sums[1][chosen].sum(axis=1))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Reduction(1 - float(np.sqrt(sums[0].sum() / sums[1].sum())), float(low), float(high))
