"""Rounds of `pathcast measure --repeat` against a far end that comes and goes."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext

import pytest

from pathcast.cli import measureseries
from pathcast.cli.measureseries import Series
from pathcast.cli.schema import SCHEMAS
from pathcast.cli.testing import wrong
from pathcast.errors import Exit, PathcastError
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.verbs import Verbs

AWAY = PathcastError("no-answer", "no answer: is the far end running?", None, Exit.RUNTIME)


class FarEnd(Verbs):
    """Answers where `there` of the round says so; `opened` and `closed` count sessions, `waited` the pauses."""

    world, paths = "host", ("p1",)

    def __init__(self, there, error=AWAY):
        self.there, self.error = list(there), error
        self.opened = self.closed = 0
        self.waited = []

    @contextmanager
    def make(self):
        if not self.there[0]:
            self.there.pop(0)
            raise self.error
        self.opened += 1
        try:
            yield self
        finally:
            self.closed += 1

    def measure(self, paths, request, progress):
        if self.there.pop(0):
            return Measurement((), 1000, 1.5, "ride")
        raise self.error

    def wait(self, time_s):
        self.waited.append(time_s)


@pytest.fixture
def run(monkeypatch):
    def run(far_end, count, jsonl=True):
        monkeypatch.setattr(measureseries.time, "sleep", far_end.waited.append)
        series = Series("far", far_end.make, None, Request(), 30.0, jsonl, 2, lambda: nullcontext(None))
        return series.run(count)

    return run


def test_it_outlives_a_far_end_that_is_away_and_opens_a_session_anew(run, capsys):
    # in a session, then when one is to be opened
    far_end = FarEnd([True, False, False, True, True])
    run(far_end, 5)
    assert (far_end.opened, far_end.closed) == (2, 2)
    assert len(far_end.waited) == 4
    assert all(0 < pause <= 30 for pause in far_end.waited)
    said = capsys.readouterr()
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert ["error" in line for line in lines] == [False, True, True, False, False]
    assert {line["schema"] for line in lines} == {"pathcast.measure/2"}
    assert all("time_s" in line for line in lines)
    schema = SCHEMAS["measure"]()
    assert [wrong(line, schema) for line in lines] == [[]] * 5
    assert wrong({**lines[1], "error": {"code": "no-answer"}}, schema)
    assert said.err.count("it is tried again every 30 s") == 2
    assert "3 KB in all" in said.err


def test_the_last_round_is_what_it_ends_with(run):
    assert run(FarEnd([True, False]), 2) is AWAY


def test_a_far_end_that_is_not_there_yet_is_waited_for(run, capsys):
    assert run(FarEnd([False, False, True]), 3) is not AWAY
    said = capsys.readouterr()
    assert ["error" in json.loads(line) for line in said.out.splitlines()] == [True, True, False]
    assert "answers again after" in said.err
    assert "2 rounds: no answer: is the far end running?" in said.err


@pytest.mark.parametrize("code", ["queue", "sessions", "sessions-per-key", "sessions-per-source", "pause", "time"])
def test_a_far_end_that_is_full_is_waited_for(run, capsys, code):
    full = PathcastError(code, "busy", None, Exit.REFUSED)
    assert run(FarEnd([False, True], full), 2) is not full
    assert ["error" in json.loads(line) for line in capsys.readouterr().out.splitlines()] == [True, False]


@pytest.mark.parametrize("exit", [Exit.USAGE, Exit.REFUSED, Exit.MISSING])
def test_what_no_round_would_mend_ends_it_at_the_beginning_only(run, exit):
    fault = PathcastError("fault", "wrong", None, exit)
    with pytest.raises(PathcastError, match="wrong"):
        run(FarEnd([False], fault), 3)
    far_end = FarEnd([True, False, False, True], fault)
    assert run(far_end, 4) is not fault
    assert far_end.there == []


def test_an_hour_away_is_a_gap(run, capsys):
    hour = 120
    far_end = FarEnd([True, *[False] * hour, True], OSError(24, "Too many open files"))
    run(far_end, hour + 2)
    assert far_end.there == []
    said = capsys.readouterr()
    errors = [json.loads(line).get("error") for line in said.out.splitlines()]
    assert [error and error["message"] for error in errors] == [None, *["Too many open files"] * hour, None]
    assert f"{hour} rounds: Too many open files" in said.err


def test_an_interruption_ends_it(run):
    with pytest.raises(PathcastError, match="interrupted"):
        run(FarEnd([True, False], PathcastError("interrupted", "interrupted", None, Exit.INTERRUPTED)), 3)


class Simulated(FarEnd):
    """A round takes 1.5 s of the network's own time; `there`: what each takes of the machine's [s], None: it fails."""

    world, real_time = "sim", False

    def __init__(self, there, clock):
        super().__init__(there)
        self.at, self.clock = 100.0, clock

    def now(self):
        return self.at

    def measure(self, paths, request, progress):
        took = self.there.pop(0)
        self.at += 1.5
        if took is None:
            raise AWAY
        self.clock[0] += took
        return Measurement((), 1000, 1.5, "ride")

    def wait(self, time_s):
        super().wait(time_s)
        self.at += time_s


def test_simulated_rounds_begin_at_their_times_however_fast_the_machine_is(run, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(measureseries.time, "monotonic", lambda: clock[0])
    network = Simulated([0.1, 70.0, None, 29.0], clock)
    run(network, 4)
    assert network.waited == [28.5, 28.5, 28.5]
