"""One run: web pages over a bottleneck, with nothing, one or five background flows beside them. Slides, "E1" and "E2".

The background flow and the pages go from `client` to `server`. In world `sim` every page is a flow of its own; in `emu`
pages are fetched from a real web server (emulated.py).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from pathcast.errors import usage

from . import emulated, simulated

NONE = "none"


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """All numbers of the run; raises PathcastError for labels that `setup` does not have.

    What is drawn depends on the network, the load and the seed: the same for every controller, and without one.
    """
    for key in ("network", "control"):
        if point[key] not in setup[key]:
            raise usage(f"plan.toml: there is no [setup.{key}.{point[key]}]")
    network, web = setup["network"][point["network"]], setup["web"]
    control = dict(setup["control"][point["control"]])
    name = control.pop("control")
    control |= {key: point[key] for key in ("delta", "gamma") if key in point}
    several = point["connections"] > 1
    times = network["several"] if several else network["one"][world]
    draw = random.Random(f"imtcp-bg {point['connections']} {point['network']} {point['load']} {point['seed']}")
    joins = [n * times["step_s"] + draw.uniform(0, times["spread_s"]) for n in range(point["connections"])]
    leaves = [join + point["connections"] * times["step_s"] for join in joins]
    packet = network["mss"] + network["header"]
    bdp_packets = network["rate_mbit"] * 1e3 * network["rtt_ms"] / 8 / packet
    return {
        "rate_mbit": network["rate_mbit"],
        "rtt_ms": network["rtt_ms"],
        "queue_packets": max(1, round(bdp_packets * network["buffer_bdp"])),
        # payload and IP bytes of a full packet
        "mss": network["mss"],
        "packet": packet,
        "tcp": network["tcp"],
        "nodes": round(point["load"] / 100 * network["rate_mbit"] * web["nodes_per_mbit"]),
        "web": {key: web[key] for key in ("page_bytes", "shape", "think_s", "control")},
        "control": None if name == NONE else name,
        "parameters": control,
        "joins_s": [round(join, 3) for join in joins],
        "leaves_s": [round(leave, 3) for leave in leaves] if several else None,
        # pages are asked for until `pages_s`, those from `from_s` on count, and have until `end_s` to arrive
        "from_s": times["from_s"],
        "pages_s": times["pages_s"],
        "end_s": times["pages_s"] + times["tail_s"],
        "draws": draw.getrandbits(62),
    }


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Rates are of IP packets [bit/s], times [s], over `from_s` to `pages_s`; `bg`: the background.

    `bg_bps`: what was acknowledged of all background flows; `fg_bps`: all else that the bottleneck carried; `pages`:
    how many count, `page_s`, `page_median_s`, `page_p95_s`: their download times, `unfinished`: not there at the end,
    which counts as their time. With several flows also by second: `carried_kbps`, and `bg_kbps` of each; and
    `drops_before`, `drops_after`: segments of the background lost in the 5 s before and after each join but the first.
    """
    return (emulated if world == "emu" else simulated).run(scenario)
