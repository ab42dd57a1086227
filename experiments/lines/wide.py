"""Lines with nothing about them but their queue and others' traffic, for the simulator: 1 Mbit/s to 1 Gbit/s, round
trips of 5 to 200 ms, queues of a quarter to four times what is on its way; beside nobody, Poisson traffic, or one to
eight TCP flows of CUBIC, Reno or BBR."""

from __future__ import annotations

import math
import random
from typing import Any

from .lines import LOAD, LOAD_FAIR, PACKET, WINDOW_BYTES, Line
from .near import setting

RATES, RTTS, QUEUES = (1e6, 1e9), (5e-3, 0.2), (0.25, 4.0)
KINDS = ("drop-tail", "fair", "fq_codel", "fq_codel-300", "codel", "pie", "red")
CROSS = ("idle", "poisson", "cubic", "reno", "bbr3")
FLOWS = (1, 8)


def draw(kind: str, cross: str, seed: int) -> Line:
    """The line of these classes and that seed."""
    r = random.Random(f"pathcast wide {kind} {cross} {seed}")

    def log(low: float, high: float) -> float:
        return math.exp(r.uniform(math.log(low), math.log(high)))

    tcp = cross not in ("idle", "poisson")
    flows = r.randint(*FLOWS) if tcp else 0
    while True:
        rate, rtt = log(*RATES), log(*RTTS)
        if not flows or rate * rtt / 8 <= flows * WINDOW_BYTES:
            break
    queue, _, quantum = kind.partition("-") if kind.startswith("fq") else (kind, "", "")
    fair = queue in ("fair", "fq_codel")
    return Line(
        rate_bps=round(rate),
        rtt_s=rtt,
        queue=queue,
        fair=fair,
        managed=queue not in ("drop-tail", "fair"),
        packets=max(10, round(log(*QUEUES) * rate * rtt / 8 / PACKET)),
        shape="plain",
        cross="tcp" if tcp else cross,
        load=r.uniform(*(LOAD_FAIR if fair else LOAD)) if cross == "poisson" else 0.0,
        flows=flows,
        policed_bps=None,
        burst_bytes=None,
        loss=0.0,
        row=1.0,
        step_s=None,
        gathered_s=None,
        jitter_s=None,
        direction=r.choice(("out", "in")),
        rates=((0.0, round(rate)),),
        control=cross if tcp else "cubic",
        quantum=int(quantum) if quantum else None,
    )


def scenario(point: dict[str, Any], world: str) -> dict[str, Any]:
    """As `samples.scenario`."""
    line = draw(point["wide"], point["beside"], point["seed"])
    return setting(line, point, world, [(0.0, line.rate_bps)])
