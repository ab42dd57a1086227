"""Lines as people have them, for both worlds: 5 to 500 Mbit/s, round trips of 5 to 150 ms, queues of a quarter to four
times what is on its way; first come first served, FQ-CoDel, PIE or behind a policer; beside nobody, Poisson traffic or
TCP."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

from .lines import LOAD, LOAD_FAIR, PACKET, WINDOW_BYTES, Line, bound, one_path

RATES, RTTS, QUEUES = (5e6, 500e6), (5e-3, 0.15), (0.25, 4.0)
KINDS = ("drop-tail", "fq_codel", "pie", "policed")
CROSS = ("idle", "poisson", "tcp")
FLOWS = (1, 4)
# a quarter of the lines have jitter, of so long [s]
JITTER, AMPLITUDE = 0.25, (2e-4, 3e-3)
# others' traffic alone before it begins [s]: TCP has found its rate
SETTLE, SETTLE_TCP = 1.0, (6.0, 40.0)


def draw(kind: str, cross: str, seed: int) -> Line:
    """The line of these classes and that seed."""
    r = random.Random(f"pathcast near {kind} {cross} {seed}")

    def log(low: float, high: float) -> float:
        return math.exp(r.uniform(math.log(low), math.log(high)))

    policed = kind == "policed"
    flows = r.randint(*FLOWS) if cross == "tcp" else 0
    while True:
        rate, rtt = log(*RATES), log(*RTTS)
        if not flows or rate * rtt / 8 <= flows * WINDOW_BYTES:
            break
    limit = log(1e6, rate / 1.5) if policed else None
    return Line(
        rate_bps=round(rate),
        rtt_s=rtt,
        queue="drop-tail" if policed else kind,
        fair=kind == "fq_codel",
        managed=kind in ("fq_codel", "pie"),
        packets=max(10, round(log(*QUEUES) * rate * rtt / 8 / PACKET)),
        shape="jitter" if (jitter := r.random() < JITTER) else "plain",
        cross=cross,
        load=r.uniform(*(LOAD_FAIR if kind == "fq_codel" else LOAD)) if cross == "poisson" else 0.0,
        flows=flows,
        policed_bps=None if limit is None else round(limit),
        burst_bytes=None if limit is None else max(20_000, round(log(0.01, 0.5) * limit / 8)),
        loss=0.0,
        row=1.0,
        step_s=None,
        gathered_s=None,
        jitter_s=log(*AMPLITUDE) if jitter else None,
        direction=r.choice(("out", "in")),
        rates=((0.0, round(rate)),),
    )


def scenario(point: dict[str, Any], world: str) -> dict[str, Any]:
    """As `samples.scenario`."""
    line = draw(point["near"], point["cross"], point["seed"])
    if world == "emu" and line.flows:
        # real transfers go towards the server
        line = replace(line, direction="out")
    return setting(line, point, world, [(0.0, bound(line))])


def setting(line: Line, point: dict[str, Any], world: str, rates: list[tuple[float, float]]) -> dict[str, Any]:
    """What `samples.scenario` gives, of a line that was drawn; rates: what bounds it, from when on [s] [bit/s]."""
    return {
        "text": one_path(line, point["seed"], world),
        "case": line.columns(),
        "rates": rates,
        "direction": line.direction,
        "settle_s": SETTLE_TCP[0] + SETTLE_TCP[1] * line.rtt_s if line.flows else SETTLE,
        "seed": point["seed"],
        "again": False,
        "effort": point["effort"],
        "flow": False,
        "next_s": None,
    }
