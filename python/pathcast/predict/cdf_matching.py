"""Throughput by matching distributions: the method before there was an SVR.

Swany, Wolski, "Multivariate resource performance forecasting in the Network Weather Service" (SC 2002), as
told by Hamazaki, Abe, Kato, section 2: take the empirical CDFs F_X of probe and F_Y of data throughput, and
predict for a probe x the data throughput at the same quantile, y = F_Y^-1(F_X(x)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pathcast.predict.probe_svr import pick_column


class CdfMatching(RegressorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Predict the y at the quantile of x, by linearly interpolated empirical CDFs.

    column: which column of X is the probe. Sample i of n sits at the quantile (i + 1/2) / n; equal probes
    share the mean of their quantiles; beyond the samples the lowest or the highest y is the answer. Pairs (x,
    y) play no part, only the two distributions: a probe that orders transfers wrongly is not found out, hence
    the tag `poor_score`.

    Attributes: x_ and quantile_, the knots of F_X; y_, the sorted transfers; n_features_in_.
    """

    def __init__(self, column: int = 0):
        self.column = column

    def fit(self, X: Any, y: Any) -> CdfMatching:
        """X: (n, columns), y: (n,) [bit/s]. Raises ValueError on NaN, infinities, or a column that X has
        not."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        probe = np.sort(pick_column(X, self.column)[:, 0])
        place = _quantiles(len(probe))
        self.x_, group = np.unique(probe, return_inverse=True)
        self.quantile_ = np.bincount(group, weights=place) / np.bincount(group)
        self.y_ = np.sort(y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted throughput, shape (n,) [bit/s]."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        quantile = np.interp(pick_column(X, self.column)[:, 0], self.x_, self.quantile_)
        matched: np.ndarray = np.interp(quantile, _quantiles(len(self.y_)), self.y_)
        return matched

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _quantiles(n: int) -> np.ndarray:
    return (np.arange(n) + 0.5) / n
