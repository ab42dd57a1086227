#!/usr/bin/env python3
"""The rates of the shipped radio lines, drawn from published distributions: `python scripts/rates.py` writes them anew.

Each is a chain in the logarithm of the rate with the wanted spread and correlation, moved to the wanted median and cut at
its bounds; the seed is part of the name. Sources stand in the topologies.
"""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "python" / "pathcast" / "topologies"
# seconds a step, steps, median [Mbit/s], deviation of the logarithm, correlation of neighbours, bounds [Mbit/s]
FILES = {
    "starlink-down": (15.0, 80, 178.0, 0.35, 0.2, (25.0, 386.0)),
    "starlink-up": (15.0, 80, 17.0, 0.35, 0.2, (3.0, 64.0)),
    "5g-down": (1.0, 600, 100.0, 1.2, 0.85, (5.0, 578.0)),
    "5g-up": (1.0, 600, 50.0, 1.2, 0.85, (2.5, 289.0)),
    "lte-down": (1.0, 600, 9.6, 0.7, 0.7, (0.5, 21.0)),
    "lte-up": (1.0, 600, 4.9, 0.7, 0.7, (0.3, 21.0)),
}


def rows(name: str) -> str:
    step, steps, median, spread, correlation, (least, most) = FILES[name]
    draw = random.Random(f"pathcast {name} 1")
    states = [draw.gauss(0.0, 1.0)]
    while len(states) < steps:
        states.append(correlation * states[-1] + math.sqrt(1 - correlation**2) * draw.gauss(0.0, 1.0))
    middle = statistics.median(states)  # of so few, and correlated, far from zero
    lines = ["s,mbps"]
    for i, state in enumerate(states):
        rate = min(max(median * math.exp(spread * (state - middle)), least), most)
        lines.append(f"{i * step:g},{rate:.2f}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in FILES:
        (FOLDER / f"{name}.csv").write_text(rows(name))
