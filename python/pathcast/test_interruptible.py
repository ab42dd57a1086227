"""Native work in a thread: its result, its errors, and its end at a signal."""

import threading

import pytest

from pathcast.errors import PathcastError
from pathcast.interruptible import interruptible


def never():
    raise AssertionError("cancelled")


def failing(error):
    def work():
        raise error

    return work


def test_results_and_errors_are_those_of_the_work():
    assert interruptible(lambda: 7, never) == 7
    with pytest.raises(KeyError, match="x"):
        interruptible(failing(KeyError("x")), never)
    with pytest.raises(PathcastError, match="native code failed: panicked") as error:
        interruptible(failing(BaseException("panicked")), never)
    assert error.value.code == "internal"


def test_what_is_raised_meanwhile_ends_the_work():
    end, seen = threading.Event(), []

    def meanwhile():
        seen.append(True)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: end.wait(60), end.set, meanwhile)
    assert len(seen) == 3
    assert end.is_set()
