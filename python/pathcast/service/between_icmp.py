"""What the network says of a packet that it does not deliver: ICMP, as the kernel hands it over with its sender."""

from __future__ import annotations

import ipaddress
import socket
import struct
from contextlib import suppress

# IP_RECVERR and IPV6_RECVERR (linux/in.h, linux/in6.h), which Python does not name
_RECVERR = {socket.AF_INET: (socket.IPPROTO_IP, 11), socket.AF_INET6: (socket.IPPROTO_IPV6, 25)}
# struct sock_extended_err: errno, origin, type, code, padding, info, data; origins: ICMP of either version
_EXTENDED, _ICMP = struct.Struct("=IBBBxII"), {2: socket.AF_INET, 3: socket.AF_INET6}
# where addresses stand in struct sockaddr_in and sockaddr_in6 [byte]
_ADDRESS = {socket.AF_INET: slice(4, 8), socket.AF_INET6: slice(8, 24)}
# "unreachable" by its codes (RFC 792, RFC 1812, RFC 4443)
_CODES = {
    socket.AF_INET: {
        0: "network unreachable",
        1: "host unreachable",
        2: "protocol unreachable",
        3: "port unreachable",
        9: "network administratively prohibited",
        10: "host administratively prohibited",
        13: "administratively prohibited",
    },
    socket.AF_INET6: {
        0: "no route",
        1: "administratively prohibited",
        3: "address unreachable",
        4: "port unreachable",
        5: "source address failed policy",
        6: "route rejected",
    },
}
_UNREACHABLE = {socket.AF_INET: 3, socket.AF_INET6: 1}
# a neighbour that is silent is given up by Linux after three questions, one a second
NEIGHBOUR_S = 3.5


def listen(sock: socket.socket) -> None:
    """Lets the socket keep what ICMP says."""
    level, name = _RECVERR[sock.family]
    with suppress(OSError):  # without it `said` has nothing
        sock.setsockopt(level, name, 1)


def said(sock: socket.socket) -> str | None:
    """What ICMP said to a socket that listens, with who said it; None: nothing."""
    try:
        controls = sock.recvmsg(512, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)[1]
    except OSError:
        return None
    for level, name, data in controls:
        if (level, name) != _RECVERR[sock.family] or len(data) < _EXTENDED.size:
            continue
        _, origin, kind, code, _, _ = _EXTENDED.unpack_from(data)
        family = _ICMP.get(origin)
        if family is None:
            continue
        what = _CODES[family].get(code) if kind == _UNREACHABLE[family] else None
        what = what or f"ICMP type {kind}, code {code}"
        who = data[_EXTENDED.size :][_ADDRESS[family]]
        by = str(ipaddress.ip_address(who))
        if by == sock.getsockname()[0]:
            return "no host answers for that address, or its gateway's, on the line here"
        return f"{by} says: {what}"
    return None


def of_udp(local: str, remote: str, port: int, wait_s: float) -> str | None:
    """What ICMP says to packets to a UDP port; None: nothing within `wait_s`."""
    try:
        with socket.socket(_family(remote), socket.SOCK_DGRAM) as sock:
            listen(sock)
            sock.bind((local, 0))
            sock.connect((remote, port))
            sock.settimeout(wait_s)
            with suppress(OSError):  # what is wrong is told by `said`
                sock.send(b"\0")
                sock.recv(1)
            return said(sock)
    except OSError:
        return None


def of_tcp(local: str, remote: str, port: int, wait_s: float) -> str | None:
    """What ICMP says to a TCP connection; None: nothing within `wait_s`, or it was answered."""
    try:
        with socket.socket(_family(remote), socket.SOCK_STREAM) as sock:
            listen(sock)
            sock.bind((local, 0))
            sock.settimeout(wait_s)
            with suppress(OSError):
                sock.connect((remote, port))
            return said(sock)
    except OSError:
        return None


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
