"""The program that hears of alerts: started for each, which it reads as JSON from its standard input."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pathcast.errors import usage

# a program that has not ended by then is ended [s]; so many at once; how long the end of the watch waits for them [s]
_PATIENCE_S, _MOST, _END_S = 60.0, 8, 20.0
# so many alerts wait for it at most; one that it does not take is told again for so long, after pauses from this to
# that [s]
_MOST_WAITING, _AGAIN_S, _PAUSE_S, _LONGEST_PAUSE_S = 1000, 3600.0, 30.0, 600.0
# how soon an end is seen at the end [s]
_LOOK_S = 0.1


def program(command: str) -> list[str]:
    """Its words, as a shell splits them; no shell runs them. Raises PathcastError (exit 2)."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise usage(f"--alert-run `{command}`: {str(error).lower()}") from None
    if not words or shutil.which(words[0]) is None:
        raise usage(f"--alert-run `{command}`: there is no such program", "name one that can be run, with its options")
    return words


@dataclass
class _Alert:
    """One that is still to be told: not before that [s], nor after; pause_s: to the next time."""

    text: bytes
    not_before_s: float
    until_s: float
    pause_s: float = _PAUSE_S


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    until_s: float
    alert: _Alert


class Teller:
    """words: of the program. name: what it is called. say: hears what goes wrong. again: an alert that it does not take
    it is told again, with growing pauses, for an hour; so of a program that does nothing else."""

    def __init__(self, words: Sequence[str], name: str, say: Callable[[str], object], again: bool = False) -> None:
        self.words, self.name, self.say, self.again = list(words), name, say, again
        self._running: list[_Running] = []
        self._waiting: list[_Alert] = []

    def tell(self, document: Mapping[str, Any]) -> None:
        """Starts it, now or when others have ended; what comes of it `look` finds."""
        now_s = _now_s()
        if len(self._waiting) >= _MOST_WAITING:
            del self._waiting[0]
            self.say(f"{self.name}: {_MOST_WAITING} alerts wait for it; it is not told of the oldest")
        self._waiting.append(_Alert(json.dumps(document).encode() + b"\n", now_s, now_s + _AGAIN_S))
        self.look()

    def look(self) -> None:
        """Takes note of those that have ended, ends those that do not, and starts what waits."""
        now_s, running, self._running = _now_s(), self._running, []
        for one in running:
            status = one.process.poll()
            if status is None and now_s <= one.until_s:
                self._running.append(one)
            elif status is None:
                _end(one.process)
                self._failed(one.alert, f"{self.name} did not end in {_PATIENCE_S:.0f} s, and was ended")
            elif status:
                self._failed(one.alert, f"{self.name} ended with status {status}")
        for alert in [one for one in self._waiting if one.not_before_s <= now_s][: _MOST - len(self._running)]:
            self._waiting.remove(alert)
            self._start(alert, now_s)

    def _start(self, alert: _Alert, now_s: float) -> None:
        try:
            with tempfile.TemporaryFile() as text:
                text.write(alert.text)
                text.seek(0)
                made = subprocess.Popen(self.words, stdin=text, stdout=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            self._failed(alert, f"cannot start {self.name}: {error.strerror}")
            return
        self._running.append(_Running(made, now_s + _PATIENCE_S, alert))

    def _failed(self, alert: _Alert, why: str) -> None:
        first, at_s = alert.pause_s == _PAUSE_S, _now_s() + alert.pause_s
        if not self.again:
            self.say(why)
        elif at_s > alert.until_s:
            self.say(f"{self.name}: an alert was not taken within an hour")
        else:
            if first:
                self.say(f"{why}; it is tried again for an hour")
            alert.not_before_s, alert.pause_s = at_s, min(2 * alert.pause_s, _LONGEST_PAUSE_S)
            self._waiting.append(alert)

    def close(self) -> None:
        """Waits a moment for those that run and are to run now."""
        until_s = time.monotonic() + _END_S
        self.look()
        while (self._running or self._due()) and (left_s := until_s - time.monotonic()) > 0:
            if self._running:
                with suppress(subprocess.TimeoutExpired):
                    self._running[0].process.wait(min(_LOOK_S, left_s))
            self.look()
        for one in self._running:
            _end(one.process)
        if lost := len(self._waiting) + len(self._running):
            self.say(f"{self.name}: {lost} alerts were not taken by the end")
        self._running, self._waiting = [], []

    def _due(self) -> bool:
        return any(one.not_before_s <= _now_s() for one in self._waiting)


def _now_s() -> float:
    return time.monotonic()


def _end(one: subprocess.Popen[bytes]) -> None:
    """It and what it has started: it leads a session of its own."""
    import os

    os.killpg(one.pid, signal.SIGKILL)
    one.wait()
