"""A value with its 95 % interval, and whether a limit is met for certain: what verdicts are made of.

A limit is met if the whole interval is on its side (true), missed if the whole interval is on the other (false), and
undecided (None) if it lies inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta, t

from pathcast.lab.experiment import Undecided


@dataclass(frozen=True)
class Interval:
    """A value, the ends of its 95 % interval, and the number of observations behind it."""

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def mean(cls, values: Iterable[float]) -> Interval:
        """Student's t, of two values or more, those that are missing left out; raises Undecided for fewer."""
        found = pd.Series(list(values), dtype=float).dropna()
        if len(found) < 2:
            raise Undecided("fewer than two seeds have results")
        # np.ptp: what is everywhere the same has a deviation of rounding errors
        deviation = 0.0 if np.ptp(found) == 0 else found.std(ddof=1)
        half = float(t.ppf(0.975, len(found) - 1) * deviation / sqrt(len(found)))
        mean = float(found.mean())
        return cls(mean, mean - half, mean + half, len(found))

    @classmethod
    def share(cls, so: Iterable[Any]) -> Interval:
        """The share of independent observations that are true: Clopper and Pearson's exact interval (Biometrika 1934).

        Raises Undecided where there are none.
        """
        every = [bool(one) for one in so]
        if not every:
            raise Undecided("there are no observations")
        hits, n = sum(every), len(every)
        low = float(beta.ppf(0.025, hits, n - hits + 1)) if hits else 0.0
        high = float(beta.ppf(0.975, hits + 1, n - hits)) if hits < n else 1.0
        return cls(hits / n, low, high, n)

    @classmethod
    def bootstrap(cls, rows: Any, statistic: Callable[[Any], float], draws: int = 2000, seed: int = 1) -> Interval:
        """Of a statistic of independent rows, drawn with replacement: the middle 95 % of the draws (Efron 1979).

        rows: an array; statistic: of such an array. Raises Undecided for fewer than two rows.
        """
        rows = np.asarray(rows)
        if len(rows) < 2:
            raise Undecided("fewer than two independent samples have results")
        random = np.random.default_rng(seed)
        drawn = [statistic(rows[random.integers(0, len(rows), len(rows))]) for _ in range(draws)]
        return cls.of_draws(float(statistic(rows)), drawn, len(rows))

    @classmethod
    def of_draws(cls, value: float, drawn: Any, n: int) -> Interval:
        """The middle 95 % of a bootstrap's draws."""
        low, high = np.quantile(drawn, (0.025, 0.975))
        return cls(value, float(low), float(high), n)

    def times(self, factor: float) -> Interval:
        """The value and both ends times a number."""
        low, high = sorted((factor * self.low, factor * self.high))
        return Interval(factor * self.value, low, high, self.n)

    def at_least(self, limit: float) -> bool | None:
        """Whether it is the limit or more."""
        return _decided(self.low >= limit, self.high < limit)

    def at_most(self, limit: float) -> bool | None:
        """Whether it is the limit or less."""
        return _decided(self.high <= limit, self.low > limit)

    def above(self, limit: float) -> bool | None:
        """Whether it is more than the limit."""
        return _decided(self.low > limit, self.high <= limit)

    def below(self, limit: float) -> bool | None:
        """Whether it is less than the limit."""
        return _decided(self.high < limit, self.low >= limit)

    def within(self, low: float, high: float) -> bool | None:
        """Whether it is neither less than the one nor more than the other."""
        return both(self.at_least(low), self.at_most(high))

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def sign(self) -> int:
        """On which side of zero the whole interval lies; 0: on neither."""
        return (self.low > 0) - (self.high < 0)

    def percent(self, sign: bool = True) -> str:
        """`+4.2 ± 0.3 %`, or `+4.2 (+3.8 to +5.1) %` where the value is not in the middle."""
        return f"{self.told(100, '+.1f' if sign else '.1f')} %"

    def told(self, scale: float = 1.0, form: str = ".3f") -> str:
        """The same without a unit, `scale` times."""
        value, low, high = (scale * one for one in (self.value, self.low, self.high))
        half = f"{(high - low) / 2:{form.lstrip('+')}}"
        if half == f"{value - low:{form.lstrip('+')}}" == f"{high - value:{form.lstrip('+')}}":
            return f"{value:{form}} ± {half}"
        return f"{value:{form}} ({low:{form}} to {high:{form}})"

    def __str__(self) -> str:
        return self.told()


def both(*parts: bool | None) -> bool | None:
    """False if one of them is, else undecided if one of them is, else true."""
    return False if any(one is False for one in parts) else None if any(one is None for one in parts) else True


def _decided(met: bool, missed: bool) -> bool | None:
    return True if met else False if missed else None
