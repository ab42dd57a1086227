"""`pathcast job`: programs that run every night by a plan, by systemd's timers, or by a daemon where there is none."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast import zone
from pathcast.cli import planoptions
from pathcast.cli.output import Json, print_json, show
from pathcast.cli.paths import KeyFile
from pathcast.errors import PathcastError, usage
from pathcast.say import Once, say
from pathcast.units import size as written
from pathcast.units import span

if TYPE_CHECKING:
    from subprocess import Popen

    from pathcast.service.jobs import Job

_MINUTES = "%Y-%m-%d %H:%M"

app = typer.Typer(help="Programs that run by the clock and by a plan.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Its name: lower-case letters, digits, _ and -.")]
Units = Annotated[
    Path | None,
    typer.Option(
        "--units", help="Write systemd's units to this directory only, and start nothing.", show_default=False
    ),
]


@app.command("add", context_settings={"ignore_unknown_options": True})
def add(
    context: typer.Context,
    name: Name,
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, after `--`.")],
    at: Annotated[list[str], typer.Option("--at", help="When it begins: 22:00; may be repeated.")],
    by: Annotated[
        str | None, typer.Option(help="When it is to be done: 06:00, or 8h from its start.", show_default=False)
    ] = None,
    size: planoptions.Size = None,
    max: planoptions.Most = None,
    budget: planoptions.Budget = None,
    max_rate: planoptions.MaxRate = None,
    cheap: planoptions.Cheap = False,
    background: Annotated[bool, typer.Option("--background", help="Give way to everybody else.")] = False,
    hurry: planoptions.Hurry = False,
    to: Annotated[
        str | None, typer.Option("--to", metavar="HOST", help="Forecast by a `pathcast serve` there.")
    ] = None,
    key_file: KeyFile = None,
    user: Annotated[
        str | None, typer.Option(help="Run it as this user (default: who calls sudo now).", show_default=False)
    ] = None,
    retries: Annotated[int, typer.Option(help="How often it is started again where it fails.")] = 10,
    units: Units = None,
    json: Json = False,
) -> None:
    """Have a program run every day by a plan: `pathcast run --paths auto` with these options.

    One that is broken off is started again: rsync and rclone go on where they were.
    """
    from pathcast.cli.closest import no_option
    from pathcast.history.place import ENVIRONMENT
    from pathcast.lines import config
    from pathcast.runtime.keys import read_key
    from pathcast.service import jobs
    from pathcast.service.units import here
    from pathcast.worlds.host import label

    if command[0].startswith("-"):
        raise no_option(command[0], context)
    jobs.check_name(name)
    times = tuple(dict.fromkeys(jobs.check_at(text) for text in at))
    until = None if by is None else jobs.check_by(by)
    asked = planoptions.Asked(size, until, max, budget, max_rate, cheap, background, hurry, to, key_file)
    _, most, _ = asked.checked()
    if lines := list(config.load()):
        planoptions.known(most, lines)
    if not 0 <= retries <= 1000:
        raise usage(f"--retries {retries}: allowed are 0 to 1000")
    if until is not None and size is None:
        raise usage("--by needs --size: what is left tells how fast it has to go")
    if to is not None:
        label(to)  # refuses what is no host
    if key_file is not None and to is None:
        raise usage("--key-file goes with --to HOST")
    if key_file is not None:
        read_key(key_file)  # by the clock nobody sees what is wrong with it, and nothing would be sent
    if user is not None and not _account(user):
        raise usage(f"there is no user `{user}` on this host")
    if user is None and os.geteuid() == 0 and os.environ.get("SUDO_USER", "root") != "root":
        user = os.environ["SUDO_USER"]  # as `pathcast run` has it; by the clock nobody calls sudo
    values = {"--size": size, "--budget": budget, "--max-rate": max_rate, "--to": to, "--user": user}
    options = [word for option, value in values.items() if value is not None for word in (option, value)]
    options += [word for bound in max or () for word in ("--max", bound)]
    options += ["--key-file", str(key_file.absolute())] if key_file is not None else []
    flags = {"--cheap": cheap, "--background": background, "--hurry": hurry}
    options += [flag for flag, given in flags.items() if given]
    called = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 and key_file is not None else ""
    caller = int(called) if called.isdecimal() else None
    job = jobs.Job(name, times, until, tuple(options), tuple(command), os.getcwd(), retries, time.time(), caller)
    job = replace(job, history=os.environ.get(ENVIRONMENT))
    file = jobs.add(job)
    try:
        made, how = _place(job, units)
    except PathcastError:
        jobs.remove(name)
        raise
    about = {**_about(job), "file": str(file), "units": [str(path) for path in made], "runs_by": how}
    if json:
        print_json("job", about)
        return
    by_itself = how != "hand"
    begins = "now" if _is_due(job) else _next(about)
    print(f"{name}: begins {begins}, by {how}" if by_itself else f"{name}: its next time is {_next(about)}")
    for path in (file, *made):
        print(f"written: {path}")
    if not by_itself and units is None and not here():
        say(f"there is no systemd here: `pathcast job daemon` has to run, or `pathcast job run {name}` begins it")
    if not lines:
        say("no line has a name yet, and it needs one: pathcast line add NAME --from ADDRESS")
    if _there(command[0]) is None:
        say(f"there is no program `{command[0]}` now")


@app.command("list")
def list_(json: Json = False) -> None:
    """Show the jobs, when each begins, and how its last run ended."""
    import shlex

    from rich.table import Table

    from pathcast.service import jobs

    damaged: list[PathcastError] = []
    found = [_about(job) for job in jobs.every(damaged.append)]
    if json:
        print_json("job-list", {"jobs": found, "damaged": [error.message for error in damaged]})
        return
    for error in damaged:
        say(f"{error.message}; {error.hint}")
    if not found and not damaged:
        print("there is no job yet; try: pathcast job add nightly --at 22:00 -- rsync …")
        if (theirs := jobs.of_root()) is not None:
            print(theirs)
        return
    table = Table("job", "at", "by", "next", "state", "last", "command")
    for of in found:
        last = of["last"]
        state = "runs" if of["running"] else ""
        command = shlex.join(of["command"])
        table.add_row(of["name"], " ".join(of["at"]), of["by"] or "", _next(of), state, _outcome(last), command)
    show(table)


@app.command()
def status(name: Name, json: Json = False) -> None:
    """Show a job: what it runs and how, its units, its last run."""
    import shlex

    from pathcast.service import jobs, units

    job = jobs.load(name)
    directory = units.directory()
    about = _about(job)
    about["units"] = {
        str(directory / file): (directory / file).read_text()
        for file in units.texts(job, "", {})
        if (directory / file).exists()
    }
    if json:
        print_json("job", about)
        return
    until = f", done {'by' if ':' in job.by else 'within'} {job.by}" if job.by else ""
    print(f"{name}: {'runs now' if about['running'] else 'begins ' + _next(about)}{until}")
    print(shlex.join(["pathcast", "run", "--paths", "auto", *job.options, "--", *job.command]))
    if not about["running"] and (begun := _broken_off(name)) is not None:
        print(f"broken off: what was begun {begun}, without an end")
    print(f"last: {_outcome(about['last']) or 'none has ended yet'}")
    for file, text in about["units"].items():
        print(f"\n# {file}\n{text}", end="")


@app.command()
def log(name: Name, json: Json = False) -> None:
    """Show what became of a job's runs, the newest last: forecast against truth."""
    from rich.table import Table

    from pathcast.service import jobs

    jobs.check_name(name)
    found = jobs.runs(name)
    if not found:
        jobs.load(name)
    if json:
        print_json("job-log", {"name": name, "events": found})
        return
    if not found:
        print(f"{name} has not run yet")
        return
    table = Table("at", "event", "status", "sent", "took", "forecast", "in time", "lines")
    for one in found:
        ended = one["event"] == "ended"
        if one["event"] == jobs.RAN:
            continue  # an end or another attempt tells of it
        table.add_row(
            _at(one["at_s"], "%Y-%m-%d %H:%M:%S"),
            one["event"],
            str(one.get("status", "")),
            written(one["bytes_sent"]) if ended else "",
            span(one["elapsed_s"]) if ended else "",
            span(one["expected_s"]) if ended and one["expected_s"] is not None else "",
            {True: "yes", False: "no", None: ""}[one.get("in_time")],
            ", ".join(f"{line} {written(bytes)}" for line, bytes in one.get("lines", {}).items() if bytes),
        )
    show(table)


@app.command()
def remove(name: Name, units: Units = None, json: Json = False) -> None:
    """Take a job away, with its units. A run that goes on is not ended; what became of its runs stays."""
    from pathcast.service import jobs
    from pathcast.service import units as systemd

    jobs.find(name)
    if units is None and systemd.here():
        with suppress(PathcastError):
            systemd.control("disable", "--now", f"pathcast-job-{name}.timer")
    gone = systemd.take(name, units or systemd.directory())
    if gone and units is None and systemd.here():
        systemd.control("daemon-reload")
    jobs.remove(name)
    if json:
        print_json("job-remove", {"name": name, "removed": [str(path) for path in gone]})
        return
    print(f"job {name} is removed")
    for path in gone:
        print(f"removed {path}")


@app.command()
def run(
    name: Name,
    due: Annotated[bool, typer.Option("--due", help="Only if its time has come and its deadline is not past.")] = False,
) -> None:
    """Run a job now, to its end; the exit status is that of its program."""
    from pathcast.cli.deadline import deadline
    from pathcast.service import jobs
    from pathcast.service.jobrun import execute

    job = jobs.load(name)
    if due and not _is_due(job):
        say(f"{name}: its time is over or was before it was added, or it has begun already")
        return
    limit = None if job.by is None else deadline(job.by)
    by = None if limit is None else limit.written()
    document = execute(job, _program(), by, lambda: None if limit is None else limit.left_s(None), say)
    say(f"{name}: {_outcome(document)}")
    raise typer.Exit(document["status"])


@app.command()
def daemon(
    every: Annotated[float, typer.Option(hidden=True, help="Seconds between two looks.")] = 15.0,
) -> None:
    """Run the jobs at their times, where there is no systemd. It goes on until it is ended."""
    from pathcast.runtime.state import Record

    record = Record.of_this_process("jobs", "daemon", {}, {})
    record.claim()
    started: dict[str, Popen[bytes]] = {}
    once = Once()
    try:
        print("ready", flush=True)
        while True:
            started = {name: one for name, one in started.items() if one.poll() is None}
            _begin_due(started, once)
            once.looked()
            time.sleep(every)
    finally:
        for one in started.values():
            one.terminate()
        for one in started.values():
            one.wait()
        record.forget()


def _begin_due(started: dict[str, Popen[bytes]], once: Once) -> None:
    """Adds the runs of jobs that are to begin now to those that go on. What keeps one from it, until the next look,
    ends no other."""
    from subprocess import DEVNULL, Popen

    from pathcast.runtime.state import tidy
    from pathcast.service import jobs
    from pathcast.service.jobrun import running

    tidy(once)
    try:
        found = jobs.every(lambda error: once(error.message))
    except OSError as error:
        once(f"the jobs cannot be read now: {error}")
        return
    for job in found:
        try:
            # one that was just begun has no lock yet
            if _is_due(job) and job.name not in started and not running(job.name):
                started[job.name] = Popen([*_program(), "job", "run", job.name, "--due"], stdin=DEVNULL)
                say(f"{job.name} begins")
        except (PathcastError, OSError) as error:
            once(f"{job.name} cannot be begun now: {error}")


def _is_due(job: Job) -> bool:
    """Whether it is to begin now."""
    from pathcast.plan.again import is_due
    from pathcast.service import jobs

    return is_due(
        job.times, datetime.fromtimestamp(time.time(), zone.zone()), jobs.begun(job.name), job.until, job.added
    )


def _there(program: str) -> str | None:
    """Where a program lies, as the job's run would look for it."""
    import shutil

    return shutil.which(program)


def _account(user: str) -> bool:
    """Whether `pathcast run --user` would take it: a name of this host, or a number."""
    import pwd

    try:
        pwd.getpwnam(user)
    except KeyError:
        return user.isdecimal()
    return True


def _place(job: Job, into: Path | None) -> tuple[list[Path], str]:
    """Writes the units and starts the timer; where there is no systemd the daemon sees the job by itself."""
    from pathcast.runtime.state import records
    from pathcast.service import units

    program = _program()[0]
    if into is not None:
        return units.put(job, program, into), "hand"
    if not units.here():
        there = any(record.alive for record in records("jobs"))
        return [], "the daemon" if there else "hand"
    made = units.put(job, program, units.directory())
    try:
        units.control("daemon-reload")
        units.control("enable", "--now", f"pathcast-job-{job.name}.timer")
    except PathcastError:
        units.take(job.name, units.directory())
        raise
    return made, "systemd"


def _program() -> list[str]:
    """pathcast, as a later process calls it."""
    beside = Path(sys.executable).with_name("pathcast")
    return [str(beside)] if beside.exists() else [sys.argv[0]]


def _about(job: Job) -> dict[str, Any]:
    from pathcast.plan.again import next_due
    from pathcast.service import jobs
    from pathcast.service.jobrun import running

    ended = [one for one in jobs.runs(job.name) if one.get("event") == "ended"]
    return {
        "name": job.name,
        "at": list(job.at),
        "by": job.by,
        "next": f"{next_due(job.times, zone.clock()):{_MINUTES}}",
        "options": list(job.options),
        "command": list(job.command),
        "directory": job.directory,
        "retries": job.retries,
        "running": running(job.name),
        "last": ended[-1] if ended else None,
    }


def _broken_off(name: str) -> str | None:
    """When the last run began, if nothing tells of its end; it may run on."""
    from pathcast.service import jobs

    of = [one for one in jobs.runs(name) if one["event"] in ("begun", "ended")]
    return _at(of[-1]["at_s"], _MINUTES) if of and of[-1]["event"] == "begun" else None


def _at(at_s: float, form: str) -> str:
    at = zone.local(at_s)
    return f"{at:{form}}{zone.mark(at)}"


def _next(about: dict[str, Any]) -> str:
    """For people."""
    at = datetime.strptime(about["next"], _MINUTES).replace(tzinfo=zone.zone())
    return f"{about['next']}{zone.mark(at)}"


def _outcome(last: dict[str, Any] | None) -> str:
    if last is None:
        return ""
    told = "done" if last["status"] == 0 else f"failed with status {last['status']}"
    told += f", {written(last['bytes_sent'])} in {span(last['elapsed_s'])}"
    if last["expected_s"] is not None:
        told += f" (forecast: {span(last['expected_s'])})"
    if last["attempts"] > 1:
        told += f", at the {last['attempts']}. attempt"
    return told + {True: ", in time", False: ", too late", None: ""}[last["in_time"] if last["status"] == 0 else None]
