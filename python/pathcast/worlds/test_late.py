"""What is done again, how often, and with which turns on the machine."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds import late
from pathcast.worlds.late import again
from pathcast.worlds.results import Verdict
from pathcast.worlds.verbs import Verbs


@pytest.fixture
def turns(monkeypatch):
    """Whether each turn was for the machine alone; none is held at the end."""
    found, held = [], []

    @contextmanager
    def turn(alone, cancelled):
        found.append(alone)
        held.append(alone)
        try:
            yield
        finally:
            held.pop()

    monkeypatch.setattr(late, "turn", turn)
    yield found
    assert held == []


def coming(*outcomes):
    """Work that comes to these one after the other; exceptions are raised."""
    left = list(outcomes)

    def work():
        one = left.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    return work


def was_late():
    with pytest.raises(PathcastError) as caught:
        Verdict({"p99_s": 0.002}).check()
    return caught.value


@pytest.mark.parametrize(
    ("outcomes", "expected", "calls"),
    [
        ((1,), 1, 1),
        ((-1, 2), 2, 2),
        ((-1, -2, 3), 3, 3),
        ((-1, -2, -3), -3, 3),
        ((was_late(), 2), 2, 2),
        ((was_late(), -2, 3), 3, 3),
        ((-1, was_late(), -3), -3, 3),
    ],
)
def test_until_it_is_good_or_three_times(turns, outcomes, expected, calls):
    assert again(coming(*outcomes), lambda found: found > 0) == (expected, calls)
    assert turns == [False, True, True][:calls]


def test_the_third_time_late_is_late(turns):
    with pytest.raises(PathcastError, match="the emulator was late") as caught:
        again(coming(was_late(), was_late(), was_late()))
    assert (caught.value.code, caught.value.exit) == ("late", Exit.UNTRUSTWORTHY)
    assert turns == [False, True, True]


@pytest.mark.parametrize("error", [PathcastError("broken", "it broke"), ValueError("a fault")])
def test_any_other_error_is_none_of_its_business(turns, error):
    with pytest.raises(type(error)) as caught:
        again(coming(error))
    assert caught.value is error
    assert turns == [False]


def test_where_nothing_is_late_nothing_is_done_again(turns):
    world = Verbs()
    assert world.again(coming(-1), lambda found: found > 0) == (-1, 1)
    with world.judged() as verdict, world.turn(alone=True):
        pass
    assert verdict.valid
    assert verdict.fault is verdict.document() is None
    assert turns == []
