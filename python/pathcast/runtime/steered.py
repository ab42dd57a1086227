"""The controllers of OpenFlow switches on this host, for senders here: `steer up`, emulated networks of switches."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.runtime import state
from pathcast.runtime.state import Record
from pathcast.steer.client import Client


@dataclass(frozen=True)
class Controlled:
    """What a controller steers, as it said a moment ago. own: an emulated network, in one of whose hosts we are."""

    name: str
    client: Client
    own: bool
    state: Mapping[str, Any]

    def joining(self, local: str, remote: str) -> list[str]:
        """The names of its paths between two hosts, in its order."""
        at = {host["address"]: host["at"].rpartition(":")[0] for host in self.state["hosts"]}
        begin, end = at.get(local), at.get(remote)
        if begin is None or end is None:
            return []
        ends = [self._ends(path["via"]) for path in self.state["paths"]]
        both = ((begin, end), (end, begin))
        return [path["name"] for path, found in zip(self.state["paths"], ends, strict=True) if found in both]

    def via(self, name: str) -> list[str]:
        """The ports of switches (`s1:2`) that a path of its leaves from, in its order."""
        return next((list(path["via"]) for path in self.state["paths"] if path["name"] == name), [])

    def _ends(self, via: list[str]) -> tuple[str, str] | None:
        """The switches that a path begins and ends at."""
        far = {a: b for link in self.state["links"] for a, b in (link["ends"], link["ends"][::-1])}
        if not via or via[-1] not in far:
            return None
        return via[0].rpartition(":")[0], far[via[-1]].rpartition(":")[0]

    @property
    def paths(self) -> list[str]:
        return [path["name"] for path in self.state["paths"]]


def of_net(record: Record, about: Mapping[str, Any]) -> Client:
    """The controller of an emulated network. Raises PathcastError (exit 2) where its switches are not ours to steer."""
    if "steer" not in about:
        told = "its switches have another controller than pathcast's, which cannot be told a path"
        raise usage(f"network `{record.id}`: {told}", "take `controller` out of [[switch]]")
    return Client(record.socket)


def controllers() -> list[Controlled]:
    """Those that answer: of the network that this process is in, else all that were started by `steer up`.

    Nothing is made to find them, and none are found where no record can be.
    """
    here, found, records = state.network_namespace(), [], []
    with suppress(PathcastError):
        records = state.records() if state.where().is_dir() else []
    for record in records:
        hosts = record.about.get("hosts") or {}
        own = record.kind == "net" and "switch" in hosts and here in map(_number, (hosts["client"], hosts["server"]))
        if (own or record.kind == "steer") and record.alive:
            with suppress(PathcastError):  # one that ends, or whose switches are another's
                client = Client(record.socket, 5.0)
                found.append(Controlled(record.id, client, own, client.state()))
    return [one for one in found if one.own] or found


def _number(namespace: str) -> int | None:
    with suppress(OSError):
        return Path("/run/netns", namespace).stat().st_ino
    return None
