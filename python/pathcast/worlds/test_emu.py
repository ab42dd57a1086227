"""What the emulated world says of a network that has ended; the world itself is tried in tests/test_world_emu.py."""

from __future__ import annotations

from typing import Any

import pytest

from pathcast.errors import Exit, PathcastError, usage
from pathcast.worlds.emu import Emu
from pathcast.worlds.testing import two_paths
from pathcast.worlds.topology import Topology


class Net:
    def __init__(self, alive: bool) -> None:
        self.alive = alive

    def ask(self, verb: str) -> dict[str, Any]:
        if not self.alive:
            raise PathcastError("gone", "net `two` does not answer")
        return {}


@pytest.mark.parametrize(("alive", "code", "exit"), [(True, "not-local", Exit.USAGE), (False, "gone", Exit.RUNTIME)])
def test_addresses_that_are_away_with_their_network_are_no_fault_of_who_asks(alive, code, exit):
    world = Emu(Topology.parse('name = "two"\n' + two_paths("20Mbit", ("10ms", "25ms"), "100 packets")))
    world._net = Net(alive)

    def call(job):
        error = usage("10.77.1.2 is not an address of this host")
        error.code = "not-local"
        raise error

    with pytest.raises(PathcastError) as caught:
        world._native_work(call)
    assert (caught.value.code, caught.value.exit) == (code, exit)
