"""Lines of all kinds, each drawn from its seed.

Rates of 1 Mbit/s to 1 Gbit/s, round trips of 5 to 200 ms and queues of 10 ms to 1.5 s, evenly in logarithms. What is
drawn besides: the queue's kind, what the line does to packets (its shape), others' traffic, a policer, the direction.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pathcast.errors import usage

# (fair, managed) -> kinds of queues
QUEUES: Mapping[tuple[bool, bool], tuple[str, ...]] = {
    (False, False): ("drop-tail",),
    (False, True): ("codel", "pie", "red"),
    (True, False): ("fair",),
    (True, True): ("fq_codel",),
}
SHAPES = ("plain", "trace", "aggregation", "loss", "gilbert-elliott", "jitter")
INELASTIC = ("constant", "poisson", "pareto-onoff")
CROSS = ("idle", "tcp", "inelastic")
# beside these alone the links have packets that gather
GATHERS = ("drop-tail", "red")
# where packets are lost at random TCP does not fill the line, and gives way to nobody
LOSES = ("loss", "gilbert-elliott")

# IP bytes of others' packets
PACKET = 1500
LEAST_PACKETS = 10
# the load of others that do not react [share of the mean rate]; through a fair queue less than a half, above which they
# get their fair share as TCP does; on a line whose rate changes so little that its least rate carries it
LOAD, LOAD_FAIR, LOAD_TRACE = (0.1, 0.8), (0.1, 0.45), (0.1, 0.35)
# TCP's flows; none is held back by its window, of which the kernel's default allows so much
FLOWS, WINDOW_BYTES = (1, 4), 3e6
# deviation of a step's rate from the mean, in logarithms; no less and no more than this many times it; steps of so long
# [s], for so long [s]
SPREAD, LEAST, MOST = 0.35, 0.4, 2.0
STEPS_S, PERIOD_S = (0.1, 1.0, 15.0), 60.0


@dataclass(frozen=True)
class Line:
    """One bottleneck in the direction that is measured. Rates in bit/s, times in s; None: has none."""

    rate_bps: float
    rtt_s: float
    queue: str
    fair: bool
    managed: bool
    packets: int
    shape: str
    cross: str
    load: float
    flows: int
    policed_bps: float | None
    burst_bytes: int | None
    loss: float
    # Gilbert and Elliott's: lost in a row on average
    row: float
    step_s: float | None
    gathered_s: float | None
    jitter_s: float | None
    direction: str
    # from when on [s] which rate
    rates: tuple[tuple[float, float], ...]
    # TCP's; of fq_codel [byte], None: its default
    control: str = "cubic"
    quantum: int | None = None

    @property
    def depth_s(self) -> float:
        """The longest wait in a queue that merely overflows."""
        return self.packets * PACKET * 8 / self.rate_bps

    def columns(self) -> dict[str, Any]:
        """What a sample's row says of the line."""
        points = ("fair", "managed", "cross", "direction", "loss", "rates", "control", "quantum")
        case = {key: value for key, value in asdict(self).items() if key not in points}
        return {**case, "kind": self.cross, "loss_rate": self.loss, "depth_s": self.depth_s, "way": self.direction}


def draw(seed: str, fair: bool, managed: bool, cross: str, policed: bool) -> Line:
    """The line of that seed and these classes; raises PathcastError for cross traffic that there is not."""
    if cross not in CROSS:
        raise usage(f"there is no cross traffic {cross!r}: {', '.join(CROSS)}")
    r = random.Random(f"pathcast line {seed}")  # a str seeds by SHA-512

    def log(low: float, high: float) -> float:
        return math.exp(r.uniform(math.log(low), math.log(high)))

    flows = r.randint(*FLOWS) if cross == "tcp" else 0
    while True:
        rate, rtt = log(1e6, 1e9), log(5e-3, 0.2)
        if not flows or rate * rtt / 8 <= flows * WINDOW_BYTES:
            break
    queue = r.choice(QUEUES[fair, managed])
    shapes = [one for one in SHAPES if not (one == "aggregation" and queue not in GATHERS)]
    shape = "plain" if policed else r.choice([one for one in shapes if not (flows and one in LOSES)])
    depth = log(0.01, 1.5)
    loads = LOAD_TRACE if shape == "trace" else LOAD_FAIR if fair else LOAD
    step = r.choice(STEPS_S) if shape == "trace" else None
    limit = log(1e6, rate / 1.5) if policed and rate > 2e6 else rate / 2 if policed else None
    return Line(
        rate_bps=round(rate),
        rtt_s=rtt,
        queue=queue,
        fair=fair,
        managed=managed,
        packets=max(LEAST_PACKETS, round(depth * rate / 8 / PACKET)),
        shape=shape,
        cross=r.choice(INELASTIC) if cross == "inelastic" else cross,
        load=r.uniform(*loads) if cross == "inelastic" else 0.0,
        flows=flows,
        policed_bps=None if limit is None else round(limit),
        burst_bytes=None if limit is None else max(20_000, round(log(0.01, 0.5) * limit / 8)),
        loss=log(1e-4, 0.03) if shape in LOSES else 0.0,
        row=r.uniform(2, 10) if shape == "gilbert-elliott" else 1.0,
        step_s=step,
        gathered_s=log(1e-3, 1e-2) if shape == "aggregation" else None,
        jitter_s=log(1e-4, 5e-3) if shape == "jitter" else None,
        direction=r.choice(("out", "in")),
        rates=_rates(r, rate, step),
    )


def _rates(r: random.Random, rate: float, step: float | None) -> tuple[tuple[float, float], ...]:
    if step is None:
        return ((0.0, round(rate)),)

    def now() -> float:
        return round(rate * min(max(math.exp(r.gauss(0, SPREAD)), LEAST), MOST))

    return tuple((k * step, now()) for k in range(round(PERIOD_S / step)))


def link(line: Line, name: str, a: str, b: str, one_way_s: float) -> str:
    """The `[[link]]` of a line, the changes of its rate, and others' packets that do not react."""
    text = f'\n[[link]]\nname = "{name}"\na = "{a}"\nb = "{b}"\nrate = "{round(line.rates[0][1])}bit"\n'
    text += f'queue = {_queue(line)}\ndelay = "{round(one_way_s * 1e6)}us"\n{_shape(line)}'
    if line.policed_bps is not None:
        text += f'policer = {{ rate = "{round(line.policed_bps)}bit", burst = "{line.burst_bytes}B" }}\n'
    for at, now in line.rates[1:]:
        text += f'\n[[change]]\nat = "{round(at * 1000)}ms"\nlink = "{name}"\nrate = "{round(now)}bit"\n'
    return text + _cross(line, name)


def _queue(line: Line) -> str:
    n = line.packets
    if line.queue == "drop-tail":
        return f'"{n} packets"'
    if line.queue == "fair":
        return f'{{ kind = "fair", packets = {n} }}'
    if line.queue == "red":
        return f'{{ kind = "red", min = {max(2, n // 6)}, max = {max(5, n // 2)}, limit = {n} }}'
    # a packet's time is no standing queue (RFC 8289, 4.4)
    packet_s = PACKET * 8 / line.rate_bps
    if line.queue == "pie":
        return f'{{ kind = "pie", target = "{round(max(15e-3, 2 * packet_s) * 1e6)}us" }}'
    target = max(5e-3, 1.5 * packet_s)
    interval = max(0.1, 10 * target)
    times = f'target = "{round(target * 1e6)}us", interval = "{round(interval * 1e6)}us"'
    more = f', quantum = "{line.quantum}B"' if line.quantum else ""
    return f'{{ kind = "{line.queue}", {times}{more} }}'


def _shape(line: Line) -> str:
    if line.shape == "loss":
        return f"loss = {line.loss:.6f}\n"
    if line.shape == "gilbert-elliott":
        r = 1 / line.row
        return f'loss = {{ kind = "gilbert-elliott", p = {line.loss * r / (1 - line.loss):.8f}, r = {r:.6f} }}\n'
    if line.jitter_s is not None:
        return f'jitter = {{ amplitude = "{round(line.jitter_s * 1e6)}us" }}\n'
    if line.gathered_s is not None:
        # what fits into an opportunity does not bound the rate
        size = max(3000, round(line.rate_bps * line.gathered_s / 8 * 1.5) + PACKET)
        return f'aggregation = {{ every = "{round(line.gathered_s * 1e6)}us", bytes = "{size}B" }}\n'
    return ""


def bound(line: Line) -> float:
    """The mean rate that the line lets through for good [bit/s]."""
    return line.policed_bps or line.rate_bps


def _cross(line: Line, name: str) -> str:
    if line.cross not in INELASTIC:
        return ""
    rate = line.load * bound(line)
    end = {"out": "ab", "in": "ba"}[line.direction]
    text = f'\n[[traffic]]\nkind = "{line.cross}"\nlink = "{name}"\ndirection = "{end}"\n'
    text += f'rate = "{round(rate)}bit"\npacket = "{PACKET}B"\n'
    if line.cross == "pareto-onoff":
        peak = min(2 * line.load, 1.5) * bound(line)
        text += f'peak = "{round(peak)}bit"\non = "{round(max(0.05, 20 * PACKET * 8 / peak) * 1e6)}us"\n'
    return text


def greedy(line: Line, path: str) -> str:
    """Others' TCP over a path, if the line has such."""
    if not line.flows:
        return ""
    to = {"out": "server", "in": "client"}[line.direction]
    # not in step with each other
    control = "" if line.control == "cubic" else f'control = "{line.control}"\n'
    about = f'to = "{to}"\nflows = {line.flows}\nstagger = "130ms"\n'
    return f'\n[[traffic]]\nkind = "tcp"\npath = "{path}"\n{about}{control}'


# the access lines: no bottleneck, and so long one way [s]
ACCESS_BPS, ACCESS_S = 2_500_000_000, 1e-3
_ACCESS = f'rate = "{ACCESS_BPS}bit"\nqueue = "10000 packets"\ndelay = "{round(ACCESS_S * 1e6)}us"\n'


def access(name: str, a: str, b: str) -> str:
    """A fast line."""
    return f'\n[[link]]\nname = "{name}"\na = "{a}"\nb = "{b}"\n{_ACCESS}'


def one_path(line: Line, seed: int, world: str = "sim") -> str:
    """The scenario of a line between two fast ones; others' TCP is a part of it in the simulator only (`greedy.py`)."""
    text = f'name = "line"\nseed = {seed}\n' + access("in", "client", "r0")
    text += link(line, "line", "r0", "r1", max(0.0, line.rtt_s / 2 - 2 * ACCESS_S)) + access("out", "r1", "server")
    text += '\n[[path]]\nname = "path"\nlinks = ["in", "line", "out"]\n'
    return text + (greedy(line, "path") if world == "sim" else "")
