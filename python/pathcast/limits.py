"""The most events of the simulator in one transfer, measurement, pause or run of flows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# some hours of work
EVENTS = 100_000_000_000
_events = EVENTS


def events() -> int:
    """The limit where nobody gives one."""
    return _events


@contextmanager
def limited(most: int | None) -> Iterator[None]:
    """It is another during the block, in all threads; None: as it is."""
    global _events
    before = _events
    _events = before if most is None else most
    try:
        yield
    finally:
        _events = before
