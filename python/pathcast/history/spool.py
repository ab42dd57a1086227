"""What could not be stored: one file for each act, on the disc before it is said to be kept; sent when it can be."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

from pathcast.errors import PathcastError
from pathcast.files import trusted_users
from pathcast.history.faults import full

# no more is kept of a database that never comes back
LARGEST_BYTES = 256_000_000
_BATCH = 100
_SUFFIX, _REFUSED, _WRITING = ".json", ".refused", ".writing-"

Rows = dict[str, list[dict[str, Any]]]


class Spool:
    """A directory of acts, in the order of their names. Safe with several processes at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, name: str, rows: Any) -> None:
        """Keeps the rows of an act: when this returns they are on the disc. Raises PathcastError or OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._ours():
            raise PermissionError(errno.EPERM, "the spool is another user's, or others may write to it")
        text = json.dumps({"rows": rows}, allow_nan=False).encode("ascii")
        if sum(file.stat().st_size for file in self._files()) + len(text) > LARGEST_BYTES:
            raise full(str(self.directory))
        writing = self.directory / f"{_WRITING}{os.getpid()}-{name}"
        try:
            fd = os.open(writing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            writing.rename(self.directory / f"{name}{_SUFFIX}")
        except BaseException:
            with suppress(OSError):
                writing.unlink()
            raise
        _sync(self.directory)

    def __len__(self) -> int:
        return len(self._files())

    def send(self, add: Callable[[list[Rows]], object], seconds: float | None = None) -> tuple[int, int]:
        """Adds what is here, at most for so long: how many acts were added, and how many are refused for ever, which
        lie beside with another ending. Nothing happens where another process does it now. Raises what `add` raises for
        all of them."""
        sent = refused = 0
        until = None if seconds is None else monotonic() + seconds
        with self._alone() as mine:
            if mine:
                self._clear()
            files = self._files() if mine else []
            for first in range(0, len(files), _BATCH):
                batch = files[first : first + _BATCH]
                try:
                    add([_read(file) for file in batch])
                    _remove(batch)
                    sent += len(batch)
                except (PathcastError, ValueError) as error:
                    if isinstance(error, PathcastError) and error.code != "history-rows":
                        raise
                    for file in batch:  # one of them is at fault
                        refused += not self._one(file, add)
                    sent += len(batch)
                if until is not None and monotonic() > until:
                    break
        return sent - refused, refused

    def _one(self, file: Path, add: Callable[[list[Rows]], object]) -> bool:
        try:
            add([_read(file)])
        except (PathcastError, ValueError) as error:
            if isinstance(error, PathcastError) and error.code != "history-rows":
                raise
            file.rename(file.with_suffix(_REFUSED))
            return False
        file.unlink()
        return True

    def _files(self) -> list[Path]:
        try:
            return sorted(file for file in self.directory.iterdir() if file.suffix == _SUFFIX) if self._ours() else []
        except FileNotFoundError:
            return []

    def _clear(self) -> None:
        """What processes that were killed have not written to its end was never said to be kept."""
        for file in self.directory.glob(f"{_WRITING}*"):
            pid = file.name.removeprefix(_WRITING).partition("-")[0]
            if pid.isdecimal() and not Path("/proc", pid).exists():
                file.unlink(missing_ok=True)

    def _ours(self) -> bool:
        """Whether nobody else could have put something there, or may read it; beside `--history /tmp/…` one could."""
        about = self.directory.lstat()
        return stat.S_ISDIR(about.st_mode) and about.st_uid in trusted_users() and not about.st_mode & 0o022

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        try:
            fd = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            yield False
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(fd)


def _read(file: Path) -> Rows:
    found = json.loads(file.read_bytes())
    if not isinstance(found, dict) or not isinstance(found.get("rows"), dict):
        raise ValueError(f"{file} holds no rows")
    rows: Rows = found["rows"]
    return rows


def _remove(files: list[Path]) -> None:
    for file in files:
        file.unlink()


def _sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
