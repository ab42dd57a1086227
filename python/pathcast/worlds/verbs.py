"""The transfer verbs that all worlds share: one far end, its paths, a client to it, over real sockets or simulated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pathcast.errors import Exit, PathcastError, usage
from pathcast.interruptible import interruptible
from pathcast.worlds.results import Path, Transfer

if TYPE_CHECKING:
    from pathcast import _native
    from pathcast.control.kernel import Controls

# what a report of progress is called with: bytes acknowledged so far
Progress = Callable[[int], None]


class Verbs:
    """`tcp_probe`, `mptcp_probe`, `transfer` over the paths of `self.paths`, through the session of `self._client`.

    real_time: whether the world's clock is the machine's, so that others' load on the machine can be felt in it.
    _controls: of worlds with a real kernel, what brings controllers into it.
    """

    paths: tuple[Path, ...]
    _client: _native.Client | _native.World
    _controls: Controls | None = None
    cancelled = False
    real_time = True

    def fresh(self, index: int) -> None:
        """Begins again with a network for the work of that index, where worlds can. A real one stays as it is."""

    def wait(self, time_s: float) -> None:
        """Lets the world's time pass."""
        time.sleep(time_s)

    def cancel(self) -> None:
        """Ends the transfers that other threads are in, and refuses further ones: for an interrupted command."""
        self.cancelled = True

    def path(self, name: str) -> Path:
        """The path of that name; refuses others with the names that exist."""
        for path in self.paths:
            if path.name == name:
                return path
        raise usage(f"there is no path `{name}`; allowed: {', '.join(p.name for p in self.paths)}")

    def tcp_probe(
        self, path: str, bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        """A plain TCP transfer bound to one path, small or large."""
        pair = self.path(path).pair()
        name = self._kernel_name(control)
        return self._run(lambda job: self._client.tcp(job, json.dumps(pair), bytes, name), [path], progress)

    def mptcp_probe(
        self, paths: Sequence[str], bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        """A small Multipath TCP transfer; the same as `transfer`."""
        return self.transfer(paths, bytes, control, progress)

    def transfer(
        self, paths: Sequence[str], bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        """A Multipath TCP transfer over all of `paths`, the first of which carries the first subflow.

        A path that is named again gets a further subflow from another of its client addresses.
        """
        if not paths:
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
        call = lambda job: self._client.mptcp(job, json.dumps(pairs), bytes, kernel_name)  # noqa: E731
        return self._run(call, list(paths), progress)

    def _kernel_name(self, control: str | None) -> str | None:
        """What the world's TCP calls a controller."""
        return control if self._controls is None else self._controls.kernel_name(control)

    def _run(self, call: Callable[[Any], str], paths: list[str], progress: Progress | None) -> Transfer:
        """Runs a native transfer in a thread, so that this one can report progress and be interrupted."""
        from pathcast import _native

        if self.cancelled:
            raise PathcastError("interrupted", "interrupted", None, Exit.INTERRUPTED)
        job = _native.Job()

        def work() -> Transfer:
            started = time.monotonic()
            document = json.loads(call(job))
            return Transfer.read(paths, {**document, "wall_s": time.monotonic() - started})

        def meanwhile() -> None:
            if self.cancelled:
                job.cancel()
            if progress is not None:
                progress(job.acked())

        result = interruptible(work, job.cancel, meanwhile)
        if self._controls is not None:
            return replace(result, control=self._controls.name(result.control))
        return result
