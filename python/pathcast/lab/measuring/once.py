"""One measurement in a network of its own, and the two ledgers around it, from which its truth is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pathcast.lab.measuring.network import Truth, truth
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.results import Verdict
from pathcast.worlds.topology import Topology

# cross traffic alone, before the measurement begins [s]
_SETTLE_S = 0.5


@dataclass(frozen=True)
class Once:
    """What was found, between which ledgers, and whether the emulator kept its time."""

    found: Measurement
    before: dict[str, Any]
    after: dict[str, Any]
    verdict: Verdict

    def truth(self, direction: str) -> Truth:
        """Of `out` or `in`."""
        return truth(self.before, self.after, direction)


def once(world: str, topology: Topology, request: Request) -> Once:
    """Measures in world `sim` or `emu`; raises PathcastError as the world does."""
    if world == "sim":
        from pathcast.worlds.sim import Sim as World
    else:
        from pathcast.worlds.emu import Emu as World
    with World(topology) as network:
        network.wait(_SETTLE_S)
        with network.judged() as verdict:
            before = network.ledger()
            found = network.measure(request=request)
            after = network.ledger()
    return Once(found, before, after, verdict)
