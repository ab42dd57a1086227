"""A job's runs with a program that stands for pathcast's own: started again, alone, noted; its units."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time as clock
from datetime import datetime, time, timedelta

import pytest

from pathcast import zone
from pathcast.cli import runner
from pathcast.errors import PathcastError
from pathcast.service import jobrun, jobs, units
from pathcast.service.jobrun import alone, execute, running

# takes the options of `run`, fails as often as the file says, and reports
PROGRAM = """
import json, sys, pathlib
words = sys.argv[1:]
report = words[words.index("--report") + 1]
left = pathlib.Path("left")
n = int(left.read_text())
left.write_text(str(n - 1))
open("seen", "a").write(json.dumps(words) + "\\n")
paths = [{"local": "192.0.2.1", "remote": "192.0.2.9", "bytes_sent": 100, "bytes_received": 1}]
auto = {"expected_s": 7.0, "lines": {"dsl": ["192.0.2.1"]}, "ended": n == 9}
json.dump({"bytes_sent": 100, "bytes_received": 1, "connections": 1, "paths": paths, "auto": auto}, open(report, "w"))
sys.exit(0 if n <= 0 else 143 if n == 9 else 12)
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    (tmp_path / "program.py").write_text(PROGRAM)
    return jobs.Job("nightly", ("22:00",), "06:00", ("--size", "1GB"), ("rsync", "-a"), str(tmp_path))


def run(job, tmp_path, left, left_s=3600.0, by="2026-11-24T06:00:00+00:00"):
    (tmp_path / "left").write_text(str(left))
    waits = []
    program = [sys.executable, str(tmp_path / "program.py")]
    done = execute(job, program, by, lambda: left_s, lambda text: None, waits.append)
    return done, waits, [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]


def test_one_that_fails_is_started_again_until_it_is_done(job, tmp_path):
    done, waits, seen = run(job, tmp_path, 2)
    assert (done["status"], done["attempts"], done["in_time"]) == (0, 3, True)
    assert waits == [10, 20]
    assert (done["bytes_sent"], done["expected_s"], done["lines"]) == (300, 7.0, {"dsl": 303})
    assert seen[0][:5] == ["run", "--paths", "auto", "--size", "1GB"]
    assert seen[0][seen[0].index("--by") + 1] == "2026-11-24T06:00:00+00:00"
    assert seen[0][-5:] == ["--job", "nightly", "--", "rsync", "-a"]
    events = jobs.runs("nightly")
    assert [one["event"] for one in events] == ["begun", "again", "again", "ended"]
    assert jobs.begun("nightly") is not None


def test_one_that_fails_for_good_ends_with_its_status(job, tmp_path):
    (tmp_path / "seen").unlink(missing_ok=True)
    done, waits, _ = run(job, tmp_path, 8)  # ten retries would do
    assert (done["status"], done["attempts"], waits[-1]) == (0, 9, 600)
    done, _, _ = run(job.__class__(**{**vars(job), "retries": 2}), tmp_path, 8)
    assert (done["status"], done["attempts"], done["in_time"]) == (12, 3, False)


def test_one_that_may_use_no_line_waits_and_what_is_late_has_no_deadline(job, tmp_path):
    _, waits, _ = run(job, tmp_path, 9)
    assert waits[0] == 600
    (tmp_path / "seen").unlink()
    late = job.__class__(**{**vars(job), "options": ("--size", "1GB", "--background", "--hurry")})
    done, _, seen = run(late, tmp_path, 0, left_s=-5.0)
    assert (done["status"], done["in_time"]) == (0, False)
    assert "--by" not in seen[0]
    assert "--hurry" not in seen[0]


@pytest.mark.parametrize(
    ("options", "left_s", "kept"),
    [
        (["--cheap", "--background", "--hurry"], -5.0, []),
        (["--background"], -5.0, ["--background"]),
        (["--cheap", "--background", "--hurry"], 60.0, ["--cheap", "--background", "--hurry"]),
    ],
)
def test_what_is_late_goes_as_fast_as_is_allowed(job, tmp_path, options, left_s, kept):
    of = job.__class__(**{**vars(job), "options": ("--size", "1GB", *options)})
    _, _, [words] = run(of, tmp_path, 0, left_s=left_s)
    assert [word for word in words if word in ("--cheap", "--background", "--hurry")] == kept


# has a bound of 50 MB and money 4; carries 20 MB and spends 1.5 of them; told by what LEFT names
BOUNDED = """
import json, os, pathlib, signal, sys
from pathcast.service.jobrun import keeps, ran
words = sys.argv[1:]
open("seen", "a").write(json.dumps(words) + "\\n")
from pathcast import _native
most = _native.parse_bytes(words[words.index("--max") + 1].removeprefix("cable="))
budget = float(words[words.index("--budget") + 1])
left = {"max_bytes": {"cable": max(0, most - 20_000_000)}, "budget": max(0.0, budget - 1.5)}
told = os.environ["LEFT"].split(",")
if "kept" in told:
    keeps("nightly", {"max_bytes": {"cable": most}, "budget": budget})(left)
if "ran" in told:
    ran("nightly", {"cable": ["192.0.2.1"]}, None, lambda paths: left)(12, {"paths": []})
if "report" in told:
    final = not left["max_bytes"]["cable"]
    auto = {"expected_s": None, "lines": {}, "ended": final, "final": final, "left": left}
    paths = {"bytes_sent": 1, "bytes_received": 0, "connections": 1, "paths": [], "auto": auto}
    json.dump(paths, open(words[words.index("--report") + 1], "w"))
if "killed" in told:
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(12)
"""


@pytest.fixture
def bounded(job, tmp_path):
    (tmp_path / "program.py").write_text(BOUNDED)
    return job.__class__(**{**vars(job), "options": ("--max", "cable=50MB", "--budget", "4"), "retries": 3})


def bounds(tmp_path):
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    return [(one[one.index("--max") + 1], float(one[one.index("--budget") + 1])) for one in seen]


def at_half_past_ten():
    """Half an hour after the job's time."""
    return datetime(2026, 11, 23, 22, 30, tzinfo=zone.zone()).timestamp()


@pytest.mark.parametrize("told", ["report,ran", "ran", "ran,killed", "kept,killed"])
def test_no_bound_begins_anew_when_it_is_started_again(bounded, tmp_path, monkeypatch, told):
    monkeypatch.setenv("LEFT", told)
    # by the clock of day another night might begin meanwhile
    monkeypatch.setattr(clock, "time", at_half_past_ten)
    done, waits, _ = run(bounded, tmp_path, 0)
    first = [("cable=50MB", 4.0), ("cable=30000000B", 2.5), ("cable=10000000B", 1.0)]
    assert bounds(tmp_path)[:3] == first
    # where nothing is left the run says so, and it is not started again
    assert (done["attempts"], len(waits)) == ((3, 2) if "report" in told else (4, 3))
    assert bounds(tmp_path)[3:] == ([] if "report" in told else [("cable=0B", 0.0)])
    # the next night has all of it
    run(bounded, tmp_path, 0)
    assert bounds(tmp_path)[done["attempts"]] == first[0]


@pytest.mark.parametrize("told", ["report,ran", "ran", "kept,killed"])
def test_no_bound_begins_anew_after_a_kill_of_job_run(bounded, tmp_path, monkeypatch, told):
    class Killed(BaseException):
        pass

    def kill(_):
        raise Killed

    monkeypatch.setenv("LEFT", told)
    (tmp_path / "left").write_text("0")
    program = [sys.executable, str(tmp_path / "program.py")]
    begin = lambda: execute(bounded, program, None, lambda: None, lambda _: None, kill)  # noqa: E731
    at_s = at_half_past_ten()
    for passed_s, expected in ((0, "cable=50MB"), (600, "cable=30000000B"), (86_400, "cable=50MB")):
        monkeypatch.setattr(clock, "time", lambda of=at_s + passed_s: of)
        with pytest.raises(Killed):
            begin()
        assert bounds(tmp_path)[-1][0] == expected
    # one of the same name that is added later has bounds of its own
    bounded = bounded.__class__(**{**vars(bounded), "added_s": at_s + 86_401})
    monkeypatch.setattr(clock, "time", lambda: at_s + 86_500)
    with pytest.raises(Killed):
        begin()
    assert bounds(tmp_path)[-1][0] == "cable=50MB"


@pytest.mark.parametrize("text", ["", "[]", '{"max_bytes": {"cable": -1}, "budget": null}', '{"max_bytes": {}}'])
def test_what_is_broken_in_what_was_kept_is_left_out(bounded, text):
    now = datetime(2026, 11, 23, 22, 30)
    at_s = now.replace(tzinfo=zone.zone()).timestamp()
    jobs.note("nightly", {"event": "begun", "at_s": at_s, "by": None})
    jobs.note("nightly", {"event": "again", "at_s": at_s, "left": {"max_bytes": {"cable": 7}, "budget": None}})
    jobs.runs_file("nightly").with_suffix(".left").write_text(text)
    assert jobs.left(bounded, now) == {"max_bytes": {"cable": 7}, "budget": None}


def test_without_a_deadline_nothing_is_late(job, tmp_path):
    of = job.__class__(**{**vars(job), "by": None, "options": ("--cheap", "--background")})
    _, _, [words] = run(of, tmp_path, 0, left_s=None, by=None)
    assert words[3:5] == ["--cheap", "--background"]


def test_one_run_at_a_time_also_after_a_kill(job, tmp_path):
    with alone("nightly") as handle:
        assert running("nightly")
        with pytest.raises(PathcastError, match="running already"):
            run(job, tmp_path, 0)
        child = subprocess.Popen(["sleep", "1000"], pass_fds=(handle,))
    assert running("nightly")  # its program goes on
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not running("nightly")


# a `run` that tells the end of its program, which adds a line to a file; `die`: after which of these it is killed
TELLING = """
import json, os, signal, sys
from pathcast.service.jobrun import ran
tell = ran("nightly", {"dsl": ["192.0.2.1"]}, 7.0)
def point(name):
    if os.environ.get("DIE") == name:
        os.kill(os.getpid(), signal.SIGKILL)
point("before")
status = int(os.environ.get("STATUS", "0"))
open("done", "a").write(f"{status}\\n")
tell(status, {"paths": [{"local": "192.0.2.1", "remote": "192.0.2.9", "bytes_sent": 100, "bytes_received": 1}]})
point("told")
json.dump({}, open(sys.argv[sys.argv.index("--report") + 1], "w"))
sys.exit(status)
"""


def job_run(job, tmp_path, dies_at=None):
    """`job run` in a process of its own, which is killed at so manieth of the points where something is noted or begun,
    or waited for; whether it was."""
    from pathcast.service import jobrun

    (tmp_path / "telling.py").write_text(TELLING)
    if child := os.fork():
        return os.waitpid(child, 0)[1] == signal.SIGKILL
    counted = iter(range(1000))

    def killed():
        if next(counted) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(of):
        def within(*arguments, **more):
            killed()
            found = of(*arguments, **more)
            killed()
            return found

        return within

    try:
        for place, name in ((jobrun, "note"), (jobrun.subprocess, "Popen"), (jobrun.subprocess.Popen, "wait")):
            setattr(place, name, around(getattr(place, name)))
        execute(job, [sys.executable, str(tmp_path / "telling.py")], None, lambda: None, lambda text: None)
    finally:
        os._exit(0)


def until_it_is_done(job, tmp_path, **first):
    """As the daemon does: begun where it has not begun."""
    killed = job_run(job, tmp_path, **first)
    for _ in range(5):
        while running("nightly"):
            clock.sleep(0.01)
        if jobs.begun("nightly") is not None:
            return killed, (tmp_path / "done").read_text().split()
        job_run(job, tmp_path)
    raise AssertionError(jobs.runs("nightly"))


def test_wherever_job_run_is_killed_its_program_ends_well_once(job, tmp_path):
    killed = 0
    for dies_at in range(50):
        for file in (tmp_path / "done", jobs.runs_file("nightly")):
            file.unlink(missing_ok=True)
        died, noted = until_it_is_done(job, tmp_path, dies_at=dies_at)
        last = jobs.runs("nightly")[-1]
        assert noted == ["0"], (dies_at, jobs.runs("nightly"))
        assert (last["event"], last["status"], last["in_time"]) == ("ended", 0, None), dies_at
        if not died:
            break
        killed += 1
    assert killed == 8  # before and after two notes, the start, and the wait


def test_a_run_that_is_killed_after_its_programs_end_is_not_begun_again(job, tmp_path, monkeypatch):
    monkeypatch.setenv("DIE", "told")
    assert until_it_is_done(job, tmp_path) == (False, ["0"])
    last = jobs.runs("nightly")[-1]
    assert (last["event"], last["status"], last["attempts"]) == ("ended", 0, 1)


def test_an_end_that_nobody_told_has_what_the_runs_told(job):
    by = "2026-11-24T06:00:00+00:00"
    at_s = datetime.fromisoformat(by).timestamp()
    ran = {"event": "ran", "bytes_sent": 5, "bytes_received": 1, "expected_s": 7.0, "lines": {"dsl": 6}}
    for status in (12, 0):
        jobs.note("nightly", {"event": "begun", "at_s": at_s - 9, "by": by})
        jobs.note("nightly", {**ran, "at_s": at_s - 2, "status": 12, "pid": 7})
        jobs.note("nightly", {**ran, "at_s": at_s + 1, "status": status, "pid": 8})
        assert (jobs.begun("nightly") is None) == (status != 0)
    assert (jobs.status_of("nightly", 7), jobs.status_of("nightly", 8), jobs.status_of("nightly", 9)) == (12, 0, None)
    events = jobs.runs("nightly")
    assert [one["event"] for one in events] == ["begun", "ran", "ran", "begun", "ran", "ran", "ended"]
    end = events[-1]
    assert (end["status"], end["attempts"], end["elapsed_s"], end["in_time"]) == (0, 2, 10, False)
    assert (end["bytes_sent"], end["expected_s"], end["lines"]) == (10, 7.0, {"dsl": 12})


def test_what_two_write_at_once_is_whole(job):
    def write(who):
        for number in range(50):
            jobs.note("nightly", {"event": "again", "at_s": 1.0, "who": who, "number": number, "filler": "x" * 300})

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(jobs.runs("nightly")) == 150
    with open(jobs.runs_file("nightly"), "a") as file:
        file.write('{"event": "begu')  # a crash
    assert len(jobs.runs("nightly")) == 150


def test_jobs_are_kept_by_name(job):
    path = jobs.add(job)
    assert jobs.load("nightly") == job
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(PathcastError, match="there is a job `nightly` already"):
        jobs.add(job)
    with pytest.raises(PathcastError, match="there is no job `weekly`; there are: nightly"):
        jobs.load("weekly")
    jobs.remove("nightly")
    assert jobs.every(lambda error: pytest.fail(error.message)) == []


def test_a_deadline_is_a_time_of_day_or_from_the_beginning_on(job):
    until = {by: job.__class__(**{**vars(job), "by": by}).until for by in ("06:00", "90min", None)}
    assert until == {"06:00": time(6), "90min": timedelta(minutes=90), None: None}


def test_units_are_what_systemd_takes(job, tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", '/run/a "b"%20')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = units.put(job, "/usr/bin/env", tmp_path / "units")
    assert [path.name for path in made] == ["pathcast-job-nightly.service", "pathcast-job-nightly.timer"]
    service, timer = (path.read_text() for path in made)
    assert 'ExecStart="/usr/bin/env" job run nightly --due' in service
    assert r'Environment="PATHCAST_RUN_DIR=/run/a \"b\"%%20"' in service
    assert "OnCalendar=*-*-* 22:00:00\n" in timer
    # the clock may be read, which `ProtectClock=` forbids, but not set
    assert "CapabilityBoundingSet=~CAP_SYS_TIME CAP_WAKE_ALARM\n" in service
    assert "\nProtectClock=" not in service
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", *map(str, made)],
            capture_output=True,
            text=True,
            env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
        )
        mine = [line for line in done.stderr.splitlines() if "pathcast" in line]
        assert mine == [], done.stderr
    assert len(units.take("nightly", tmp_path / "units")) == 2
    assert units.take("nightly", tmp_path / "units") == []


SECRET = "postgresql://u:s3cret@db/pathcast"


@pytest.mark.parametrize("uid", [0, 1000])
def test_a_password_of_the_history_stands_in_the_job_file_only(tmp_path, monkeypatch, uid):
    """Who may read a unit, or asks systemd for its environment, is anybody of the host."""
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATHCAST_HISTORY", SECRET)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.delenv("SUDO_USER", raising=False)
    into = tmp_path / "units"
    assert runner.run(["job", "add", "nightly", "--at", "22:00", "--units", str(into), "--", "true"]) == 0
    assert [path.name for path in sorted(into.iterdir()) if "s3cret" in path.read_text()] == []
    assert jobs.load("nightly").history == SECRET
    assert (jobs.folder() / "nightly.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("own", "meant"), [(None, SECRET), ("off", "off")])
def test_a_run_keeps_its_history_where_it_was_kept_when_it_was_added(job, tmp_path, monkeypatch, own, meant):
    """But for who says otherwise for this run; an older unit does."""
    monkeypatch.delenv("PATHCAST_HISTORY")
    if own is not None:
        monkeypatch.setenv("PATHCAST_HISTORY", own)
    kept = "import os\nopen('kept', 'w').write(os.environ['PATHCAST_HISTORY'])\n"
    (tmp_path / "program.py").write_text(kept + PROGRAM)
    run(job.__class__(**{**vars(job), "history": SECRET}), tmp_path, 0)
    assert (tmp_path / "kept").read_text() == meant


def test_a_job_of_before_its_history_was_kept_is_read(job):
    path = jobs.add(job)
    document = json.loads(path.read_text())
    document.pop("history", None)
    path.write_text(json.dumps(document))
    assert jobs.load("nightly") == job
    path.write_text(json.dumps({**document, "history": 7}))
    with pytest.raises(PathcastError, match="`history` is 7"):
        jobs.load("nightly")


def test_a_users_own_manager_is_asked_for_no_walls_that_it_cannot_build(job, tmp_path, monkeypatch):
    for uid, walls in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        service, _ = (path.read_text() for path in units.put(job, "/usr/bin/env", tmp_path / str(uid)))
        assert ("CapabilityBoundingSet=" in service, "ProtectKernelLogs=" in service) == (walls, walls)
        assert "LockPersonality=yes\n" in service


def test_a_line_that_was_cut_takes_no_other_with_it(job):
    jobs.note("nightly", {"event": "begun", "at_s": 1.0})
    with open(jobs.runs_file("nightly"), "a") as file:
        file.write('{"event": "en')  # a full disc takes a part of it
    jobs.note("nightly", {"event": "begun", "at_s": 2.0})
    assert [one["at_s"] for one in jobs.runs("nightly")] == [1.0, 2.0]


def test_a_disc_that_is_full_is_said(job, monkeypatch):
    monkeypatch.setattr(jobs.os, "write", lambda fd, line: len(line) // 2)
    with pytest.raises(PathcastError, match="no space"):
        jobs.note("nightly", {"event": "begun", "at_s": 1.0})


def test_one_that_was_broken_off_has_not_begun(job):
    """By a kill or a power failure: it is due again until its deadline."""
    jobs.note("nightly", {"event": "begun", "at_s": 1.0})
    assert jobs.begun("nightly") is None
    jobs.note("nightly", {"event": "again", "at_s": 2.0})
    assert jobs.begun("nightly") is None
    jobs.note("nightly", {"event": "ended", "at_s": 3.0, "status": 0})
    assert jobs.begun("nightly").timestamp() == 1.0


def test_one_whose_user_breaks_it_off_has_ended(job, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathcast.service.jobrun._attempt", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(job, tmp_path, 0)
    [_, last] = jobs.runs("nightly")
    assert (last["event"], last["status"], last["bytes_sent"]) == ("ended", 130, 0)


def test_one_whose_user_breaks_it_off_between_two_attempts_has_ended_too(job, tmp_path):
    (tmp_path / "left").write_text("9")
    program = [sys.executable, str(tmp_path / "program.py")]

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(job, program, None, lambda: None, lambda text: None, interrupted)
    assert [one["event"] for one in jobs.runs("nightly") if one["event"] != jobs.RAN] == ["begun", "again", "ended"]


def test_a_clock_that_is_set_meanwhile_makes_no_run_longer(job, tmp_path, monkeypatch):
    (tmp_path / "left").write_text("1")
    real = clock.time
    step = lambda wait: monkeypatch.setattr(clock, "time", lambda: real() - 3600)  # noqa: E731
    program = [sys.executable, str(tmp_path / "program.py")]
    done = execute(job, program, None, lambda: None, lambda text: None, step)
    assert (done["status"], done["attempts"]) == (0, 2)
    assert 0 < done["elapsed_s"] < 60


@pytest.mark.parametrize(
    "noted",
    [
        *("{}", "[]", '{"event": 7}', '{"event": "began", "at_s": 1}', '{"event": "begun"}', "[" * 100_000),
        *('{"event": "begun", "at_s": "x"}', '{"event": "begun", "at_s": 1e400}', '{"event": "begun", "at_s": NaN}'),
        *('{"event": "begun", "at_s": 1e15}', '{"event": "begun", "at_s": 5, "by": "soon"}'),
        *('{"event": "ended", "at_s": 5}', '{"event": "ended", "at_s": 5, "status": 0, "bytes_sent": "x"}'),
        *('{"event": "ended", "at_s": 5, "status": 0, "lines": [1]}', '{"event": "ran", "at_s": 5, "status": 0}'),
        '{"event": "ended", "at_s": 5, "status": 0, "lines": {"dsl": "x"}}',
    ],
)
def test_what_is_broken_in_what_was_noted_is_left_out(job, noted):
    jobs.add(job)
    jobs.note("nightly", {"event": "begun", "at_s": 1.0, "by": None})
    jobs.note("nightly", {"event": "ended", "at_s": 3.0, "status": 12})
    with open(jobs.runs_file("nightly"), "a") as file:
        file.write(noted + "\n")
    assert [one["event"] for one in jobs.runs("nightly")] == ["begun", "ended"]
    assert jobs.begun("nightly").timestamp() == 1.0
    for words in (["list"], ["status", "nightly"], ["log", "nightly"]):
        assert runner.run(["job", *words]) == 0


def test_who_asks_whether_it_runs_does_not_keep_it_from_its_start(job, tmp_path, monkeypatch):
    code = """
import sys
from pathcast.service.jobrun import alone
with alone("nightly"):
    print(flush=True)
    sys.stdin.read()
"""
    asking = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert asking.stdout.readline() == b"\n"
    looks, locked = [], jobrun._locked

    def looked(handle):
        looks.append(locked(handle))
        asking.stdin.close()  # it has asked, and ends
        return looks[-1]

    monkeypatch.setattr(jobrun, "_locked", looked)
    monkeypatch.setattr(jobrun, "_ASKED_S", 60.0)
    done, _, _ = run(job, tmp_path, 0)
    assert done["status"] == 0
    assert not looks[0]
    assert asking.wait(60) == 0
