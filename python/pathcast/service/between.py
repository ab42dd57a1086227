"""What lies between this host and a far end: connections and packets over every path, as both ends see them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError
from pathcast.service import between_here, between_icmp, between_tcp, between_udp
from pathcast.service.between_loss import AGAIN, NO_LOSS, Loss, syns
from pathcast.service.findings import FAULT, NOTED, OK, UNSEEN, Finding

if TYPE_CHECKING:
    from pathcast.worlds.host import Host

# two attempts of TCP, and a round trip of half a second
PATIENCE_S = 4.0
# the wait for STAMP's answers
_STAMP_S = 1.0
# questions to its reflector (crates/native/src/look.rs)
_STAMP_TRIES = 3


def look(world: Host, paths: Sequence[str] | None = None, patience_s: float = PATIENCE_S) -> list[Finding]:
    """Looks over all paths, or the named ones, one after the other. patience_s: how long silence is waited for."""
    chosen = world.paths if paths is None else tuple(world.path(name) for name in paths)
    return [one for path in chosen for one in _path(world, path, patience_s)]


def _path(world: Host, path: Any, patience_s: float) -> list[Finding]:
    plain = world.look(path, False, patience_s)
    if plain["outcome"] not in ("answered", "old"):
        return [_unanswered(world, path, plain, patience_s)]
    multi, fallback = _multi(world, path, patience_s)
    far = plain["far"]
    tells = far is not None and bool((far["knows"] or 0) & 1)
    sizes = kept = ecn = None
    if tells:
        whole = between_tcp.filled(plain)
        sizes = between_tcp.largest(whole["near"], whole["far"]), between_tcp.largest(whole["far"], whole["near"])
        # asked for before anything large makes routers talk
        kept = between_here.kept_mtu(path.local[0], path.remote)
        ecn = world.look_ecn(path, patience_s)
    seen = world.echo(path, sizes, between_udp.CLASSES, patience_s)
    loss = Loss.of(seen) if seen["outcome"] == "answered" else NO_LOSS
    found = between_tcp.judge(path.name, plain, multi, fallback, loss, syns(patience_s))
    if ecn is not None:
        found.append(between_tcp.notification(path.name, ecn, far, loss, max(1, int(patience_s))))
    wait_s = min(patience_s, _STAMP_S)
    icmp = None
    if seen["outcome"] == "silent":
        icmp = between_icmp.of_udp(path.local[0], path.remote, world.port, wait_s)
    found.append(between_udp.port(path.name, world.port, seen, icmp))
    if seen["outcome"] == "answered":
        after = world.look(path, False, patience_s)
        if tells:
            found += between_udp.packets(path.name, seen, whole, between_tcp.filled(after), kept)
        found += between_udp.clocks(path.name, seen, plain, after)
    if plain["outcome"] == "answered" and not tells:
        detail = "it is of an older version and does not tell what arrives of packets: no sizes, no marks"
        found.append(Finding(path.name, "far end", UNSEEN, detail, between_tcp.NEWER))
    if far is not None and far["stamp_port"]:
        found.append(_stamp(world, path, far["stamp_port"], wait_s, loss))
    return found


def _multi(world: Host, path: Any, patience_s: float) -> tuple[Mapping[str, Any] | None, between_here.Fallback]:
    """The look over MPTCP, and what the kernel itself did to it; None, where the kernel has no MPTCP."""
    before = between_here.counters()
    try:
        multi = world.look(path, True, patience_s)
    except PathcastError as error:
        if error.code != "no-mptcp":
            raise
        return None, between_here.NO_FALLBACK
    return multi, between_here.fallback(before, between_here.counters())


def _unanswered(world: Host, path: Any, plain: Mapping[str, Any], patience_s: float) -> Finding:
    icmp = None
    if plain["outcome"] in ("refused", "unreachable"):
        wait_s = max(patience_s, between_icmp.NEIGHBOUR_S)
        icmp = between_icmp.of_tcp(path.local[0], path.remote, world.port, wait_s)
    became, mend = between_tcp.blocked(plain["outcome"], world.port, icmp)
    detail = f"TCP port {world.port} of transfers {became} ({plain['reason']})"
    return Finding(path.name, "tcp port", FAULT, detail, mend)


def _stamp(world: Host, path: Any, port: int, wait_s: float, loss: Loss) -> Finding:
    if world.stamp(path, port, wait_s):
        return Finding(path.name, "stamp port", OK, f"STAMP is answered at UDP port {port}")
    icmp = between_icmp.of_udp(path.local[0], path.remote, port, wait_s)
    if icmp is None and loss.explains(_STAMP_TRIES):
        detail = f"STAMP has no answer at UDP port {port}{loss.why}"
        return Finding(path.name, "stamp port", UNSEEN, detail, AGAIN)
    became = "is silent" if icmp is None else f"is rejected ({icmp})"
    detail = f"the far end's STAMP reflector {became} at UDP port {port}"
    return Finding(path.name, "stamp port", FAULT, detail, f"open or forward UDP port {port}, too")


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
        tried = list(threads.map(lambda one: _connect(one, patience_s), known))
    taken = [to[0] for (*_, to), (error, _) in zip(known, tried, strict=True) if error is None]
    found: list[Finding] = []
    for (family, *_, to), (failed, icmp) in zip(known, tried, strict=True):
        if failed is None:
            continue
        became, mend = between_tcp.blocked(_outcome(failed), port, icmp)
        why = f"TCP to {to[0]} port {port} {became} ({failed.strerror or failed})"
        if not taken:
            found.append(Finding("all", "tcp port", FAULT, why, mend))
        elif failed.errno in (errno.ENETUNREACH, errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            kind = "IPv6" if family == socket.AF_INET6 else "IPv4"
            detail = f"this host has no {kind}: {to[0]} of `{name}` is not tried"
            found.append(Finding("all", "address", NOTED, detail))
        else:
            mend = "let the far end listen at that address, mend its route, or take it out of the name (DNS)"
            also = f"{why}, and {', '.join(str(one) for one in taken)} of the same name is answered"
            found.append(Finding("all", "address", FAULT, also, mend))
    return bool(taken), found


def _connect(known: tuple[Any, ...], patience_s: float) -> tuple[OSError | None, str | None]:
    """Why a connection failed, if it did, and what ICMP said of it."""
    family, kind, number, _, to = known
    try:
        with socket.socket(family, kind, number) as tried:
            between_icmp.listen(tried)
            tried.settimeout(patience_s)
            try:
                tried.connect(to)
            except OSError as error:
                return error, between_icmp.said(tried)
    except OSError as error:  # no such family here
        return error, None
    return None, None


def _outcome(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return "refused"
    return "silent" if isinstance(error, TimeoutError) else "unreachable"
