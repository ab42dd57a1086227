"""The networks of the second grid, on which adaptive start was not tuned: one shared path, or disjoint ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# by label: subflows, and rate and RTT of each path as parts of the first one's; one path is shared by all
SHAPES: dict[str, tuple[int, tuple[tuple[float, float], ...]]] = {
    **{f"shared, n = {n}": (n, ((1, 1),)) for n in (1, 2, 4, 8)},
    "two alike": (2, ((1, 1), (1, 1))),
    "two unlike": (2, ((1, 1), (0.5, 2))),
}
# ms of the RTT that the access link takes
_ACCESS_MS = 2


def topology(point: Mapping[str, Any], jitter: str) -> str:
    """A scenario's text: each path an access link of 1 Gbit/s, with jitter, and a bottleneck.

    Of the point: `paths`, `rate_mbit` [Mbit/s], `rtt_ms` and `queue` [packet].
    """
    subflows, paths = SHAPES[point["paths"]]
    parts = ['name = "second"', "seed = 1", 'end = "600s"']
    for i, (rate, rtt) in enumerate(paths):
        delay_us = round((point["rtt_ms"] * rtt - _ACCESS_MS) * 500)
        parts += [
            f'[[link]]\nname = "access{i}"\na = "client"\nb = "r{i}"\nrate = "1Gbit"\ndelay = "1ms"',
            f'jitter = {{ amplitude = "{jitter}" }}',
            f'[[link]]\nname = "bottleneck{i}"\na = "r{i}"\nb = "server"\nrate = "{point["rate_mbit"] * rate}Mbit"',
            f'delay = "{delay_us}us"\nqueue = "{point["queue"]} packets"',
            f'[[path]]\nname = "path{i}"\nlinks = ["access{i}", "bottleneck{i}"]',
        ]
    names = ", ".join(f'"path{i}"' for i in range(len(paths)))
    parts += [f'[[flow]]\nname = "bulk"\npaths = [{names}]\ncontrol = "lia"\nbytes = "1MB"\nsubflows = {subflows}']
    return "\n".join(parts) + "\n"
