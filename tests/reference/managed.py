"""Managed queues of ours beside stored runs of ns-3: `python tests/reference/managed.py` prints the table as CSV.

Runs of one queue and number of flows differ in the starts of the flows and in the seed; means over them are compared.
What is counted begins at `from_s`: how a slow start overshoots is the senders' business.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import compare
import networks

# at ns-3's device one packet of 1502 bytes waits behind the disc, out of its sojourn, while the line is busy
DEVICE_MS = 1502 * 8 / 50e6 * 1e3


@dataclass(frozen=True)
class Row:
    """What one run, or the mean of several, came to."""

    goodput_mbit: float
    drops: float
    sojourn_ms: float


def mean(rows: Iterable[Row]) -> Row:
    values = [(row.goodput_mbit, row.drops, row.sojourn_ms) for row in rows]
    return Row(*map(statistics.mean, zip(*values, strict=True)))


def theirs(run: dict[str, Any]) -> Row:
    return Row(run["goodput_bps"] / 1e6, run["drops"], run["sojourn_ms"])


def ours(run: dict[str, Any]) -> Row:
    """The same network here. What was by `from_s` is found by a run that ends then."""
    begin, end = int(run["from_s"]), int(run["simulated_s"])
    text = networks.managed(run["disc"], run["flows"], run["offset_us"], end)
    seed = run["command"].rpartition("--RngRun=")[2]
    seen = []
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        for until in (begin, end):
            document = compare.simulate(file.name, [f"seed={seed}", f"end={until}s"])
            [link] = [x for x in document["links"] if (x["name"], x["direction"]) == ("bottleneck", "ab")]
            managed, packets = link["managed"], link["packets"]
            bits = 8 * sum(flow["bytes"] for flow in document["flows"])
            seen.append((bits, link["drops"], managed["sojourn_s"] * packets, packets, link["utilisation"] * until))
    bits, drops, sojourn, packets, busy = (last - first for first, last in zip(*seen, strict=True))
    # the device holds a packet while the line is busy
    device = DEVICE_MS * busy / (end - begin)
    return Row(bits / (end - begin) / 1e6, drops, 1e3 * sojourn / packets - device)


def cells() -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The stored runs by queue and number of flows."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in compare.stored("managed"):
        found.setdefault((run["disc"], run["flows"]), []).append(run)
    return found


def main() -> None:
    print('queue,flows,runs,"goodput, ours [Mbit/s]",ns-3,,"drops, ours",ns-3,,"sojourn, ours [ms]",ns-3,')
    for (disc, flows), runs in cells().items():
        mine, other = mean(map(ours, runs)), mean(map(theirs, runs))
        row = [disc, str(flows), str(len(runs))]
        for name, digits in (("goodput_mbit", 2), ("drops", 0), ("sojourn_ms", 2)):
            a, b = getattr(mine, name), getattr(other, name)
            row += [f"{a:.{digits}f}", f"{b:.{digits}f}", f"{100 * (a / b - 1):+.1f}%"]
        print(",".join(row))


if __name__ == "__main__":
    main()
