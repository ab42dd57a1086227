"""A value with its 95 % interval, and whether a limit is met for certain: what verdicts are made of.

A limit is met if the whole interval is on its side (true), missed if the whole interval is on the other (false), and
undecided (None) if it lies inside. Values that are the same in all runs are one run and have no interval, and values of
which some are missing are not all: both may miss a limit, and never meet one (`but`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta, t

from pathcast.lab.experiment import Undecided

# what differs by less, in its unit or of its size, is rounding and not chance
_SAME = 1e-6


@dataclass(frozen=True)
class Interval:
    """A value, the ends of its 95 % interval, and the number of observations behind it.

    but: why it meets no limit, as `the same in all 20 runs`, which have no interval and whose ends are the value.
    """

    value: float
    low: float
    high: float
    n: int
    but: str = ""

    @classmethod
    def mean(cls, values: Iterable[float | None]) -> Interval:
        """Student's t, of two values or more, else Undecided is raised; how many are missing (None, NaN) is told."""
        every = pd.Series(list(values), dtype=float)
        found = every.dropna()
        if len(found) < 2:
            raise Undecided("fewer than two seeds have results")
        mean = float(found.mean())
        if same(found):
            return cls.one(mean, len(found))
        half = float(t.ppf(0.975, len(found) - 1) * found.std(ddof=1) / sqrt(len(found)))
        but = f"{len(found)} of {len(every)} seeds" if len(found) < len(every) else ""
        return cls(mean, mean - half, mean + half, len(found), but)

    @classmethod
    def one(cls, value: float, runs: int) -> Interval:
        """What was the same in so many runs, and so is one."""
        return cls(value, value, value, 1, f"the same in all {runs} runs")

    @classmethod
    def share(cls, so: Iterable[Any], seen: Any = ()) -> Interval:
        """The share of independent observations that are true: Clopper and Pearson's exact interval (Biometrika 1934).

        seen: numbers of each, NaN for none, by which runs can be told apart, of shape (n,) or (n, columns); where they
        are all the same they are one run. Raises Undecided where there are no observations.
        """
        every = [bool(one) for one in so]
        if not every:
            raise Undecided("there are no observations")
        hits, n = sum(every), len(every)
        looked = pd.DataFrame(seen, dtype=float)
        if n > 1 and hits in (0, n) and looked.size and all(_alike(column) for _, column in looked.items()):
            return cls.one(hits / n, n)
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
        """The middle 95 % of a bootstrap's draws; where all draws are the same they say nothing of what varies."""
        low, high = np.quantile(drawn, (0.025, 0.975))
        return cls(value, float(low), float(high), n, f"the same in all {len(drawn)} draws" if same(drawn) else "")

    def times(self, factor: float) -> Interval:
        """The value and both ends times a number."""
        low, high = sorted((factor * self.low, factor * self.high))
        return Interval(factor * self.value, low, high, self.n, self.but)

    def at_least(self, limit: float) -> bool | None:
        """Whether it is the limit or more."""
        return self._decided(self.low >= limit, self.high < limit)

    def at_most(self, limit: float) -> bool | None:
        """Whether it is the limit or less."""
        return self._decided(self.high <= limit, self.low > limit)

    def above(self, limit: float) -> bool | None:
        """Whether it is more than the limit."""
        return self._decided(self.low > limit, self.high <= limit)

    def below(self, limit: float) -> bool | None:
        """Whether it is less than the limit."""
        return self._decided(self.high < limit, self.low >= limit)

    def within(self, low: float, high: float) -> bool | None:
        """Whether it is neither less than the one nor more than the other."""
        return both(self.at_least(low), self.at_most(high))

    def _decided(self, met: bool, missed: bool) -> bool | None:
        return False if missed else True if met and not self.but else None

    @property
    def half(self) -> float:
        """Half of the interval's width; not a number where there is none."""
        return nan if self.low == self.high and self.but else (self.high - self.low) / 2

    @property
    def sign(self) -> int:
        """On which side of zero the whole interval lies; 0: on neither, or not for certain (`but`)."""
        return 0 if self.but else (self.low > 0) - (self.high < 0)

    def percent(self, sign: bool = True) -> str:
        """`+4.2 ± 0.3 %`, or `+4.2 (+3.8 to +5.1) %` where the value is not in the middle."""
        return self.told(100, "+.1f" if sign else ".1f", " %")

    def told(self, scale: float = 1.0, form: str = ".3f", unit: str = "") -> str:
        """The same, `scale` times, with a unit or none; a width that is not zero is not told as zero."""
        value, low, high = (scale * one for one in (self.value, self.low, self.high))
        but = f" ({self.but})" if self.but else ""
        if self.but and low == high:
            return f"{value:{form}}{unit}{but}"
        plain = form.lstrip("+")
        half = f"{(high - low) / 2:{plain}}"
        if half == f"{value - low:{plain}}" == f"{high - value:{plain}}":
            half = half if float(half) or low == high else f"{(high - low) / 2:.1g}"
            return f"{value:{form}} ± {half}{unit}{but}"
        return f"{value:{form}} ({low:{form}} to {high:{form}}){unit}{but}"

    def __str__(self) -> str:
        return self.told()


def both(*parts: bool | None) -> bool | None:
    """False if one of them is, else undecided if one of them is, else true."""
    return False if any(one is False for one in parts) else None if any(one is None for one in parts) else True


def _alike(column: pd.Series) -> bool:
    """Whether all are the same, or none is there."""
    return bool(column.isna().all() or (column.notna().all() and same(column)))


def same(values: Any) -> bool:
    """Whether all are the same, but for rounding."""
    found = np.asarray(values, dtype=float)
    return bool(np.ptp(found) <= _SAME * max(1.0, float(np.abs(found).max())))
