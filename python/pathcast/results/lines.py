"""Results of a long experiment, each a line of JSON, so that one that was broken off continues where it was.

A line is written as soon as its result is there, and is found again by its `key`.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, usage

Line = dict[str, Any]


class Lines:
    """A file of results. Use it in a `with`: while it lasts nobody else can write there (`busy`).

    If nothing is in it at the end it is removed.
    """

    def __init__(self, path: Path, counts: Callable[[Line], bool], sync_s: float = 0.0) -> None:
        """`counts` says of a line that was read whether it is a result; others are as if they were not there.

        sync_s: with the machine's power results of at most this time are lost; 0: none.
        """
        self.path, self._counts, self._sync_s = path, counts, sync_s
        self.stored: dict[str, Line] = {}

    def __enter__(self) -> Lines:
        while not self._locked():
            os.close(self._file)
        with open(self._file, "rb", closefd=False) as file:  # what was opened, whatever has its name now
            data = file.read()
        self.stored = stored(data, self._counts)
        if data and not data.endswith(b"\n"):
            os.write(self._file, b"\n")  # a line that was not written to its end
        self._synced = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync(self._file)
        if os.fstat(self._file).st_size == 0:
            self.path.unlink()
        os.close(self._file)

    def _locked(self) -> bool:
        """Opens and locks the file; false if whoever had it before has removed it meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._file = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise usage(f"`{self.path}` cannot be written to: {error.strerror}", "give another directory") from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise usage(f"`{self.path}` is no plain file", "give another directory")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise PathcastError("busy", f"another run writes to {self.path.parent}", "wait for its end") from None
        return os.fstat(self._file).st_nlink > 0

    def add(self, line: Line) -> None:
        """Keeps a result; with a `sync_s` of 0 it is on the disc when this returns."""
        data = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        self.stored[line["key"]] = line
        while data:
            data = data[os.write(self._file, data) :]
        if time.monotonic() - self._synced >= self._sync_s:
            os.fsync(self._file)
            self._synced = time.monotonic()


def stored(data: bytes, counts: Callable[[Line], bool]) -> dict[str, Line]:
    """The lines of a file by their keys, the last one of each; a line that is not whole is left out."""
    found = {}
    for text in data.splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "key" in line and counts(line):
            found[line["key"]] = line
    return found
