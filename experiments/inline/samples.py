"""One ImTCP flow over one bottleneck with constant cross traffic in the real kernel: what it says beside the truth.

Truth: the link's rate less that of the cross traffic, as payload (1448 of 1500 B), since the controller counts payload.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median, quantiles
from typing import Any

PAYLOAD = 1448 / 1500
# longer than a result lasts
LOOK_S = 0.05


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """One bottleneck with a queue of a bandwidth-delay product; the device takes packets one by one."""
    rate, rtt, cross = point["rate_mbit"], point["rtt_ms"], point["cross"]
    end_s = setup["end_s"][str(rtt)]
    text = f"""
name = "inline"
seed = {point["seed"]}
end = "{end_s}s"
[[link]]
name = "bottleneck"
a = "client"
b = "server"
rate = "{rate}Mbit"
delay = "{rtt * 500}us"
queue = "{round(rate * 1e3 * rtt / 8 / 1500)} packets"
[[path]]
name = "path1"
links = ["bottleneck"]
[[flow]]
name = "flow"
paths = ["path1"]
control = "imtcp"
[host.client]
send_segments = 1
"""
    if cross:
        text += f"""
[[traffic]]
name = "cross"
kind = "constant"
link = "bottleneck"
direction = "ab"
packet = "1500B"
rate = "{round(rate * cross * 1000)}kbit"
"""
    return {"text": text, "end_s": end_s, "truth_bps": rate * 1e6 * (1 - cross) * PAYLOAD}


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Over the last two thirds, over the truth: every result (`results`), their `median`, and `goodput`."""
    from pathcast.control.watch import Watch
    from pathcast.worlds.emu import Emu
    from pathcast.worlds.topology import Topology

    end_s, truth_bps = scenario["end_s"], scenario["truth_bps"]
    results: dict[int, float] = {}
    began = 0.0

    def see(now: float, flows: list[dict[str, Any]]) -> None:
        for flow in flows:
            number = flow["words"][1]
            if flow["available_bps"] and now - began > end_s / 3:
                results.setdefault(number, flow["available_bps"] / truth_bps)

    with Emu(Topology.parse(scenario["text"])) as world_:
        part = world_.controller("imtcp")
        began = time.monotonic()
        with Watch(part, LOOK_S, see):
            done = world_.flows()
    done.check()
    [flow] = done.flows
    found = list(results.values())
    return {
        "results": found,
        "median": median(found) if found else None,
        "a_second": len(found) / (end_s * 2 / 3),
        "goodput": flow.goodput(end_s / 3, end_s) / truth_bps,
    }


def tenths(values: list[float]) -> tuple[float, float]:
    """Of which a tenth of the values is below, and above."""
    found = quantiles(values, n=10) if len(values) > 1 else values * 9
    return found[0], found[-1]
