"""What this host's kernel does by itself that a look would else blame on the path: MPTCP held back, a path MTU kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pathcast.errors import PathcastError
from pathcast.lines import here

_COUNTERS = Path("/proc/net/netstat")
_TIMEOUT = Path("/proc/sys/net/mptcp/blackhole_timeout")
# the kernel's own default [s]
_TIMEOUT_S = 3600
# MPTCP's counters: SYNs that went without MPTCP after some with it were silent, and since it is held back
_DROPPED, _HELD = "MPCapableSYNTXDrop", "MPCapableSYNTXDisabled"


@dataclass(frozen=True)
class Fallback:
    """Why this host's kernel made a connection plain TCP. dropped: SYNs with MPTCP had no answer. held: it did not try.

    timeout_s: net.mptcp.blackhole_timeout, for how long it then tries no more; doubled each time, up to 64 times.
    """

    dropped: bool = False
    held: bool = False
    timeout_s: int = _TIMEOUT_S

    @property
    def clear(self) -> str:
        """The command that lets the kernel try again."""
        name = "net.mptcp.blackhole_timeout"
        return f"sysctl -w {name}=0 {name}={self.timeout_s}"


# it did nothing
NO_FALLBACK = Fallback()


def counters() -> dict[str, int]:
    """MPTCP's counters of this network namespace, as `nstat` has them; empty where the kernel has none."""
    try:
        lines = [line.split() for line in _COUNTERS.read_text().splitlines() if line.startswith("MPTcpExt:")]
        names, values = lines
    except (OSError, ValueError):
        return {}
    return dict(zip(names[1:], map(int, values[1:]), strict=False))


def fallback(before: Mapping[str, int], after: Mapping[str, int]) -> Fallback:
    """What the kernel did between two readings of `counters`."""
    try:
        timeout_s = int(_TIMEOUT.read_text())
    except (OSError, ValueError):
        timeout_s = _TIMEOUT_S
    more = {name: after.get(name, 0) > before.get(name, 0) for name in (_DROPPED, _HELD)}
    return Fallback(more[_DROPPED], more[_HELD], timeout_s)


def kept_mtu(local: str, remote: str) -> int | None:
    """The path MTU that this kernel keeps since a router told it [IP bytes]; None: none, or it cannot be asked."""
    try:
        [route] = here.ip("route", "get", remote, "from", local)
    except (PathcastError, ValueError):
        return None
    # a route's own MTU does not expire, and is no router's word
    told = [metrics["mtu"] for metrics in route.get("metrics", ()) if "mtu" in metrics]
    return int(told[0]) if told and "expires" in route else None
