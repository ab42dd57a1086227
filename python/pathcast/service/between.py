"""What lies between this host and a far end: judged from what both ends see of the same connections."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError

if TYPE_CHECKING:
    from pathcast.worlds.host import Host

OK, NOTED, FAULT, UNSEEN = "ok", "noted", "fault", "unseen"
# as crates/net/src/look.rs has them
_MPTCP = 16
_OPTIONS = ((1, "timestamps", "TCP timestamps"), (2, "sack", "SACK"), (4, "window scaling", "window scaling"))
_COST = {
    "timestamps": "round trips are measured less often, and late packets may be taken for new ones",
    "sack": "every burst of losses costs many round trips",
    "window scaling": "at most 64 kB a round trip get through",
}
# two attempts of TCP, and a round trip of half a second
_PATIENCE_S = 4.0
# TCP timestamps in every segment [byte]
_STAMPS = 12
_OPEN = "open or forward that TCP port to the far end, and let `pathcast serve` run there"
_BLOCKED = {
    "refused": "is refused: nobody listens there, or a firewall or a translator says no",
    "silent": "is silent: a firewall drops it, or a translator forwards it to nobody",
    "unreachable": "is unreachable: a router or a firewall says so",
    "lost": "breaks off",
    "foreign": "is answered by something else than this far end",
}


@dataclass(frozen=True)
class Finding:
    """One thing about a path. status: ok, noted (no fault), fault, unseen (it could not be looked at)."""

    path: str
    name: str
    status: str
    detail: str
    mend: str | None = None


@dataclass(frozen=True)
class Between:
    """What lies between this host and a far end: several findings a path."""

    host: str
    findings: tuple[Finding, ...]


def look(world: Host, paths: Sequence[str] | None = None) -> list[Finding]:
    """Looks over all paths, or the named ones: a TCP and an MPTCP connection and a light measurement each."""
    chosen = world.paths if paths is None else tuple(world.path(name) for name in paths)
    found: list[Finding] = []
    for path in chosen:
        plain = world.look(path, False)
        try:
            multi: Mapping[str, Any] | None = world.look(path, True)
        except PathcastError as error:
            if error.code != "no-mptcp":
                raise
            multi = None
        found += judge(path.name, plain, multi)
        found.append(_measured(world, path.name))
    return found


def unreached(host: str, why: PathcastError) -> list[Finding]:
    """Where no session comes about for `why`: what becomes of a TCP connection to each address of the far end.

    Raises `why` where one is taken: then it is no matter of the network.
    """
    from pathcast.worlds.host import PORT, address

    name, port = address(host, PORT)
    found = []
    for family, kind, number, _, to in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, number) as tried:
            tried.settimeout(_PATIENCE_S)
            try:
                tried.connect(to)
            except OSError as error:
                outcome = _outcome(error)
                detail = f"TCP to {to[0]} port {port} {_BLOCKED[outcome]} ({error.strerror or error})"
                found.append(Finding("all", "tcp port", FAULT, detail, _OPEN))
            else:
                raise why
    return found


def _outcome(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return "refused"
    unreachable = errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM
    return "unreachable" if error.errno in unreachable else "silent"


def judge(path: str, plain: Mapping[str, Any], multi: Mapping[str, Any] | None) -> list[Finding]:
    """What the two connections of one path say. multi: None, where this kernel has no MPTCP."""
    if plain["outcome"] == "old":
        mend = "install this version there, too"
        return [Finding(path, "far end", UNSEEN, "it is of an older version and does not know this question", mend)]
    if plain["outcome"] != "answered":
        detail = f"the TCP port of transfers {_BLOCKED[plain['outcome']]} ({plain['reason']})"
        return [Finding(path, "tcp port", FAULT, detail, _OPEN)]
    near, far = plain["near"], plain["far"]
    return [
        Finding(path, "tcp port", OK, f"open, at {near['peer']}"),
        *_translated(path, near, far),
        *_options(path, near, far),
        _segments(path, near, far),
        _multipath(path, multi),
    ]


def _translated(path: str, near: Mapping[str, Any], far: Mapping[str, Any]) -> list[Finding]:
    found = []
    if far["peer"] != near["local"]:
        detail = f"a translator before this host: the far end sees {near['local']} as {far['peer']}"
        found.append(Finding(path, "nat here", NOTED, detail, "none is needed: this end opens every connection"))
    if far["local"] != near["peer"]:
        detail = f"a translator before the far end: {near['peer']} leads to {far['local']}"
        mend = f"forward TCP and UDP of {near['peer']} to {far['local']}; name the outer address there with --announce"
        found.append(Finding(path, "nat there", NOTED, detail, mend))
    return found or [Finding(path, "nat", OK, "both ends see the same addresses and ports")]


def _options(path: str, near: Mapping[str, Any], far: Mapping[str, Any]) -> list[Finding]:
    found = []
    able = near["able"] & far["able"]
    for bit, name, words in _OPTIONS:
        here, there = bool(near["options"] & bit), bool(far["options"] & bit)
        if not able & bit:
            end = "this host" if not near["able"] & bit else "the far end"
            found.append(
                Finding(path, name, NOTED, f"{end} has {words} switched off", f"sysctl net.ipv4.tcp_* at {end}")
            )
        elif here and there:
            found.append(Finding(path, name, OK, "agreed upon by both ends"))
        else:
            way = "out of SYN/ACKs, on the way back" if there else "out of SYNs, on the way there"
            detail = f"a middlebox takes {words} {way}: {_COST[name]}"
            found.append(Finding(path, name, FAULT, detail, "look for a firewall that normalises TCP on the way"))
    scaled = near["options"] & far["options"] & 4
    if scaled and (near["scales"][0], near["scales"][1]) != (far["scales"][1], far["scales"][0]):
        detail = f"the ends have unlike scales of windows: {near['scales']} here, {far['scales']} there"
        mend = "a proxy ends TCP on the way, or a middlebox rewrites options: go around it"
        found.append(Finding(path, "proxy", FAULT, detail, mend))
    return found


def _segments(path: str, near: Mapping[str, Any], far: Mapping[str, Any]) -> Finding:
    for sender, taker, way in ((near, far, "out"), (far, near, "in")):
        header = 60 if ":" in near["local"].rpartition(":")[0] else 40
        # once timestamps are agreed upon, Linux takes their room off what it says that it has announced
        announced = taker["mss"][1] + (_STAMPS if taker["options"] & 1 else 0)
        due = min(announced, sender["pmtu"] - header) - (_STAMPS if sender["options"] & 1 else 0)
        if 0 < sender["mss"][0] < due:
            detail = f"direction {way}: segments of {sender['mss'][0]} B, and {due} B would do: a router clamps them"
            return Finding(path, "segments", NOTED, detail, "none, if a tunnel is on the way: it is for its sake")
    return Finding(path, "segments", OK, f"{near['mss'][0]} B out, {far['mss'][0]} B in, as announced")


def _multipath(path: str, multi: Mapping[str, Any] | None) -> Finding:
    if multi is None:
        return Finding(path, "mptcp", UNSEEN, "this kernel makes no MPTCP sockets", "sysctl -w net.mptcp.enabled=1")
    if multi["outcome"] != "answered":
        detail = f"an MPTCP connection {_BLOCKED.get(multi['outcome'], multi['outcome'])}, a TCP one is answered"
        return Finding(path, "mptcp", FAULT, detail, "let a firewall on the way pass TCP option 30")
    near, far = multi["near"], multi["far"]
    if not far["able"] & _MPTCP:
        return Finding(path, "mptcp", NOTED, "the far end has no MPTCP", "sysctl -w net.mptcp.enabled=1 there")
    if near["transport"] == far["transport"] == "mptcp":
        return Finding(path, "mptcp", OK, "answered, and kept with data")
    detail = "a middlebox takes MPTCP's options out: transfers fall back to plain TCP over one path"
    return Finding(path, "mptcp", FAULT, detail, "let it pass TCP option 30, or begin with another path")


def _measured(world: Host, path: str) -> Finding:
    from pathcast.worlds.measurement import Request

    try:
        world.measure([path], Request(effort="light", time_s=2.0))
    except PathcastError as error:
        if error.code != "no-answer":
            return Finding(path, "udp port", UNSEEN, error.message, error.hint)
        mend = "open or forward the same port of UDP, too"
        return Finding(path, "udp port", FAULT, f"the UDP port of measurements is silent: {error.message}", mend)
    return Finding(path, "udp port", OK, "open: a light measurement is answered")
