"""How good a prediction was: the paper's metrics, and a check that the predictor looks at its probes at all.

Hamazaki, Abe, Kato, section 5.3; R^ is `predicted_bps`, R is `actual_bps`, both of shape (n,) in bit/s:

    RMSE             = sqrt(mean((R^ - R)^2))
    RPE              = (R^ - R) / min(R^, R)
    Fraction of RPE  = share of samples with -0.1 < RPE < 0.1, both bounds excluded
"""

from __future__ import annotations

from typing import Any, Protocol, TypedDict

import numpy as np


class Errors(TypedDict):
    """The summary of n predictions; `median_abs_rpe` is ours, the rest is the paper's."""

    rmse_bps: float
    fraction_within_10pct: float
    median_abs_rpe: float
    n: int


class Placebo(TypedDict):
    """true: errors with each round's own probes. placebo: with another round's, median over the derangements.

    rmse_ratio: placebo over true. p_value: (1 + derangements at least as good as the truth) / (1 +
    derangements).
    passed: p_value <= 0.05, the probes carry what the predictor says.
    """

    true: Errors
    placebo: Errors
    rmse_ratio: float
    p_value: float
    passed: bool


class Predictor(Protocol):
    def predict(self, X: Any) -> np.ndarray: ...


def rmse(predicted_bps: Any, actual_bps: Any) -> float:
    """Root mean square error [bit/s]. Raises ValueError as `rpe` does."""
    predicted, actual = _checked(predicted_bps, actual_bps)
    return float(np.sqrt(np.mean((predicted - actual) ** 2)))


def rpe(predicted_bps: Any, actual_bps: Any) -> np.ndarray:
    """Relative prediction error, shape (n,): symmetric, +1 is twice too high, -1 is half of the truth.

    Raises ValueError on shapes that differ, nothing to compare, and throughputs that are not positive and
    finite.
    """
    predicted, actual = _checked(predicted_bps, actual_bps)
    error: np.ndarray = (predicted - actual) / np.minimum(predicted, actual)
    return error


def fraction_within(predicted_bps: Any, actual_bps: Any, bound: float = 0.1) -> float:
    """Share of samples with -bound < RPE < bound, 0..1; a sample on the bound is outside, as in the paper."""
    return float(np.mean(np.abs(rpe(predicted_bps, actual_bps)) < bound))


def median_abs_rpe(predicted_bps: Any, actual_bps: Any) -> float:
    """Median of |RPE|."""
    return float(np.median(np.abs(rpe(predicted_bps, actual_bps))))


def summarise(predicted_bps: Any, actual_bps: Any) -> Errors:
    """All the metrics at once. Raises ValueError as `rpe` does."""
    return Errors(
        rmse_bps=rmse(predicted_bps, actual_bps),
        fraction_within_10pct=fraction_within(predicted_bps, actual_bps),
        median_abs_rpe=median_abs_rpe(predicted_bps, actual_bps),
        n=int(np.size(actual_bps)),
    )


def derangement(n: int, rng: np.random.Generator) -> np.ndarray:
    """A uniformly drawn permutation of 0..n-1 that leaves nothing in place. Raises ValueError for n < 2."""
    if n < 2:
        raise ValueError(f"there is no derangement of {n} rounds; give at least 2")
    places = np.arange(n)
    while True:  # a permutation is a derangement with probability about 1/e
        order = rng.permutation(n)
        if not np.any(order == places):
            return order


def placebo(predictor: Predictor, X: Any, y: Any, *, random_state: int = 0, repeats: int = 99) -> Placebo:
    """Feed a fitted predictor with another round's probes: it must get worse, or it never looked at them.

    X: (n, columns), y: (n,) [bit/s], rounds that it was not trained on, at least 5 of them; `repeats`
    derangements are drawn from `random_state`. A predictor that answers a constant fails. Raises ValueError
    with fewer than 5 rounds.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if len(y) < 5:
        raise ValueError(f"a placebo over {len(y)} rounds says nothing; give at least 5")
    if repeats < 19:
        raise ValueError(f"repeats is {repeats}; below 19 no p-value reaches 0.05")
    rng = np.random.default_rng(random_state)
    guess = np.asarray(predictor.predict(X))
    true = summarise(guess, y)
    # a prediction belongs to its row of X alone, so to exchange the probes is to exchange the predictions
    fakes = [summarise(guess[derangement(len(y), rng)], y) for _ in range(repeats)]
    fake_rmse = np.array([fake["rmse_bps"] for fake in fakes])
    middle = Errors(
        rmse_bps=float(np.median(fake_rmse)),
        fraction_within_10pct=float(np.median([fake["fraction_within_10pct"] for fake in fakes])),
        median_abs_rpe=float(np.median([fake["median_abs_rpe"] for fake in fakes])),
        n=len(y),
    )
    # exchanged sums may differ in their last bits: a tie counts as "as good"
    as_good = int(np.sum(fake_rmse <= true["rmse_bps"] * (1 + 1e-9)))
    p_value = (1 + as_good) / (1 + repeats)
    return Placebo(
        true=true,
        placebo=middle,
        rmse_ratio=middle["rmse_bps"] / max(true["rmse_bps"], np.finfo(float).tiny),
        p_value=p_value,
        passed=p_value <= 0.05,
    )


def _checked(predicted_bps: Any, actual_bps: Any) -> tuple[np.ndarray, np.ndarray]:
    predicted = np.asarray(predicted_bps, dtype=float)
    actual = np.asarray(actual_bps, dtype=float)
    if predicted.shape != actual.shape or actual.ndim != 1:
        raise ValueError(f"predicted has shape {predicted.shape}, actual {actual.shape}; give two of shape (n,)")
    if actual.size == 0:
        raise ValueError("there is no prediction to evaluate")
    for name, values in (("predicted", predicted), ("actual", actual)):
        bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if bad.size:
            raise ValueError(f"{name}[{bad[0]}] is {values[bad[0]]}, not a positive finite throughput in bit/s")
    return predicted, actual
