"""Lines whose rate, delay or queue is not still: drawn from a seed by class, or those of `topologies/` by name.

What is drawn: rates of 1 Mbit/s to 1 Gbit/s and round trips of 5 to 200 ms, evenly in logarithms; queues of 30 to 1000
packets; idle or Poisson traffic of half the mean rate.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pathcast.errors import usage
from pathcast.scenario import Scenario

from ..measuring.network import Cross, Link, toml

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
# the rates of a line that changes follow each other for so long [s], then again
PERIOD_S = 60.0
# deviation of a step's rate from the mean, in logarithms; no less and no more than this many times it
SPREAD, LEAST, MOST = 0.35, 0.4, 2.0

Rates = list[tuple[float, float]]


def draw(kind: str, load: float, seed: int) -> dict[str, Any]:
    """The line of that class, load (share of the mean rate) and seed.

    Its text, from when on it has which rate [s, bit/s], how long to wait before, and what is asked for. Raises
    PathcastError for a class that there is not.
    """
    r = random.Random(f"pathcast varying {kind} {load} {seed}")  # a str seeds by SHA-512
    if kind not in CLASSES:
        raise usage(f"there are no lines {kind!r}: {', '.join(CLASSES)}")

    def log(low: float, high: float) -> float:
        return math.exp(r.uniform(math.log(low), math.log(high)))

    rate, rtt_s, queue = round(log(1e6, 1e9)), log(5e-3, 0.2), round(log(30, 1000))
    more, rates, loss, discipline = CLASSES[kind](r, rate)
    cross = (Cross("poisson", f"{round(load * rate)}bit"),) if load else ()
    kept = f", packets = {queue}" if discipline == "fair" else ""
    size = f'"{queue} packets"' if discipline is None else f'{{ kind = "{discipline}"{kept} }}'
    # the access lines have 1 ms each way
    one_way = f'"{max(0, round(rtt_s / 2 * 1e6) - 2000)}us"'
    link = Link(f'"{round(rates[0][1])}bit"', size, one_way, f"{loss:.5f}", cross, more)
    text = toml((link,), '"2500Mbit"', seed, "varying")
    for at, now in rates[1:]:
        text += f'\n[[change]]\nat = "{round(at * 1000)}ms"\nlink = "l1"\nrate = "{round(now)}bit"\n'
    settle_s = r.uniform(0.5, 20) if len(rates) > 1 else 0.5
    return {"text": text, "rates": rates, "direction": "out", "settle_s": settle_s, "request": {"seed": seed}}


Drawn = tuple[str, Rates, float, str | None]


def _steps(every_s: float) -> Callable[[random.Random, float], Drawn]:
    def of(r: random.Random, rate: float) -> Drawn:
        def now() -> float:
            return rate * min(max(math.exp(r.gauss(0, SPREAD)), LEAST), MOST)

        return "", [(k * every_s, now()) for k in range(round(PERIOD_S / every_s))], 0.0, None

    return of


def _jitter(r: random.Random, rate: float) -> Drawn:
    step = r.choice((1, 5, 20))
    return f'jitter = {{ amplitude = "{r.uniform(0.1, 5):.3f}ms", step = "{step}ms" }}\n', [(0.0, rate)], 0.0, None


def _aggregation(r: random.Random, rate: float) -> Drawn:
    every_s = math.exp(r.uniform(math.log(1e-3), math.log(1e-2)))
    # what fits into an opportunity does not bound the rate
    size = max(3000, round(rate * every_s / 8 * r.uniform(1.2, 2)) + 1500)
    return f'aggregation = {{ every = "{round(every_s * 1e6)}us", bytes = "{size}B" }}\n', [(0.0, rate)], 0.0, None


def _loss(r: random.Random, rate: float) -> Drawn:
    return "", [(0.0, rate)], math.exp(r.uniform(math.log(1e-4), math.log(0.05))), None


def _queue(kind: str | None) -> Callable[[random.Random, float], Drawn]:
    return lambda r, rate: ("", [(0.0, rate)], 0.0, kind)


CLASSES: dict[str, Callable[[random.Random, float], Drawn]] = {
    "constant": _queue(None),
    "steps of 15 s": _steps(15.0),
    "steps of 1 s": _steps(1.0),
    "steps of 100 ms": _steps(0.1),
    "aggregation": _aggregation,
    "jitter": _jitter,
    "loss": _loss,
    **{kind: _queue(kind) for kind in ("fair", "codel", "fq_codel", "pie")},
}


def shipped(name: str, direction: str, seed: int, packet: int) -> dict[str, Any]:
    """The same of the first path of `topologies/NAME.toml`, whose first link bounds it.

    packet: IP bytes of the probes, to which the link's overhead is added.
    """
    r = random.Random(f"pathcast varying {name} {direction} {seed}")
    read = Scenario.load(TOPOLOGIES / f"{name}.toml")
    end = {"out": "ab", "in": "ba"}[direction]
    link = _link(name, end)
    own = packet / (packet + _bytes(link.get("overhead", "0B")))
    rates = [(at, rate * own) for at, rate in _rates(link)]
    return {
        "topology": name,
        "text": read.text,
        "rates": rates,
        "direction": direction,
        "settle_s": r.uniform(0.5, 200),
        "request": {"seed": seed},
        "seed": seed,
    }


def _link(name: str, end: str) -> Mapping[str, Any]:
    from pathcast.worlds.topology import Topology

    links: list[Mapping[str, Any]] = Topology.load(TOPOLOGIES / f"{name}.toml").scenario["links"]
    return links[0][end]


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


def between(rates: Rates, begin_s: float, end_s: float) -> tuple[float, float, float]:
    """Mean, least and most [bit/s] from one time to another.

    The rates begin again at their end, which is as far behind the last one as that one is behind the one before.
    """
    if len(rates) == 1:
        return rates[0][1], rates[0][1], rates[0][1]
    period = 2 * rates[-1][0] - rates[-2][0]
    marks = [*(at for at, _ in rates), period]
    bits, seen = 0.0, []
    for lap in range(int(begin_s / period), int(end_s / period) + 1):
        for (start, stop), (_, rate) in zip(pairwise(marks), rates, strict=True):
            time_s = min(end_s, lap * period + stop) - max(begin_s, lap * period + start)
            if time_s > 0:
                bits += rate * time_s
                seen.append(rate)
    return bits / (end_s - begin_s), min(seen), max(seen)
