"""Random paths for `measure` in the simulator, and how errors and intervals fall by what the paths are like.

Rates of 100 kbit/s to 1 Gbit/s and round trips of 1 to 600 ms, both evenly in logarithms; queues of 8 to 1000
packets; cross traffic of none, constant, Poisson, Pareto on/off or TCP, 0 to 90 % of the rate; loss to 5 %; clocks to
100 ppm apart and seconds off; one bottleneck or two.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pathcast.errors import PathcastError
from pathcast.lab.measuring.network import Cross, Link, toml, truth
from pathcast.results.style import BLUE, GREEN, PURPLE, SKY, VERMILION
from pathcast.worlds.measurement import Request

KINDS = ("idle", "constant", "poisson", "pareto-onoff", "tcp")
MOST_TCP = 3


@dataclass(frozen=True)
class Case:
    """One path. rate_bps: of the bottleneck; second: the other bottleneck's rate over its, none without one."""

    seed: int
    rate_bps: float
    rtt_s: float
    queue: int
    kind: str
    load: float
    loss: float
    skew_ppm: float
    second: float | None

    def scenario(self) -> str:
        """Its network."""
        rate = f'"{round(self.rate_bps)}bit"'
        loads = () if self.kind in ("idle", "tcp") else (self._cross(),)
        one_way = f'"{round(self.rtt_s / 2 * 1e6)}us"'
        links = [Link(rate, f'"{self.queue} packets"', one_way, f"{self.loss:.4f}", loads)]
        if self.second is not None:
            links.append(Link(f'"{round(self.rate_bps * self.second)}bit"', f'"{self.queue} packets"', '"100us"'))
        access = f'"{max(100_000_000, round(self.rate_bps * 2.5))}bit"'
        text = toml(tuple(links), access, self.seed, "random")
        if self.kind == "tcp":
            for n in range(1 + self.seed % MOST_TCP):
                text += f'\n[[traffic]]\nname = "tcp{n}"\nkind = "tcp"\npath = "path"\n'
        skew = f'clock_offset = "1500ms"\nclock_skew_ppm = {self.skew_ppm:.1f}\n'
        return f"{text}\n[host.client]\n{skew}"

    def _cross(self) -> Cross:
        more = ""
        if self.kind == "pareto-onoff":
            peak = min(2 * self.load, 1.5) * self.rate_bps
            packet_s = 1500 * 8 / peak
            more = f'peak = "{round(peak)}bit"\non = "{round(max(0.05, 20 * packet_s) * 1e6)}us"\n'
        return Cross(self.kind, f"{max(1000, round(self.load * self.rate_bps))}bit", more=more)


def draw(seed: int) -> Case:
    """The case of that seed."""
    r = random.Random(f"pathcast measure case {seed}")  # a str seeds by SHA-512

    def log(low: float, high: float) -> float:
        return math.exp(r.uniform(math.log(low), math.log(high)))

    rate, rtt, queue, kind = log(1e5, 1e9), log(1e-3, 0.6), round(log(8, 1000)), r.choice(KINDS)
    load = 0.0 if kind == "idle" else r.uniform(0.05, 0.9)
    loss = r.choice((0.0, 0.0, 0.0, log(1e-4, 0.05)))
    second = r.choice((None, None, None, r.uniform(1.1, 2.0)))
    return Case(seed, rate, rtt, queue, kind, load, loss, r.uniform(-100, 100), second)


def measure(case: Case) -> dict[str, Any]:
    """Its case, what was found and what was true."""
    from pathcast.worlds.sim import Sim
    from pathcast.worlds.topology import Topology

    line: dict[str, Any] = {**vars(case), "value": None, "error": None, "inside": None, "half_width": None}
    with Sim(Topology.parse(case.scenario())) as world:
        world.wait(2.0 if case.kind == "tcp" else 0.5)
        before = world.ledger()
        try:
            found = world.measure(request=Request(directions=("out",), seed=case.seed))
        except PathcastError as error:
            return {**line, "why": error.code}
        after = world.ledger()
    of = found.paths[0].directions["out"]
    true = truth(before, after, "out", own_bytes=of.bytes if case.kind == "tcp" else None)
    a, c = of.available_bps, of.capacity_bps
    line |= {"why": a.why, "true": true.available_bps, "bytes": found.probe_bytes, "elapsed_s": found.elapsed_s}
    if a.value is not None:
        line |= {
            "value": a.value,
            "error": (a.value - true.available_bps) / true.capacity_bps,
            "inside": a.low <= true.available_bps <= a.high,
            "half_width": (a.high - a.low) / 2 / true.capacity_bps,
        }
    if c.value is not None:
        line["capacity_error"] = c.value / true.capacity_bps - 1
    if of.delay_s.minimum is not None:
        off = of.delay_s.minimum - true.delay_s(of.delay_s.packet_bytes or 0)
        line |= {"delay_error_s": off, "delay_bound_s": of.delay_s.error}
    return line


def run(seeds: Iterable[int], jobs: int, done: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
    """All cases, in the order of the seeds."""
    from joblib import Parallel, delayed

    lines = []
    for line in Parallel(n_jobs=jobs, return_as="generator")(delayed(measure)(draw(seed)) for seed in seeds):
        lines.append(line)
        done()
    return lines


Class = tuple[str, Callable[[dict[str, Any]], bool]]
CLASSES: tuple[Class, ...] = (
    ("all", lambda line: True),
    *((kind, lambda line, kind=kind: line["kind"] == kind) for kind in KINDS),
    ("100 kbit/s to 1 Mbit/s", lambda line: line["rate_bps"] < 1e6),
    ("1 to 10 Mbit/s", lambda line: 1e6 <= line["rate_bps"] < 1e7),
    ("10 to 100 Mbit/s", lambda line: 1e7 <= line["rate_bps"] < 1e8),
    ("100 Mbit/s to 1 Gbit/s", lambda line: line["rate_bps"] >= 1e8),
    ("RTT to 10 ms", lambda line: line["rtt_s"] < 0.01),
    ("RTT of 10 to 100 ms", lambda line: 0.01 <= line["rtt_s"] < 0.1),
    ("RTT of 100 to 600 ms", lambda line: line["rtt_s"] >= 0.1),
    ("queue to 30 packets", lambda line: line["queue"] < 30),
    ("queue of 30 to 1000", lambda line: line["queue"] >= 30),
    ("no loss", lambda line: line["loss"] == 0),
    ("loss of 0.01 to 5 %", lambda line: line["loss"] > 0),
    ("one bottleneck", lambda line: line["second"] is None),
    ("two", lambda line: line["second"] is not None),
)
HEADER = ("class", "cases", "no value", "|error| p50", "p90", "p95", "bias", "inside", "half-width p50")


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def rows(lines: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The table: errors and half-widths as shares of the capacity."""
    found = []
    for name, belongs in CLASSES:
        of = [line for line in lines if belongs(line)]
        good = [line for line in of if line["error"] is not None]
        if not good:
            continue
        errors = [line["error"] for line in good]
        size = [abs(error) for error in errors]
        inside = sum(line["inside"] for line in good) / len(good)
        found.append(
            (
                name,
                str(len(of)),
                str(len(of) - len(good)),
                *(f"{quantile(size, share) * 100:.2f} %" for share in (0.5, 0.9, 0.95)),
                f"{quantile(errors, 0.5) * 100:+.2f} %",
                f"{inside * 100:.1f} %",
                f"{quantile([line['half_width'] for line in good], 0.5) * 100:.2f} %",
            )
        )
    return found


def others(lines: Sequence[dict[str, Any]]) -> list[str]:
    """What the same cases say of capacity and delay."""
    capacity = [abs(line["capacity_error"]) for line in lines if line.get("capacity_error") is not None]
    delays = [line for line in lines if line.get("delay_error_s") is not None and line["delay_bound_s"] is not None]
    found = []
    if capacity:
        shares = ", ".join(f"p{share * 100:.0f} {quantile(capacity, share) * 100:.4f} %" for share in (0.5, 0.9, 0.95))
        found.append(f"capacity, {len(capacity)} cases: |error| {shares}")
    if delays:
        off = [abs(line["delay_error_s"]) for line in delays]
        held = sum(error <= line["delay_bound_s"] for error, line in zip(off, delays, strict=True))
        middle = quantile(off, 0.5) * 1e6
        found.append(f"least delay, {len(delays)} cases: |error| p50 {middle:.1f} µs, within its bound in {held}")
    return found


def figure(lines: Sequence[dict[str, Any]]) -> Any:
    """How errors are distributed, a line a kind of cross traffic."""
    import matplotlib.pyplot as plt

    plot, axes = plt.subplots(figsize=(7, 4))
    for kind, colour in zip(KINDS, (SKY, BLUE, GREEN, VERMILION, PURPLE), strict=True):
        size = sorted(abs(line["error"]) * 100 for line in lines if line["kind"] == kind and line["error"] is not None)
        axes.plot(size, [(i + 1) / len(size) for i in range(len(size))], label=f"{kind} ({len(size)})", color=colour)
    axes.set(xscale="log", xlim=(1e-3, 100), ylim=(0, 1), xlabel="|error| [% of the capacity]", ylabel="share of cases")
    axes.grid(alpha=0.3)
    axes.legend(title="cross traffic")
    return plot
