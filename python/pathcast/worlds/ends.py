"""How TCP at the ends of a world behaves, in the words of a scenario's `[tcp]`: what a simulation of it needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# keys and values of `--set`
Ends = tuple[tuple[str, str], ...]

# what crates/emu/src/network.rs sets in its namespaces
EMULATED: Ends = (
    ("tcp.receive_buffer", "134217728B"),
    ("tcp.send_buffer", "134217728B"),
    ("tcp.idle_restart", "false"),
)


def of_scenario(scenario: Mapping[str, Any]) -> Ends:
    """Of a checked one; a preset stands before what is given beside it."""
    tcp = dict(scenario["tcp"])
    found = [("tcp.preset", str(tcp.pop("preset")))] if "preset" in tcp else []
    found += [(f"tcp.{key}", _written(value)) for key, value in tcp.items() if value is not None]
    for control, values in (scenario.get("control") or {}).items():
        found += [(f"control.{control}.{key}", _written(value)) for key, value in values.items()]
    return tuple(found)


def of_host(root: Path = Path("/proc/sys/net/ipv4")) -> Ends:
    """Of this host, whose receive buffer is taken for the far end's; what cannot be read is left out."""
    found = []
    for key, name in (("tcp.receive_buffer", "tcp_rmem"), ("tcp.send_buffer", "tcp_wmem")):
        if words := _read(root / name):
            found.append((key, f"{words[-1]}B"))
    if words := _read(root / "tcp_slow_start_after_idle"):
        found.append(("tcp.idle_restart", "false" if words[0] == "0" else "true"))
    return tuple(found)


def _read(file: Path) -> list[str]:
    try:
        words = file.read_text().split()
    except OSError:
        return []
    return words if all(word.isdigit() for word in words) else []


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
