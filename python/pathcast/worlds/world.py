"""What all worlds offer. Whoever measures, forecasts or sends asks for one of these, not for a world by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from pathcast.worlds.ends import Ends
from pathcast.worlds.flows import FlowsResult
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.results import Path, Transfer, Verdict

# what a report of progress is called with: bytes acknowledged so far
Progress = Callable[[int], None]
T = TypeVar("T")


class World(Protocol):
    """The paths between two hosts, and what can be done over them; results are of the same types everywhere."""

    @property
    def world(self) -> str:
        """`sim`, `emu` or `host`."""
        ...

    @property
    def real_time(self) -> bool:
        """Whether its clock is the machine's."""
        ...

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its address pairs."""
        ...

    @property
    def controls(self) -> tuple[str, ...]:
        """The controllers that its TCP has, or can be given by this process."""
        ...

    @property
    def ends(self) -> Ends:
        """How TCP at its ends behaves, as `--set` keys and values of a scenario."""
        ...

    def path(self, name: str) -> Path:
        """The path of that name. Raises exit 2 for others, with the names that exist."""
        ...

    def tcp_probe(
        self, path: str, bytes: int, control: str | None = None, progress: Progress | None = None
    ) -> Transfer:
        """A plain TCP transfer over one path."""
        ...

    def mptcp_probe(
        self,
        paths: Sequence[str],
        bytes: int,
        control: str | None = None,
        progress: Progress | None = None,
    ) -> Transfer:
        """A small Multipath TCP transfer."""
        ...

    def transfer(
        self,
        paths: Sequence[str],
        bytes: int,
        control: str | None = None,
        progress: Progress | None = None,
        plain: bool = False,
    ) -> Transfer:
        """A Multipath TCP transfer, the first subflow over the first path; plain: by the kernel's scheduler alone."""
        ...

    def measure(
        self,
        paths: Sequence[str] | None = None,
        request: Request | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Measurement:
        """One-way delay, available bandwidth and capacity of paths, all or the named ones."""
        ...

    def silent(self, paths: Sequence[str] | None = None) -> dict[str, str]:
        """Of all paths, or the named ones, those over which the far end does not answer now, and why."""
        ...

    @property
    def idle(self) -> dict[str, str | None]:
        """Sentences of lines of this host that have no path because they are down, with the names that they have."""
        ...

    def fresh(self, index: int) -> None:
        """Begins again with a network for the work of that index, where worlds can."""
        ...

    def wait(self, time_s: float) -> None:
        """Lets the world's time pass."""
        ...

    def cancel(self) -> None:
        """Ends the transfers that other threads are in, and refuses further ones."""
        ...

    def judged(self) -> AbstractContextManager[Verdict]:
        """Judges whether the world kept its time during the block: always, but in an emulated network."""
        ...

    def turn(self, alone: bool = False) -> AbstractContextManager[None]:
        """A turn on the machine, or all of it, where others' work on it can make the world late."""
        ...

    def again(self, work: Callable[[], T], good: Callable[[T], bool] = ...) -> tuple[T, int]:
        """What `work` returned, and how often it was called: once, but in an emulated network (late.py)."""
        ...


class Laboratory(World, Protocol):
    """A world whose network is made from a scenario: `sim` or `emu`."""

    def set(self, link: str, direction: str | None = None, **changes: str) -> None:
        """Changes a link from now on."""
        ...

    def ledger(self) -> dict[str, Any]:
        """What every link carried and dropped."""
        ...

    def flows(
        self, names: Sequence[str] | None = None, until: float | None = None, every_s: float = 0.1
    ) -> FlowsResult:
        """Runs the scenario's `[[flow]]`s at once, all or the named ones."""
        ...
