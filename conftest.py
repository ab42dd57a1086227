"""What every test of this checkout keeps."""

from __future__ import annotations

import signal

import pytest

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGALRM)


@pytest.fixture(autouse=True)
def _handlers_are_left_as_they_were():
    """A process runs many tests in an order that chance gives: what one leaves would be another's failure."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    left = {number: signal.getsignal(number) for number in NUMBERS}
    for number, handler in before.items():
        if left[number] != handler:
            signal.signal(number, handler)
    assert left == before
