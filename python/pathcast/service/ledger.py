"""What a watch may still send today, kept on the disc, whatever ends it. One watch for each state."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pathcast.errors import PathcastError
from pathcast.history import clock
from pathcast.history.clock import Moment
from pathcast.history.faults import told
from pathcast.history.place import state_directory
from pathcast.runtime.state import holder
from pathcast.units import size
from pathcast.watch.allowance import DAY_S, Allowance

# an entry may be so much newer than the file that holds it: roundings [s]
_AHEAD_S = 60.0


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

    Times are of the clock that nobody sets, across a boot those of UTC. A file that is none of a ledger is put aside
    and said: then what nobody can tell of the last day is taken to have been all that a watch may send. recorded: what
    the history tells of rounds of that time, how long ago each ended and its bytes; gap_s: rounds that are no further
    apart had none between them. Any thread may ask what is used.
    """

    def __init__(
        self,
        file: Path,
        most: int,
        now: Callable[[], Moment],
        say: Callable[[str], object] = lambda _: None,
        recorded: Callable[[], Iterable[tuple[float, int]]] = tuple,
        gap_s: float = 0.0,
    ) -> None:
        self.file, self.now = file, now
        self._lock = threading.RLock()
        at = now()
        now_s = at.boot_us / 1e6
        spent: list[tuple[float, int]] = []
        paced = now_s, 0
        kept = _read(file)
        if isinstance(kept, _Broken):
            spent = [(now_s - ago_s, bytes) for ago_s, bytes in _supposed(most, recorded(), gap_s)]
        elif kept is not None:
            # of a clock that was wrong: as if it were now
            gone_s = clock.age_s(kept.at, at) or 0.0
            spent = [(now_s - ago_s - gone_s, bytes) for ago_s, bytes in kept.spent]
            # of a round that was broken off nobody knows what it was
            spent += [(now_s, kept.taken)] if kept.taken else []
            # its bytes against what a day allows now: for a day at most
            paced = now_s + min(0.0, kept.paced[0]) - gone_s, min(most, kept.paced[1])
        self.allowance = Allowance(most, sorted(spent), paced)
        if isinstance(kept, _Broken):
            aside = file.with_suffix(".broken")
            try:
                shutil.copyfile(file, aside)
            except OSError as error:
                raise told(error, str(file.parent)) from None
            # at once: the next start would find a file of nothing
            self._write()
            used = self.allowance.used(now_s)
            say(f"`{file}` was broken, and is now `{aside}`: of the last 24 hours {size(used)} count as spent")

    def free_in_s(self, bytes: int, paced: bool = True) -> float:
        """How long until so many may be taken."""
        with self._lock:
            now_s = self._now_s()
            return self.allowance.free_s(now_s, bytes, paced) - now_s

    def take(self, bytes: int) -> None:
        """Takes them: when this returns that is on the disc. Raises PathcastError where it cannot be."""
        with self._lock:
            self.allowance.take(self._now_s(), bytes)
        try:
            self._write()
        except PathcastError:
            with self._lock:
                self.allowance.settle(self._now_s(), 0, paced=False)
            raise

    def settle(self, bytes: int, paced: bool = True) -> None:
        """What it was in truth."""
        with self._lock:
            self.allowance.settle(self._now_s(), bytes, paced)
        self._write()

    def used(self) -> int:
        """Of this day [byte]; of a round that goes on as much as it may take."""
        with self._lock:
            return self.allowance.used(self._now_s())

    def _now_s(self) -> float:
        return self.now().boot_us / 1e6

    def _write(self) -> None:
        with self._lock:
            at = self.now()
            now_s = at.boot_us / 1e6
            self.allowance.used(now_s)
            entries = self.allowance.entries
        document = {
            "at": asdict(at),
            "most": self.allowance.most,
            "spent": [[round(now_s - at_s, 3), bytes] for at_s, bytes in entries],
            "taken": self.allowance.taken,
            "paced_s": round(self.allowance.paced_s - now_s, 3),
            "paced": self.allowance.paced[1],
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


@dataclass(frozen=True)
class _Kept:
    """What stands in a file: as of `Allowance`, but spent how long before `at` [s], paced how long after it [s]."""

    at: Moment
    spent: list[tuple[float, int]]
    taken: int
    paced: tuple[float, int]


class _Broken:
    """A file that is none of a ledger."""


def _read(file: Path) -> _Kept | _Broken | None:
    """None: there is none yet. Raises PathcastError where it cannot be read."""
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "it says what was spent of the day: let this user read it"
        raise PathcastError("books", f"cannot read `{file}`: {error.strerror}", hint) from None
    try:
        of = json.loads(text)
        at, taken, most, paced_s = Moment(**of["at"]), of["taken"], of["most"], of["paced_s"] + 0.0
        # older files do not have it: as if the round had begun when they were written
        paced = of.get("paced", round(max(0.0, paced_s) * most / DAY_S))
        began_s = paced_s - paced * DAY_S / most
        spent = [(ago_s + 0.0, bytes) for ago_s, bytes in of["spent"]]
        counts = [at.utc_us, at.boot_us, taken, most, paced, *(bytes for _, bytes in spent)]
        ages = [ago_s for ago_s, _ in spent]
        good = isinstance(at.boot, str) and all(type(count) is int and count >= 0 for count in counts)
        good = good and all(-_AHEAD_S <= ago_s < math.inf for ago_s in ages) and math.isfinite(began_s)
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
        good = False
    return _Kept(at, spent, taken, (began_s, paced)) if good else _Broken()


def _supposed(most: int, recorded: Iterable[tuple[float, int]], gap_s: float) -> list[tuple[float, int]]:
    """What a watch has spent at most, how long ago: its rounds, and between those that are far apart its share."""
    rounds = sorted(((ago_s, bytes) for ago_s, bytes in recorded if 0 <= ago_s <= DAY_S), reverse=True)
    found, before_s = list(rounds), DAY_S
    for ago_s in [*(ago_s for ago_s, _ in rounds), 0.0]:
        if (apart_s := before_s - ago_s) > gap_s:
            found.append((ago_s, math.ceil(most * apart_s / DAY_S)))
        before_s = ago_s
    return found
