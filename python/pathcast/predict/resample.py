"""How good a predictor is on samples that it was not trained on, and how much hangs on one search: folds, splits [G].

Hamazaki, Abe, Kato show training error in their tables 2 to 5 and random splits in table 6. Everything here searches
and fits a predictor anew for every training set, so that nothing of a test set is known to it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import RepeatedKFold, ShuffleSplit

from pathcast.predict.evaluate import Errors, summarise


@dataclass(frozen=True)
class Assessment:
    """A predictor on n samples: the model of the first search, and predictions [bit/s]."""

    model: Any
    # shape (searches, n): of the samples that it was fitted on
    trained: np.ndarray
    # shape (repeats, n): each by a model of the other folds
    unseen: np.ndarray


def assess(
    key: Hashable, predictor: Any, X: Any, y: Any, folds: int, repeats: int, searches: int, random_state: int
) -> tuple[Hashable, Assessment]:
    """Fits on everything `searches` times, and `repeats` times on all but one of `folds` folds; returns `key` with it.

    Each time its own search draws other folds (its `random_state` is counted up from 0); of a predictor without one
    there is one search. X: (n, columns), y: (n,) [bit/s], arrays. The folds depend on n and `random_state` only:
    predictors can be compared sample by sample. Raises ValueError as the predictor's `fit`, or for fewer samples than
    folds.
    """
    searches = searches if "random_state" in predictor.get_params() else 1
    models = [_seeded(predictor, n).fit(X, y) for n in range(searches)]
    unseen = np.empty((repeats, len(y)))
    drawn = RepeatedKFold(n_splits=folds, n_repeats=repeats, random_state=random_state).split(X)
    for n, (fit, test) in enumerate(drawn):
        unseen[n // folds, test] = _seeded(predictor, n // folds).fit(X[fit], y[fit]).predict(X[test])
    return key, Assessment(models[0], np.array([model.predict(X) for model in models]), unseen)


def split(
    key: Hashable, predictor: Any, X: Any, y: Any, share: float, splits: int, random_state: int
) -> tuple[Hashable, list[Errors]]:
    """Fits on a random `share` of the samples, 0..1, and sums up the errors on the others, `splits` times.

    Each time its own search draws other folds. Returns `key` with it. Raises ValueError as the predictor's `fit`.
    """
    drawn = ShuffleSplit(n_splits=splits, train_size=share, test_size=None, random_state=random_state).split(X)
    fitted = ((_seeded(predictor, n).fit(X[fit], y[fit]), test) for n, (fit, test) in enumerate(drawn))
    return key, [summarise(model.predict(X[test]), y[test]) for model, test in fitted]


def _seeded(predictor: Any, seed: int) -> Any:
    one = clone(predictor)
    return one.set_params(random_state=seed) if "random_state" in one.get_params() else one
