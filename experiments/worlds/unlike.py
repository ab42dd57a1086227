"""Two lines of unlike rates and round trips, by cubic: over both, the faster or the slower first, and over the faster
alone; the simulator beside transfers of the kernel, one or a few each (data/emu-unlike.csv)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from pathcast.lab.experiment import Finding, Results, Table
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

STORED = Path(__file__).parent / "data" / "emu-unlike.csv"
# both, the faster first; both, the slower first; the faster alone
PATHS = {"fast": ("fast", "slow"), "slow": ("slow", "fast"), "alone": ("fast",)}


def lines(text: str) -> list[tuple[str, float, float, int]]:
    """Of `100, 180, 1000; 100, 20, 1000`, Mbit/s, RTT in ms and packets of the slower and of the faster line."""
    found = []
    for name, line in zip(("slow", "fast"), text.split(";"), strict=True):
        rate, rtt_ms, packets = line.split(",")
        found.append((name, float(rate), float(rtt_ms), int(packets)))
    return found


def scenario(point: Mapping[str, Any]) -> dict[str, Any]:
    """Text and transfer."""
    text = 'name = "unlike"\n'
    for name, rate, rtt_ms, packets in lines(point["lines"]):
        text += f'[[link]]\nname = "{name}"\na = "client"\nb = "server"\nrate = "{rate:g}Mbit"\n'
        text += f'delay = "{round(rtt_ms * 500)}us"\nqueue = "{packets} packets"\n'
        text += f'[[path]]\nname = "{name}"\nlinks = ["{name}"]\n'
    paths = list(PATHS[point["first"]])
    about = {"text": text, "topology": "", "paths": paths, "control": "cubic", "seed": point["seed"]}
    return {**about, "bytes": int(point["bytes"].removesuffix("MB")) * 1_000_000}


def kernel() -> dict[tuple[str, str, str], tuple[float, float]]:
    """By lines, bytes and what came first: least and most Mbit/s."""
    with STORED.open(newline="") as rows:
        return {
            (row["lines"], row["bytes"], row["first"]): (float(row["least"]), float(row["most"]))
            for row in csv.DictReader(rows)
        }


def pairs(results: Results) -> Iterator[tuple[tuple[str, str, str], list[float], tuple[float, float]]]:
    """Lines, bytes and what came first; the simulator's throughput in Mbit/s, the kernel's least and most."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in results.rows:
        if row["grid"] == "unlike" and row["error"] is None:
            about = (row["lines"], row["bytes"], row["first"])
            found.setdefault(about, []).extend(bps / 1e6 for bps in row["sim_bps"])
    return ((about, found[about], of) for about, of in kernel().items() if about in found)


def gap(simulated: list[float], of: tuple[float, float]) -> float:
    """Median in the simulator over the nearest that the kernel gave; 1 between its least and most."""
    middle = median(simulated)
    return middle / min(max(middle, of[0]), of[1])


def table(results: Results) -> Table:
    """Mbit/s: medians and what they are between."""
    header = (
        "lines (Mbit/s, RTT in ms, packets)",
        "bytes",
        "first",
        "kernel",
        "simulator",
        "least to most",
        "sim/kernel",
    )
    rows = []
    for (text, size, first), simulated, of in pairs(results):
        least_most = f"{min(simulated):.1f} to {max(simulated):.1f}"
        told = f"{of[0]:.1f}" if of[0] == of[1] else f"{of[0]:.1f} to {of[1]:.1f}"
        rows.append((text, size, first, told, f"{median(simulated):.1f}", least_most, f"{gap(simulated, of):.2f}"))
    return header, rows


def near(results: Results, claim: Claim) -> Finding:
    """How many transfers are as near to the kernel's as the claim says."""
    verdict, found = Verdict(), list(pairs(results))
    off = [
        (about, gap(simulated, of)) for about, simulated, of in found if abs(gap(simulated, of) - 1) > claim.threshold
    ]
    told = f"{len(found) - len(off)} of {len(found)} transfers"
    verdict.needs(not off if found else None, told)
    verdict.details += [f"{text}; {size}, {first}: {ratio:.2f}" for (text, size, first), ratio in off]
    return verdict.finding(told)
