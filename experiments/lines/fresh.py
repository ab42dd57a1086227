"""Lines of fresh seeds, judged while an estimator is worked on; the plan's own seeds stay unseen.

    python experiments/lines/fresh.py out.jsonl --seeds 1001-1006 --most 60e6

A line of JSON a sample, those that are there already are kept; then the shares of every property. `--grid real`: paths
of `../shared/data/real-paths`, which have Poisson traffic that changes every second; `--grid near`: lines as people
have them (`near.py`), also with `--world emu`. `--worst N`: those N besides whose available bandwidth or capacity is
the farthest off.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment

HERE = Path(__file__).parent
SHIPPED = ("lte", "5g", "starlink", "wifi", "cable", "gpon", "dsl", "policed")
REAL = Experiment(HERE.parent / "real-paths")
PROFILES = "../shared/data/real-paths/ibox-profiles.jsonl.gz"
KEYS = (
    "near",
    "wide",
    "wander",
    "beside",
    "grid",
    "profile",
    "line",
    "direction",
    "effort",
    "fair",
    "managed",
    "shared",
    "cross",
    "seed",
)


def points(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What is to be measured, all classes of a seed one after the other."""
    first, last = (int(one) for one in arguments.seeds.split("-"))
    two = (False, True)
    for seed in range(first, last + 1):
        for grid in arguments.grid:
            if grid == "real":
                yield from ({"grid": grid, "effort": arguments.effort, "seed": seed, "profile": one} for one in real())
                continue
            if grid == "near":
                yield from near(seed, arguments)
                continue
            if grid == "wide":
                yield from wide(seed, arguments)
                continue
            if grid == "wander":
                for beside in Experiment(HERE).module("near").CROSS:
                    about = {"grid": "queues", "wander": True, "beside": beside, "fair": False, "managed": False}
                    yield {**about, "cross": beside, "effort": arguments.effort, "seed": seed}
                continue
            over: dict[str, tuple[Any, ...]] = {"cross": tuple(arguments.cross)}
            if grid == "shipped":
                over = {"line": SHIPPED, "direction": ("out", "in")}
            elif grid != "policed":
                over |= {"fair": two, "managed": two}
            if grid == "pairs":
                over |= {"shared": two}
            for values in itertools.product(*over.values()):
                yield {"grid": grid, "effort": arguments.effort, "seed": seed, **dict(zip(over, values, strict=True))}


def near(seed: int, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Those of `near.py`, under the names of the drawn lines' classes."""
    kinds = Experiment(HERE).module("near")
    for kind, cross in itertools.product(kinds.KINDS, kinds.CROSS):
        line = kinds.draw(kind, cross, seed)
        grid = "policed" if kind == "policed" else "queues"
        point = {"grid": grid, "near": kind, "fair": line.fair, "managed": line.managed, "cross": cross}
        yield {**point, "effort": arguments.effort, "seed": seed}


def wide(seed: int, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Those of `wide.py`, likewise."""
    kinds = Experiment(HERE).module("wide")
    for kind, beside in itertools.product(kinds.KINDS, kinds.CROSS):
        line = kinds.draw(kind, beside, seed)
        point = {"grid": "queues", "wide": kind, "beside": beside, "fair": line.fair, "managed": line.managed}
        yield {**point, "cross": line.cross, "effort": arguments.effort, "seed": seed}


def name(point: dict[str, Any]) -> str:
    """Of a sample."""
    return " ".join(str(point[key]) for key in KEYS if key in point)


def real() -> list[str]:
    """Profiles, one of each source."""
    profiles = REAL.module("profiles")
    return [profile.id for profile in profiles.drawn(list(profiles.load(PROFILES).values()), 1000)]


def path(point: dict[str, Any]) -> dict[str, Any]:
    """The scenario of a profile, as of a line."""
    samples, profile = REAL.module("samples"), REAL.module("profiles").load(PROFILES)[point["profile"]]
    start_s = random.Random(f"{profile.id} {point['seed']}").uniform(0, len(profile.cross_kbps))
    rate = profile.rate_kbps * 1e3
    case = {"rate_bps": rate, "rtt_s": 2e-3 * profile.one_way_ms, "load": profile.load, "kind": "poisson", "flows": 0}
    case |= {"queue": "drop-tail", "depth_s": profile.queue_packets * 12e3 / rate, "shape": "real", "loss_rate": 0.0}
    text = samples.text(profile, start_s, point["seed"])
    about = {"text": text, "case": case, "rates": [(0.0, rate)], "again": False, "link": "bottleneck"}
    return about | {
        "direction": "out",
        "settle_s": 5.0,
        "seed": point["seed"],
        "effort": point["effort"],
        "next_s": 60.0,
    }


def run(point: dict[str, Any], least: float, most: float, watch: bool, world: str) -> dict[str, Any] | None:
    """A row; None where the line is not of these rates."""
    samples = Experiment(HERE).module("samples")
    if point.get("near"):
        about = Experiment(HERE).module("near").scenario(point, world)
    elif point.get("wide"):
        about = Experiment(HERE).module("wide").scenario(point, world)
    elif point.get("wander"):
        about = Experiment(HERE).module("wander").scenario(point, world)
    else:
        about = path(point) if point["grid"] == "real" else samples.scenario(point, {}, world)
    if point["grid"] == "shipped":
        # as a user asks, whose bytes are for both
        about["asked"] = ("out", "in")
    if not least <= about["case"].get("rate_bps", least) <= most:
        return None
    if not watch and point["grid"] != "real":
        about |= {"flow": False, "next_s": None}
    began = time.process_time()
    try:
        row = {**point, **samples.sample(about, world), "error": None}
    except PathcastError as error:
        row = {**point, **about["case"], "error": error.code}
    return row | {"name": name(point), "processor_s": round(time.process_time() - began, 2)}


def shares(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Recall and precision of every property."""
    judged = Experiment(HERE).module("judged")
    claims = Experiment(HERE).module("claims")
    for word, about in judged.PROPERTIES.items():
        pairs = about.rows(rows)
        for label, which in zip(about.words, (True, False), strict=True):
            recall = [said is which for so, said in pairs if so is which]
            precision = [so is which for so, said in pairs if said is which]
            if recall:
                right = f"{sum(recall)} of {len(recall)}, said rightly {sum(precision)} of {len(precision)}"
                yield f"{word:8} {label:18} {right}"
    of = [row for row in rows if row["error"] is None and "rate_mean_bps" in row]
    fifo = [row for row in of if row.get("queue") == "drop-tail" and row["grid"] != "policed"]
    yield f"depth    drop-tail          {sum(claims.found_depth(row, 0.2, 0.5) for row in fifo)} of {len(fifo)}"
    standing = [row for row in of if row.get("standing_s") and row["queue"] != "drop-tail"]
    yield f"depth    standing           {sum(claims.found_depth(row, 0.2, 0.5) for row in standing)} of {len(standing)}"
    for shape, kind in (("plain", "none"), ("loss", "alone"), ("gilbert-elliott", "bursts")):
        held = [judged.holds(row, "random_loss", row["loss_rate"]) for row in of if row.get("shape") == shape]
        yield f"loss     {kind:18} {sum(held)} of {len(held)}"
    for entry in ("available", "tcp"):
        truth = judged.available if entry == "available" else lambda row: row.get("tcp_truth_bps")
        some = [row for row in of if truth(row) is not None]
        off = [abs(row[entry] - truth(row)) / row["rate_mean_bps"] for row in some if row.get(entry) is not None]
        held = [judged.holds(row, entry, truth(row)) for row in some]
        if off:
            yield f"{entry:8} off {median(off):.3f} of {len(off)}, inside {sum(held)} of {len(held)}"
    later = [row for row in of if row.get("next_truth_bps") is not None]
    held = [judged.holds(row, "load_next", row["next_truth_bps"]) for row in later]
    yield f"mean     inside             {sum(held)} of {len(held)}"


def far(row: dict[str, Any]) -> float:
    """By how much of the line's rate the interval of the available bandwidth misses the truth, or by how many times as
    much the capacity does; a half where there is no interval."""
    if row["error"] is not None or "rate_mean_bps" not in row:
        return 1.0
    judged = Experiment(HERE).module("judged")
    truth, low, high = judged.available(row), row.get("available_low"), row.get("available_high")
    off = 0.5 if low is None and high is None else max((low or 0.0) - truth, truth - (high or truth), 0.0)
    capacity = row.get("capacity")
    ratio = capacity / row["rate_most_bps"] - 1.0 if capacity else 0.0
    less = row["rate_least_bps"] / capacity - 1.0 if capacity else 0.0
    return max(off if off == 0.5 else off / row["rate_mean_bps"], ratio, less)


def worst(rows: list[dict[str, Any]], count: int) -> Iterator[str]:
    """Those that are farthest off: rates in Mbit/s."""
    for row in sorted(rows, key=far, reverse=True)[:count]:

        def rate(key: str, row: dict[str, Any] = row) -> str:
            return "-" if row.get(key) is None else f"{row[key] / 1e6:.4g}"

        truth = f"{rate('available_truth_bps')} of {rate('rate_mean_bps')}"
        found = f"{rate('available')} ({rate('available_low')} to {rate('available_high')}) {row.get('available_why')}"
        capacity = (
            f"capacity {rate('capacity')} ({rate('capacity_low')} to {rate('capacity_high')}) {row.get('capacity_why')}"
        )
        about = f"{row.get('queue', '')} {row.get('shape', '')} {row.get('kind', '')}"
        about += f" {1e3 * (row.get('rtt_s') or 0):.0f} ms"
        yield f"{far(row):6.3f} {row['name']}: {about}; available {truth}: {found}; {capacity}"


def main() -> None:
    """Runs what is not there, and judges all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", default="1001-1002")
    parser.add_argument(
        "--grid",
        nargs="+",
        default=["queues"],
        choices=["queues", "policed", "pairs", "real", "shipped", "near", "wide", "wander"],
    )
    parser.add_argument("--cross", nargs="+", default=["idle", "tcp", "inelastic"])
    parser.add_argument("--effort", default="thorough")
    parser.add_argument("--least", type=float, default=0, help="rate [bit/s]")
    parser.add_argument("--most", type=float, default=2e9, help="rate [bit/s]")
    parser.add_argument("--watch", action="store_true", help="what comes after, too: load and standing delay")
    parser.add_argument("--world", default="sim", choices=["sim", "emu"])
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.out.open()] if arguments.out.exists() else []
    there = {row["name"] for row in rows}
    todo = [point for point in points(arguments) if name(point) not in there]
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.out.open("a") as out:
        limits = (arguments.least, arguments.most, arguments.watch, arguments.world)
        for row in pool.map(run, todo, *([limit] * len(todo) for limit in limits)):
            if row is not None:
                rows.append(row)
                out.write(json.dumps(row) + "\n")
                out.flush()
    print(f"{len(rows)} samples, {sum(row['processor_s'] for row in rows):.0f} s of processor time")
    print("\n".join(shares(rows)))
    print("\n".join(worst(rows, arguments.worst)))


if __name__ == "__main__":
    main()
