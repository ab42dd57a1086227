"""What a watch may still send today, kept on the disc, whatever ends it. One watch for each state."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from pathcast.errors import PathcastError
from pathcast.history import clock
from pathcast.history.clock import Moment
from pathcast.history.faults import told
from pathcast.history.place import state_directory
from pathcast.runtime.state import holder
from pathcast.watch.allowance import DAY_S, Allowance


@contextlib.contextmanager
def alone() -> Iterator[Path]:
    """The state, whose only watch this is: the directory. Raises PathcastError (`busy`) that names who has it."""
    directory = state_directory()
    path = directory / "watch.lock"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise told(error, str(directory)) from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "end it, or give this one a state of its own by PATHCAST_STATE_DIR"
            raise PathcastError("busy", f"{directory} is watched from already, by {holder(fd)}", hint) from None
        yield directory
    finally:
        os.close(fd)


class Ledger:
    """An allowance that is written before anything is sent. now: the machine's clock. most: bytes a day.

    Times are of the clock that nobody sets, across a boot those of UTC.
    """

    def __init__(self, file: Path, most: int, now: Callable[[], Moment]) -> None:
        self.file, self.now = file, now
        at = now()
        now_s = at.boot_us / 1e6
        spent: list[tuple[float, int]] = []
        paced_s = now_s
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads(file.read_text())
            # of a clock that was wrong: as if it were now
            gone_s = clock.age_s(Moment(**kept["at"]), at) or 0.0
            spent = [(now_s - float(ago_s) - gone_s, int(bytes)) for ago_s, bytes in kept["spent"]]
            # of a round that was broken off nobody knows what it was
            spent += [(now_s, int(kept["taken"]))] if kept["taken"] else []
            paced_s = now_s + min(DAY_S, float(kept["paced_s"])) - gone_s
        self.allowance = Allowance(most, sorted(spent), paced_s)

    def free_in_s(self, bytes: int, paced: bool = True) -> float:
        """How long until so many may be taken."""
        now_s = self._now_s()
        return self.allowance.free_s(now_s, bytes, paced) - now_s

    def take(self, bytes: int) -> None:
        """Takes them: when this returns that is on the disc. Raises PathcastError where it cannot be."""
        self.allowance.take(self._now_s(), bytes)
        try:
            self._write()
        except PathcastError:
            self.allowance.settle(self._now_s(), 0, paced=False)
            raise

    def settle(self, bytes: int, paced: bool = True) -> None:
        """What it was in truth."""
        self.allowance.settle(self._now_s(), bytes, paced)
        self._write()

    def used(self) -> int:
        """Of this day [byte]."""
        return self.allowance.used(self._now_s())

    def _now_s(self) -> float:
        return self.now().boot_us / 1e6

    def _write(self) -> None:
        at = self.now()
        now_s = at.boot_us / 1e6
        self.allowance.used(now_s)
        document = {
            "at": asdict(at),
            "most": self.allowance.most,
            "spent": [[round(now_s - at_s, 3), bytes] for at_s, bytes in self.allowance.entries],
            "taken": self.allowance.taken,
            "paced_s": round(self.allowance.paced_s - now_s, 3),
        }
        new = self.file.with_name(self.file.name + ".new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
                file.write(json.dumps(document))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.file)
        except OSError as error:
            raise told(error, str(self.file.parent)) from None
