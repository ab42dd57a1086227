"""What pathcast's long-lived parts have made on this host, so that any later start can remove what was left behind.

`/run/pathcast/<kind>-<id>.json` names a process by its pid and that pid's start time, and everything that it made;
beside it lies its 0600 socket. A record is stale when that pid with that start time is gone. What a record says is
done, as root: the directory is its user's own, and what does not look like a record of ours is not followed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import ipaddress
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pathcast.errors import Exit, PathcastError, missing, usage
from pathcast.processes import start_time
from pathcast.runtime import inside

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
_KIND = re.compile(r"[a-z]{1,16}")
# what the kernel takes as the path of a socket, without the zero at its end
_SOCKET_PATH = 107
# a record is some hundred bytes, and the command of a run
_RECORD_BYTES = 1 << 20
# the kernel's largest
_PID = 1 << 22
# whoever has a lock starts something, or removes what was left behind
LOCK_PATIENCE_S = 60.0
_POLL_S = 0.01
# a record that is being written
_CLAIM = ".claim-"

ROOTS = Path("/run/pathcast")
# how words on what was left begin, where it is no removal
ENDED, KEPT = "ended", "not removed"
# what people call a part
KINDS = {"net": "network", "steer": "controller of switches"}


def where() -> Path:
    """The run directory, be it there or not."""
    if chosen := os.environ.get("PATHCAST_RUN_DIR"):
        return Path(chosen)
    if os.geteuid() == 0:
        return ROOTS
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"pathcast-{os.geteuid()}"


def run_dir() -> Path:
    """`/run/pathcast`, or the user's own runtime directory without root; made if it is not there.

    Raises PathcastError (exit 4) for one that is another user's, that others may write to, or that is a link: whoever
    can put a record there has its user's processes ended and files removed.
    """
    path = where()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = path.lstat()
    except OSError as error:
        if path.is_symlink():  # to nowhere
            raise _refused(path, "is a link") from None
        raise missing(
            f"cannot make the run directory `{path}`: {error.strerror}",
            "set PATHCAST_RUN_DIR to a directory that you may write to",
        ) from None
    if stat.S_ISLNK(about.st_mode):
        raise _refused(path, "is a link")
    if about.st_uid != os.geteuid():
        raise _refused(path, f"belongs to another user ({about.st_uid})")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refused(path, "can be written to by others")
    if not os.environ.get("PATHCAST_RUN_DIR") and about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        path.chmod(0o700)  # of a version that let others read it
    return path


def hidden() -> Path | None:
    """Root's run directory, where this user is not root and may not look into it."""
    return ROOTS if os.geteuid() != 0 and ROOTS.exists() and not os.access(ROOTS, os.R_OK | os.X_OK) else None


def see(what: str, command: str) -> None:
    """Raises PathcastError (exit 5) where root may have `what` that this user does not see; `command` shows it."""
    if directory := hidden():
        raise missing(
            f"the right to see root's {what}, recorded in {directory}, is missing", f"run as root: sudo {command}"
        )


def _refused(path: Path, why: str) -> PathcastError:
    hint = "remove it, or set PATHCAST_RUN_DIR to a directory that is yours alone"
    return PathcastError("run-directory", f"the run directory `{path}` {why}", hint, Exit.REFUSED)


def _unwritable(error: OSError) -> PathcastError:
    told = f"cannot write to the run directory `{run_dir()}`: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PathcastError("no-space", told, "make room there, or set PATHCAST_RUN_DIR to another")
    return missing(told, "run as the user who owns it, or set PATHCAST_RUN_DIR to a directory of your own")


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Alone among this user's processes, by the lock of that name. Raises PathcastError (`busy`) that says who has it,
    where it does not come free."""
    path = run_dir() / f"{name}.lock"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(error) from None
    try:
        os.fchmod(fd, 0o600)  # one of an earlier version could be opened, and so be held, by anybody
        await_lock(fd, path)
        yield
    finally:
        os.close(fd)


def await_lock(fd: int, path: Path) -> None:
    """Locks an open file. Raises PathcastError (`busy`) that says who has it, where it does not come free."""
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while not _try(fd):
        if time.monotonic() > deadline:
            told = f"{path} is locked by {holder(fd)}, for {LOCK_PATIENCE_S:.0f} s by now"
            raise PathcastError("busy", told, "wait for its end, or end it, if it hangs")
        time.sleep(_POLL_S)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(fd: int) -> str:
    """Who has the lock of an open file: /proc/locks, which knows the files by their numbers only."""
    about = os.fstat(fd)
    place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    with contextlib.suppress(OSError, IndexError):
        for words in (line.split() for line in Path("/proc/locks").read_text().splitlines()):
            if words[1] == "FLOCK" and words[5] == place:
                process = Path("/proc", words[4])
                name, user = (process / "comm").read_text().strip(), process.stat().st_uid
                return f"process {words[4]} ({name}, of user {user})"
    return "another process"


def _alone() -> contextlib.AbstractContextManager[None]:
    """One start at a time: between finding a record stale and removing it, nobody else may take its name."""
    return locked("records")


def check_id(text: str) -> str:
    """An id that can stand in file and namespace names; refuses others."""
    if not _ID.fullmatch(text):
        raise usage(f"`{text}` is not a name: lower-case letters, digits and `-`, at most 24, not starting with `-`")
    return text


@dataclass
class Record:
    """One long-lived part. `made` maps a kind of object (`namespaces`) to the names that were made."""

    kind: str
    id: str
    pid: int
    started: int
    made: dict[str, list[str]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_this_process(cls, kind: str, id: str, made: dict[str, list[str]], about: dict[str, Any]) -> Record:
        pid = os.getpid()
        return cls(kind, id, pid, start_time(pid) or 0, made, about)

    @property
    def path(self) -> Path:
        return run_dir() / f"{self.kind}-{self.id}.json"

    @property
    def socket(self) -> Path:
        return self.path.with_suffix(".sock")

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started

    def open(self) -> int | None:
        """A descriptor of its process, for signals and for waiting; None where it has ended."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except OSError:
            return None
        if self.alive:
            return pidfd  # from here on the number cannot become another's
        os.close(pidfd)
        return None

    def claim(self) -> None:
        """Writes the record, refusing a name that a living process has, or a namespace that is none of ours."""
        if len(os.fsencode(self.socket)) > _SOCKET_PATH:
            raise usage(
                f"the path of the socket `{self.socket}` is longer than {_SOCKET_PATH} bytes",
                "set PATHCAST_RUN_DIR to a shorter one",
            )
        with _alone():
            _clean()
            if not self.path.exists():  # of a living process now
                self._refuse_foreign()
            self._write()

    def _refuse_foreign(self) -> None:
        """What is there already is not ours to remove, now or later."""
        for name in self.made.get("namespaces", []):
            if _namespace(name).exists():
                raise PathcastError(
                    "exists",
                    f"the network namespace {name} is there already, and no record in {run_dir()} names it",
                    f"choose another --name, or remove it with `ip netns delete {name}`",
                )

    def _write(self) -> None:
        text = json.dumps(asdict(self), indent=1)
        temporary = None
        try:
            fd, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=_CLAIM)
            with os.fdopen(fd, "w") as file:
                file.write(text)
            os.link(temporary, self.path)  # fails where the name is taken: two starts at once cannot both win
        except FileExistsError:
            raise self._taken() from None
        except OSError as error:
            raise _unwritable(error) from None
        finally:
            if temporary is not None:
                os.unlink(temporary)

    def _taken(self) -> PathcastError:
        if _read(self.path) is None:
            return PathcastError("exists", f"{self.path} is there, and is no record of pathcast", "remove it")
        told, down = (
            f"{KINDS.get(self.kind, self.kind)} `{self.id}` is there already",
            # a net is named by an argument, a controller of switches by an option
            f"pathcast {self.kind} down {'--name ' if self.kind == 'steer' else ''}{self.id}",
        )
        return PathcastError("exists", told, f"choose another --name, or remove it with `{down}`")

    def tell(self, about: dict[str, Any]) -> None:
        """Adds to what others read of it, or changes that; where it cannot be written they read what was."""
        self.about = {**self.about, **about}
        temporary = None
        with contextlib.suppress(OSError):  # a start that cleans up may take it away
            fd, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=_CLAIM)
            with os.fdopen(fd, "w") as file:
                file.write(json.dumps(asdict(self), indent=1))
            if _read(self.path) is not None:
                os.replace(temporary, self.path)
                return
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def remove(self) -> list[str]:
        """Removes everything that is named, then the record; returns what was removed."""
        removed = self.end_inside()
        for name in self.made.get("namespaces", []):
            if _namespace(name).exists():
                from pathcast import _native

                _native.remove_namespace(name)
                removed.append(f"namespace {name}")
        for name in self.made.get("directories", []):
            if (path := run_dir() / name).exists():
                shutil.rmtree(path, ignore_errors=True)
                removed.append(f"directory {path}")
        return removed + self._remove_of_run() + self.forget()

    def end_inside(self, asker: int | None = None) -> list[str]:
        """Ends what runs in its namespaces, and would keep them without their names; says whose it was."""
        ended = inside.end([_namespace(name) for name in self.made.get("namespaces", [])], asker)
        return inside.told(ended, self.id)

    def _remove_of_run(self) -> list[str]:
        """What a `pathcast run` that was killed has left: cgroups, and endpoints of its network namespace."""
        cgroups, endpoints = self.made.get("cgroups", []), self.made.get("endpoints", [])
        if not cgroups and not endpoints:
            return []
        from pathcast import _native

        removed = []
        if self.about.get("steered"):  # nobody keeps it within caps any more
            count = sum(_native.end_cgroup(path) for path in cgroups)
            removed += [f"{ENDED} {count} processes that the killed run {self.id} had left"] if count else []
        removed += [f"cgroup {path}" for path in cgroups if _native.remove_cgroup(path)]
        if not endpoints:
            return removed
        where = self.about.get("namespace")
        with contextlib.ExitStack() as stack:
            inside = None
            if where != network_namespace():
                if (fd := _open_namespace(where)) is None:  # it is gone, and its endpoints with it
                    for address in endpoints:
                        _mark(address, where).unlink(missing_ok=True)
                    return removed
                stack.callback(os.close, fd)
                inside = f"/proc/self/fd/{fd}"
            done = [address for address in endpoints if _native.remove_endpoint(address, run_dir(), inside)]
        return removed + [f"endpoint {address}" for address in done]

    def forget(self) -> list[str]:
        """Removes the record and its socket, nothing of what it names; returns their paths."""
        removed = []
        for path in (self.socket, self.path):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                removed.append(str(path))
        return removed


def _namespace(name: str) -> Path:
    return Path("/run/netns", name)


def network_namespace() -> int:
    """The number of the network namespace that this process is in."""
    return os.stat("/proc/self/ns/net").st_ino


def namespace_name(number: int | None) -> str | None:
    """The name of a network namespace; None for one without."""
    with contextlib.suppress(OSError):
        for path in _named():
            if path.stat().st_ino == number:
                return path.name
    return None


def _open_namespace(number: int | None) -> int | None:
    """A descriptor of a network namespace by its number, be it without a name; None where it is gone, as far as this
    process sees. Raises OSError where it is there and cannot be opened."""
    kind = os.stat("/proc/self/ns/net").st_dev
    # that of the host most often has no name
    numbers = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    for path in (*_named(), *(Path(f"/proc/{process}/ns/net") for process in numbers)):
        try:
            about = os.stat(path)
        except OSError:  # it has ended, or is hidden
            continue
        if (about.st_dev, about.st_ino) != (kind, number):
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if os.fstat(fd).st_ino == number:
                return fd
            os.close(fd)
    return None


def _named() -> list[Path]:
    with contextlib.suppress(OSError):
        return list(Path("/run/netns").iterdir())
    return []


def _mark(address: str, namespace: int | None) -> Path:
    """The file that says what was made of an endpoint: as crates/launch has it."""
    return run_dir() / f"endpoint-{address.replace(':', '_')}-{namespace}"


def _read(path: Path) -> Record | None:
    """The record in a file; None where it holds something else."""
    try:
        record = Record(**json.loads(_text(path)))
        return record if _sound(record) and record.path == path else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _text(path: Path) -> str:
    """What is in a plain file of our own."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd) as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_size > _RECORD_BYTES:
            raise ValueError
        return file.read()


def _matches(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern).fullmatch


# what may be named in `made`: it is removed by this name
_MADE: dict[str, Callable[[str], object]] = {
    "namespaces": _matches(r"pc-[a-z0-9-]{1,40}"),
    # below the run directory
    "directories": _matches(r"[a-z0-9-]{1,24}\.ovs"),
    "cgroups": _matches(r"(?!.*/\.\.?/)(/[^/\0]+)*/pathcast-[a-z0-9-]{1,24}"),
    "endpoints": ipaddress.ip_address,
    "controllers": _matches(r"[A-Za-z0-9_-]{1,15}"),
}
# what others rely on in `about`
_ABOUT: dict[str, dict[str, type]] = {
    "net": {"hosts": dict},
    "control": {"control": str, "kernel_name": str, "version": str},
}


def _may_be_made(kind: str, names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) and _MADE[kind](name) for name in names)


def _sound(record: Record) -> bool:
    """Whether every part has the form that this version gives it; so it has not if this raises."""

    def number(value: Any, most: int) -> bool:
        return type(value) is int and 0 < value <= most

    named = _KIND.fullmatch(record.kind) and _ID.fullmatch(record.id)
    process = number(record.pid, _PID) and number(record.started, 1 << 64)
    made = all(_may_be_made(kind, names) for kind, names in record.made.items())
    about = {key: type(value) for key, value in record.about.items()}
    return bool(named and process and made) and _ABOUT.get(record.kind, {}).items() <= about.items()


def records(kind: str | None = None) -> list[Record]:
    """Every record, by name; files that are no records are passed over."""
    found = [_read(path) for path in sorted(run_dir().glob("*.json"), key=lambda p: p.stem)]
    return [r for r in found if r is not None and kind in (None, r.kind)]


def clean() -> list[str]:
    """Removes what dead processes left behind; called at every start."""
    with _alone():
        return _clean()


def _clean() -> list[str]:
    removed = []
    for path in run_dir().glob(f"{_CLAIM}*"):  # nobody writes one now: we are alone
        path.unlink(missing_ok=True)
    for record in records():
        if not record.alive:
            try:
                removed += record.remove()
            except (PathcastError, OSError) as error:  # we may lack the privilege
                removed.append(f"{KEPT}: {record.kind} {record.id}: {error}")
    return removed


def tidy(say: Callable[[str], object]) -> None:
    """What `clean` does; tells what dead runs had left running, and what could not be removed. Raises nothing."""
    try:
        removed = clean()
    except (PathcastError, OSError) as error:
        say(str(error))
        return
    for what in removed:
        if what.startswith((ENDED, KEPT)):
            say(what)
