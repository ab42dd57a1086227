"""The worlds that can run a pair's scenarios: what each flow had acknowledged in an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# a row of the trace so often: the error of an interval's ends
_EVERY_NS = 20_000_000


class Runner(Protocol):
    """One world."""

    world: str

    def version(self) -> str:
        """Changes whenever the same scenario may give another result."""

    def run(self, text: str, from_s: float, to_s: float) -> dict[str, int]:
        """Runs a scenario; payload bytes of every flow that were acknowledged between two times of it."""


class SimRunner:
    """The simulator."""

    world = "sim"

    def version(self) -> str:
        """The hash of the extension."""
        from pathcast.lab.sweep import code

        return code()

    def run(self, text: str, from_s: float, to_s: float) -> dict[str, int]:
        """As the protocol says; bytes until the last ACK before each of the two times."""
        import numpy as np

        from pathcast.lab.simulation import Scenario, simulate

        report, traces = simulate(Scenario(text), trace_ns=_EVERY_NS)
        windows = traces["windows"]
        found = {}
        for number, flow in enumerate(report["flows"]):
            own = windows["flow"] == number
            at, acked = windows["time_s"][own], np.append(0, windows["acked_bytes"][own])
            found[flow["name"]] = int(np.subtract(*acked[np.searchsorted(at, (to_s, from_s), side="right")]))
        return found


RUNNERS: dict[str, Callable[[], Runner]] = {"sim": SimRunner}
