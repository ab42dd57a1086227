"""What lies between this host and a far end: connections and packets over every path, as both ends see them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError
from pathcast.service import between_tcp, between_udp
from pathcast.service.findings import FAULT, NOTED, OK, UNSEEN, Finding

if TYPE_CHECKING:
    from pathcast.worlds.host import Host

# two attempts of TCP, and a round trip of half a second
PATIENCE_S = 4.0
# the wait for STAMP's answers
_STAMP_S = 1.0


def look(world: Host, paths: Sequence[str] | None = None, patience_s: float = PATIENCE_S) -> list[Finding]:
    """Looks over all paths, or the named ones, one after the other. patience_s: how long silence is waited for."""
    chosen = world.paths if paths is None else tuple(world.path(name) for name in paths)
    return [one for path in chosen for one in _path(world, path, patience_s)]


def _path(world: Host, path: Any, patience_s: float) -> list[Finding]:
    plain = world.look(path, False, patience_s)
    try:
        multi: Mapping[str, Any] | None = world.look(path, True, patience_s)
    except PathcastError as error:
        if error.code != "no-mptcp":
            raise
        multi = None
    found = between_tcp.judge(path.name, plain, multi)
    far = plain["far"]
    tells = far is not None and bool((far["knows"] or 0) & 1)
    sizes = None
    if tells:
        whole = between_tcp.filled(plain)
        sizes = between_tcp.largest(whole["near"], whole["far"]), between_tcp.largest(whole["far"], whole["near"])
    if plain["outcome"] not in ("answered", "old"):
        return found
    if tells:
        found.append(between_tcp.notification(path.name, world.look_ecn(path, patience_s), far))
    seen = world.echo(path, sizes, between_udp.CLASSES, patience_s)
    found.append(between_udp.port(path.name, seen))
    if seen["outcome"] == "answered":
        after = world.look(path, False, patience_s)
        if tells:
            found += between_udp.packets(path.name, seen, whole, between_tcp.filled(after))
        found += between_udp.clocks(path.name, seen, plain, after)
    if plain["outcome"] == "answered" and not tells:
        detail = "it is of an older version and does not tell what arrives of packets: no sizes, no marks"
        found.append(Finding(path.name, "far end", UNSEEN, detail, between_tcp.NEWER))
    if far is not None and far["stamp_port"]:
        found.append(_stamp(world, path, far["stamp_port"], min(patience_s, _STAMP_S)))
    return found


def _stamp(world: Host, path: Any, port: int, wait_s: float) -> Finding:
    if world.stamp(path, port, wait_s):
        return Finding(path.name, "stamp port", OK, f"STAMP is answered at UDP port {port}")
    mend = f"open or forward UDP port {port}, too"
    return Finding(path.name, "stamp port", FAULT, f"the far end's STAMP reflector is silent at UDP port {port}", mend)


def knock(host: str, patience_s: float = PATIENCE_S) -> tuple[bool, list[Finding]]:
    """What becomes of a TCP connection to each address of the far end's name: whether any is taken, and what is wrong.

    Raises `resolve` where the name has no address.
    """
    from pathcast.worlds.host import PORT, address

    name, port = address(host, PORT)
    try:
        known = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter: not a name of the DNS
        reason = getattr(error, "strerror", None) or "it is no name of a host"
        raise PathcastError("resolve", f"cannot find the host `{name}`: {reason}") from None
    with ThreadPoolExecutor(len(known)) as threads:
        errors = list(threads.map(lambda one: _connect(one, patience_s), known))
    taken = [to[0] for (*_, to), error in zip(known, errors, strict=True) if error is None]
    found: list[Finding] = []
    for (family, *_, to), failed in zip(known, errors, strict=True):
        if failed is None:
            continue
        why = f"TCP to {to[0]} port {port} {between_tcp.BLOCKED[_outcome(failed)]} ({failed.strerror or failed})"
        if not taken:
            found.append(Finding("all", "tcp port", FAULT, why, between_tcp.OPEN))
        elif failed.errno in (errno.ENETUNREACH, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            kind = "IPv6" if family == socket.AF_INET6 else "IPv4"
            detail = f"this host has no {kind}: {to[0]} of `{name}` is not tried"
            found.append(Finding("all", "address", NOTED, detail))
        else:
            mend = "let the far end listen at that address, mend its route, or take it out of the name (DNS)"
            also = f"{why}, and {', '.join(str(one) for one in taken)} of the same name is answered"
            found.append(Finding("all", "address", FAULT, also, mend))
    return bool(taken), found


def _connect(known: tuple[Any, ...], patience_s: float) -> OSError | None:
    family, kind, number, _, to = known
    try:
        with socket.socket(family, kind, number) as tried:
            tried.settimeout(patience_s)
            tried.connect(to)
    except OSError as error:
        return error
    return None


def _outcome(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return "refused"
    unreachable = errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM
    return "unreachable" if error.errno in unreachable else "silent"
