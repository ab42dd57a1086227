"""Jobs by name: a file each beside that of the lines, and what became of their runs."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from pathcast import zone
from pathcast.errors import PathcastError, usage
from pathcast.files import read_file
from pathcast.history.place import state_directory
from pathcast.lines import config
from pathcast.plan.again import last_due

SCHEMA = "pathcast.job/1"
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_AT = re.compile(r"([01]?\d|2[0-3]):[0-5]\d")
_LARGEST_BYTES = 1 << 20
# the event of a program's end, told by the `pathcast run` that it ran under
RAN = "ran"
# a calendar knows no later times
_LATEST_S = 1e11
_COUNTED = ("bytes_sent", "bytes_received")
# what an end says where nothing else was noted
_ENDED: dict[str, Any] = {
    "attempts": 1,
    "elapsed_s": 0.0,
    "bytes_sent": 0,
    "in_time": None,
    "expected_s": None,
    "lines": {},
}
# runs that are kept
_KEPT = 1000


@dataclass(frozen=True)
class Job:
    """at: times of day. options: of `pathcast run --paths auto`, but for the deadline. by: as `--by` has it. added_s:
    when it was added, UTC [s since 1970]. caller: the user id of who called sudo for it, whose key file its runs trust
    as `job add` did. history: PATHCAST_HISTORY as it was then; it may hold a password. Older files lack them."""

    name: str
    at: tuple[str, ...]
    by: str | None
    options: tuple[str, ...]
    command: tuple[str, ...]
    directory: str
    retries: int = 10
    added_s: float | None = None
    caller: int | None = None
    history: str | None = None

    @property
    def added(self) -> datetime | None:
        """By the machine's clock."""
        return None if self.added_s is None else zone.clock(self.added_s)

    @property
    def times(self) -> tuple[time, ...]:
        """Of the day."""
        return tuple(datetime.strptime(text, "%H:%M").time() for text in self.at)

    @property
    def until(self) -> time | timedelta | None:
        """Its deadline: a time of day, or from its beginning on."""
        if self.by is None:
            return None
        if _AT.fullmatch(self.by):
            return datetime.strptime(self.by, "%H:%M").time()
        from pathcast import _native

        return timedelta(seconds=_native.parse_duration(self.by) / 1e9)


def check_name(name: str) -> None:
    """Refuses what cannot name a job."""
    if not NAME.fullmatch(name):
        raise usage(f"`{name}` cannot name a job", "allowed are lower-case letters, digits, _ and -, a letter first")


def check_at(text: str) -> str:
    """A time of day."""
    if not _AT.fullmatch(text.strip()):
        raise usage(f"--at `{text}`: allowed is a time of day, for example 22:00")
    return text.strip().zfill(5)


def check_by(text: str) -> str:
    """A time of day, or a duration: a job has no one date."""
    from pathcast import _native

    word = text.strip()
    if _AT.fullmatch(word):
        return word.zfill(5)
    try:
        if _native.parse_duration(word) > 0:
            return word
    except PathcastError:
        pass
    raise usage(f"--by `{text}`: allowed is a time of day (06:00), or a time from its start on (8h)")


def folder() -> Path:
    """Where they lie."""
    return config.file().parent / "jobs"


def load(name: str) -> Job:
    """Raises PathcastError (exit 2) for one that is not there, or is damaged."""
    check_name(name)
    path = folder() / f"{name}.json"
    try:
        return _job(name, json.loads(read_file(path, _LARGEST_BYTES)))
    except FileNotFoundError:
        raise _unknown(name) from None
    except (OSError, ValueError) as error:
        mend = f"pathcast job remove {name}, and add it again"
        raise usage(f"cannot read the job `{path}`: {error}", mend) from None


def _job(name: str, document: object) -> Job:
    """Raises ValueError for what `add` would not have written."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"it is no {SCHEMA}")
    newer = dict.fromkeys(("added_s", "caller", "history"))
    values: dict[str, Any] = {**newer, **{key: of for key, of in document.items() if key != "schema"}}
    if wrong := set(values) ^ set(Job.__dataclass_fields__):
        raise ValueError(f"missing or unknown: {', '.join(sorted(wrong))}")
    for key in ("at", "options", "command"):
        of = values[key]
        if not isinstance(of, list) or not all(isinstance(word, str) for word in of):
            raise ValueError(f"`{key}` is {json.dumps(of)}; allowed is a list of words")
        values[key] = tuple(of)
    if values["name"] != name or not isinstance(values["directory"], str) or not values["command"]:
        raise ValueError("its name, directory or command is not that of a job")
    if type(values["retries"]) is not int:
        raise ValueError(f"`retries` is {json.dumps(values['retries'])}; allowed is a number")
    added_s = values["added_s"]
    if added_s is not None and not (_is_number(added_s) and added_s < _LATEST_S):
        raise ValueError(f"`added_s` is {json.dumps(added_s)}; allowed are seconds since 1970")
    caller = values["caller"]
    if caller is not None and not (type(caller) is int and 0 <= caller < 2**32 - 1):
        raise ValueError(f"`caller` is {json.dumps(caller)}; allowed is a user's number")
    history = values["history"]
    if history is not None and not (isinstance(history, str) and "\0" not in history):
        raise ValueError(f"`history` is {json.dumps(history)}; allowed is what PATHCAST_HISTORY may be")
    if not values["at"] or not all(_AT.fullmatch(at) for at in values["at"]):
        raise ValueError(f"`at` is {json.dumps(values['at'])}; allowed are times of day")
    if values["by"] is not None:
        try:
            check_by(str(values["by"]))
        except PathcastError as error:
            raise ValueError(error.message) from None
    return Job(**values)


def _unknown(name: str) -> PathcastError:
    known = ", ".join(file.stem for file in _files()) or "none yet"
    hint = "pathcast job add makes one"
    return usage(f"there is no job `{name}`; there are: {known}", "; ".join(filter(None, (hint, of_root()))))


def of_root() -> str | None:
    """A sentence for another user where root has jobs, or may have: of those nothing is shown."""
    theirs = config.SYSTEM.parent / "jobs"
    if os.geteuid() == 0 or folder() == theirs:
        return None
    try:
        if not any(name.endswith(".json") for name in os.listdir(theirs)):
            return None
    except PermissionError:
        pass  # there is something, which only root may see
    except OSError:
        return None
    return "jobs are their user's: `sudo pathcast job list` shows root's"


def _files() -> list[Path]:
    return [file for file in sorted(folder().glob("*.json")) if NAME.fullmatch(file.stem)] if folder().is_dir() else []


def every(damaged: Callable[[PathcastError], object]) -> list[Job]:
    """By name. damaged: is told of those that cannot be read; they do not hide the others."""
    found = []
    for file in _files():
        try:
            found.append(load(file.stem))
        except PathcastError as error:
            damaged(error)
    return found


def add(job: Job) -> Path:
    """Writes it. Raises PathcastError where there is one of that name, or it cannot be written."""
    path = folder() / f"{job.name}.json"
    if path.exists():
        raise usage(f"there is a job `{job.name}` already", f"pathcast job remove {job.name}")
    _write(path, {"schema": SCHEMA, **asdict(job)})
    return path


def remove(name: str) -> None:
    """Takes it away, also a damaged one; what became of its runs stays. Raises PathcastError where there is none."""
    find(name)
    try:
        (folder() / f"{name}.json").unlink()
    except FileNotFoundError:
        raise _unknown(name) from None
    except OSError as error:
        raise PathcastError("job", f"cannot remove `{folder() / name}.json`: {error.strerror}") from None


def find(name: str) -> None:
    """Raises PathcastError (exit 2) where there is no such job; a damaged one is there."""
    check_name(name)
    if not os.path.lexists(folder() / f"{name}.json"):
        raise _unknown(name)


def _write(path: Path, document: Mapping[str, Any], lasting: bool = True) -> None:
    """lasting: also if the power fails at once."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # what is run is not for all to see
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".job-")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(document, file, indent=1)
                file.flush()
                if lasting:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise PathcastError("job", f"cannot write `{path}`: {error.strerror}") from None


def runs_file(name: str) -> Path:
    """A line of JSON for every beginning and end."""
    return state_directory() / "jobs" / f"{name}.jsonl"


def note(name: str, document: Mapping[str, Any]) -> None:
    """Adds what happened to a job."""
    path = runs_file(name)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    line = (json.dumps(document, allow_nan=False) + "\n").encode()
    try:
        _add_line(path, line)
    except OSError as error:
        raise PathcastError("job", f"cannot write `{path}`: {error.strerror}", "make room there") from None


def _add_line(path: Path, line: bytes) -> None:
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = b"\n" + line  # the last one was cut
        if os.write(handle, line) < len(line):  # at once: another's line does not come between
            raise OSError(errno.ENOSPC, "no space is left")
        os.fsync(handle)
    finally:
        os.close(handle)


def runs(name: str) -> list[dict[str, Any]]:
    """What was noted, the oldest first; a line that a crash has cut is left out. A run whose program has ended well has
    an end, also where `job run` was killed before it could tell."""
    return _with_ends(_noted(name))


def _with_ends(noted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    since: list[dict[str, Any]] = []
    for one in [*noted, {"event": "begun"}]:
        if one.get("event") == "begun":
            if (end := _end_of(since)) is not None:
                found.append(end)
            since = []
        since.append(one)
        found.append(one)
    return found[:-1]


def _end_of(events: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What `job run` would have told of these events of one run."""
    ran = [one for one in events if one.get("event") == RAN]
    if not ran or ran[-1]["status"] != 0 or any(one.get("event") == "ended" for one in events):
        return None
    first, last = events[0], ran[-1]
    by = first.get("by")
    lines: dict[str, int] = {}
    for one in ran:
        for line, bytes in one["lines"].items():
            lines[line] = lines.get(line, 0) + bytes
    return {
        "event": "ended",
        "at_s": last["at_s"],
        "status": 0,
        "attempts": len(ran),
        "elapsed_s": last["at_s"] - first.get("at_s", last["at_s"]),
        "by": by,
        "in_time": None if by is None else last["at_s"] <= datetime.fromisoformat(by).timestamp(),
        **{name: sum(one[name] for one in ran) for name in ("bytes_sent", "bytes_received")},
        "connections": None,
        "expected_s": ran[0]["expected_s"],
        "lines": lines,
    }


def left(job: Job, now: datetime) -> dict[str, Any] | None:
    """Of its own bounds, as `Course.left` has it, what was broken off since its time has left; None: nothing was, or it
    did not tell. now: naive, by the machine's clock."""
    since = last_due(job.times, now)
    found, open = None, False
    for one in runs(job.name):
        if one["event"] == "begun":
            # one of another time, or of an earlier job of this name, had bounds of its own
            same = one["at_s"] >= (job.added_s or 0.0) and zone.clock(one["at_s"]) >= since
            found, open = found if same else None, same
        elif one["event"] == "ended":
            found, open = None, False
        elif open and one.get("left") is not None:
            found = joined(found, one["left"])
    if not open:
        return None
    try:
        told = json.loads(read_file(_left_file(job.name), _LARGEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return found
    return joined(found, told) if _is_left(told) else found


def joined(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> dict[str, Any]:
    """What both leave."""
    if one is None:
        return dict(other)
    most = {**one["max_bytes"], **other["max_bytes"]}
    most |= {name: min(bytes, most[name]) for name, bytes in one["max_bytes"].items()}
    budgets = [of["budget"] for of in (one, other) if of["budget"] is not None]
    return {"max_bytes": most, "budget": min(budgets, default=None)}


def keep_left(name: str, of: Mapping[str, Any]) -> None:
    """While it runs, since whoever is killed tells nothing."""
    with suppress(PathcastError):  # its end is noted, too
        _write(_left_file(name), of, lasting=False)


def forget_left(name: str) -> None:
    """Its end is noted."""
    with suppress(OSError):
        _left_file(name).unlink(missing_ok=True)


def _left_file(name: str) -> Path:
    return runs_file(name).with_suffix(".left")


def _is_left(of: Any) -> bool:
    return (
        isinstance(of, dict)
        and isinstance(of.get("max_bytes"), dict)
        and all(type(bytes) is int and _is_number(bytes) for bytes in of["max_bytes"].values())
        and "budget" in of
        and (of["budget"] is None or _is_number(of["budget"]))
    )


def status_of(name: str, pid: int) -> int | None:
    """The exit status of a job's program that the `pathcast run` of this number has told; None: it has told none."""
    for one in reversed(_noted(name)):
        if one.get("event") == "begun":
            return None
        if one.get("event") == RAN and one.get("pid") == pid:
            return int(one["status"])
    return None


def _noted(name: str) -> list[dict[str, Any]]:
    try:
        lines = runs_file(name).read_text(errors="replace").splitlines()[-_KEPT:]
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict) and _is_note(one):
            found.append({**_ENDED, **one} if one["event"] == "ended" else one)
    return found


def _is_note(one: Mapping[str, Any]) -> bool:
    """Whether it can be told, counted and compared: what is noted once is read by every later command."""
    event, lines = one.get("event"), one.get("lines", {})
    if event not in ("begun", "again", "ended", RAN):
        return False
    numbers = ["at_s", *(_COUNTED if event == RAN else ()), *(["status"] if event in ("ended", RAN) else ())]
    optional = [name for name in (*_COUNTED, "elapsed_s", "attempts", "expected_s", "wait_s") if name not in numbers]
    try:
        by = one.get("by")
        return (
            all(_is_number(one[name]) for name in numbers)
            and one["at_s"] < _LATEST_S
            and all(one.get(name) is None or _is_number(one[name]) for name in optional)
            and one.get("in_time") in (True, False, None)
            and all(_is_number(bytes) for bytes in lines.values())
            and (by is None or bool(datetime.fromisoformat(by)))
            and (event != RAN or "expected_s" in one)
            and (one.get("left") is None or _is_left(one["left"]))
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e18


def begun(name: str) -> datetime | None:
    """When it last began, by the machine's clock. None: never, or that run was broken off and has no end."""
    ended = False
    for one in reversed(runs(name)):
        ended = ended or one.get("event") == "ended"
        if one.get("event") == "begun":
            return zone.clock(one["at_s"]) if ended else None
    return None
