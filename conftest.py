"""What every test of this checkout keeps."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# the machine's own zone, as most tests expect it: they set another where they mean one
os.environ.pop("TZ", None)
time.tzset()

# a busy machine is no failure, and one commit has one result. Other examples than these: --hypothesis-profile=other
settings.register_profile("other", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("pathcast", settings.get_profile("other"), derandomize=True)
settings.load_profile("pathcast")

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
