"""An emulated network of OpenFlow switches: Open vSwitch between its links, and the controller that steers their flows.

The process of the network has all of it: the links' threads, the switches in a namespace of their own, the controller.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.runtime import daemon
from pathcast.runtime.state import Record, run_dir
from pathcast.steer import ovs
from pathcast.steer.client import flow_of, owner_of, plan_of
from pathcast.steer.config import Config
from pathcast.steer.controller import Controller

# how long the switches may take to find their controller
PATIENCE_S = 10.0


def port_device(scenario: Mapping[str, Any], switch: int, port: int) -> str | None:
    """What crates/emu calls the device of a switch's port, both from 1; None for a port without a link."""
    name = scenario["switches"][switch - 1]["name"]
    ends = [(link[end], link.get(f"{end}_port")) for link in scenario["links"] for end in "ab"]
    return f"sw{switch}p{port}" if (name, port) in ends else None


def config(scenario: Mapping[str, Any], addresses: Mapping[str, str], listen: str) -> dict[str, Any]:
    """What the controller is told of a checked scenario. addresses: of `client` and `server`."""
    switches = [{"name": one["name"], "id": at} for at, one in enumerate(scenario["switches"], 1)]
    hosts, links = [], []
    for link in scenario["links"]:
        ends = [(link[end], _end(link, end)) for end in "ab"]
        if host := next((node for node, _ in ends if node in addresses), None):
            at = next(text for node, text in ends if node != host)
            hosts.append({"address": addresses[host], "at": at})
        else:
            links.append({"ends": [text for _, text in ends]})
    paths = [{"name": path["name"], "via": _via(scenario, path["hops"])} for path in scenario["paths"]]
    return {"listen": listen, "switch": switches, "host": hosts, "link": links, "path": paths}


def _end(link: Mapping[str, Any], end: str) -> str:
    return f"{link[end]}:{link.get(f'{end}_port')}"


def _via(scenario: Mapping[str, Any], hops: list[dict[str, Any]]) -> list[str]:
    """The port out of each switch but the last: where each link begins, but those from and to the hosts."""
    return [_end(scenario["links"][hop["link"]], hop["direction"][0]) for hop in hops[1:-1]]


class SwitchedNet(daemon.Net):
    """A network with switches. Of flows it is asked as any controller is (steer/client.py)."""

    def record(self) -> Record:
        found = super().record()
        name = self.config["name"]
        found.about["hosts"]["switch"] = f"pc-{name}-switch"
        found.made["namespaces"].append(f"pc-{name}-switch")
        found.made["directories"] = [f"{name}.ovs"]
        return found

    def up(self) -> None:
        ovs.check()
        self._refuse_mixed()
        super().up()
        self._controller: Controller | None = None
        self._switches: ovs.Switches | None = None
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _refuse_mixed(self) -> None:
        """One controller steers all switches, or none of them."""
        switches = self.config["scenario"]["switches"]
        without = [one["name"] for one in switches if "controller" not in one]
        if without and (others := [one for one in switches if "controller" in one]):
            told = f"switch `{without[0]}` has no controller, for `{others[0]['name']}` has one of its own"
            raise usage(told, "give all switches a `controller`, or none of them")

    def _make(self) -> None:
        scenario, name = self.config["scenario"], self.config["name"]
        about = super().describe()
        directory = run_dir() / f"{name}.ovs"
        self._switches = ovs.Switches(about["switch"], directory, large=True)
        self._switches.up()
        for at, one in enumerate(scenario["switches"], 1):
            ports = [port_device(scenario, at, port) for port in range(1, one["ports"] + 1)]
            self._switches.add(one["name"], ports, number=at)
        path = about["paths"][0]
        told = config(scenario, {"client": path["local"][0], "server": path["remote"]}, f"unix:{directory}/c")
        if not any("controller" in one for one in scenario["switches"]):
            self._controller = Controller(Config.of(told), name)
        for one in scenario["switches"]:
            self._switches.control(one["name"], one.get("controller") or told["listen"])
        if self._controller is not None:
            self._await()

    def _await(self) -> None:
        """Waits until every switch has its controller."""
        assert self._controller is not None
        deadline = time.monotonic() + PATIENCE_S
        while away := [one["name"] for one in self._controller.state()["switches"] if not one["connected"]]:
            if time.monotonic() > deadline:
                raise PathcastError("switch", f"switch `{away[0]}` has not found its controller in {PATIENCE_S:.0f} s")
            time.sleep(0.01)

    def begin(self, flows: Any, owner: Any = None) -> dict[str, Any]:
        return {"paths": list(self._ours().begin(plan_of(flows), owner_of(owner)).values())}

    def end(self, flows: Any) -> dict[str, Any]:
        return {"ended": self._ours().end([flow_of(flow) for flow in flows])}

    def state(self) -> dict[str, Any]:
        return self._ours().state()

    def counters(self) -> dict[str, Any]:
        return self._ours().counters()

    def _ours(self) -> Controller:
        if self._controller is None:
            raise usage("the switches have another controller than pathcast's, which cannot be told a path")
        return self._controller

    def describe(self) -> dict[str, Any]:
        about = super().describe()
        return about if self._controller is None else {**about, "steer": self._controller.state()}

    def close(self) -> None:
        with ExitStack() as stack:
            stack.callback(super().close)
            if self._switches is not None:
                stack.callback(self._switches.close)
            if self._controller is not None:
                self._controller.close(keep=True)  # the entries go with the switches
