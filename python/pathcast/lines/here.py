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
    """An address of a device, and the length of its prefix."""

    dev: str
    local: str
    prefix: int


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
                found.append(Address(device["ifname"], one["local"], one["prefixlen"]))
    return found


def of_line(line: Line, here: Sequence[Address]) -> list[Address]:
    """Those that the line has now."""
    return [one for one in here if line.has(one.local, one.dev)]


def named(lines: Mapping[str, Line], local: str, device: str | None) -> Line | None:
    """The line that a local address belongs to."""
    return next((line for line in lines.values() if line.has(local, device)), None)
