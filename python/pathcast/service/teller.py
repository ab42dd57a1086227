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
from typing import Any

from pathcast.errors import usage

# a program that has not ended by then is ended [s]; so many at once; how long the end of the watch waits for them [s]
_PATIENCE_S, _MOST, _END_S = 60.0, 8, 20.0


def program(command: str) -> list[str]:
    """Its words, as a shell splits them; no shell runs them. Raises PathcastError (exit 2)."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise usage(f"--alert-run `{command}`: {str(error).lower()}") from None
    if not words or shutil.which(words[0]) is None:
        raise usage(f"--alert-run `{command}`: there is no such program", "name one that can be run, with its options")
    return words


class Teller:
    """words: of the program. name: what it is called. say: hears what goes wrong."""

    def __init__(self, words: Sequence[str], name: str, say: Callable[[str], object]) -> None:
        self.words, self.name, self.say = list(words), name, say
        self._running: list[tuple[subprocess.Popen[bytes], float]] = []

    def tell(self, document: Mapping[str, Any]) -> None:
        """Starts it; what comes of it `look` finds."""
        self.look()
        if len(self._running) >= _MOST:
            self.say(f"{self.name}: {_MOST} of it are running still; it is not told of this alert")
            return
        with tempfile.TemporaryFile() as text:
            text.write(json.dumps(document).encode() + b"\n")
            text.seek(0)
            try:
                made = subprocess.Popen(self.words, stdin=text, stdout=subprocess.DEVNULL, start_new_session=True)
            except OSError as error:
                self.say(f"cannot start {self.name}: {error.strerror}")
                return
        self._running.append((made, time.monotonic() + _PATIENCE_S))

    def look(self) -> None:
        """Takes note of those that have ended, and ends those that do not."""
        left = []
        for one, until_s in self._running:
            status = one.poll()
            if status is None and time.monotonic() > until_s:
                _end(one)
                self.say(f"{self.name} did not end in {_PATIENCE_S:.0f} s, and was ended")
            elif status is None:
                left.append((one, until_s))
            elif status:
                self.say(f"{self.name} ended with status {status}")
        self._running = left

    def close(self) -> None:
        """Waits a moment for those that run."""
        until_s = time.monotonic() + _END_S
        for one, _ in self._running:
            try:
                one.wait(max(0.0, until_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                _end(one)
        self._running = []


def _end(one: subprocess.Popen[bytes]) -> None:
    """It and what it has started: it leads a session of its own."""
    import os

    os.killpg(one.pid, signal.SIGKILL)
    one.wait()
