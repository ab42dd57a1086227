"""Forecasts over lines of all kinds, one path, default measurement, 16 MB by cubic.

`python -m experiments.forecast.kinds RUNS [FIRST]` draws so many lines of each kind, from seed FIRST (1) on, and takes
each line of `topologies/` so often, each time from another moment on. A run a line on stderr, data/kinds.csv on stdout.
"""

from __future__ import annotations

import importlib
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from pathcast.errors import PathcastError
from pathcast.forecast.answer import option
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.forecast import Job, forecast
from pathcast.forecast.watch import watch
from pathcast.worlds.many import Future
from pathcast.worlds.measurement import Request
from pathcast.worlds.results import Transfer
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

_lines = importlib.import_module(f"{__package__.rpartition('.')[0]}.lines.lines")
TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
SHIPPED = ("dsl", "cable", "gpon", "wifi", "lte", "5g", "starlink", "policed")
# a kind: what `lines.draw` is asked for, and what the line that it draws must have
DRAWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fifo, idle": ({"cross": "idle"}, {"shape": "plain"}),
    "fifo, poisson": ({"cross": "inelastic"}, {"shape": "plain", "cross": "poisson"}),
    "fifo, on/off": ({"cross": "inelastic"}, {"shape": "plain", "cross": "pareto-onoff"}),
    "fifo, TCP": ({"cross": "tcp"}, {"shape": "plain"}),
    "fair, inelastic": ({"fair": True, "cross": "inelastic"}, {"shape": "plain"}),
    "fq_codel, TCP": ({"fair": True, "managed": True, "cross": "tcp"}, {"shape": "plain"}),
    "codel, inelastic": ({"managed": True, "cross": "inelastic"}, {"shape": "plain", "queue": "codel"}),
    "pie, inelastic": ({"managed": True, "cross": "inelastic"}, {"shape": "plain", "queue": "pie"}),
    "policed, idle": ({"policed": True, "cross": "idle"}, {}),
    "lossy, idle": ({"cross": "idle"}, {"shape": "loss"}),
    "rate changes, idle": ({"cross": "idle"}, {"shape": "trace"}),
}
BYTES, MOST_BPS, FLOOR_DRAWS = 16_000_000, 100e6, 8
OFF = 0.1
# others' traffic alone, before the measurement
SETTLE_S = (5.0, 60.0)
ALL = Effort(1e9, 10**15)


@dataclass(frozen=True)
class Came:
    """Of one run: forecast over truth, whether the interval holds it, and how far the exact network's median is."""

    off: float
    inside: bool
    width: float
    floor: float


def drawn(kind: str, seed: int) -> Topology:
    """The line of that kind and seed, uploads, of at most 100 Mbit/s."""
    asked, wanted = DRAWN[kind]
    for attempt in range(10_000):
        about = {"fair": False, "managed": False, "policed": False, **asked}
        line = _lines.draw(f"forecast {kind} {seed} {attempt}", **about)
        have = all(getattr(line, key) == value for key, value in wanted.items())
        if have and line.direction == "out" and line.rate_bps <= MOST_BPS:
            return Topology.parse(_lines.one_path(line, seed))
    raise ValueError(f"{kind}: no such line is drawn")


def shipped(name: str, seed: int) -> Topology:
    """A line of `topologies/`."""
    return Topology.load(TOPOLOGIES / f"{name}.toml", [f"seed={seed}"])


def run(topology: Topology, seed: int) -> Came | str:
    """A forecast and what came; where nothing can be said, why."""
    with Sim(topology) as network:
        job = Job(BYTES, Controls(("cubic",), ("lia",)), ends=network.ends)
        network.wait(random.Random(f"begin {seed}").uniform(*SETTLE_S))
        only = [network.paths[0].name]
        try:
            seen = watch(network, network.measure(only, Request(seed=seed)), "out", BYTES, seed * 1000)
            answer = forecast(seen.measured, job, seen.loads, limits=ALL, seed=seed * 1000)
        except PathcastError as error:
            return error.code
        one = Future(tuple(only), BYTES, "cubic")
        others = [replace(one, seed=1 + draw) for draw in range(FLOOR_DRAWS)]
        came, *floor = network.futures([one, *others], keep_errors=True)
    if not isinstance(came, Transfer):
        return came.code
    told = option(answer.runners[0], BYTES, None)["throughput_bps"]
    truth, low, high = came.throughput_bps, told["low"], told["high"]
    rates = [of.throughput_bps for of in floor if isinstance(of, Transfer)]
    wide = (high - low) / truth if low is not None and high is not None else math.inf
    inside = (low or 0.0) <= truth <= (high if high is not None else math.inf)
    return Came(told["value"] / truth - 1, inside, wide, median(rates) / truth - 1 if rates else math.inf)


def rows(runs: int, first: int) -> Iterator[tuple[str, ...]]:
    """Of each kind how many runs and how many of them said nothing, errors, the share inside, the width, the floor."""
    makers = [(name, shipped) for name in SHIPPED] + [(name, drawn) for name in DRAWN]
    for name, make in makers:
        found = []
        for seed in range(first, first + runs):
            found.append(run(make(name, seed), seed))
            print(name, seed, found[-1], file=sys.stderr, flush=True)
        yield _row(name, "a topology" if make is shipped else "drawn", found)


def _row(name: str, of: str, found: Sequence[Came | str]) -> tuple[str, ...]:
    said = [one for one in found if isinstance(one, Came)]
    head = (f'"{name}"', of, str(len(found)), str(len(found) - len(said)))
    if not said:
        return (*head, *("-" * 7))
    off = sorted(abs(one.off) for one in said)
    return (
        *head,
        _percent(median(off)),
        _percent(off[-1]),
        f"{fmean(one <= OFF for one in off):.0%}",
        _percent(median(one.off for one in said), "+"),
        f"{fmean(one.inside for one in said):.0%}",
        _percent(median(one.width for one in said)),
        _percent(median(abs(one.floor) for one in said)),
    )


def _percent(share: float, sign: str = "") -> str:
    return f"{share * 100:{sign}.1f} %" if math.isfinite(share) else "-"


def main(runs: int, first: int) -> None:
    print("line,of,runs,nothing said,error p50,largest,within 10 %,bias,inside,width,the floor")
    for row in rows(runs, first):
        print(",".join(row), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
