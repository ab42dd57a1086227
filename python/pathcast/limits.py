"""The most events of the simulator in one transfer, measurement, pause or run of flows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# some hours of work
EVENTS = 100_000_000_000
_events = ContextVar("events", default=EVENTS)


def events() -> int:
    """The limit where nobody gives one."""
    return _events.get()


@contextmanager
def limited(most: int | None) -> Iterator[None]:
    """It is another during the block, in this thread and those that are given a copy of its context; None: as it is."""
    before = _events.set(_events.get() if most is None else most)
    try:
        yield
    finally:
        _events.reset(before)
