"""A job's run: its program under `pathcast run --paths auto`, started again where it was broken off."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pathcast import zone
from pathcast.errors import Exit, PathcastError
from pathcast.history.place import ENVIRONMENT as HISTORY
from pathcast.history.place import state_directory
from pathcast.plan.again import FIRST_S, MOST_S, Attempt, wait_s
from pathcast.runtime.state import tidy
from pathcast.say import say
from pathcast.service import jobs
from pathcast.service.jobs import RAN, Job, note, status_of

# what is told of a run's report
_TOLD = ("bytes_sent", "bytes_received", "connections")

# the end of a run that its user broke off
_NOTHING: dict[str, Any] = {
    **{"event": "ended", "status": Exit.INTERRUPTED, "attempts": 1, "in_time": None, "expected_s": None, "lines": {}},
    **dict.fromkeys(_TOLD, 0),
}


# a run waits so long for who only asks whether the job runs [s], and looks so often
_ASKED_S = 1.0
_AGAIN_S = 0.01


@contextlib.contextmanager
def alone(name: str, wait_s: float = 0.0) -> Iterator[int]:
    """One run of a job at a time, its descriptor: whoever inherits it is part of the run, also after a kill of ours.
    Raises PathcastError `busy` where another one has it for longer than `wait_s`."""
    until = time.monotonic() + wait_s
    folder = state_directory() / "jobs"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while not _locked(handle):
            if time.monotonic() >= until:
                raise PathcastError("busy", f"the job `{name}` is running already", f"pathcast job status {name}")
            time.sleep(_AGAIN_S)
        yield handle
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def running(name: str) -> bool:
    """Whether it runs now."""
    try:
        with alone(name):
            return False
    except PathcastError:
        return True


def execute(
    job: Job,
    program: Sequence[str],
    by: str | None,
    left_s: Callable[[], float | None],
    say: Callable[[str], object],
    sleep: Callable[[float], object] = time.sleep,
) -> dict[str, Any]:
    """Runs it to its end: what is noted of it. program: how pathcast is called. by: the deadline, ISO 8601."""
    began_s, began = time.time(), time.monotonic()  # the clock may be set meanwhile
    tidy(say)  # what a killed run has left holds the lock
    with alone(job.name, _ASKED_S) as handle:
        # what was broken off has used a part of the bounds; the next time has all of them again
        bounds = jobs.left(job, zone.clock(began_s))
        if bounds is None:
            jobs.forget_left(job.name)
        _begun(job.name, {"event": "begun", "at_s": began_s, "by": by}, left_s, say, sleep)
        attempts: list[Attempt] = []
        reports: list[dict[str, Any]] = []
        while True:
            with _broken_off(job.name, by, began, say):
                given = _bounded(_options(job, by, left_s()), bounds)
                attempt, report = _attempt(job, program, given, handle, say)
            tidy(say)  # of a run that was killed
            attempts.append(attempt)
            reports.append(report)
            # who was killed has told no end
            told = report.get("auto", {}).get("left") or jobs.left(job, zone.clock(began_s))
            bounds = bounds if told is None else jobs.joined(bounds, told)
            left = left_s()
            wait = wait_s(attempts, job.retries, 86_400.0 if left is None else left)
            if wait is None:
                break
            why = "no line may be used" if attempt.barred else f"ended with status {attempt.status}"
            say(f"{job.name}: {why}; it is started again in {wait:.0f} s")
            about = {"status": attempt.status, "wait_s": wait, "left": bounds}
            _noted(job.name, {"event": "again", "at_s": time.time(), **about}, say)
            with _broken_off(job.name, by, began, say):
                sleep(wait)
        left = left_s()
        document = {
            "event": "ended",
            "at_s": time.time(),
            "status": attempts[-1].status,
            "attempts": len(attempts),
            "elapsed_s": time.monotonic() - began,
            "by": by,
            "in_time": None if left is None else attempts[-1].status == 0 and left >= 0,
            **{name: sum(report.get(name, 0) for report in reports) for name in _TOLD},
            "expected_s": next((r["auto"]["expected_s"] for r in reports if r.get("auto")), None),
            "lines": _by_line(reports),
        }
        if _noted(job.name, document, say):
            jobs.forget_left(job.name)
        return document


def _begun(
    name: str,
    document: Mapping[str, Any],
    left_s: Callable[[], float | None],
    say: Callable[[str], object],
    sleep: Callable[[float], object],
) -> None:
    """Notes it; where that cannot be it waits until it can be, or its deadline has come."""
    wait_s = FIRST_S
    while True:
        try:
            return note(name, document)
        except (PathcastError, OSError) as error:
            left = left_s()
            if left is None or left <= 0:
                raise
            if wait_s == FIRST_S:
                say(f"{name}: {error}; it waits until it can be")
        sleep(min(wait_s, left))
        wait_s = min(2 * wait_s, MOST_S)


def _noted(name: str, document: Mapping[str, Any], say: Callable[[str], object]) -> bool:
    """What cannot be noted is said: the program's run goes on, and its status stays what it was."""
    try:
        note(name, document)
    except (PathcastError, OSError) as error:
        say(f"{name}: `{document['event']}` is not noted: {error}")
        return False
    return True


@contextlib.contextmanager
def _broken_off(name: str, by: str | None, began: float, say: Callable[[str], object]) -> Iterator[None]:
    """By its user it has ended; what a kill or a shutdown breaks off is begun again."""
    try:
        yield
    except KeyboardInterrupt:
        end = {**_NOTHING, "at_s": time.time(), "elapsed_s": time.monotonic() - began, "by": by}
        if _noted(name, end, say):
            jobs.forget_left(name)
        raise


def _options(job: Job, by: str | None, left_s: float | None) -> list[str]:
    """Of an attempt. What is late has no deadline any more, and goes as fast as is allowed, as `Wish.late` has it."""
    if by is None or left_s is None:
        return [*job.options]
    if left_s > 1.0:
        return [*job.options, "--by", by]
    slow = {"--cheap", "--hurry", "--background"} if "--hurry" in job.options else {"--cheap"}
    return [word for word in job.options if word not in slow]


def _bounded(options: Sequence[str], left: Mapping[str, Any] | None) -> list[str]:
    """With what is left of `--max` and `--budget`."""
    words = [*options]
    if left is None:
        return words
    for at, (option, of) in enumerate(itertools.pairwise(options), 1):
        line = of.partition("=")[0].strip()
        if option == "--max" and line in left["max_bytes"]:
            words[at] = f"{line}={left['max_bytes'][line]}B"
        elif option == "--budget" and left["budget"] is not None:
            words[at] = str(left["budget"])
    return words


def _attempt(
    job: Job, program: Sequence[str], given: Sequence[str], lock: int, say: Callable[[str], object]
) -> tuple[Attempt, dict[str, Any]]:
    """A run under the plan with these options."""
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile("w+"))
            process = _begin(job, program, given, file.fileno(), lock)
        except OSError as error:  # its directory may be mounted later
            say(f"{job.name}: cannot start in `{job.directory}`: {error}")
            return Attempt(Exit.RUNTIME, time.monotonic() - begun), {}
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        file.seek(0)
        try:
            document = json.loads(file.read() or "{}")
        except ValueError:
            document = {}
    auto = document.get("auto", {})
    final = bool(auto.get("final"))
    barred = (bool(auto.get("ended")) and not final) or (not document and status == Exit.REFUSED)
    status = 128 - status if status < 0 else status
    if (told := status_of(job.name, process.pid)) is not None:
        status = told  # of the program; the run may have been killed as it wrote its report
    if not document and status == Exit.USAGE:
        status = 126  # our own words: they do not come right by trying again
    return Attempt(status, time.monotonic() - begun, barred, final), document


def _begin(job: Job, program: Sequence[str], given: Sequence[str], report: int, lock: int) -> subprocess.Popen[bytes]:
    options = [*given, "--report", f"/dev/fd/{report}", "--job", job.name]
    words = [*program, "run", "--paths", "auto", *options, "--", *job.command]
    # by the clock nobody calls sudo
    called = {} if job.caller is None or os.geteuid() != 0 else {"SUDO_UID": str(job.caller)}
    # what this run was told otherwise comes first
    kept = {} if job.history is None else {HISTORY: job.history}
    return subprocess.Popen(
        words,
        cwd=job.directory,
        env={**kept, **os.environ, **called},
        pass_fds=(report, lock),
        stdin=subprocess.DEVNULL,
    )


def ran(
    name: str,
    lines: Mapping[str, Sequence[str]],
    expected_s: float | None,
    left: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any] | None] = lambda _: None,
) -> Callable[[int, Mapping[str, Any] | None], None]:
    """For the `pathcast run` of a job: tells its end before anybody hears of it, so that a kill of `job run` does not
    have the program begun again. lines: addresses of each. left: of the job's own bounds after such paths. What
    cannot be written is said on standard error."""
    began = time.monotonic()

    def tell(status: int, seen: Mapping[str, Any] | None) -> None:
        paths = seen["paths"] if seen is not None else []
        document = {
            "event": RAN,
            "at_s": time.time(),
            "pid": os.getpid(),
            "status": status,
            "elapsed_s": time.monotonic() - began,
            "bytes_sent": sum(path["bytes_sent"] for path in paths),
            "bytes_received": sum(path["bytes_received"] for path in paths),
            "expected_s": expected_s,
            "lines": _by_line([{"auto": {"lines": lines}, "paths": paths}]),
            "left": left(paths),
        }
        try:
            note(name, document)
        except (PathcastError, OSError) as error:
            say(f"the end of the job `{name}` is not noted: {error}")

    return tell


def keeps(name: str, first: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None] | None:
    """For the `pathcast run` of a job: what is left of its bounds, `first` before it begins, is on the disc whatever
    kills it. None: there are none."""
    if not first["max_bytes"] and first["budget"] is None:
        return None
    jobs.keep_left(name, first)
    return lambda left: jobs.keep_left(name, left)


def _by_line(reports: Sequence[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for report in reports:
        lines = report.get("auto", {}).get("lines", {})
        own = {address for addresses in lines.values() for address in addresses}
        for line, addresses in lines.items():
            paths = [path for path in report["paths"] if path["local"] in addresses and path["remote"] not in own]
            found[line] = found.get(line, 0) + sum(path["bytes_sent"] + path["bytes_received"] for path in paths)
    return found
