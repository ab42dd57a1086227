"""What controllers that were killed have left in switches: removed by another one that listens where they did."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection
from pathlib import Path

from pathcast.errors import PathcastError
from pathcast.steer.config import Config
from pathcast.steer.controller import Controller
from pathcast.steer.kept import load, places

# Open vSwitch looks for a lost controller every 8 s
PATIENCE_S = 10.0


def remove(directory: Path, living: Collection[str], patience_s: float = PATIENCE_S) -> list[str]:
    """Removes the entries of all controllers that have written there, but those that are `living`.

    Says of each what was removed, or, beginning with `not removed`, what was not, and why.
    """
    return [_one(name, path, patience_s) for name, path in places(directory).items() if name not in living]


def names(directory: Path, recorded: Collection[str]) -> dict[str, list[str]]:
    """Of the controllers that have written there, but those `recorded`: the switches that may have their entries."""
    found: dict[str, list[str]] = {}
    for name, path in places(directory).items():
        if name not in recorded:
            found[name] = []
            with contextlib.suppress(PathcastError):  # why one cannot be read `remove` tells
                kept = load(path)
                found[name] = list((kept.switches if kept is not None else None) or {})
    return found


def stays(name: str, switches: Collection[str], listen: str, path: Path) -> str:
    """Says that a controller's entries could not be removed from these switches; path: what knows of it."""
    why = f"not connected to {listen}; if they are no more, remove {path}"
    return f"not removed: entries of steer {name} in {', '.join(switches)}: {why}"


def _one(name: str, path: Path, patience_s: float) -> str:
    try:
        kept = load(path)
        if kept is None:
            return f"entries of steer {name}"
        # nothing of it is wanted now, but where it listened and how its entries are marked
        controller = Controller(Config(listen=kept.listen), name, path, sweep=True)
    except PathcastError as error:
        return f"not removed: entries of steer {name}: {error.message}"
    away = dict(kept.switches or {})
    deadline = time.monotonic() + patience_s
    while away and time.monotonic() < deadline:
        there = {one["id"] for one in controller.state()["switches"] if one["connected"]}
        away = {switch: id for switch, id in away.items() if id not in there}
        time.sleep(0.05)
    if left := controller.close():
        return stays(name, left, kept.listen, path)
    return f"entries of steer {name} in {', '.join(kept.switches or {}) or 'no switch'}"
