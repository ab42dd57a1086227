"""Pairs of lines and a transfer over both, drawn by number: one of 5 to 200 Mbit/s, the other slower by 1 to 50, though
not below 0.5 Mbit/s; the shorter RTT 10 to 60 ms, the other 1 to 9 times that, of either; random loss none or 1e-5 to
1e-2; queues 0.25 to 4 BDP; 1 MB to 1 GB, but 10 BDPs of the faster line and more, and no more than it carries in the
time that is given.

Or four unlike lines (`four`): DSL, cable, LTE and a satellite in a geostationary orbit; 1 to 200 MB, within the same
bounds.

Or a fast line (`fast`): 100 Mbit/s to 2 Gbit/s, and one to three beside it, each slower by 2 to 200, though not below
0.5 Mbit/s; RTTs 0.5 to 20 ms; queues of 20 to 6000 packets; no random loss; 1 to 300 MB, within the same bounds."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

CONTROLS = ("cubic", "lia", "bbr3")
FAST_CONTROLS = (*CONTROLS, "olia", "balia")
PACKET = 1500
LEAST_MBIT = 0.5
NAMES = "abcd"
# Mbit/s, RTT [ms], queue [BDP] and random loss, least and most
UNLIKE = (
    ((2, 50), (15, 40), (1, 4), None),
    ((20, 200), (10, 30), (0.5, 4), None),
    ((5, 60), (30, 90), (1, 4), (1e-5, 1e-3)),
    ((2, 30), (500, 650), (0.25, 1), (1e-5, 1e-3)),
)


@dataclass(frozen=True)
class Line:
    rate_mbit: float
    rtt_ms: float
    queue_bdp: float
    loss: float

    @property
    def bdp(self) -> float:
        """[byte]"""
        return self.rate_mbit * self.rtt_ms * 125

    def text(self, name: str) -> str:
        """As link and path of a scenario."""
        packets = max(4, round(self.queue_bdp * self.bdp / PACKET))
        return (
            f'[[link]]\nname = "{name}"\na = "client"\nb = "server"\nrate = "{self.rate_mbit:.6f}Mbit"\n'
            f'delay = "{round(500 * self.rtt_ms)}us"\nqueue = {{ ab = "{packets} packets", ba = "1000 packets" }}\n'
            f"loss = {{ ab = {self.loss:.7f}, ba = 0.0 }}\n"
            f'[[path]]\nname = "{name}"\nlinks = ["{name}"]\n'
        )


@dataclass(frozen=True)
class Cell:
    lines: tuple[Line, ...]
    control: str
    bytes: int

    @property
    def text(self) -> str:
        return 'name = "sending"\n' + "".join(map(Line.text, self.lines, NAMES))


def draw(number: int, longest_s: float) -> Cell:
    """The cell of that number."""
    dice = random.Random(f"never slower, {number}")

    def between(low: float, high: float) -> float:
        return math.exp(dice.uniform(math.log(low), math.log(high)))

    rate, times, base, ratio = between(5, 200), between(1, 50), between(10, 60), between(1, 9)
    rtts = [base, base * ratio]
    if dice.random() < 0.5:
        rtts.reverse()
    rates = (rate, max(LEAST_MBIT, rate / times))
    one, other = (
        Line(rate_mbit, rtt_ms, between(0.25, 4), between(1e-5, 1e-2) if dice.random() < 0.5 else 0.0)
        for rate_mbit, rtt_ms in zip(rates, rtts, strict=True)
    )
    size = max(10 * one.bdp, between(1e6, 1e9))
    return Cell((one, other), dice.choice(CONTROLS), int(min(size, rate * 125_000 * longest_s)))


def four(number: int, longest_s: float) -> Cell:
    """The cell of four lines of that number."""
    dice = random.Random(f"never slower, four, {number}")

    def between(ends: tuple[float, float]) -> float:
        return math.exp(dice.uniform(*map(math.log, ends)))

    lines = tuple(
        Line(between(rate), between(rtt), between(queue), between(loss) if loss else 0.0)
        for rate, rtt, queue, loss in UNLIKE
    )
    best = max(lines, key=lambda line: line.rate_mbit)
    size = max(10 * best.bdp, between((1e6, 2e8)))
    return Cell(lines, dice.choice(CONTROLS), int(min(size, best.rate_mbit * 125_000 * longest_s)))


def fast(number: int, longest_s: float) -> Cell:
    """The cell of a fast line and others of that number."""
    dice = random.Random(f"never slower, fast, {number}")

    def between(low: float, high: float) -> float:
        return math.exp(dice.uniform(math.log(low), math.log(high)))

    def line(rate_mbit: float) -> Line:
        rtt_ms, packets = between(0.5, 20), between(20, 6000)
        return Line(rate_mbit, rtt_ms, packets * PACKET / (rate_mbit * rtt_ms * 125), 0.0)

    rate = between(100, 2000)
    others = (max(LEAST_MBIT, rate / between(2, 200)) for _ in range(dice.randint(1, 3)))
    lines = tuple(line(rate_mbit) for rate_mbit in (rate, *others))
    size = max(10 * lines[0].bdp, between(1e6, 3e8))
    return Cell(lines, dice.choice(FAST_CONTROLS), int(min(size, rate * 125_000 * longest_s)))
