"""`pathcast measure --repeat`: rounds that begin at their times, and go on whatever is away for a while: a round that
could not be is a gap with its reason."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pathcast.cli.measuretable import show, took
from pathcast.cli.output import brief, print_line
from pathcast.errors import BUSY, Exit, PathcastError
from pathcast.units import seconds, span
from pathcast.units import size as written
from pathcast.worlds.late import measured

if TYPE_CHECKING:
    from pathcast.worlds.measurement import Measurement, Request

# what a far end that is not there yet looks like: it may be there in the next round, as one that is full (`BUSY`) may
# have room. Later nothing but the user ends it
_PASSES = (Exit.RUNTIME, Exit.UNTRUSTWORTHY)
_DAY_S = 86_400


class Series:
    """Rounds against one target. make: opens a session with it; version: of the documents; listen: what hears
    of a round's progress."""

    def __init__(
        self,
        name: str,
        make: Callable[[], AbstractContextManager[Any]],
        only: tuple[str, ...] | None,
        request: Request,
        every_s: float,
        jsonl: bool,
        version: int,
        listen: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self.name, self.make, self.only, self.request = name, make, only, request
        self.every_s, self.jsonl, self.version, self.listen = every_s, jsonl, version, listen
        self.rounds = self.bytes = 0
        self._gap: tuple[float, int, str] | None = None

    def run(self, count: int | None) -> PathcastError | None:
        """Until so many rounds are done or it is interrupted. The last round's error, if it has one; raises at the
        beginning what no later round would mend."""
        begun, clock = time.monotonic(), time.monotonic
        with ExitStack() as stack:
            network: Any = None
            while True:
                error: PathcastError | None = None
                try:
                    if network is None:
                        network = stack.enter_context(self.make())
                        if not network.real_time:  # how fast the machine is changes nothing
                            begun, clock = network.now(), network.now
                        self._before(network)
                    with self.listen() as progress:
                        found = measured(network, self.only, self.request, progress)
                except (PathcastError, OSError) as failed:
                    error = _known(failed)
                    passes = error.exit in _PASSES or error.code in BUSY
                    if error.exit == Exit.INTERRUPTED or (self.bytes == 0 and not passes):
                        raise
                    self._away(error)
                    if network is None or network.real_time:
                        # the session may be a dead one
                        stack.close()
                        network = None
                else:
                    error = found.untrustworthy
                    self._show(network.world, found)
                self.rounds += 1
                if self.rounds == count:
                    return error
                # the next beginning is not moved by how long this round took, unless that was longer
                behind = clock() - begun
                pause = (int(behind / self.every_s) + 1) * self.every_s - behind
                (time.sleep if network is None else network.wait)(pause)

    def _before(self, network: Any) -> None:
        from pathcast.worlds.cost import cost

        if self.rounds == 0:
            paths = len(self.only or network.paths)
            print(f"cost: {cost(self.request, paths, self.every_s)}", file=sys.stderr)

    def _show(self, world: str, found: Measurement) -> None:
        self.bytes += found.probe_bytes
        if self._gap is not None:
            since, rounds, reason = self._gap
            gone = f"{span(time.monotonic() - since)} without a measurement, {rounds} rounds: {reason}"
            print(f"{now()} the far end answers again after {gone}", file=sys.stderr)
            self._gap = None
        if self.jsonl:
            document = {"target": self.name, "world": world, **found.document()}
            print_line("measure", {"time_s": time.time(), **document}, self.version)
        else:
            show(self.name, found, now())
        for sentence in brief(found.missing):
            print(f"{now()} {sentence}", file=sys.stderr)
        for note in brief(found.notes):
            print(f"note: {note}", file=sys.stderr)
        mean = self.bytes / (self.rounds + 1)
        print(
            f"{now()} round {self.rounds + 1}: {written(found.probe_bytes)} in {took(found)}; "
            f"{written(self.bytes)} in all, {written(mean * _DAY_S / self.every_s)} a day",
            file=sys.stderr,
        )

    def _away(self, failed: PathcastError) -> None:
        since, rounds, _ = self._gap or (time.monotonic(), 0, "")
        self._gap = since, rounds + 1, failed.message
        if self.jsonl:
            about = {"code": failed.code, "message": failed.message, "hint": failed.hint, "exit": int(failed.exit)}
            print_line("measure", {"time_s": time.time(), "target": self.name, "error": about}, self.version)
        again = f"it is tried again every {seconds(self.every_s)}"
        print(f"{now()} round {self.rounds + 1}: {failed.message}; {again}", file=sys.stderr)


def _known(failed: PathcastError | OSError) -> PathcastError:
    if isinstance(failed, PathcastError):
        return failed
    return PathcastError("system", failed.strerror or str(failed))  # no descriptors, no memory, no route to a resolver


def now() -> str:
    """The local time, with its zone."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
