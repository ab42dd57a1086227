"""Many simulated transfers in one call beside a call each: prints a table and writes out/bench-futures.json.

  draws:   a network drawn around one text, half a second of its cross traffic, a transfer of 4 MB over two paths; the
           calls of one each read the text, build the network and hand over one result, as `Sim` does
  futures: the same transfer in copies of one network after a warm-up of 20 s; alone each has the warm-up to itself
Time of the machine's clock: threads are what one of them is for. In turn, so that what else goes on falls on both.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pathcast.machine import machine, versions
from pathcast.worlds.many import Draw, Future, draws
from pathcast.worlds.results import Transfer
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

REPETITIONS = 5
K = 64
TEXT = """
name = "futures"
link = [
  { name = "a", a = "client", b = "server", rate = "40Mbit", delay = "15ms", queue = "300KB", loss = 0.0002 },
  { name = "b", a = "client", b = "server", rate = "20Mbit", delay = "20ms", queue = "200KB" },
]
path = [{ name = "a", links = ["a"] }, { name = "b", links = ["b"] }]
traffic = [
  { kind = "poisson", name = "others", link = "a", direction = "ab", rate = "8Mbit" },
  { kind = "tcp", path = "b" },
]
"""
TOPOLOGY = Topology.parse(TEXT)
BOTH, SIZE, WAIT_S, WARM_S = ("a", "b"), 4_000_000, 0.5, 20.0
SETS = [(("seed", str(n)), ("traffic.others.rate", f"{4 + n / 8:g}Mbit")) for n in range(K)]


def draws_at_once() -> list[Any]:
    return [one for [one] in draws(TOPOLOGY, [Draw(sets, (Future(BOTH, SIZE),), WAIT_S) for sets in SETS])]


def draws_one_by_one() -> list[Any]:
    found = []
    for sets in SETS:
        with Sim(Topology.parse(TEXT, [f"{key}={value}" for key, value in sets])) as world:
            world.wait(WAIT_S)
            found.append(world.transfer(BOTH, SIZE))
    return found


def futures_at_once() -> list[Any]:
    with Sim(TOPOLOGY) as world:
        world.wait(WARM_S)
        return world.futures([Future(BOTH, SIZE, seed=n) for n in range(K)])


def futures_one_by_one() -> list[Any]:
    found = []
    for n in range(K):
        with Sim(TOPOLOGY) as world:
            world.wait(WARM_S)
            with world.copy(seed=n) as copy:
                found.append(copy.transfer(BOTH, SIZE))
    return found


def timed(work: Callable[[], list[Any]]) -> tuple[float, list[Any]]:
    begun = time.monotonic()
    found = work()
    return time.monotonic() - begun, found


def compared(name: str, at_once: Callable[[], list[Any]], one_by_one: Callable[[], list[Any]]) -> dict[str, Any]:
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPETITIONS):
        (together, found), (apart, alone) = timed(at_once), timed(one_by_one)
        if [same(one) for one in found] != [same(one) for one in alone]:
            raise SystemExit(f"{name}: the results differ")
        took[0].append(together)
        took[1].append(apart)
    together, apart = map(statistics.median, took)
    ratios = [slow / fast for fast, slow in zip(*took, strict=True)]
    print(
        f"{name:8} {K:3} in one call {together:7.3f} s, a call each {apart:7.3f} s: "
        f"{statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )
    return {"what": name, "transfers": K, "one_call_s": took[0], "a_call_each_s": took[1], "ratio": ratios}


def same(one: Transfer) -> Any:
    return {key: value for key, value in one.document().items() if key != "wall_s"}


def main() -> int:
    rows = [
        compared("draws", draws_at_once, draws_one_by_one),
        compared("futures", futures_at_once, futures_one_by_one),
    ]
    out = Path("out")
    out.mkdir(exist_ok=True)
    document = {"schema": "pathcast.bench-futures/1", "host": machine(), "versions": versions(), "rows": rows}
    (out / "bench-futures.json").write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
