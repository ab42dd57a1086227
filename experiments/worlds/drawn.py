"""Two hundred scenarios drawn from their numbers: one transfer each, over lines of all kinds, by TCP or Multipath TCP.

Rates are 2 to 100 Mbit/s and round trips 10 to 160 ms, evenly in logarithms. How many bytes are sent follows from what
the lines should carry in 4.5 to 10 s: the text of a scenario hangs on its number alone, whatever the simulator is like.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
# hosts in the emulator have room for every window; in preset `linux` that is to be said
ROOM = "64MiB"
_PACKET, _MSS = 1500, 1448
# traces that are shipped, and their mean rates [bit/s]
_MEANS = (("starlink-up", 17.4e6), ("5g-up", 84.2e6), ("lte-up", 6.06e6))

# what runs, one after the other: kinds of lines by TCP, then Multipath TCP over several
TCP = (
    *("drop-tail",) * 3,
    "shallow",
    *("fair", "codel", "fq_codel", "pie", "red", "trace", "gilbert-elliott", "aggregation") * 2,
    *("policer", "loss", "jitter", "cross", "shipped", "shipped"),
)
MPTCP = ("alike", *("unlike",) * 5, "shared", *("mixed",) * 4, *("shipped pair",) * 2, "three-path")
CLASSES = TCP + MPTCP
ROUNDS = 5
CASES = range(1, ROUNDS * len(CLASSES) + 1)

SHIPPED = ("dsl", "cable", "gpon", "lte", "5g", "starlink", "wifi", "policed")
PAIRS = ("office", "van", "village")
# half of the transfers by the first; the kernel's own, and ours loaded into it
SINGLE = (
    "cubic",
    "cubic",
    "reno",
    "hystartpp",
    "cubic",
    "cubic",
    "reno",
    "imtcp",
    "cubic",
    "imtcp_bg",
    "cubic",
    "ledbatpp",
)
COUPLED = ("cubic", "lia", "cubic", "reno", "olia", "cubic", "balia", "cubic", "gsam", "lisa")


@dataclass(frozen=True)
class Case:
    """A scenario and the transfer in it. kind: its class; topology: of a shipped one its name, `text` is empty then."""

    kind: str
    text: str
    topology: str
    paths: tuple[str, ...]
    control: str
    bytes: int

    @property
    def multipath(self) -> bool:
        return len(self.paths) > 1


@dataclass(frozen=True)
class _Line:
    """A link's keys but name, nodes and delay; what a flow should get of it [bit/s]; tables beside it."""

    keys: str
    bps: float
    beside: str = ""


class _Draw:
    def __init__(self, about: str) -> None:
        self.r = random.Random(about)  # a str seeds by SHA-512

    def log(self, low: float, high: float) -> float:
        return math.exp(self.r.uniform(math.log(low), math.log(high)))

    def line(self, kind: str, rate: float, rtt_s: float) -> _Line:
        return _KINDS[kind](self, rate, rtt_s)


def _packets(rate: float, rtt_s: float, products: float, least: int = 10) -> int:
    return max(least, round(products * rate * rtt_s / 8 / _PACKET))


def _rate(rate: float) -> str:
    return f'rate = "{round(rate)}bit"\n'


def _tail(d: _Draw, rate: float, rtt_s: float, low: float = 0.5, high: float = 3.0) -> str:
    return f'{_rate(rate)}queue = "{_packets(rate, rtt_s, d.log(low, high))} packets"\n'


def _drop_tail(d: _Draw, rate: float, rtt_s: float) -> _Line:
    return _Line(_tail(d, rate, rtt_s), rate)


def _shallow(d: _Draw, rate: float, rtt_s: float) -> _Line:
    return _Line(_tail(d, rate, rtt_s, 0.15, 0.4), 0.8 * rate)


def _managed(kind: str) -> Callable[[_Draw, float, float], _Line]:
    more = ", packets = 1000" if kind == "fair" else ""
    return lambda d, rate, rtt_s: _Line(f'{_rate(rate)}queue = {{ kind = "{kind}"{more} }}\n', 0.95 * rate)


def _red(d: _Draw, rate: float, rtt_s: float) -> _Line:
    limit = _packets(rate, rtt_s, d.log(1, 3), 30)
    keys = f'kind = "red", min = {limit // 6}, max = {limit // 2}, limit = {limit}'
    return _Line(f"{_rate(rate)}queue = {{ {keys} }}\n", 0.9 * rate)


def _policer(d: _Draw, rate: float, rtt_s: float) -> _Line:
    burst = round(rate / 8 * d.log(0.02, 0.2)) + 3 * _PACKET
    keys = f'{_rate(d.r.uniform(2, 5) * rate)}queue = "1000 packets"\n'
    return _Line(f'{keys}policer = {{ rate = "{round(rate)}bit", burst = "{burst}B" }}\n', 0.7 * rate)


def _trace(d: _Draw, rate: float, rtt_s: float) -> _Line:
    name, mean = d.r.choice(_MEANS)
    scale = min(max(rate / mean, 0.05), 5.0)
    table = f'trace = "{name}.csv", offset = "{d.r.randrange(60)}s", scale = {scale:.3f}'
    queue = _packets(mean * scale, rtt_s, d.log(1, 4), 30)
    return _Line(f'rate = {{ ab = {{ {table} }}, ba = "50Mbit" }}\nqueue = "{queue} packets"\n', 0.8 * mean * scale)


def _lossy(rate: float, rtt_s: float, p: float) -> float:
    return min(rate, 1.5 / math.sqrt(p) * _MSS * 8 / rtt_s)


def _loss(d: _Draw, rate: float, rtt_s: float) -> _Line:
    p = d.log(1e-4, 1e-2)
    return _Line(f"{_tail(d, rate, rtt_s)}loss = {{ ab = {p:.6f} }}\n", _lossy(rate, rtt_s, p))


def _bursts(d: _Draw, rate: float, rtt_s: float) -> _Line:
    p, r = d.log(1e-4, 3e-3), d.r.uniform(0.15, 0.6)
    keys = f'kind = "gilbert-elliott", p = {p:.6f}, r = {r:.3f}'
    return _Line(f"{_tail(d, rate, rtt_s)}loss = {{ ab = {{ {keys} }} }}\n", _lossy(rate, rtt_s, p))


def _aggregation(d: _Draw, rate: float, rtt_s: float) -> _Line:
    every_s = d.log(1e-3, 1e-2)
    size = max(2 * _PACKET, round(1.3 * rate * every_s / 8))
    keys = f'every = "{round(every_s * 1e6)}us", bytes = "{size}B"'
    return _Line(f"{_tail(d, rate, rtt_s, 1, 4)}aggregation = {{ ab = {{ {keys} }} }}\n", 0.95 * rate)


def _jitter(d: _Draw, rate: float, rtt_s: float) -> _Line:
    keys = f'amplitude = "{d.r.uniform(1, 8):.2f}ms", step = "{d.r.choice((5, 20))}ms"'
    return _Line(f"{_tail(d, rate, rtt_s)}jitter = {{ {keys} }}\n", 0.95 * rate)


def _cross(d: _Draw, rate: float, rtt_s: float) -> _Line:
    share = d.r.uniform(0.2, 0.6)
    kind = d.r.choice(("poisson", "pareto-onoff"))
    more = f'peak = "{round(rate)}bit"\non = "100ms"\n' if kind == "pareto-onoff" else ""
    beside = (
        f'[[traffic]]\nkind = "{kind}"\nlink = "{{link}}"\ndirection = "ab"\nrate = "{round(share * rate)}bit"\n{more}'
    )
    return _Line(_tail(d, rate, rtt_s), 0.9 * (1 - share) * rate, beside)


_KINDS: dict[str, Callable[[_Draw, float, float], _Line]] = {
    "drop-tail": _drop_tail,
    "shallow": _shallow,
    "red": _red,
    "policer": _policer,
    "trace": _trace,
    "loss": _loss,
    "gilbert-elliott": _bursts,
    "aggregation": _aggregation,
    "jitter": _jitter,
    "cross": _cross,
    **{kind: _managed(kind) for kind in ("fair", "codel", "fq_codel", "pie")},
}


def case(number: int) -> Case:
    """The scenario of that number, from 1 on."""
    kind, turn = CLASSES[(number - 1) % len(CLASSES)], (number - 1) // len(CLASSES)
    d = _Draw(f"pathcast worlds {number}")
    nth = CLASSES[: (number - 1) % len(CLASSES)].count(kind)
    many = kind in MPTCP
    of = COUPLED if many else SINGLE
    control = of[(number + 3 * turn) % len(of)]
    # so that each is met as often as the others
    turns = turn * CLASSES.count(kind) + nth
    if kind == "shipped":
        return _shipped(d, kind, SHIPPED[turns % len(SHIPPED)], control)
    if kind == "shipped pair":
        return _shipped(d, kind, PAIRS[turns % len(PAIRS)], control)
    if kind == "three-path":
        return _shipped(d, kind, kind, control)
    if not many:
        rate, rtt_s = d.log(2e6, 100e6), d.log(0.01, 0.16)
        return _of(d, kind, [(rtt_s, d.line(kind, rate, rtt_s))], control)
    return _of(d, kind, _several(d, kind, turns), control, shared=kind == "shared")


def _several(d: _Draw, kind: str, turns: int) -> list[tuple[float, _Line]]:
    """Round trips and lines of a Multipath TCP connection."""
    rate, rtt_s = d.log(4e6, 50e6), d.log(0.015, 0.08)
    if kind == "unlike":
        # one is several times slower and longer; it comes first in every other case
        slow, far = rate / d.log(3, 20), rtt_s * d.log(2, 6)
        lines = [(far, d.line("drop-tail", max(slow, 1e6), far)), (rtt_s, d.line("drop-tail", rate, rtt_s))]
        return lines if turns % 2 == 0 else lines[::-1]
    if kind == "mixed":
        found = []
        for one in d.r.sample(sorted(_KINDS), 2):
            rate, rtt_s = d.log(2e6, 50e6), d.log(0.01, 0.12)
            found.append((rtt_s, d.line(one, rate, rtt_s)))
        return found
    return [(rtt_s, d.line("drop-tail", rate, rtt_s)) for rtt_s in (rtt_s, rtt_s * d.r.uniform(1, 1.3))]


def _of(d: _Draw, kind: str, lines: list[tuple[float, _Line]], control: str, shared: bool = False) -> Case:
    text = 'name = "worlds"\n'
    for n, (rtt_s, line) in enumerate(lines, 1):
        one_way = f'delay = "{round(rtt_s * 5e5)}us"\n'
        if shared:
            # two access lines, one bottleneck
            text += f'[[link]]\nname = "access{n}"\na = "client"\nb = "r"\n{one_way}'
            text += f'[[path]]\nname = "path{n}"\nlinks = ["access{n}", "wan1"]\n'
        else:
            text += f'[[path]]\nname = "path{n}"\nlinks = ["wan{n}"]\n'
        if not shared or n == 1:
            a = "r" if shared else "client"
            text += f'[[link]]\nname = "wan{n}"\na = "{a}"\nb = "server"\n{"" if shared else one_way}{line.keys}'
            text += line.beside.replace("{link}", f"wan{n}")
    bps = lines[0][1].bps if shared else sum(line.bps for _, line in lines)
    paths = tuple(f"path{n}" for n in range(1, len(lines) + 1))
    return Case(kind, text, "", paths, control, _bytes(d, bps))


# what a new flow should get of the shipped ones [Mbit/s]
_EXPECTED = {
    **{"dsl": 36, "cable": 45, "gpon": 250, "lte": 4, "5g": 60, "starlink": 9, "wifi": 230, "policed": 14},
    **{"office": 80, "van": 60, "village": 42, "three-path": 110},
}


def _shipped(d: _Draw, kind: str, name: str, control: str) -> Case:
    paths = (
        ("path1",) if kind == "shipped" else ("path1", "path2", "path3") if name == "three-path" else ("path1", "path2")
    )
    return Case(kind, "", name, paths, control, _bytes(d, _EXPECTED[name] * 1e6))


def _bytes(d: _Draw, bps: float) -> int:
    return max(100_000, round(bps / 8 * d.log(4.5, 10) / 1e4) * 10_000)
