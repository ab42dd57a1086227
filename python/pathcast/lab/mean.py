"""A mean over seeds with its 95 % interval (Student's t), as experiments print and judge it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import pandas as pd
from scipy.stats import t

from pathcast.lab.experiment import Undecided


@dataclass(frozen=True)
class Mean:
    """A mean, half of its 95 % interval, and the number of values."""

    mean: float
    half: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """Of two values or more, those that are missing left out; raises Undecided for fewer."""
        found = pd.Series(list(values), dtype=float).dropna()
        if len(found) < 2:
            raise Undecided("fewer than two seeds have results")
        half = float(t.ppf(0.975, len(found) - 1) * found.std(ddof=1) / sqrt(len(found)))
        return cls(float(found.mean()), half, len(found))

    @property
    def low(self) -> float:
        """The interval's lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The interval's upper end."""
        return self.mean + self.half

    @property
    def sign(self) -> int:
        """On which side of zero the whole interval lies; 0: on neither."""
        return (self.low > 0) - (self.high < 0)

    @property
    def positive(self) -> bool | None:
        """Whether it is above zero; None: the mean is, but not the whole interval."""
        if self.mean <= 0:
            return False
        return True if self.low > 0 else None

    def percent(self, sign: bool = True) -> str:
        """`+4.2 ± 0.3 %`."""
        return f"{100 * self.mean:{'+' if sign else ''}.1f} ± {100 * self.half:.1f} %"

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half:.3f}"
