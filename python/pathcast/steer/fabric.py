"""How a network of switches carries transfers and probes: its controller is told of every flow, and counts it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from pathcast.errors import PathcastError
from pathcast.steer.client import Client
from pathcast.steer.rules import Flow

# switches count late: Open vSwitch by half a second; so long a count must stand, and is waited for at most
STANDS_S = 0.8
PATIENCE_S = 3.0
_LOOK_S = 0.1


@dataclass(frozen=True)
class SwitchCount:
    """What the entries of an OpenFlow switch for this measurement's packets have counted; bytes are those of frames."""

    switch: str
    out_packets: int = 0
    out_bytes: int = 0
    in_packets: int = 0
    in_bytes: int = 0

    def plus(self, other: SwitchCount) -> SwitchCount:
        """Of the same switch."""
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "switch"}
        return SwitchCount(self.switch, **sums)


class Fabric:
    """What `_native.Client` and `_native.Launch` tell of their flows, each before its first packet leaves.

    passes: whether a flow is none of the controller's, which then is not told; and what the controller calls a path.
    """

    def __init__(
        self,
        controller: Client,
        passes: Callable[[Flow], bool] = lambda _: False,
        called: Callable[[str], str] = lambda path: path,
    ) -> None:
        self._controller, self._passes, self._called = controller, passes, called
        self._counts: Counts | None = None

    @contextmanager
    def counting(self) -> Iterator[Counts]:
        """What is begun in the block is counted: when the first flow ends, what the switches have counted of all."""
        self._counts = counts = Counts(self._controller, self._called)
        try:
            yield counts
        finally:
            self._counts = None

    def begin(self, flow: tuple[str, str, int, str, int], path: str) -> None:
        """Returns when every switch on the path has the flow. Raises PathcastError where one says no."""
        one, wanted = _flow(*flow), self._called(path)
        if self._passes(one):
            return
        taken = self._controller.begin({one: wanted})[one]
        if taken != wanted:
            self._controller.end([one])
            raise PathcastError("switch", f"path `{path}` is down; the switches would take `{taken}`")
        if self._counts is not None:
            self._counts.flows[one] = path

    def end(self, flow: tuple[str, str, int, str, int]) -> None:
        """The flow is over."""
        if self._counts is not None:
            self._counts.take()
        one = _flow(*flow)
        if not self._passes(one):
            self._controller.end([one])


class Counts:
    """What switches have counted of flows. by_path: along each path, from this end on; notes: what is to be known."""

    def __init__(self, controller: Client, called: Callable[[str], str]) -> None:
        self._controller, self._called = controller, called
        self._taken = False
        self.flows: dict[Flow, str] = {}
        self.by_path: dict[str, tuple[SwitchCount, ...]] = {}
        self.notes: list[str] = []

    def take(self) -> None:
        """Waits until the switches have counted what was sent, and reads it; once."""
        if self._taken or not self.flows:
            return
        self._taken = True
        try:
            self._add(self._settled())
        except PathcastError as error:
            self.notes.append(f"what the switches have counted is not known: {error}")

    def _settled(self) -> dict[Flow, dict[str, Any]]:
        begun = since = time.monotonic()
        before = self._read()
        while (now := time.monotonic()) - since < STANDS_S and now - begun < PATIENCE_S:
            time.sleep(_LOOK_S)
            if (found := self._read()) != before:
                before, since = found, time.monotonic()
        return before

    def _read(self) -> dict[Flow, dict[str, Any]]:
        told = self._controller.counters()["flows"]
        found = {_flow(*(one[key] for key in _KEYS)): one for one in told}
        return {flow: found[flow] for flow in self.flows if flow in found}

    def _add(self, found: Mapping[Flow, Mapping[str, Any]]) -> None:
        for flow, one in found.items():
            path, sums = self.flows[flow], {}
            if one["path"] != self._called(path):
                self.notes.append(f"path `{path}` went down meanwhile: its packets went over `{one['path'] or 'none'}`")
            for told in one["switches"]:
                sums[told["switch"]] = SwitchCount(**told)
            for old in self.by_path.get(path, ()):
                sums[old.switch] = sums[old.switch].plus(old) if old.switch in sums else old
            self.by_path[path] = tuple(sums.values())
        self.notes = list(dict.fromkeys(self.notes))


_KEYS = ("protocol", "local", "local_port", "remote", "remote_port")


def _flow(protocol: str, local: str, local_port: int, remote: str, remote_port: int) -> Flow:
    return Flow(local, remote, local_port, remote_port, protocol)
