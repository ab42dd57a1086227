"""What is done again, how often, and with which turns on the machine."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds import late
from pathcast.worlds.late import again, measured
from pathcast.worlds.measurement import Measurement
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


@pytest.mark.parametrize(("late_s", "calls"), [((0.0,), 1), ((0.002, 0.0), 2), ((0.002, 0.003, 0.004), 3)])
def test_what_was_measured_while_it_was_late_is_measured_again_and_never_told_as_in_time(turns, late_s, calls):
    class World(Verbs):
        made = 0

        @contextmanager
        def judged(self):
            yield (verdict := Verdict())
            verdict.release_error = {"p99_s": late_s[self.made - 1]}

        def measure(self, paths, request, progress):
            self.made += 1
            return Measurement((), self.made, 1.0, "ride", notes=("its own",))

        def again(self, work, good):
            return again(work, good)

    found = measured(World())
    assert (found.probe_bytes, len(turns)) == (calls, calls)
    assert found.notes[0] == "its own"
    assert ["4.00 ms" in note for note in found.notes[1:]] == ([True] if late_s[-1] else [])
