"""Random paths, each drawn from its seed.

Rates of 100 kbit/s to 1 Gbit/s and round trips of 1 to 600 ms, both evenly in logarithms; queues of 8 to 1000
packets; cross traffic of none, constant, Poisson, Pareto on/off or TCP, 0 to 90 % of the rate; loss to 5 %; clocks to
100 ppm apart and seconds off; one bottleneck or two.
"""

from __future__ import annotations

import math
import random
from dataclasses import asdict, dataclass
from typing import Any

from .network import Cross, Link, toml

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

    def about(self) -> dict[str, Any]:
        """The scenario of its sample, `case` of which says what the path is like."""
        tcp = self.kind == "tcp"
        case = {"loss_rate" if key == "loss" else key: value for key, value in asdict(self).items() if key != "seed"}
        settle = {"settle_s": 2.0, "tcp": True} if tcp else {}
        return {"text": self.text(), "direction": "out", "request": {"seed": self.seed}, **settle, "case": case}

    def text(self) -> str:
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
