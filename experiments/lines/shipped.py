"""The lines of `topologies/`: their first path, whose first link bounds it."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathcast.worlds.topology import Topology

from ..measuring.measured import LARGE
from .truth import END

TOPOLOGIES = Path(__file__).parents[2] / "topologies"

Rates = list[tuple[float, float]]


def shipped(name: str, direction: str, seed: int) -> dict[str, Any]:
    """What `lines.draw` gives of a drawn one, of `topologies/NAME.toml`; the rates are those of large probes."""
    from pathcast import _native

    r = random.Random(f"pathcast varying {name} {direction} {seed}")  # a str seeds by SHA-512
    topology = Topology.load(TOPOLOGIES / f"{name}.toml")
    link = _link(topology, END[direction][1:])
    own = LARGE / (LARGE + _bytes(link.get("overhead", "0B")))
    return {
        "topology": name,
        "text": topology.text,
        # of both directions: what is sent the other way, answers too, is late by that
        "traces": topology.traces(),
        "rates": [(at, rate * own) for at, rate in _rates(link)],
        # a policer's burst passes at the line's own
        "most_bps": float(_native.parse_rate(link["rate"])) if "policer" in link else 0.0,
        "direction": direction,
        "settle_s": r.uniform(0.5, 200),
        "seed": seed,
    }


def _link(topology: Topology, end: str) -> Mapping[str, Any]:
    links: list[Mapping[str, Any]] = topology.scenario["links"]
    return {**links[0][end], "name": links[0]["name"]}


def _bytes(size: str) -> int:
    from pathcast import _native

    return _native.parse_bytes(size)


def _rates(link: Mapping[str, Any]) -> Rates:
    from pathcast import _native

    bound = math.inf
    if "policer" in link:
        bound = _native.parse_rate(link["policer"]["rate"])
    if "aggregation" in link:
        gather = link["aggregation"]
        bound = min(bound, _bytes(gather["bytes"]) * 8e9 / _native.parse_duration(gather["every"]))
    if "trace" not in link:
        return [(0.0, min(bound, float(_native.parse_rate(link["rate"]))))]
    with (TOPOLOGIES / Path(link["trace"]["file"]).name).open() as file:
        return [(float(row["s"]), min(bound, float(row["mbps"]) * 1e6)) for row in csv.DictReader(file)]
