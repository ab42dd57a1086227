"""The one hyperparameter search that both SVRs go through: same space, same candidates, same folds.

The paper does not state kernel or parameters (Hamazaki, Abe, Kato, section 5.3: "kernlab"), so they are ours:
RBF kernel, parameters by cross-validation, score RMSE in bit/s. With some 24 training rounds the search must
not find too much: the grid is small, and the folds are drawn twice, since the score of one drawing of 24
rounds is noisy.

The loop is written out, instead of taking GridSearchCV, because there the bookkeeping of scikit-learn costs
several times the fits at 24 rounds; scaling a fold once for all candidates is what makes the search fit into
an interactive command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import ParameterGrid, ParameterSampler, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

GRID: Mapping[str, Sequence[float]] = {
    "C": (1.0, 10.0, 100.0, 1000.0),
    "gamma": (0.01, 0.03, 0.1, 0.3),
    "epsilon": (0.1,),
}
"""Features and target are standardised: gamma is per squared standard deviation, epsilon in standard
deviations."""


@dataclass(frozen=True)
class Found:
    """The best candidate, its mean RMSE over the folds [bit/s], and the scores of all candidates in order."""

    params: dict[str, float]
    rmse_bps: float
    candidates: list[dict[str, float]]
    scores: np.ndarray


def machine(params: Mapping[str, float]) -> TransformedTargetRegressor:
    """An unfitted RBF SVR on standardised features and a standardised target.

    The target is standardised as well because epsilon, the width of the tube in which errors cost nothing, is
    on the target's scale: a tube of 0.1 bit/s around throughputs of 1e8 bit/s would be no tube, and C would
    bound nothing.
    """
    return TransformedTargetRegressor(
        regressor=make_pipeline(StandardScaler(), SVR(kernel="rbf", **params)),
        transformer=StandardScaler(),
    )


def candidates(
    grid: Mapping[str, Sequence[float]] | None, n_iter: int | None, random_state: int | None
) -> list[dict[str, float]]:
    """All points of the grid, or `n_iter` of them drawn from it without replacement. Raises ValueError."""
    grid = GRID if grid is None else grid
    unknown = sorted(set(grid) - set(GRID))
    if unknown:
        raise ValueError(f"grid has unknown parameters {unknown}; allowed are {sorted(GRID)}")
    points = list(ParameterGrid({name: list(values) for name, values in grid.items()}))
    if n_iter is None or n_iter >= len(points):
        return points
    if n_iter < 1:
        raise ValueError(f"n_iter is {n_iter}; give at least 1, or None for the whole grid")
    space = {name: list(values) for name, values in grid.items()}
    return list(ParameterSampler(space, n_iter, random_state=random_state))


def search(
    features: np.ndarray,
    target: np.ndarray,
    to_bps: Callable[[np.ndarray], np.ndarray],
    points: list[dict[str, float]],
    *,
    cv: int,
    repeats: int,
    random_state: int | None,
    n_jobs: int | None,
) -> Found:
    """The candidate with the least mean RMSE in bit/s over `repeats` drawings of `cv` folds; the first one at
    a tie.

    features: (n, m); target: (n,), both as the machine is to see them before standardising; `to_bps` undoes
    the target's scale. Folds are never more than samples. Raises ValueError with fewer than 2 samples.
    """
    n = len(target)
    if n < 2:
        raise ValueError(
            f"Found {n} sample; at least 2 samples are needed to cross-validate (n_samples = 1 is too few)"
        )
    if cv < 2 or repeats < 1:
        raise ValueError(f"cv is {cv} and repeats {repeats}; cv must be at least 2 and repeats at least 1")
    folds = RepeatedKFold(n_splits=min(cv, n), n_repeats=repeats, random_state=random_state)
    per_fold = Parallel(n_jobs=n_jobs)(
        delayed(_fold)(features[fit], target[fit], features[test], target[test], to_bps, points)
        for fit, test in folds.split(features)
    )
    scores = np.mean(per_fold, axis=0)
    winner = int(np.argmin(scores))
    return Found(dict(points[winner]), float(scores[winner]), points, scores)


def _fold(
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    to_bps: Callable[[np.ndarray], np.ndarray],
    points: Sequence[Mapping[str, Any]],
) -> list[float]:
    """RMSE [bit/s] on the fold's test part, per candidate."""
    x_scaler, y_scaler = StandardScaler().fit(x), StandardScaler().fit(y[:, None])
    x, x_test = x_scaler.transform(x), x_scaler.transform(x_test)
    y = y_scaler.transform(y[:, None])[:, 0]
    truth = to_bps(y_test)
    result = []
    for params in points:
        guess = SVR(kernel="rbf", **params).fit(x, y).predict(x_test)
        guess = to_bps(y_scaler.inverse_transform(guess[:, None])[:, 0])
        result.append(float(np.sqrt(np.mean((guess - truth) ** 2))))
    return result
