"""The addresses and devices of this host, as iproute2 tells them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathcast.errors import PathcastError, missing
from pathcast.lines.config import Line

# for what `ip` tells [s]
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Address:
    """An address of a device, and the length of its prefix. passing: for privacy (RFC 8981), or deprecated."""

    dev: str
    local: str
    prefix: int
    passing: bool = False


def ip(*arguments: str) -> Any:
    """What `ip -j ARGUMENTS` says. Raises PathcastError."""
    words = ["ip", "-j", *arguments]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_S)
    except FileNotFoundError:
        raise missing("the program `ip` is missing", "install the Debian package iproute2") from None
    except subprocess.TimeoutExpired:
        raise PathcastError("ip", f"`{' '.join(words)}` has not answered within {_PATIENCE_S:.0f} s") from None
    if done.returncode:
        raise PathcastError("ip", f"`{' '.join(words)}`: {done.stderr.strip()}")
    return json.loads(done.stdout or "[]")


def addresses() -> list[Address]:
    """Every address but those of the loopback device and of single links."""
    found = []
    for device in ip("addr", "show"):
        for one in device.get("addr_info", ()):
            if one.get("scope") == "global" and "local" in one:
                passing = ":" in one["local"] and bool(one.get("temporary") or one.get("deprecated"))
                found.append(Address(device["ifname"], one["local"], one["prefixlen"], passing))
    return found


def of_line(line: Line, here: Sequence[Address]) -> list[Address]:
    """Those that the line has now."""
    return [one for one in here if line.has(one.local, one.dev)]


def used(line: Line, here: Sequence[Address]) -> list[Address]:
    """Those that a program's connections begin from: of a device's IPv6 addresses those that last, if it has such."""
    own = of_line(line, here)
    lasting = any(":" in one.local and not one.passing for one in own)
    return [one for one in own if line.addresses or not (one.passing and lasting)]


def named(lines: Mapping[str, Line], local: str, device: str | None) -> Line | None:
    """The line that a local address belongs to."""
    return next((line for line in lines.values() if line.has(local, device)), None)
