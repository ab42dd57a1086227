"""What is usual: the median of a week, and its least."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

WEEK_S = 7 * 86_400.0
# before so many values nothing is usual
FEWEST = 12
# values that follow sooner are not kept: memory is bounded
APART_S = 150.0


class Usual:
    """Values of one quantity, the newest last."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque()
        self._ordered: list[float] = []

    def add(self, at_s: float, value: float) -> None:
        """Values come by age."""
        if self._values and at_s - self._values[-1][0] < APART_S:
            return
        self._forget(at_s)
        self._values.append((at_s, value))
        insort(self._ordered, value)

    def _forget(self, now_s: float) -> None:
        while self._values and self._values[0][0] < now_s - WEEK_S:
            _, value = self._values.popleft()
            del self._ordered[bisect_left(self._ordered, value)]

    def median(self, now_s: float) -> float | None:
        """None: too little is known."""
        self._forget(now_s)
        count = len(self._ordered)
        if count < FEWEST:
            return None
        return (self._ordered[(count - 1) // 2] + self._ordered[count // 2]) / 2

    def least(self, now_s: float) -> float | None:
        """None: nothing is known."""
        self._forget(now_s)
        return self._ordered[0] if self._ordered else None
