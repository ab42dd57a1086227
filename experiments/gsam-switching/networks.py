"""The networks beside the paper's: the second grid's, listed in the plan, and those that are drawn by their number."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

# by label: subflows, and rate and RTT of each path as parts of the first one's; one path is shared by all
SHAPES: dict[str, tuple[int, tuple[tuple[float, float], ...]]] = {
    **{f"shared, n = {n}": (n, ((1, 1),)) for n in (1, 2, 4, 8)},
    "two alike": (2, ((1, 1), (1, 1))),
    "two unlike": (2, ((1, 1), (0.5, 2))),
}
# ms of the RTT that the access link takes
_ACCESS_MS = 2


class Path(NamedTuple):
    """A path's rate [Mbit/s], RTT [ms] and queue [packet]."""

    rate_mbit: float
    rtt_ms: float
    queue: int


class Network(NamedTuple):
    """What is simulated: the label of its shape, the subflows, and the paths; a single one is shared by all."""

    shape: str
    subflows: int
    paths: tuple[Path, ...]

    def __str__(self) -> str:
        """In words."""
        alike = len(set(self.paths)) == 1
        told = [f"{p.rate_mbit:g} Mbit/s, RTT {p.rtt_ms:g} ms, queue {p.queue:g}" for p in self.paths]
        return f"{self.shape}, {told[0] if alike else ' and '.join(told)}"


def listed(point: Mapping[str, Any]) -> Network:
    """A network of the second grid: `paths`, `rate_mbit`, `rtt_ms` and `queue` of the point."""
    subflows, shape = SHAPES[point["paths"]]
    rate, rtt, queue = (point[key] for key in ("rate_mbit", "rtt_ms", "queue"))
    return Network(point["paths"], subflows, tuple(Path(rate * r, rtt * t, queue) for r, t in shape))


def drawn(number: int, ranges: Mapping[str, Any]) -> Network:
    """A network by its number: the shapes in turn, rates, RTTs and queues evenly in the logarithm.

    Two unlike paths are drawn one as the other, and have nothing to do with each other.
    """
    draws = random.Random(f"gsam-switching network {number}")

    def between(key: str) -> float:
        least, most = ranges[key]
        return math.exp(draws.uniform(math.log(least), math.log(most)))

    def path() -> Path:
        return Path(round(between("rate_mbit"), 1), round(between("rtt_ms")), round(between("queue")))

    shape = list(SHAPES)[number % len(SHAPES)]
    one, other = path(), path()
    subflows, parts = SHAPES[shape]
    return Network(shape, subflows, (one, other if shape == "two unlike" else one)[: len(parts)])


def network(point: Mapping[str, Any], setup: Mapping[str, Any]) -> Network:
    """The point's: by its number, or as it is listed."""
    return drawn(int(point["network"]), setup["drawn"]) if "network" in point else listed(point)


def topology(net: Network, jitter: str) -> str:
    """A scenario's text: each path an access link of 1 Gbit/s, with jitter, and a bottleneck."""
    parts = ['name = "second"', "seed = 1", 'end = "600s"']
    for i, path in enumerate(net.paths):
        delay_us = round((path.rtt_ms - _ACCESS_MS) * 500)
        parts += [
            f'[[link]]\nname = "access{i}"\na = "client"\nb = "r{i}"\nrate = "1Gbit"\ndelay = "1ms"',
            f'jitter = {{ amplitude = "{jitter}" }}',
            f'[[link]]\nname = "bottleneck{i}"\na = "r{i}"\nb = "server"\nrate = "{path.rate_mbit}Mbit"',
            f'delay = "{delay_us}us"\nqueue = "{path.queue} packets"',
            f'[[path]]\nname = "path{i}"\nlinks = ["access{i}", "bottleneck{i}"]',
        ]
    names = ", ".join(f'"path{i}"' for i in range(len(net.paths)))
    parts += [f'[[flow]]\nname = "bulk"\npaths = [{names}]\ncontrol = "lia"\nbytes = "1MB"\nsubflows = {net.subflows}']
    return "\n".join(parts) + "\n"
