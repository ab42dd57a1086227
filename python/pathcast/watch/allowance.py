"""Bytes of a day: no 24 hours, wherever they begin, get more, and each round waits for its share of the day."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

DAY_S = 86_400.0
# what was spent within this time is one entry, so that memory is bounded [s]
_MERGED_S = 60.0


class Allowance:
    """most: of any DAY_S [byte]. spent: when it ended and how much, the oldest first. paced: when the round began for
    whose bytes the next one waits, and those [byte].

    Bytes are taken before they are sent, as many as there can be, and settled when they are known. They count until a
    day after their last one has gone.
    """

    def __init__(self, most: int, spent: Iterable[tuple[float, int]] = (), paced: tuple[float, int] = (0.0, 0)) -> None:
        if most <= 0:
            raise ValueError(most)
        self.most, self.paced = most, paced
        self._spent = deque((at_s, bytes) for at_s, bytes in spent)
        self._sum = sum(bytes for _, bytes in self._spent)
        self._taken: tuple[float, int] | None = None
        # when what is now the last entry was begun
        self._first_s = float("-inf")

    @property
    def paced_s(self) -> float:
        """No round before: the last one's bytes are of the day until then."""
        return self._until_s(*self.paced)

    def _until_s(self, began_s: float, bytes: int) -> float:
        return began_s + bytes * DAY_S / self.most

    def used(self, now_s: float) -> int:
        """What counts now [byte]."""
        while self._spent and self._spent[0][0] + DAY_S < now_s:
            self._sum -= self._spent.popleft()[1]
        return self._sum + (self._taken[1] if self._taken else 0)

    def free_s(self, now_s: float, bytes: int, paced: bool = True) -> float:
        """From when on so many may be taken: now, or later; paced: as a round, after what the ones before it wait for.
        Infinite: never are there so many."""
        if bytes > self.most:
            return float("inf")
        over = self.used(now_s) + bytes - self.most
        at_s = max(now_s, self.paced_s) if paced else now_s
        for ended_s, spent in self._spent:
            if over <= 0:
                break
            over -= spent
            # the very moment belongs to the day still
            at_s = max(at_s, ended_s + DAY_S + 1e-3)
        return at_s

    def take(self, now_s: float, bytes: int) -> None:
        """Takes them. Raises ValueError where they are not free, or others are not settled."""
        if self._taken is not None or self.used(now_s) + bytes > self.most:
            raise ValueError(bytes)
        self._taken = (now_s, bytes)

    def settle(self, now_s: float, bytes: int, paced: bool = True) -> None:
        """What it was in truth. paced: the next round waits for as long as these bytes are of the day."""
        assert self._taken is not None
        began_s, self._taken = self._taken[0], None
        if paced and self._until_s(began_s, bytes) > self.paced_s:
            self.paced = began_s, bytes
        if self._spent and now_s - self._spent[-1][0] < _MERGED_S and self._first_s > now_s - _MERGED_S:
            self._spent[-1] = (now_s, self._spent[-1][1] + bytes)
        else:
            self._first_s = now_s
            self._spent.append((now_s, bytes))
        self._sum += bytes

    @property
    def entries(self) -> list[tuple[float, int]]:
        """What was spent, when it ended, the oldest first."""
        return list(self._spent)

    @property
    def taken(self) -> int:
        """What is not settled yet."""
        return self._taken[1] if self._taken else 0
