"""The verbs that all worlds share: one far end, its paths, a client to it, over real sockets or simulated."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pathcast.control.kernel import available
from pathcast.errors import Exit, PathcastError, usage
from pathcast.interruptible import PATIENCE_S, interruptible
from pathcast.worlds import arguments
from pathcast.worlds.ends import Ends, of_host
from pathcast.worlds.gone import checked
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.results import Path, Transfer, Verdict
from pathcast.worlds.world import Progress, T

if TYPE_CHECKING:
    from pathcast import _native
    from pathcast.control.kernel import Controls
    from pathcast.steer.fabric import Fabric


class Verbs:
    """`tcp_probe`, `mptcp_probe`, `transfer` over the paths of `self.paths`, through the session of `self._client`.

    real_time: whether the world's clock is the machine's, so that others' load on the machine can be felt in it.
    _controls: of worlds with a real kernel, what brings controllers into it. _fabric: of those with switches.
    _patience_s: how long who interrupts work waits for its end.
    """

    paths: tuple[Path, ...]
    _client: _native.Client | _native.World
    _controls: Controls | None = None
    _fabric: Fabric | None = None
    _patience_s = PATIENCE_S
    cancelled = False
    real_time = True

    def fresh(self, index: int) -> None:
        """Begins again with a network for the work of that index, where worlds can. A real one stays as it is."""
        arguments.whole("index", index)

    def wait(self, time_s: float) -> None:
        """Lets the world's time pass."""
        time.sleep(time_s)

    @contextmanager
    def judged(self) -> Iterator[Verdict]:
        """Judges whether the world kept its time during the block: always, but in an emulated network."""
        yield Verdict()

    def turn(self, alone: bool = False) -> AbstractContextManager[None]:
        """A turn on the machine, or all of it, where others' work on it can make the world late."""
        return nullcontext()

    def again(self, work: Callable[[], T], good: Callable[[T], bool] = lambda _: True) -> tuple[T, int]:
        """What `work` returned, and how often it was called: once, but in an emulated network (late.py)."""
        return work(), 1

    def cancel(self) -> None:
        """Ends the transfers that other threads are in, and refuses further ones: for an interrupted command."""
        self.cancelled = True

    def silent(self, paths: Sequence[str] | None = None) -> dict[str, str]:
        """Of all paths, or the named ones, those over which the far end does not answer now, and why."""
        return {}

    @property
    def idle(self) -> dict[str, str | None]:
        """Sentences of lines of this host that have no path because they are down, with the names that they have."""
        return {}

    @property
    def controls(self) -> tuple[str, ...]:
        """The controllers of the register, or of the same name, that its TCP has, or can be given by this process."""
        return available()

    @property
    def ends(self) -> Ends:
        """How TCP at its ends behaves."""
        return of_host()

    def path(self, name: str) -> Path:
        """The path of that name; refuses others with the names that exist."""
        for path in self.paths:
            if name == path.name or name in path.also:
                return path
        raise usage(f"there is no path `{name}`; allowed: {', '.join(p.name for p in self.paths)}")

    def tcp_probe(
        self, path: str, bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        """A plain TCP transfer bound to one path, small or large."""
        bytes = arguments.size(bytes)
        pair = self.path(path).pair()
        name = self._kernel_name(control)
        return self._run(lambda job: self._client.tcp(job, json.dumps(pair), bytes, name), [path], progress)

    def mptcp_probe(
        self, paths: Sequence[str], bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        """A small Multipath TCP transfer; the same as `transfer`."""
        return self.transfer(paths, bytes, control, progress)

    def transfer(
        self,
        paths: Sequence[str],
        bytes: int,
        control: str | None = None,
        progress: Progress | None = None,
        plain: bool = False,
    ) -> Transfer:
        """A Multipath TCP transfer over all of `paths`, the first of which carries the first subflow.

        What each of several subflows is given follows pathcast's rule, never slower than over the best path
        (experiments/sending); plain: it is the kernel's own choice.

        A path that is named again gets a further subflow from another of its client addresses.
        """
        bytes = arguments.size(bytes)
        if not arguments.names(paths):
            raise usage("no path was named")
        seen: dict[str, int] = {}
        pairs = []
        for name in paths:
            path, n = self.path(name), seen.get(name, 0)
            if n >= len(path.local):
                raise usage(f"path `{name}` has {len(path.local)} client addresses, {n + 1} were asked for")
            seen[name] = n + 1
            pairs.append(path.pair(n))
        kernel_name = self._kernel_name(control)
        call = lambda job: self._client.mptcp(job, json.dumps(pairs), bytes, kernel_name, plain)  # noqa: E731
        return self._run(call, list(paths), progress)

    def measure(
        self,
        paths: Sequence[str] | None = None,
        request: Request | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Measurement:
        """One-way delay, available bandwidth and capacity of paths, all or the named ones, in the directions asked for.

        progress: called with the phase, the steps done and how many there are (0: unknown).
        Raises exit 4 where the far end's limits refuse it, exit 1 where it goes meanwhile. What converged to nothing
        has no value, but a reason.
        """
        request = request or Request()
        named = [path.name for path in self.paths] if paths is None else arguments.names(paths)
        names = [self.path(name).name for name in named]
        if len(set(names)) < len(names):
            raise usage(f"paths {', '.join(names)}: name each once")
        pairs = [self.path(name).pair() for name in names]
        if not pairs:
            raise usage("no path was named")
        wanted = {"paths": pairs, **request.document()}
        wanted["seed"] = self._probing_seed() if request.seed is None else request.seed

        def poll(job: _native.Job) -> None:
            if progress is not None and (phase := job.phase()) is not None:
                progress(*phase)

        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with nullcontext() if self._fabric is None else self._fabric.counting() as counts:
            document, _ = self._work(lambda job: self._client.measure(job, json.dumps(wanted)), poll)
        found = Measurement.read(
            pairs, {**document, "effort": request.effort, "measured_at": at if self.real_time else None}
        )
        found = found if counts is None else found.counted(counts.by_path, counts.notes)
        return checked(found, self)

    def _probing_seed(self) -> int:
        """Of a measurement's random gaps, where the request names none."""
        return secrets.randbits(63)

    def _kernel_name(self, control: str | None) -> str | None:
        """What the world's TCP calls a controller."""
        return control if self._controls is None else self._controls.kernel_name(control)

    def _run(self, call: Callable[[Any], str], paths: list[str], progress: Progress | None) -> Transfer:
        def poll(job: _native.Job) -> None:
            if progress is not None:
                progress(job.acked())

        document, wall_s = self._work(call, poll)
        transfer = Transfer.read(paths, {**document, "wall_s": wall_s})
        return transfer if self._controls is None else replace(transfer, control=self._controls.name(transfer.control))

    def _work(self, call: Callable[[Any], str], poll: Callable[[Any], None]) -> tuple[dict[str, Any], float]:
        """Runs native work in a thread, so that this one can report progress and be interrupted: its document, and how
        long it took on the machine's clock [s]."""

        def timed(job: Any) -> tuple[dict[str, Any], float]:
            started = time.monotonic()
            document = json.loads(call(job))
            return document, time.monotonic() - started

        return self._native_work(timed, poll)

    def _native_work(self, call: Callable[[Any], T], poll: Callable[[Any], None] = lambda job: None) -> T:
        """The same of any call."""
        from pathcast import _native

        if self.cancelled:
            raise PathcastError("interrupted", "interrupted", None, Exit.INTERRUPTED)
        job = _native.Job()

        def meanwhile() -> None:
            if self.cancelled:
                job.cancel()
            poll(job)

        return interruptible(lambda: call(job), job.cancel, meanwhile, self._patience_s)
