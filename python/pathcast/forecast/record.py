"""A world that is recorded: what its verbs return goes into the history, with its circumstances, whoever calls them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from threading import Lock
from typing import TYPE_CHECKING, Any

from pathcast.errors import Exit, PathcastError
from pathcast.history.identity import PathKey
from pathcast.history.journal import Journal
from pathcast.history.place import Place
from pathcast.history.rows import Act, Origin
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.results import Path, Transfer, Verdict
from pathcast.worlds.world import Progress, T, World

if TYPE_CHECKING:
    from pathcast.forecast.past import Earlier, Past
    from pathcast.history.read import Reader

# what it costs to have tried in vain is worth knowing; wrong words of the user are not
_NOTED = (Exit.RUNTIME, Exit.UNTRUSTWORTHY)
# who measures for ever is asked for no older ones
_NEWEST = 100


@dataclass
class Recorder:
    """Keeps acts of one command. A history that cannot be kept is said once until it can be again, and never is the
    command's failure.

    measured: the keys of the newest measurements. keys: of the paths of the last world, by their names.
    """

    place: Place
    command: str
    target: str | None = None
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], object] = lambda text: print(f"pathcast: {text}", file=sys.stderr)
    measured: list[str] = field(default_factory=list)
    keys: Mapping[str, PathKey] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)
    # of what was said what passes with the next act that is stored
    _passing: set[str] = field(default_factory=set)
    _saying: Lock = field(default_factory=Lock)

    @cached_property
    def journal(self) -> Journal:
        """The history."""
        return Journal(self.place)

    def act(self, world: str, more: Mapping[str, Any] | None = None, ago_s: float = 0.0) -> Act:
        """An act that began so long ago, with the circumstances of the machine."""
        about = {"pathcast": version("pathcast"), **_machine(), **self.circumstances, **(more or {})}
        return self.journal.act(Origin(world, self.target, self.command, about), ago_s)

    def keep(self, act: Act, soon: bool = True) -> None:
        """Keeps it, or says why not. soon: False: it may wait in the spool for the next act."""
        try:
            if not soon:
                self.journal.put_by(act)
            elif self.journal.add(act):
                self._passed()
            elif why := self.journal.trouble:
                hint = f" ({why.hint})" if why.hint and why.code != "history-away" else ""
                there = f"what comes is kept in {self.place.spool} and sent when it can be"
                self._once(f"{why.message}{hint}; {there}", passes=True)
        except PathcastError as error:
            # what is no row now is none later
            self._once(f"not recorded: {error.message}", passes=error.code != "history-rows")
        except Exception as error:  # whatever it is, what was measured is still to be shown
            self._once(f"not recorded: {type(error).__name__}: {error}")

    def failed(
        self, act: Act, error: PathcastError, key: PathKey | None = None, paths: Sequence[str] = (), soon: bool = True
    ) -> None:
        """Keeps what came to nothing as an event; not where the user's words were wrong. soon: as in `keep`."""
        if error.exit in _NOTED:
            act.event("failed", error.message, key, about={"code": error.code, "paths": list(paths)})
            self.keep(act, soon)

    def attempt(self, work: Callable[[], object]) -> None:
        """Does what is to be recorded; a fault of it is said, and is not the command's."""
        try:
            work()
        except Exception as error:
            self._once(f"not recorded: {type(error).__name__}: {error}")

    def past(self, keys: Mapping[str, PathKey], direction: str = "out", only: Collection[str] | None = None) -> Past:
        """What the history holds of these paths, or `only` of some of all; where it cannot be read that is said, and it
        is nothing."""
        from pathcast.forecast.past import Past, recall

        return self._read(lambda reader: recall(reader, keys, direction, only), Past())

    def lately(self, keys: Mapping[str, PathKey], newer_than_s: float, apart_s: float) -> Mapping[str, list[Earlier]]:
        """How these paths were measured in a time, as of `past.lately`; where it cannot be read that is said."""
        from pathcast.forecast.past import lately

        return self._read(lambda reader: lately(reader, keys, newer_than_s, apart_s), {})

    def _read(self, look: Callable[[Reader], T], nothing: T) -> T:
        from pathcast.history.read import Reader

        try:
            reader = Reader(self.journal.store)
            # one transaction for all of it
            with reader.store.asking() if reader.store.exists else nullcontext():
                return look(reader)
        except PathcastError as error:
            self._once(f"not read: {error.message}")
            return nothing

    def forecast(
        self, world: str, document: Mapping[str, Any], keys: Mapping[str, PathKey], direction: str = "out"
    ) -> str:
        """Keeps a forecast made from what was measured: its key. keys: of all paths that it speaks of, by name."""
        act = self.act(world)
        answer = {name: value for name, value in document.items() if name != "measured"}
        act.forecast(answer, keys, document["size_bytes"], direction, self.measured)
        self.keep(act)
        return act.id

    def close(self) -> None:
        """Ends the history's connections."""
        if "journal" in self.__dict__:
            self.journal.close()

    def _once(self, text: str, passes: bool = False) -> None:
        """passes: it is said again where it comes again after an act that was stored."""
        with self._saying, suppress(OSError):
            if passes:
                self._passing.add(text)
            if text not in self._said:
                self._said.add(text)
                self.say(text)

    def _passed(self) -> None:
        with self._saying, suppress(OSError):
            if self._passing:
                self._said -= self._passing
                self._passing.clear()
                self.say(f"recorded again in {self.place.shown}")


class Recorded:
    """A world whose measurements and transfers are recorded; all else is the world's own."""

    def __init__(self, of: World, recorder: Recorder, keys: Callable[[Any], Mapping[str, PathKey]]) -> None:
        self._of, self._recorder, self._keys = of, recorder, keys
        self._known: Mapping[str, PathKey] = {}
        # of each path that is away why, as it was told last
        self._away: dict[str, str] = {}
        # acts of a block that is still to be judged
        self._judging: list[tuple[Act, Callable[[bool], None]]] | None = None
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    @property
    def keys(self) -> Mapping[str, PathKey]:
        """What the history knows the paths by, by their names. Paths may come while a session lasts, and get other
        addresses."""
        if any(self._new(path) for path in self._of.paths):
            self._known = self._recorder.keys = {**self._known, **self._keys(self._of)}
        return self._known

    def _new(self, path: Path) -> bool:
        key = self._known.get(path.name)
        return key is None or (key.local, key.remote) != (path.local[0], path.remote)

    @property
    def world(self) -> str:
        return self._of.world

    @property
    def real_time(self) -> bool:
        return self._of.real_time

    @property
    def paths(self) -> tuple[Path, ...]:
        return self._of.paths

    def path(self, name: str) -> Path:
        return self._of.path(name)

    def fresh(self, index: int) -> None:
        self._of.fresh(index)

    def wait(self, time_s: float) -> None:
        self._of.wait(time_s)

    def cancel(self) -> None:
        self._of.cancel()

    def turn(self, alone: bool = False) -> AbstractContextManager[None]:
        return self._of.turn(alone)

    def again(self, work: Callable[[], T], good: Callable[[T], bool] = lambda _: True) -> tuple[T, int]:
        return self._of.again(work, good)

    @contextmanager
    def judged(self) -> Iterator[Verdict]:
        """What is recorded in the block waits for its end, and is told whether it was in time."""
        with self._lock:
            mine = self._judging is None
            waiting = self._judging = self._judging if self._judging is not None else []
        verdict: Verdict | None = None
        try:
            with self._of.judged() as verdict:
                yield verdict
        finally:
            if mine:
                with self._lock:
                    self._judging = None
                for act, fill in waiting:
                    fill(verdict is None or verdict.valid)
                    self._recorder.keep(act)

    def tcp_probe(
        self, path: str, bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        return self._sent([path], lambda: self._of.tcp_probe(path, bytes, control, progress))

    def mptcp_probe(
        self, paths: Sequence[str], bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        return self._sent(paths, lambda: self._of.mptcp_probe(paths, bytes, control, progress))

    def transfer(
        self,
        paths: Sequence[str],
        bytes: int,
        control: str | None = None,
        progress: Progress | None = None,
        plain: bool = False,
    ) -> Transfer:
        return self._sent(paths, lambda: self._of.transfer(paths, bytes, control, progress, plain))

    def measure(
        self,
        paths: Sequence[str] | None = None,
        request: Request | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Measurement:
        asked = request or Request()
        wanted = {"request": {**asked.document(), "seed": None}}
        act = self._recorder.act(self.world, wanted)
        found = self._tried(act, paths or (), lambda: self._of.measure(paths, request, progress))

        away = {one.path: one.reason for one in found.away}
        # told once: it is away until it is measured again
        new = {name: why for name, why in away.items() if self._away.get(name) != why}
        self._away = away

        def fill(valid: bool | None) -> None:
            act.measurement(found.document(), self.keys, asked.directions, valid)
            for name, why in new.items():
                # without its line it would be told of every one
                if (key := self.keys.get(name)) is not None:
                    act.event("failed", why, key, about={"code": "away", "paths": [name]})
            self._recorder.measured = [*self._recorder.measured[1 - _NEWEST :], act.id]

        self._keep(act, fill)
        return found

    def _sent(self, paths: Sequence[str], send: Callable[[], Transfer]) -> Transfer:
        act = self._recorder.act(self.world)
        found = self._tried(act, paths, send)

        def fill(valid: bool | None) -> None:
            carried = found.bytes_by_path(found.paths)
            again = [sum(s.bytes_retransmitted for s in found.subflows if s.path == path) for path in found.paths]
            over = [(self.keys[path], path, *of) for path, *of in zip(found.paths, carried, again, strict=True)]
            act.transfer(found.document(), over, valid=valid)  # type: ignore[arg-type]

        self._keep(act, fill)
        return found

    def _tried(self, act: Act, paths: Sequence[str], work: Callable[[], T]) -> T:
        try:
            return work()
        except PathcastError as error:
            called = {word: path.name for path in self._of.paths for word in (path.name, *path.also)}
            own = [called.get(name, name) for name in paths]
            self._recorder.failed(act, error, self.keys.get(own[0]) if len(own) == 1 else None, own)
            raise

    def _keep(self, act: Act, fill: Callable[[bool | None], None]) -> None:
        with self._lock:
            if self._judging is not None:
                self._judging.append((act, fill))
                return
        before = {name: list(rows) for name, rows in act.rows.items()}

        def keep() -> None:
            act.rows = {name: list(rows) for name, rows in before.items()}
            fill(None)
            self._recorder.keep(act)

        try:
            keep()
        except BaseException as error:
            # a signal between: what was measured is recorded all the same, under the same keys
            if not isinstance(error, Exception):
                keep()
            raise


def _machine() -> dict[str, Any]:
    """How the machine is now, as far as it costs nothing."""
    from pathcast.machine import machine

    found = machine()
    return {name: found[name] for name in ("kernel", "processors", "load", "clock")}
