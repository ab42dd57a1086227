"""What every test of this checkout keeps."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGALRM)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file without the name of the mark that is asked for has no such test: it is not loaded, nor what it needs."""
    mark = config.option.markexpr
    unmarked = (
        mark.isidentifier() and collection_path.suffix == ".py" and mark.encode() not in collection_path.read_bytes()
    )
    return True if unmarked else None


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
