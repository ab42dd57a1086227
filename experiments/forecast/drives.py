"""Forecasts over lines whose rate is what others measured second by second from a car, by `predict`'s default.

`python -m experiments.forecast.drives RUNS [FIRST] [even|odd]`: so many lines from seed FIRST (1) on, each a piece of
one operator's series in `../shared/data/access-networks/driving-four-networks.csv.gz` (Hu et al., "LEO satellite vs.
cellular networks", CoNEXT 2023, data), with a delay, a queue, opportunities to send, and a job of 3 to 200 MB drawn.
The widths in `forecast/watch.py` are fitted to even drives. A JSON line a run on stdout, then a table on stderr.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

from experiments.forecast.anywhere import Case, judge, look

from pathcast.forecast.answer import quantile

DATA = Path("../shared/data/access-networks/driving-four-networks.csv.gz")
OPERATORS = ("att", "verizon", "tmobile", "starlink")
# of a piece [s]; no slower [Mbit/s]; jobs [byte], which would take no longer than this at the piece's mean [s]
PIECE_S, LEAST, SIZES, MOST_S = 180, 0.1, (3e6, 2e8), 60.0
DELAYS_MS, QUEUES_S, EVERY = (15, 25, 40), (0.1, 0.25, 0.5), ("1ms", "2500us", "4ms")
GATHERS, BYTES, QUEUE_LEAST = 0.6, "400KB", 64_000
PARITIES = {"even": (0,), "odd": (1,), "all": (0, 1)}


@lru_cache
def series() -> list[tuple[int, str, list[float]]]:
    """The number of each drive, an operator, and its rate each second [Mbit/s]."""
    drives: dict[str, list[dict[str, str]]] = {}
    with gzip.open(DATA, "rt") as file:
        for row in csv.DictReader(file):
            drives.setdefault(row["drive"], []).append(row)
    of = lambda row, name: max(float(row[f"{name}_mbps"] or 0), LEAST)  # noqa: E731
    numbered = enumerate(drives[key] for key in sorted(drives, key=int))
    return [(n, name, [of(row, name) for row in rows]) for n, rows in numbered for name in OPERATORS]


def case(seed: int, folder: str, parities: Sequence[int]) -> Case:
    """That of a seed; its trace is written to the folder."""
    r = random.Random(f"pathcast forecast drives {seed}")  # a str seeds by SHA-512
    name, rates = r.choice([(name, rates) for n, name, rates in series() if n % 2 in parities and len(rates) > PIECE_S])
    begin = r.randrange(len(rates) - PIECE_S)
    piece = rates[begin : begin + PIECE_S]
    rows = "".join(f"{second},{rate:.2f}\n" for second, rate in enumerate(piece))
    Path(folder, f"{seed}.csv").write_text("s,mbps\n" + rows)
    queue = max(QUEUE_LEAST, int(r.choice(QUEUES_S) * median(piece) * 1e6 / 8))
    text = f'name = "drive"\nseed = {seed}\n[[link]]\nname = "radio"\na = "client"\nb = "server"\n'
    text += f'rate = {{ trace = "{seed}.csv" }}\ndelay = "{r.choice(DELAYS_MS)}ms"\nqueue = "{queue}B"\n'
    if name != "starlink" and r.random() < GATHERS:
        text += f'aggregation = {{ every = "{r.choice(EVERY)}", bytes = "{BYTES}" }}\n'
    text += '[[path]]\nname = "path1"\nlinks = ["radio"]\n'
    size = math.exp(r.uniform(*map(math.log, SIZES)))
    size = max(1e6, min(size, fmean(piece) * 1e6 / 8 * MOST_S))
    return Case(seed, text, folder, (name,), round(size), "out")


def table(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """By operators; errors, and the interval's width, in logarithms."""
    yield "of,runs,nothing said,error p50,p90,bias,inside,width"
    for name in (*OPERATORS, "all"):
        of = [run for run in runs if name in (*run["kinds"], "all")]
        said = [run["options"][0] for run in of if "options" in run]
        said = [one for one in said if one["truth"] and one["value"]]
        if not said:
            continue
        off = [math.log(one["value"] / one["truth"]) for one in said]
        inside = fmean((one["low"] or 0) <= one["truth"] <= (one["high"] or math.inf) for one in said)
        widths = [math.log((one["high"] or math.inf) / one["low"]) if one["low"] else math.inf for one in said]
        far = sorted(map(abs, off))
        yield (
            f"{name},{len(of)},{len(of) - len(said)},{median(far):.2f},{quantile(far, 0.9):.2f},{median(off):+.2f},"
            f"{inside:.0%},{median(widths):.2f}"
        )


def main(runs: int, first: int, parities: Sequence[int]) -> None:
    """See the module."""
    found = []
    with TemporaryDirectory() as folder:
        for seed in range(first, first + runs):
            found.append(judge(look(case(seed, folder, parities))))
            print(json.dumps(found[-1]), flush=True)
    for line in table(found):
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int((*sys.argv[2:], "1")[0]), PARITIES[(*sys.argv[3:], "all")[0]])
