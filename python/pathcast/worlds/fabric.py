"""How an emulated network of switches carries transfers and probes: its controller is told of every flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.runtime.daemon import Daemon
from pathcast.steer.client import Client
from pathcast.steer.rules import Flow


class Fabric:
    """What `_native.Client` tells of its flows, each before its first packet leaves."""

    def __init__(self, network: Daemon, about: Mapping[str, Any]) -> None:
        """about: the network's description. Raises PathcastError (exit 2) where its switches are not ours to steer."""
        if "steer" not in about:
            told = "its switches have another controller than pathcast's, which cannot be told a path"
            raise usage(f"network `{network.record.id}`: {told}", "take `controller` out of [[switch]]")
        self._controller = Client(network.record.socket)

    def begin(self, flow: tuple[str, str, int, str, int], path: str) -> None:
        """Returns when every switch on the path has the flow. Raises PathcastError where one says no."""
        one = _flow(*flow)
        taken = self._controller.begin({one: path})[one]
        if taken != path:
            self._controller.end([one])
            raise PathcastError("switch", f"path `{path}` is down; the switches would take `{taken}`")

    def end(self, flow: tuple[str, str, int, str, int]) -> None:
        """The flow is over."""
        self._controller.end([_flow(*flow)])


def _flow(protocol: str, local: str, local_port: int, remote: str, remote_port: int) -> Flow:
    return Flow(local, remote, local_port, remote_port, protocol)
