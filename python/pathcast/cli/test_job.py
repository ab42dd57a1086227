"""`job` as a command: what is added is listed, shown, run and removed; bad words."""

from __future__ import annotations

import errno
import os
import sys
import time
from datetime import datetime
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from pathcast import zone
from pathcast.cli import job as job_module
from pathcast.errors import Exit
from pathcast.runtime.keys import write_key
from pathcast.service import jobrun, jobs
from pathcast.service.jobrun import alone as jobs_alone

pytestmark = pytest.mark.usefixtures("own_directories")


@pytest.fixture
def units(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    return tmp_path / "units"


ADD = ("job", "add", "nightly", "--at", "22:00", "--by", "6:00", "--size", "300GB", "--max", "cable=50GB", "--cheap")


def test_from_its_beginning_to_its_end(pathcast, units):
    status, document, err = pathcast(*ADD, "--units", units, "--json", "--", "rsync", "-a", "/srv", "far:/srv")
    assert status == Exit.OK, err
    assert document["schema"] == "pathcast.job/1"
    assert document["options"] == ["--size", "300GB", "--max", "cable=50GB", "--cheap"]
    assert document["command"] == ["rsync", "-a", "/srv", "far:/srv"]
    assert (document["by"], document["runs_by"], len(document["units"])) == ("06:00", "hand", 2)
    assert document["next"].endswith(" 22:00")
    status, document, _ = pathcast("job", "list", "--json")
    assert [(job["name"], job["running"], job["last"]) for job in document["jobs"]] == [("nightly", False, None)]
    jobs.note("nightly", {"event": "begun", "at_s": time.time(), "by": None})
    ended = {"event": "ended", "at_s": 1e9 + 60, "status": 0, "attempts": 2, "elapsed_s": 60.0, "in_time": True}
    sent = {"bytes_sent": 10**9, "expected_s": 50.0, "lines": {"dsl": 10**9}}
    jobs.note("nightly", {**ended, **sent})
    out = pathcast("job", "list")[1]
    assert "done, 1 GB in 60 s (forecast: 50 s), at the 2. attempt, in time" in out
    assert "pathcast run --paths auto --size 300GB" in pathcast("job", "status", "nightly")[1]
    assert "dsl 1 GB" in pathcast("job", "log", "nightly")[1]
    assert len(pathcast("job", "log", "nightly", "--json")[1]["events"]) == 2
    status, _, err = pathcast("job", "run", "nightly", "--due")
    assert (status, "it has begun already" in err) == (Exit.OK, True)
    status, document, _ = pathcast("job", "remove", "nightly", "--units", units, "--json")
    assert status == Exit.OK
    assert len(document["removed"]) == 2
    assert list(units.iterdir()) == []
    assert "there is no job yet" in pathcast("job", "list")[1]


@pytest.fixture
def in_tokyo(monkeypatch):
    """The machine's zone; the process was told of another one."""
    with monkeypatch.context() as there:
        there.setattr(zone, "zone", lambda: ZoneInfo("Asia/Tokyo"))
        there.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def test_times_are_the_machines_whatever_a_command_was_told(pathcast, units, in_tokyo, monkeypatch):
    at = datetime(2026, 11, 26, 21, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
    monkeypatch.setattr(time, "time", at.timestamp)
    out = pathcast(*ADD, "--units", units, "--", "true")[1]
    assert "nightly: its next time is 2026-11-26 22:00 JST" in out
    assert "2026-11-26 22:00 JST" in pathcast("job", "list")[1]
    assert pathcast("job", "list", "--json")[1]["jobs"][0]["next"] == "2026-11-26 22:00"
    jobs.note("nightly", {"event": "begun", "at_s": at.timestamp(), "by": None})
    assert jobs.begun("nightly") is None
    assert "begun 2026-11-26 21:30 JST" in pathcast("job", "status", "nightly")[1]
    assert "2026-11-26 21:30:00 JST" in pathcast("job", "log", "nightly")[1]
    jobs.note("nightly", {"event": "ended", "at_s": at.timestamp() + 5, "status": 0})
    assert jobs.begun("nightly") == datetime(2026, 11, 26, 21, 30)
    # it has run at half past nine, and is due at ten
    monkeypatch.setattr(time, "time", lambda: at.timestamp() + 3600)
    begun = []
    monkeypatch.setattr(jobrun, "execute", lambda *words: begun.append(words[2]) or {"status": 0, **jobs._ENDED})
    assert pathcast("job", "run", "nightly", "--due")[0] == Exit.OK
    assert begun == ["2026-11-27T06:00:00+09:00"]


def test_it_begins_when_the_words_say_so(pathcast, units, in_tokyo, monkeypatch):
    """Whoever looks at once: systemd's timer, whose time after the boot is past, or the daemon."""
    at = datetime(2026, 11, 26, 23, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
    monkeypatch.setattr(time, "time", at.timestamp)
    monkeypatch.setattr(job_module, "_place", lambda job, into: ([], "systemd"))
    begun = []
    monkeypatch.setattr(jobrun, "execute", lambda *words: begun.append(words[2]) or {"status": 0, **jobs._ENDED})
    assert "nightly: begins 2026-11-27 22:00 JST, by systemd" in pathcast(*ADD, "--", "true")[1]
    status, _, err = pathcast("job", "run", "nightly", "--due")
    assert (status, begun, "was before it was added" in err) == (Exit.OK, [], True)
    out = pathcast("job", "add", "soon", *ADD[3:4], "23:30", *ADD[5:], "--", "true")[1]
    assert "soon: begins now, by systemd" in out
    assert pathcast("job", "run", "soon", "--due")[0] == Exit.OK
    monkeypatch.setattr(time, "time", lambda: at.timestamp() + 22.5 * 3600)
    assert pathcast("job", "run", "nightly", "--due")[0] == Exit.OK
    assert begun == ["2026-11-27T06:00:00+09:00", "2026-11-28T06:00:00+09:00"]


def test_what_was_broken_off_is_said(pathcast, units):
    pathcast(*ADD, "--units", units, "--", "true")
    assert "last: none has ended yet" in pathcast("job", "status", "nightly")[1]
    jobs.note("nightly", {"event": "begun", "at_s": 1e9, "by": None})
    jobs.note("nightly", {"event": "again", "at_s": 1e9 + 5, "status": 3, "wait_s": 10})
    out = pathcast("job", "status", "nightly")[1]
    begun = zone.clock(1e9)
    assert f"broken off: what was begun {begun:%Y-%m-%d %H:%M}, without an end\nlast: none has ended yet" in out
    with jobs_alone("nightly"):
        out = pathcast("job", "status", "nightly")[1]
    assert "runs now" in out
    assert "broken off" not in out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as somebody else")
@pytest.mark.parametrize(
    ("caller", "given", "user"), [("ann", [], "ann"), ("ann", ["--user", "nobody"], "nobody"), ("root", [], None)]
)
def test_whose_the_program_is_by_the_clock(pathcast, units, monkeypatch, caller, given, user):
    monkeypatch.setenv("SUDO_USER", caller)
    options = pathcast("job", "add", "nightly", "--at", "22:00", *given, "--units", units, "--json", "--", "true")[1][
        "options"
    ]
    assert options == (["--user", user] if user else [])


# in place of `pathcast`: reads the key as `run` does
READS = """
import json, sys
from pathlib import Path
from pathcast.runtime.keys import read_key
words = sys.argv[1:]
key = read_key(Path(words[words.index("--key-file") + 1]))
Path("read").write_text(key.id)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of others")
@pytest.mark.parametrize("now", [None, "0", "4712"])
def test_the_key_of_who_called_sudo_is_read_by_the_clock_too(pathcast, units, tmp_path, monkeypatch, now):
    key = tmp_path / "far.key"
    write_key(key, "office")
    os.chown(key, 4711, 4711)
    words = (
        "job",
        "add",
        "nightly",
        "--at",
        "22:00",
        "--to",
        "far",
        "--key-file",
        key,
        "--retries",
        "0",
        "--units",
        units,
    )
    words += ("--", "true")
    assert pathcast(*words)[0] == Exit.REFUSED
    monkeypatch.setenv("SUDO_UID", "4711")
    monkeypatch.setenv("SUDO_USER", "nobody")
    monkeypatch.chdir(tmp_path)
    assert pathcast(*words)[0] == Exit.OK
    assert jobs.load("nightly").caller == 4711
    for name in ("SUDO_UID", "SUDO_USER"):
        monkeypatch.delenv(name)
    if now is not None:
        monkeypatch.setenv("SUDO_UID", now)
    (tmp_path / "reads.py").write_text(READS)
    monkeypatch.setattr(job_module, "_program", lambda: [sys.executable, str(tmp_path / "reads.py")])
    assert pathcast("job", "run", "nightly")[0] == Exit.OK
    assert (tmp_path / "read").read_text() == "office"
    # of nobody else
    os.chown(key, 4713, 4713)
    assert pathcast("job", "run", "nightly")[0] != Exit.OK


def test_without_a_key_and_without_sudo_a_job_has_no_caller(pathcast, units, monkeypatch):
    monkeypatch.setenv("SUDO_UID", "4711")
    assert pathcast(*ADD, "--units", units, "--", "true")[0] == Exit.OK
    assert jobs.load("nightly").caller is None


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (["--at", "25:00"], "25:00"),
        (["--at", "22:00", "--by", "2027-01-01T06:00"], "2027-01-01T06:00"),
        (["--at", "22:00", "--by", "soon"], "soon"),
        (["--at", "22:00", "--by", "06:00"], "--size"),
        (["--at", "22:00", "--size", "much"], "much"),
        (["--at", "22:00", "--max", "cable"], "cable"),
        (["--at", "22:00", "--budget", "-3"], "-3"),
        (["--at", "22:00", "--max-rate", "0"], "0"),
        (["--at", "22:00", "--hurry"], "--hurry"),
        (["--at", "22:00", "--key-file", "k"], "--to HOST"),
        (["--at", "22:00", "--to", "far", "--key-file", "/no/such.key"], "/no/such.key"),
        (["--at", "22:00", "--retries", "-1"], "-1"),
        (["--at", "22:00", "--size", "1GB", "--to", "far:99999"], "99999"),
        (["--at", "22:00", "--user", "no-such-user"], "no-such-user"),
        ([], "--at"),
    ],
)
def test_bad_words(pathcast, units, wrong, names):
    status, document, _ = pathcast("job", "add", "nightly", *wrong, "--units", units, "--json", "--", "true")
    assert status == Exit.USAGE
    assert names in document["error"]["message"]
    assert pathcast("job", "list", "--json")[1]["jobs"] == []


def test_what_would_fail_in_the_night_is_said_when_it_is_added(pathcast, units):
    lines = units.parent / "pathcast.toml"
    add = ("job", "add", "nightly", "--at", "22:00", "--units", units)
    err = pathcast(*add, "--", "no-such-program-here")[2]
    assert "there is no program `no-such-program-here` now" in err
    assert "no line has a name yet" in err
    assert pathcast("job", "remove", "nightly")[0] == Exit.OK
    lines.write_text('[line.cable]\nfrom = "192.0.2.1"\n')
    status, _, err = pathcast(*add, "--max", "cabel=1GB", "--", "true")
    assert (status, "no line `cabel`; lines are cable" in err, "mean `cable`?" in err) == (2, True, True)
    assert pathcast(*add, "--max", "cable=1GB", "--", "true")[2] == ""
    assert pathcast("job", "log", "nightly")[1] == "nightly has not run yet\n"


WHOLE = (
    '{"schema": "pathcast.job/1", "name": "broken", "at": ["22:00"], "by": null, "options": [], "command": ["true"],'
    ' "directory": "/", "retries": 1}'
)


def test_a_file_that_does_not_say_when_it_was_added_is_of_long_ago(units):
    jobs.folder().mkdir()
    (jobs.folder() / "broken.json").write_text(WHOLE)
    assert jobs.load("broken").added is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "\x00", WHOLE[:60], WHOLE.replace("job/1", "job/2"), WHOLE.replace('"at"', '"on"')),
        *(WHOLE.replace("22:00", "25:00"), WHOLE.replace('["22:00"]', '"22:00"'), WHOLE.replace("null", '"soon"')),
        *(WHOLE.replace(": 1}", ': 1, "added_s": "x"}'), WHOLE.replace(": 1}", ': 1, "added_s": 1e12}')),
        *(WHOLE.replace(": 1}", f': 1, "caller": {of}}}') for of in ('"ann"', "-1", "true")),
        *(WHOLE.replace('"broken"', '"other"'), WHOLE.replace('["true"]', "[1]"), WHOLE.replace(": 1}", ': "1"}')),
    ],
)
def test_a_damaged_file_hides_no_other_job_and_can_be_removed(pathcast, units, text):
    assert pathcast("job", "add", "nightly", "--at", "22:00", "--units", units, "--", "true")[0] == Exit.OK
    file = jobs.folder() / "broken.json"
    file.write_text(text)
    status, document, _ = pathcast("job", "list", "--json")
    assert (status, [job["name"] for job in document["jobs"]]) == (Exit.OK, ["nightly"])
    [told] = document["damaged"]
    assert str(file) in told
    status, out, err = pathcast("job", "list")
    assert (status, "nightly" in out, str(file) in err, "job remove broken" in err) == (Exit.OK, True, True, True)
    for verb in ("status", "run"):
        status, _, err = pathcast("job", verb, "broken")
        assert (status, str(file) in err) == (Exit.USAGE, True)
    assert "there are: broken, nightly" in pathcast("job", "status", "weekly")[2]
    assert pathcast("job", "remove", "broken", "--units", units)[0] == Exit.OK
    assert not file.exists()
    assert pathcast("job", "list", "--json")[1]["damaged"] == []


def test_the_daemon_begins_a_job_once_though_its_run_takes_long_to_begin(pathcast, units, monkeypatch):
    at = f"{zone.clock():%H:%M}"
    assert pathcast("job", "add", "nightly", "--at", at, "--units", units, "--", "true")[0] == Exit.OK
    begun, looks = [], []

    class Begun:
        ended = None

        def __init__(self, words, **more):
            assert words[-4:] == ["job", "run", "nightly", "--due"]
            begun.append(self)

        def poll(self):
            return self.ended

        def terminate(self):
            self.ended = 143

        def wait(self):
            return self.ended

    def look(seconds):
        looks.append(len(begun))
        if len(looks) == 3:
            begun[0].ended = 1
        if len(looks) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr("subprocess.Popen", Begun)
    monkeypatch.setattr("time.sleep", look)
    assert pathcast("job", "daemon")[0] == Exit.INTERRUPTED
    assert looks == [1, 1, 1, 2, 2]
    assert begun[1].ended == 143


def test_what_keeps_the_daemon_from_a_job_ends_no_other_and_is_said_once(pathcast, units, monkeypatch):
    at = f"{zone.clock():%H:%M}"
    for name in ("first", "second"):
        assert pathcast("job", "add", name, "--at", at, "--units", units, "--", "true")[0] == Exit.OK
    broken = jobs.folder() / "broken.json"
    broken.write_text("{")
    begun, looks, ended = [], [], []

    class Begun:
        """At the first two looks the system lacks a process for one of the jobs."""

        def __init__(self, words, **more):
            if words[-2] == "first" and len(looks) < 2:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            begun.append((len(looks), words[-2]))

        def poll(self):
            return None

        def terminate(self):
            ended.append(len(looks))

        def wait(self):
            return None

    def look(seconds):
        looks.append(seconds)
        if len(looks) == 3:
            broken.unlink()
        if len(looks) == 4:
            broken.write_text("{")
        if len(looks) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr("subprocess.Popen", Begun)
    monkeypatch.setattr("time.sleep", look)
    status, _, err = pathcast("job", "daemon")
    assert (status, begun, ended) == (Exit.INTERRUPTED, [(0, "second"), (2, "first")], [5, 5])
    assert err.count("first cannot be begun now: [Errno 11] Resource temporarily unavailable") == 1
    assert err.count("second begins") == err.count("first begins") == 1
    assert err.count(str(broken)) == 2  # it had passed between


def test_a_daemon_that_cannot_look_goes_on(pathcast, units, monkeypatch):
    found, looks = [], []

    def every(damaged):
        if not found:
            found.append(None)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return []

    def look(seconds):
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "every", every)
    monkeypatch.setattr("time.sleep", look)
    status, _, err = pathcast("job", "daemon")
    assert (status, len(looks), "Too many open files" in err) == (Exit.INTERRUPTED, 2, True)


def test_a_log_on_a_full_disc_leaves_a_run_its_status(pathcast, units, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert pathcast("job", "add", "nightly", "--at", "22:00", "--units", units, "--", "true")[0] == Exit.OK
    (tmp_path / "done.py").touch()
    monkeypatch.setattr(job_module, "_program", lambda: [sys.executable, str(tmp_path / "done.py")])
    with monkeypatch.context() as there:
        there.setattr(sys, "stderr", SimpleNamespace(write=full, flush=lambda: None))
        assert pathcast("job", "run", "nightly")[0] == Exit.OK
    assert jobs.runs("nightly")[-1]["event"] == "ended"


@pytest.mark.parametrize("verb", ["status", "log", "remove", "run"])
def test_names_that_are_none(pathcast, units, verb):
    assert pathcast("job", verb, "weekly")[0] == Exit.USAGE
    status, _, err = pathcast("job", verb, "../x")
    assert status == Exit.USAGE
    assert "../x" in err


OF_ROOT = "jobs are their user's: `sudo pathcast job list` shows root's"


def may_not(of):
    """root may look everywhere."""

    def denied(path, *rest, **options):
        if str(path) == str(of):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *rest, **options)

    real = os.listdir
    return denied


@pytest.mark.parametrize("readable", [True, False])
def test_who_looks_for_a_job_of_root_is_told_whose_jobs_are(pathcast, tmp_path, monkeypatch, readable):
    from pathcast.lines import config

    monkeypatch.setattr(config, "SYSTEM", tmp_path / "etc/pathcast.toml")
    monkeypatch.delenv("PATHCAST_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def told():
        hint = pathcast("job", "log", "nightly", "--json")[1]["error"]["hint"]
        return OF_ROOT in pathcast("job", "list")[1], OF_ROOT in hint

    assert told() == (False, False)
    jobs = tmp_path / "etc/jobs"
    jobs.mkdir(parents=True)
    assert told() == (False, False)
    (jobs / "nightly.json").touch()
    if not readable:
        monkeypatch.setattr(os, "listdir", may_not(jobs))
    assert told() == (True, True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert OF_ROOT not in pathcast("job", "log", "weekly", "--json")[1]["error"]["hint"]
