"""Who is who in a history: hosts, lines, far ends and paths, by what stays when names and addresses change."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import socket
from dataclasses import dataclass
from functools import cache

from pathcast.history.clock import Moment
from pathcast.machine import machine_id

_OVER = "/over/"


@dataclass(frozen=True)
class PathKey:
    """A path: line, far end, address pair. A direction of it is a path of its own in the tables.

    Of several paths of one pair, which switches tell apart, `remote_id` says the way, too (`over`).
    """

    line_id: str
    remote_id: str
    local: str
    remote: str

    @property
    def way(self) -> str:
        """The way that it takes to the far end; empty where nothing steers it."""
        return self.remote_id.partition(_OVER)[2]

    def meets(self, other: PathKey) -> bool:
        """Whether it is the same path, be it that one of both is known by the far end's address only, as `run` does."""
        if (self.line_id, self.local, self.remote) != (other.line_id, other.local, other.remote):
            return False
        by_address = remote_of_address(self.remote) in (self.remote_id, other.remote_id)
        # an address says nothing of the ways to it
        return self.remote_id == other.remote_id or (by_address and not self.way and not other.way)

    @property
    def family(self) -> int | None:
        """4 or 6; None for what is no address."""
        try:
            return ipaddress.ip_address(self.local).version
        except ValueError:
            return None


def digest(*parts: str) -> str:
    """A row's key, made of what it is: whoever adds the same row adds it once."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def fresh(at: Moment) -> str:
    """A new key; those of later moments come later in the order."""
    return f"{max(at.utc_us, 0) // 1000 & 0xFFFF_FFFF_FFFF:012x}{secrets.token_hex(10)}"


@cache
def host_id() -> str:
    """This machine."""
    text = machine_id()
    return digest("pathcast host name", socket.gethostname()) if text is None else digest("pathcast host", text)


def line_id(local: str, device: str | None, alone: bool, namespace: str | None = None) -> str:
    """A line that its user gave no name: the device; where that has several addresses (not `alone`), with the address.

    So a line stays the same when its only address changes. Others take it as it is, without a look inside.
    """
    where = f"{namespace}:" if namespace else ""
    if device is None:
        return where + local
    return where + (device if alone else f"{device}/{local}")


def remote_of_key(secret: str) -> str:
    """A far end by the key that both ends share, which cannot be had from it."""
    return "key:" + digest("pathcast far end", secret)[:16]


def remote_of_address(address: str) -> str:
    """A far end without a key of its own: nothing but its address is known."""
    return f"address:{address}"


def over(remote_id: str, way: str) -> str:
    """A far end over one of several paths of an address pair: by the ports of switches that it leaves from, or by its
    name in a network that is nothing but its file."""
    return f"{remote_id}{_OVER}{way}"


# worlds whose lines are those of a file
NETWORKS = ("emu", "sim")


def network_id(world: str, name: str, text: str) -> str:
    """A far end in an emulated or simulated network, by all that the network is made of."""
    return f"{world}:{name}:{digest(text)[:8]}"


def world_of(line_id: str) -> str:
    """The world of a line: those of networks that are files begin with it."""
    world, more, _ = line_id.partition(":")
    return world if more and world in NETWORKS else "host"
