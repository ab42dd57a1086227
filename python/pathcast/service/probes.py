"""Rounds that others ask for meanwhile: handed from their threads to the watch's, and the answer back."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Probed:
    """A round: whether anything answered, and how long it took [s]."""

    success: bool
    duration_s: float


@dataclass(frozen=True)
class Refused:
    """Nothing was measured, and will not be before so long [s]. busy: others are in the way, not the allowance. paced:
    the allowance has the bytes, but those of the round before are to be of the day for so long."""

    retry_s: float
    busy: bool = False
    paced: bool = False


@dataclass
class _Asked:
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Probed | Refused | None = None
    waiting: int = 0


class Probes:
    """Who asks for a target that somebody waits for already waits for the same round. most: so many wait at most."""

    def __init__(self, most: int = 32, busy_s: float = 10.0) -> None:
        self._most, self._busy_s = most, busy_s
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        with self._lock:
            return sum(asked.waiting for asked in self._asked.values())

    def ask(self, target: str, patience_s: float) -> Probed | Refused:
        """From any thread: waits for a round."""
        with self._lock:
            if self._closed or sum(asked.waiting for asked in self._asked.values()) >= self._most:
                return Refused(self._busy_s, busy=True)
            asked = self._asked.setdefault(target, _Asked())
            asked.waiting += 1
        asked.answered.wait(patience_s)
        with self._lock:
            asked.waiting -= 1
            if asked.answer is not None:
                return asked.answer
            # nobody waits for it any more: it is not measured
            if asked.waiting == 0 and self._asked.get(target) is asked:
                del self._asked[target]
        return Refused(self._busy_s, busy=True)

    def next(self) -> str | None:
        """Whoever waits for longest, from the watch's thread."""
        with self._lock:
            return next(iter(self._asked), None)

    def answer(self, target: str, answer: Probed | Refused) -> None:
        """To all who wait for it."""
        with self._lock:
            asked = self._asked.pop(target, None)
            if asked is not None:
                asked.answer = answer
                asked.answered.set()

    def refuse(self, retry_s: float, busy: bool = False, paced: bool = False) -> None:
        """All who wait."""
        while (target := self.next()) is not None:
            self.answer(target, Refused(retry_s, busy, paced))

    def close(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._closed = True
        self.refuse(self._busy_s, busy=True)
