"""One run of a pair: the foreground flow alone, both flows, the background flow alone or beside half of the rate.

Which of the two flows starts first, and when, is drawn from the seed and the path: the same for every controller.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from pathcast.errors import usage

PACKET_BYTES, MSS_BYTES = 1500, 1448
FOREGROUND, BACKGROUND, HALF = "foreground", "background", "half"
# what runs together, by role
ROLES = {
    "alone": (FOREGROUND,),
    "beside": (FOREGROUND, BACKGROUND),
    "unopposed": (BACKGROUND,),
    "rest": (BACKGROUND, HALF),
}
# a row of the trace so often: the error of an interval's ends
_EVERY_NS = 20_000_000


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The run's text and the interval that is measured [s], its last two thirds; raises PathcastError for a label that
    `setup` does not have.

    Windows are bounded by the path, not by the hosts' buffers; a device gets packets, not bunches of them, for all
    controllers alike, since the paced trains of ImTCP need it.
    """
    if point["control"] not in setup["control"]:
        raise usage(f"plan.toml: there is no [setup.control.{point['control']}]")
    parameters = dict(setup["control"][point["control"]])
    control, rate, rtt = parameters.pop("control"), point["rate_mbit"], point["rtt_ms"]
    bdp_packets = rate * 1e3 * rtt / 8 / PACKET_BYTES
    end_s = duration_s(bdp_packets, rtt, short=point["grid"] == "short" or world == "emu")
    first_s, second_s = starts(point, end_s)
    parts = [f'name = "pair"\nseed = {point["seed"]}\nend = "{round(end_s, 3)}s"\n']
    parts.append(
        f'[[link]]\nname = "bottleneck"\na = "client"\nb = "server"\nrate = "{rate}Mbit"\ndelay = "{rtt * 500}us"\n'
        f'queue = "{max(1, round(bdp_packets * point["buffer"]))} packets"\n'
        '[[path]]\nname = "path1"\nlinks = ["bottleneck"]\n'
        '[tcp]\nreceive_buffer = "64MiB"\nsend_buffer = "64MiB"\n[host.client]\nsend_segments = 1\n'
    )
    flows = {FOREGROUND: (point["foreground"], first_s), BACKGROUND: (control, second_s)}
    for role in ROLES[point["role"]]:
        if role == HALF:
            half = f'"{rate * 500}kbit"'
            parts.append(f'[[traffic]]\nkind = "constant"\nlink = "bottleneck"\ndirection = "ab"\nrate = {half}\n')
            continue
        name, start_s = flows[role]
        parts.append(
            f'[[flow]]\nname = "{role}"\npaths = ["path1"]\ncontrol = "{name}"\n'
            f'start = "{start_s}s"\nstop = "{round(end_s, 3)}s"\n'
        )
        if role == BACKGROUND and parameters:
            parts.append(f"[control.{name}]\n" + "".join(f"{key} = {value}\n" for key, value in parameters.items()))
    return {"text": "\n".join(parts), "from_s": round(end_s / 3, 3), "to_s": round(end_s, 3)}


def duration_s(bdp_packets: float, rtt_ms: int, short: bool) -> float:
    """How long a run takes.

    Three periods of Reno at a buffer of 1 BDP (BDP packets, one an RTT of 1.5 times the empty path's), but 60 to 240 s.
    Short, where a second is a second: 20 s at 20 ms and 40 s at 100 ms.
    """
    if short:
        return 15.0 + rtt_ms / 4
    period_s = bdp_packets * 1.5 * rtt_ms / 1e3
    return min(max(3 * period_s, 60.0), 240.0)


def starts(point: Mapping[str, Any], end_s: float) -> tuple[float, float]:
    """When the foreground and the background flow start [s]: one early, one after 5 to 10 hundredths."""
    path = f"{point['rate_mbit']} {point['rtt_ms']} {point['buffer']}"
    draw = random.Random(f"pathcast background {path} {point['seed']}")
    early, late = draw.uniform(0, 0.01) * end_s, draw.uniform(0.05, 0.1) * end_s
    if draw.random() < 0.5:
        early, late = late, early
    return round(early, 3), round(late, 3)


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Payload bytes of each flow that were acknowledged in the interval, and its length [s]."""
    text, span = scenario["text"], (scenario["from_s"], scenario["to_s"])
    acked = (_emulated if world == "emu" else _simulated)(text, *span)
    found = {f"{name}_bytes": acked.get(name) for name in (FOREGROUND, BACKGROUND)}
    return {**found, "span_s": span[1] - span[0]}


def _simulated(text: str, from_s: float, to_s: float) -> dict[str, int]:
    """Until the last ACK before each of the two times."""
    import numpy as np

    from pathcast.scenario import Scenario
    from pathcast.simulation.run import simulate

    report, traces = simulate(Scenario(text), trace_ns=_EVERY_NS)
    windows, found = traces["windows"], {}
    for number, flow in enumerate(report["flows"]):
        own = windows["flow"] == number
        at, acked = windows["time_s"][own], np.append(0, windows["acked_bytes"][own])
        found[flow["name"]] = int(np.subtract(*acked[np.searchsorted(at, (to_s, from_s), side="right")]))
    return found


def _emulated(text: str, from_s: float, to_s: float) -> dict[str, int]:
    """Linear between looks 0.1 s apart."""
    from pathcast.worlds.emu import Emu, Topology

    with Emu(Topology.parse(text)) as world:
        done = world.flows()
    done.check()
    return {flow.name: round(flow.acked(to_s) - flow.acked(from_s)) for flow in done.flows}
