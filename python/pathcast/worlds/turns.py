"""Turns on a machine that several experiments share: as many rounds at once as keep the emulators on time.

Any number of processes, however many lanes each has: a round holds one of the machine's slots, and a round that is
repeated because the emulator was late has the machine for itself. Locks are the kernel's (flock): they end with their
holder, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pathcast.errors import Exit, PathcastError
from pathcast.runtime.state import run_dir

# emulated paths of 100 Mbit/s cost a third of a processor a lane
SLOTS_PER_PROCESSOR = 1.5
_POLL_S = 0.02


@contextmanager
def turn(alone: bool = False, cancelled: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Waits for a slot, or for the machine. Raises PathcastError (`interrupted`) when `cancelled` while waiting."""
    directory = run_dir()
    with ExitStack() as stack:
        # whoever waits for the whole machine keeps the gate shut, so that it is not overtaken for ever
        gate = _open(directory / "turns.gate", stack)
        _wait(lambda: _try(gate, fcntl.LOCK_EX), cancelled)
        machine = _open(directory / "turns.machine", stack)
        mode = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        _wait(lambda: _try(machine, mode), cancelled)
        fcntl.flock(gate, fcntl.LOCK_UN)
        if not alone:
            count = max(1, int(len(os.sched_getaffinity(0)) * SLOTS_PER_PROCESSOR))
            slots = [_open(directory / f"turns.slot{i}", stack) for i in range(count)]
            _wait(lambda: any(_try(slot, fcntl.LOCK_EX) for slot in slots), cancelled)
        yield


def _open(path: Path, stack: ExitStack) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, fd)
    return fd


def _try(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(attempt: Callable[[], bool], cancelled: Callable[[], bool]) -> None:
    while not attempt():
        if cancelled():
            raise PathcastError("interrupted", "interrupted while waiting for a turn", None, Exit.INTERRUPTED)
        time.sleep(_POLL_S)
