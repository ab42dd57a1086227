"""Lines whose delay wanders by up to 30 ms, as over radio, in steps of 5 to 100 ms: 2 to 500 Mbit/s, round trips of 5
to 150 ms, drop-tail queues of a quarter to four times what is on its way, beside nobody, Poisson traffic or TCP."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

from . import near
from .lines import PACKET, WINDOW_BYTES, Line

RATES, RTTS, AMPLITUDE = (2e6, 500e6), (5e-3, 0.15), (1e-3, 30e-3)
STEPS_S = (5e-3, 20e-3, 20e-3, 100e-3)


def draw(cross: str, seed: int) -> tuple[Line, float]:
    """The line of this class and that seed, and from one knot of its delay to the next [s]."""
    r = random.Random(f"pathcast wander {cross} {seed}")

    def log(low: float, high: float) -> float:
        return math.exp(r.uniform(math.log(low), math.log(high)))

    line = near.draw("drop-tail", cross, seed)
    while True:
        rate, rtt = round(log(*RATES)), log(*RTTS)
        if not line.flows or rate * rtt / 8 <= line.flows * WINDOW_BYTES:
            break
    packets = max(10, round(log(*near.QUEUES) * rate * rtt / 8 / PACKET))
    line = replace(line, rate_bps=rate, rates=((0.0, rate),), rtt_s=rtt, packets=packets)
    return replace(line, shape="jitter", jitter_s=log(*AMPLITUDE)), r.choice(STEPS_S)


def scenario(point: dict[str, Any], world: str) -> dict[str, Any]:
    """As `samples.scenario`."""
    line, step = draw(point["beside"], point["seed"])
    if world == "emu" and line.flows:
        # real transfers go towards the server
        line = replace(line, direction="out")
    about = near.setting(line, point, world, [(0.0, line.rate_bps)])
    plain = "jitter = { "
    if about["text"].count(plain) != 1:
        raise ValueError(f"{about['text'].count(plain)} links with jitter, one is expected")
    about["text"] = about["text"].replace(plain, f'{plain}step = "{round(step * 1e3)}ms", ')
    return about
