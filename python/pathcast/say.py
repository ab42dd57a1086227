"""Words for people, on standard error: a full disc there, or a reader that has gone, ends nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress


def say(text: str, before: str = "pathcast:") -> None:
    """At once. What cannot be written is lost, and what it speaks of goes on."""
    with suppress(OSError):
        print(f"{before} {text}", file=sys.stderr, flush=True)


class Once:
    """Says what is found at look after look once, and again where there was a look without it."""

    def __init__(self, say: Callable[[str], object] = say) -> None:
        self._say = say
        self._before: set[str] = set()
        self._now: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self._before | self._now:
            self._say(text)
        self._now.add(text)

    def looked(self) -> None:
        """A look is over."""
        self._before, self._now = self._now, set()
