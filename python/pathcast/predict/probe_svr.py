"""Throughput by Support Vector Regression on probes: one MPTCP probe, or one TCP probe a path.

SingleProbeSVR: Lee, Abe, Hirotsu, Umemura, "Analytical modeling of network throughput prediction on the
internet" (IEICE Trans. Inf. & Syst. E95-D(12), 2012), as used by Hamazaki, Abe, Kato, section 2: f: x -> y,
one small probe over the same kind of connection.

MultiProbeSVR: Hamazaki, Abe, Kato, section 6.1: f: (x_1 .. x_m) -> y, an independent TCP probe on every path.

Both are one machine with one search (`search.py`); they differ in the columns that they look at, and in
nothing else, so that a difference in their errors is a difference of what the probes know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pathcast.predict.search import candidates, machine, search

FLOOR_BPS = 1.0  # no prediction is lower: a relative error of a throughput of zero or less has no meaning


class _ProbeSVR(RegressorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """What both predictors share. X: (n, columns) of probes, y: (n,) of transfers, throughputs in bit/s."""

    def fit(self, X: Any, y: Any) -> _ProbeSVR:
        """Search the hyperparameters, then fit on all rounds.

        X: (n, columns), not negative [bit/s]; y: (n,), positive [bit/s]. Raises ValueError on NaN,
        infinities, negative throughputs, fewer than 2 rounds, or a parameter out of its range.
        """
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        if self.scale not in ("log", "linear"):
            raise ValueError(f"scale is {self.scale!r}; allowed are 'log' and 'linear'")
        _refuse_negative(X, type(self).__name__)
        if np.any(y <= 0):
            raise ValueError(f"y has a throughput of {y.min()!r}; throughputs must be positive, in bit/s")
        probes = self._columns(X)
        points = candidates(self.grid, self.n_iter, self.random_state)
        found = search(
            self._forward(probes),
            self._forward(y),
            self._backward,
            points,
            cv=self.cv,
            repeats=self.repeats,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        self.best_params_ = found.params
        self.best_rmse_bps_ = found.rmse_bps
        self.range_bps_ = _training_range(probes)
        self.model_ = machine(found.params).fit(self._forward(probes), self._forward(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted throughput, shape (n,) [bit/s], never below 1 bit/s. Raises ValueError as `fit` does."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        _refuse_negative(X, type(self).__name__)
        guess = self._backward(self.model_.predict(self._forward(self._columns(X))))
        floored: np.ndarray = np.maximum(guess, FLOOR_BPS)
        return floored

    def covers(self, X: Any) -> np.ndarray:
        """Shape (n,), bool: whether every probe lies within the training range, `range_bps_` (bounds included).

        Outside of it an RBF machine returns to its constant term: such a prediction is not to be trusted.
        """
        check_is_fitted(self)
        probes = self._columns(validate_data(self, X, reset=False, dtype=np.float64))
        inside: np.ndarray = np.all((probes >= self.range_bps_[0]) & (probes <= self.range_bps_[1]), axis=1)
        return inside

    def _columns(self, X: np.ndarray) -> np.ndarray:
        return X

    def _forward(self, bps: np.ndarray) -> np.ndarray:
        return np.log1p(bps) if self.scale == "log" else bps

    def _backward(self, value: np.ndarray) -> np.ndarray:
        # exp(60) bit/s is beyond any network; an overflow in a bad candidate's fold would poison the mean
        return np.expm1(np.minimum(value, 60.0)) if self.scale == "log" else value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.positive_only = True
        return tags


class MultiProbeSVR(_ProbeSVR):
    """The paper's predictor: SVR on one TCP probe's throughput a path (Hamazaki, Abe, Kato, section 6.1).

    Parameters
    ----------
    scale: "log" (default) lets throughputs in and out by their logarithm, "linear" as they are (the paper's way).
        Applies to features and target alike. log is log(1 + x/(1 bit/s)), so that a probe of zero has a place.
    grid: candidates for C, gamma and epsilon as lists, on standardised data; None takes `search.GRID`.
    n_iter: how many points of the grid to draw; None takes all.
    cv, repeats: the number of folds, and how often they are drawn.
    random_state: seed of the folds and of the drawing; the same seed gives the same model.
    n_jobs: processes for the folds, as in joblib; None is one.

    Attributes
    ----------
    model_: the fitted machine (standardised features and target, SVR).
    best_params_: its C, gamma, epsilon.
    best_rmse_bps_: its cross-validated RMSE [bit/s].
    range_bps_: shape (2, columns), the training range, a little wider than that of the probes trained on [bit/s].
    n_features_in_: the number of paths.
    """

    def __init__(
        self,
        *,
        scale: str = "log",
        grid: Mapping[str, Sequence[float]] | None = None,
        n_iter: int | None = None,
        cv: int = 5,
        repeats: int = 2,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ):
        self.scale = scale
        self.grid = grid
        self.n_iter = n_iter
        self.cv = cv
        self.repeats = repeats
        self.random_state = random_state
        self.n_jobs = n_jobs


class SingleProbeSVR(_ProbeSVR):
    """The older predictor: SVR on one probe (Lee et al. 2012; Hamazaki, Abe, Kato, section 2).

    column: which column of X is the probe; the others are not looked at. Everything else as in
    `MultiProbeSVR`.
    """

    def __init__(
        self,
        column: int = 0,
        *,
        scale: str = "log",
        grid: Mapping[str, Sequence[float]] | None = None,
        n_iter: int | None = None,
        cv: int = 5,
        repeats: int = 2,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ):
        self.column = column
        self.scale = scale
        self.grid = grid
        self.n_iter = n_iter
        self.cv = cv
        self.repeats = repeats
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _columns(self, X: np.ndarray) -> np.ndarray:
        return pick_column(X, self.column)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on data whose target depends on the columns it does not see
        return tags


def pick_column(X: np.ndarray, column: int) -> np.ndarray:
    """Column `column` of X as shape (n, 1). Raises ValueError if X has no such column."""
    if not 0 <= column < X.shape[1]:
        raise ValueError(f"column is {column}, but X has {X.shape[1]} columns")
    return X[:, [column]]


def _training_range(probes: np.ndarray) -> np.ndarray:
    """Of each column the probes [bit/s] between which a prediction is trusted, shape (2, columns).

    Another draw from the conditions of n rounds lies outside of their range in two of n + 1 cases, without anything
    having changed. So the range is widened, on the logarithmic scale, by twice the mean distance of neighbours, and by
    5 % at least.
    """
    logs = np.log(np.maximum(probes, FLOOR_BPS))
    low, high = logs.min(axis=0), logs.max(axis=0)
    margin = np.maximum(np.log(1.05), 2 * (high - low) / max(1, len(probes) - 1))
    return np.exp([low - margin, high + margin])


def _refuse_negative(X: np.ndarray, whom: str) -> None:
    if np.any(X < 0):
        raise ValueError(f"Negative values in data passed to {whom}: a throughput of {X.min()!r} bit/s")
