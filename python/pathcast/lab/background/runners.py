"""The worlds that can run a pair's scenarios: what each flow had acknowledged in an interval."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Protocol

from pathcast.errors import Exit, PathcastError

# a row of the trace so often: the error of an interval's ends
_EVERY_NS = 20_000_000
# a run of which the emulator was late is repeated so often
_ATTEMPTS = 3


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
        from pathcast.lab.version import code

        return code()

    def run(self, text: str, from_s: float, to_s: float) -> dict[str, int]:
        """As the protocol says; bytes until the last ACK before each of the two times."""
        import numpy as np

        from pathcast.scenario import Scenario
        from pathcast.simulation.run import simulate

        report, traces = simulate(Scenario(text), trace_ns=_EVERY_NS)
        windows = traces["windows"]
        found = {}
        for number, flow in enumerate(report["flows"]):
            own = windows["flow"] == number
            at, acked = windows["time_s"][own], np.append(0, windows["acked_bytes"][own])
            found[flow["name"]] = int(np.subtract(*acked[np.searchsorted(at, (to_s, from_s), side="right")]))
        return found


class EmuRunner:
    """The emulator, with the real kernel's TCP and the controllers as eBPF; each run has a network of its own."""

    world = "emu"

    def version(self) -> str:
        """The kernel, and the hash of the extension."""
        from pathcast.lab.version import code

        return f"{platform.release()} {code()}"

    def run(self, text: str, from_s: float, to_s: float) -> dict[str, int]:
        """As the protocol says; linear between samples 0.1 s apart. Repeated, then refused, if it is late."""
        from pathcast.worlds.emu import Emu, Topology

        for _ in range(_ATTEMPTS):
            with Emu(Topology.parse(text)) as world:
                result = world.flows()
            failed = [f"{flow.name}: {flow.error}" for flow in result.flows if flow.error]
            if failed:
                raise PathcastError("transfer", "; ".join(failed))
            if result.verdict.valid:
                return {flow.name: round(flow.acked(to_s) - flow.acked(from_s)) for flow in result.flows}
        hint = "give it a calmer machine, or fewer --jobs; the same command continues"
        raise PathcastError("late", f"the emulator was late in {_ATTEMPTS} runs", hint, Exit.UNTRUSTWORTHY)


RUNNERS: dict[str, Callable[[], Runner]] = {"sim": SimRunner, "emu": EmuRunner}
