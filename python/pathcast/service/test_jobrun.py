"""What goes wrong around a job's program, and is not the program's."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from types import SimpleNamespace

import pytest

from pathcast.errors import PathcastError
from pathcast.service import jobs
from pathcast.service.jobrun import execute, ran


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    return tmp_path / "state"


def test_an_end_that_can_neither_be_noted_nor_said_leaves_the_programs_status(state, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(jobs, "_add_line", full)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=full, flush=lambda: None))
    ran("nightly", {}, None)(0, None)


PROGRAM = (sys.executable, "-c", "")


def begun(directory, sleep, retries=10):
    """What is noted of a job of that directory, and what is said."""
    job, said = jobs.Job("nightly", ("22:00",), None, (), ("true",), str(directory), retries), []
    done = execute(job, PROGRAM, None, lambda: None, said.append, sleep)
    return done, [one["event"] for one in jobs.runs("nightly")], said


def test_a_directory_that_comes_later_is_waited_for(state, tmp_path):
    away, waits = tmp_path / "backup", []

    def sleep(wait_s):
        waits.append(wait_s)
        if len(waits) == 2:
            away.mkdir()

    done, events, said = begun(away, sleep)
    assert (done["status"], done["attempts"], waits) == (0, 3, [10, 20])
    assert events == ["begun", "again", "again", "ended"]
    assert f"nightly: cannot start in `{away}`: [Errno 2] No such file or directory" in said[0]


def test_one_that_never_comes_is_the_end_of_the_run(state, tmp_path):
    done, events, _ = begun(tmp_path / "backup", lambda _: None, retries=2)
    assert (done["status"], done["attempts"], done["bytes_sent"]) == (1, 3, 0)
    assert (events[-1], jobs.begun("nightly") is not None) == ("ended", True)


def test_nor_does_a_disc_without_room_for_the_report_leave_a_run_without_an_end(state, tmp_path, monkeypatch):
    def full(*_):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    done, events, said = begun(tmp_path, lambda _: None, retries=0)
    assert (done["status"], events, "No usable temporary" in said[0]) == (1, ["begun", "ended"], True)


@pytest.fixture
def disc(monkeypatch):
    """A disc: `disc.full(n)` says whether its n-th note finds no room."""
    add_line, disc = jobs._add_line, SimpleNamespace(full=lambda n: False, notes=0)

    def added(path, line):
        disc.notes += 1
        if disc.full(disc.notes):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        add_line(path, line)

    monkeypatch.setattr(jobs, "_add_line", added)
    return disc


TWICE = "import pathlib, sys; of = pathlib.Path('there'); sys.exit(0) if of.exists() else (of.touch(), sys.exit(3))"


def test_a_full_disc_ends_no_run(state, tmp_path, disc):
    disc.full = lambda n: n > 1
    job, said, waits = jobs.Job("nightly", ("22:00",), None, (), ("true",), str(tmp_path)), [], []
    done = execute(job, (sys.executable, "-c", TWICE), None, lambda: None, said.append, waits.append)
    assert (done["status"], done["attempts"], waits) == (0, 2, [10])
    assert [text for text in said if "No space left" in text] == [
        f"nightly: `{event}` is not noted: cannot write `{jobs.runs_file('nightly')}`: No space left on device"
        for event in ("again", "ended")
    ]
    # its bounds are used up for the run that goes on
    assert [one["event"] for one in jobs.runs("nightly")] == ["begun"]


def test_nor_does_it_hide_that_its_user_ended_it(state, tmp_path, disc):
    disc.full = lambda n: n > 1
    job = jobs.Job("nightly", ("22:00",), None, (), ("true",), str(tmp_path))

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(job, (sys.executable, "-c", TWICE), None, lambda: None, lambda _: None, interrupted)


@pytest.mark.parametrize(("room_at", "runs"), [(3, True), (99, False)])
def test_one_that_cannot_be_noted_as_begun_waits_for_room_until_its_deadline(state, tmp_path, disc, room_at, runs):
    disc.full = lambda n: n < room_at
    job, said, waits = jobs.Job("nightly", ("22:00",), "1h", (), ("true",), str(tmp_path)), [], []
    by, left_s = "2026-11-27T23:00:00+00:00", lambda: 3600 - sum(waits)
    if runs:
        assert execute(job, PROGRAM, by, left_s, said.append, waits.append)["status"] == 0
        assert waits == [10, 20]
        assert [one["event"] for one in jobs.runs("nightly")] == ["begun", "ended"]
    else:
        with pytest.raises(PathcastError, match="No space left"):
            execute(job, PROGRAM, by, left_s, said.append, waits.append)
        assert sum(waits) == 3600
    assert sum("No space left" in text for text in said) == 1
