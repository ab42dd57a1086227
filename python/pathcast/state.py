"""What pathcast's long-lived parts have made on this host, so that any later start can remove what was left behind.

`/run/pathcast/<kind>-<id>.json` names a process by its pid and that pid's start time, and everything that it made;
beside it lies its 0600 socket. A record is stale when that pid with that start time is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pathcast.errors import PathcastError, missing, usage

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
# what the kernel takes as the path of a socket, without the zero at its end
_SOCKET_PATH = 107


def run_dir() -> Path:
    """`/run/pathcast`, or the user's own runtime directory without root; made if it is not there."""
    chosen = os.environ.get("PATHCAST_RUN_DIR")
    if chosen:
        path = Path(chosen)
    elif os.geteuid() == 0:
        path = Path("/run/pathcast")
    else:
        path = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"pathcast-{os.geteuid()}"
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise missing(
            f"cannot make the run directory `{path}`: {error.strerror}",
            "set PATHCAST_RUN_DIR to a directory that you may write to",
        ) from None
    return path


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One start at a time: between finding a record stale and removing it, nobody else may take its name."""
    fd = os.open(run_dir(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def check_id(text: str) -> str:
    """An id that can stand in file and namespace names; refuses others."""
    if not _ID.fullmatch(text):
        raise usage(f"`{text}` is not a name: lower-case letters, digits and `-`, at most 24, not starting with `-`")
    return text


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process, or only its zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    after = stat.rpartition(")")[2].split()  # the name may hold spaces and parentheses
    return None if after[0] in "ZX" else int(after[19])


@dataclass
class Record:
    """One long-lived part. `made` maps a kind of object (`namespaces`) to the names that were made."""

    kind: str
    id: str
    pid: int
    started: int
    made: dict[str, list[str]] = field(default_factory=dict)
    about: dict = field(default_factory=dict)

    @classmethod
    def of_this_process(cls, kind: str, id: str, made: dict[str, list[str]], about: dict) -> Record:
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
        try:
            fd, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".claim-")
        except OSError as error:
            raise missing(
                f"cannot write to the run directory `{run_dir()}`: {error.strerror}",
                "run as the user who owns it, or set PATHCAST_RUN_DIR to a directory of your own",
            ) from None
        with os.fdopen(fd, "w") as file:
            file.write(text)
        try:
            os.link(temporary, self.path)  # fails where the name is taken: two starts at once cannot both win
        except FileExistsError:
            raise PathcastError(
                "exists",
                f"{self.kind} `{self.id}` is there already",
                f"choose another --name, or remove it with `pathcast {self.kind} down {self.id}`",
            ) from None
        finally:
            os.unlink(temporary)

    def remove(self) -> list[str]:
        """Removes everything that is named, then the record; returns what was removed."""
        removed = []
        for name in self.made.get("namespaces", []):
            if _namespace(name).exists():
                from pathcast import _native

                _native.remove_namespace(name)
                removed.append(f"namespace {name}")
        return removed + self._remove_of_run() + self.forget()

    def _remove_of_run(self) -> list[str]:
        """What a `pathcast run` that was killed has left: cgroups, and endpoints of its network namespace."""
        cgroups, endpoints = self.made.get("cgroups", []), self.made.get("endpoints", [])
        if not cgroups and not endpoints:
            return []
        from pathcast import _native

        removed = [f"cgroup {path}" for path in cgroups if _native.remove_cgroup(path)]
        if not endpoints:
            return removed
        where = self.about.get("namespace")
        if where == network_namespace():
            name = None
        elif (name := _named(where)) is None:
            return removed  # the namespace is gone, and its endpoints with it
        return removed + [
            f"endpoint {address}" for address in endpoints if _native.remove_endpoint(address, run_dir(), name)
        ]

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


def _named(number: int | None) -> str | None:
    """The name of a network namespace; None for one without."""
    with contextlib.suppress(OSError):
        for path in Path("/run/netns").iterdir():
            if path.stat().st_ino == number:
                return path.name
    return None


def _read(path: Path) -> Record | None:
    """The record in a file; None where it holds something else."""
    try:
        record = Record(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    texts = isinstance(record.kind, str) and isinstance(record.id, str)
    numbers = isinstance(record.pid, int) and isinstance(record.started, int)
    tables = isinstance(record.made, dict) and isinstance(record.about, dict)
    return record if texts and numbers and tables and record.path == path else None


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
    for record in records():
        if not record.alive:
            try:
                removed += record.remove()
            except (PathcastError, OSError) as error:  # we may lack the privilege
                removed.append(f"not removed: {record.kind} {record.id}: {error}")
    return removed
