"""How an emulated network of switches carries transfers and probes: its controller is told of every flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pathcast.errors import usage
from pathcast.runtime.daemon import Daemon
from pathcast.steer.client import Owner
from pathcast.steer.rules import Flow


class Fabric:
    """What `_native.Client` tells of its flows, each before its first packet leaves."""

    def __init__(self, network: Daemon, about: Mapping[str, Any]) -> None:
        """about: the network's description. Raises PathcastError (exit 2) where its switches are not ours to steer."""
        if "steer" not in about:
            told = "its switches have another controller than pathcast's, which cannot be told a path"
            raise usage(f"network `{network.record.id}`: {told}", "take `controller` out of [[switch]]")
        self._network = network
        self._owner = asdict(Owner.this_process())

    def begin(self, flow: tuple[str, str, int, str, int], path: str) -> None:
        """Returns when every switch on the path has the flow. Raises PathcastError where one says no."""
        self._network.ask("begin", flows=[_document(*flow)], path=path, owner=self._owner)

    def end(self, flow: tuple[str, str, int, str, int]) -> None:
        """The flow is over."""
        self._network.ask("end", flows=[_document(*flow)])


def _document(protocol: str, local: str, local_port: int, remote: str, remote_port: int) -> dict[str, str | int]:
    return asdict(Flow(local, remote, local_port, remote_port, protocol))
