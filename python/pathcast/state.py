"""What pathcast's long-lived parts have made on this host, so that any later start can remove what was left behind.

`/run/pathcast/<kind>-<id>.json` names a process by its pid and that pid's start time, and everything that it made;
beside it lies its 0600 socket. A record is stale when that pid with that start time is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pathcast.errors import PathcastError, usage

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")


def run_dir() -> Path:
    """`/run/pathcast`, or the user's own runtime directory without root; made if it is not there."""
    chosen = os.environ.get("PATHCAST_RUN_DIR")
    if chosen:
        path = Path(chosen)
    elif os.geteuid() == 0:
        path = Path("/run/pathcast")
    else:
        path = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"pathcast-{os.geteuid()}"
    path.mkdir(mode=0o755, parents=True, exist_ok=True)
    return path


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
        """Writes the record, refusing a name that a living process has."""
        clean()
        text = json.dumps(asdict(self), indent=1)
        fd, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".claim-")
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
            if Path("/run/netns", name).exists():
                from pathcast import _native

                _native.remove_namespace(name)
                removed.append(f"namespace {name}")
        for path in (self.socket, self.path):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                removed.append(str(path))
        return removed


def records(kind: str | None = None) -> list[Record]:
    """Every record, oldest first; files that are no records are passed over."""
    found = []
    for path in sorted(run_dir().glob("*.json"), key=lambda p: p.name):
        try:
            record = Record(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if record.path == path and (kind is None or record.kind == kind):
            found.append(record)
    return found


def clean() -> list[str]:
    """Removes what dead processes left behind; called at every start."""
    removed = []
    for record in records():
        if not record.alive:
            try:
                removed += record.remove()
            except (PathcastError, OSError) as error:  # another start may be at it, or we may lack the privilege
                removed.append(f"not removed: {record.kind} {record.id}: {error}")
    return removed
