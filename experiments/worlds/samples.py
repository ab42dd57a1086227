"""The same flows in the simulator and with the real kernel, in one sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> str:
    """A link and a path for every round trip, a flow for every controller: each starts a second after the one before.

    The emulator's hosts have room for every window, the simulated ones only with these buffers.
    """
    end_s, size = setup["end_s"][point["grid"]], point.get("bytes")
    text = f'name = "worlds"\nseed = {point["seed"]}\n' + ("" if size else f'end = "{end_s}s"\n')
    text += '[tcp]\nreceive_buffer = "64MiB"\nsend_buffer = "64MiB"\n'
    rtts = [int(rtt) for rtt in point["rtts_ms"].split("+")]
    for n, rtt_ms in enumerate(rtts, 1):
        packets = max(4, round(point.get("buffer", 1.0) * point["rate_mbit"] * 1e3 * rtt_ms / 8 / 1500))
        text += f'[[link]]\nname = "wan{n}"\na = "client"\nb = "server"\nrate = "{point["rate_mbit"]}Mbit"\n'
        text += f'delay = "{rtt_ms * 500}us"\nqueue = {{ ab = "{packets} packets", ba = "1000 packets" }}\n'
        text += f'[[path]]\nname = "path{n}"\nlinks = ["wan{n}"]\n'
    paths = ", ".join(f'"path{n}"' for n in range(1, len(rtts) + 1))
    for n, control in enumerate(point["control"].split("+")):
        text += f'[[flow]]\nname = "flow{n + 1}"\npaths = [{paths}]\ncontrol = "{control}"\nstart = "{n}s"\n'
        text += f'bytes = "{size}"\n' if size else ""
    return text


def sample(scenario: str, world: str) -> dict[str, Any]:
    """Of each flow, in `sim` and `emu`: goodput over its life [bit/s], the share that was sent again, completion [s];
    `ratio`: goodput in the simulator over that in the kernel."""
    from pathcast.worlds.emu import Emu, Topology
    from pathcast.worlds.sim import Sim

    topology = Topology.parse(scenario)
    with Sim(topology) as network:
        simulated = network.flows()
    with Emu(topology) as network:
        emulated = network.flows()
    for done in (simulated, emulated):
        done.check()
    pairs = zip(simulated.flows, emulated.flows, strict=True)
    found = {"ratio": [a.goodput_bps / b.goodput_bps if b.goodput_bps else None for a, b in pairs]}
    for done in (simulated, emulated):
        again = [flow.bytes_retransmitted / max(1, flow.bytes_acked) for flow in done.flows]
        found[f"{done.world}_bps"] = [flow.goodput_bps for flow in done.flows]
        found |= {f"{done.world}_again": again, f"{done.world}_s": [flow.completion_s for flow in done.flows]}
    return found
