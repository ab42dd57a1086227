"""The signals that end a command: raised once, in the main thread, wherever that is.

Python runs a signal's handler between two instructions of the main thread. A signal that comes just before a system
call that blocks, or that the system gives to another thread, is only noted, and that call goes on, be it for ever: a
pause, a read, the wait for a child. So every signal also wakes a thread, through a pipe, which sends it to the main
thread again until its handler has run.

What a handler raises within a destructor, or within a callback of a weak reference as the import of a module has them,
Python only reports, and goes on; then the signal is sent once more. So it is where C code, such as the import of an
extension, has dropped it without a word: for a second nobody is on the way out.

Before the command has begun a signal is noted, to be raised where it can be told. What comes within a second after one
that was raised is passed over, so that what was made is removed; what comes later, or after the command, ends the
process at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.05
_IMPATIENT_S = 1.0
_END = b"\0"  # no signal has this number
_BEFORE, _WITHIN, _AFTER = range(3)


class Terminated(BaseException):
    """A SIGTERM or SIGHUP, raised in the main thread so that everything made is removed."""

    def __init__(self, number: int) -> None:
        self.number = number


class Signals:
    """The handlers of a process; made, entered and left in its main thread. Ignored signals (nohup) stay so."""

    def __init__(self) -> None:
        self._noted: int | None = None
        self._raised_at: float | None = None
        self._stage = _BEFORE
        self._main = threading.get_ident()
        self._before = {n: signal.getsignal(n) for n in NUMBERS if signal.getsignal(n) is not signal.SIG_IGN}

    def __enter__(self) -> Signals:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._fd_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._hook_before, sys.unraisablehook = sys.unraisablehook, self._unraised
        for number in self._before:
            signal.signal(number, self._handle)
        self._reminder = threading.Thread(target=self._remind, name="signals", daemon=True)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)  # they are for other threads
        self._reminder.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook_before
        signal.set_wakeup_fd(self._fd_before)
        os.write(self._writer, _END)
        self._reminder.join()
        os.close(self._reader)
        os.close(self._writer)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """The command: here they are raised, as KeyboardInterrupt or Terminated."""
        self._stage = _WITHIN
        try:
            if self._noted is not None:
                self._raise(self._noted)
            yield
        finally:
            self._stage = _AFTER

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._raised_at is not None and time.monotonic() < self._raised_at + _IMPATIENT_S:
            return
        if self._stage == _BEFORE:
            self._noted = number
        elif self._stage == _WITHIN and self._raised_at is None:
            self._raise(number)
        else:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def _raise(self, number: int) -> None:
        self._raised_at = time.monotonic()
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    def _unraised(self, lost: sys.UnraisableHookArgs) -> None:
        """What no caller hears of."""
        if self._stage != _WITHIN or not isinstance(lost.exc_value, KeyboardInterrupt | Terminated):
            self._hook_before(lost)
            return
        number = lost.exc_value.number if isinstance(lost.exc_value, Terminated) else signal.SIGINT
        self._raised_at = None
        os.write(self._writer, bytes([number]))

    def _remind(self) -> None:
        while (number := os.read(self._reader, 1)) != _END:
            while number[0] in self._before:
                time.sleep(_AGAIN_S)
                if self._noted is not None or (self._raised_at is not None and not self._is_lost()):
                    break
                signal.pthread_kill(self._main, number[0])

    def _is_lost(self) -> bool:
        """What was raised has not left the command, and nothing handles it; then it is as if it had not been raised."""
        unseen_s = 0.0
        while unseen_s < _IMPATIENT_S:
            if self._stage != _WITHIN or self._raised_at is None:
                return False
            unseen_s = 0.0 if self._is_handled() else unseen_s + _AGAIN_S
            time.sleep(_AGAIN_S)
        self._raised_at = None
        return True

    def _is_handled(self) -> bool:
        """The main thread is in an `except`, a `finally` or an `__exit__` that it has led to."""
        found: Any = sys._current_exceptions().get(self._main)
        error = found[1] if isinstance(found, tuple) else found  # a tuple before Python 3.12
        while error is not None and not isinstance(error, KeyboardInterrupt | Terminated):
            error = error.__context__
        return error is not None


def hand_over() -> None:
    """Before another program takes this process's place: what was noted is raised, what comes later ends it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
