"""Looks at what a held controller does, again and again, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError

if TYPE_CHECKING:
    from pathcast.runtime.daemon import Daemon


class Watch:
    """Calls `see(time, flows)` every `every_s` seconds while the `with` lasts.

    time: of the monotonic clock, just before it was asked [s]; flows: the live ones, as `control show --json` has them.
    """

    def __init__(self, part: Daemon, every_s: float, see: Callable[[float, list[dict[str, Any]]], None]) -> None:
        self._part, self._every_s, self._see = part, every_s, see
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(self._every_s):
            now = time.monotonic()
            try:
                self._see(now, self._part.ask("flows")["flows"])
            except PathcastError:
                return  # unloaded by somebody else
