"""The same flows in the simulator and with the real kernel, in one sample; in world `sim` the simulator's alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from pathcast.errors import Exit, PathcastError

from . import unlike
from .drawn import CASES, ROOM, TOPOLOGIES, case

if TYPE_CHECKING:
    from pathcast.worlds.results import Transfer
    from pathcast.worlds.topology import Topology
    from pathcast.worlds.world import World

LISTS = {"cases": lambda setup: list(CASES)}
# cross traffic alone, before the transfer [s]
SETTLE_S = 1.0
# the emulator's network stands 0.4 to 0.7 s longer by then: a far end is started, a session opened, and traces go on
STANDS_S = 0.5
# the simulated transfer is cheap: so often, each by a seed of its own
REPEATS = 7
# the emulator lets a packet go 20 to 40 us late in the median: two of its runs are never the same to the last bit
LATE = "50us"


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> str | dict[str, Any]:
    """A scenario's text; of a drawn one that, the name of the topology if it is one, the traces, and the transfer."""
    if point["grid"] == "unlike":
        return unlike.scenario(point)
    if point["grid"] != "drawn":
        return _flows(point, setup)
    of = case(point["case"])
    text = (TOPOLOGIES / f"{of.topology}.toml").read_text() if of.topology else of.text
    about: dict[str, Any] = {"text": text, "topology": of.topology, "paths": list(of.paths), "control": of.control}
    about |= {"bytes": of.bytes, "seed": point["seed"]}
    traces = topology(about).traces()
    return about | ({"traces": traces} if traces else {})


def _flows(point: Mapping[str, Any], setup: Mapping[str, Any]) -> str:
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


def sample(scenario: str | dict[str, Any], world: str) -> dict[str, Any]:
    return _side_by_side(scenario) if isinstance(scenario, str) else _transfers(scenario, world)


def _transfers(about: dict[str, Any], world: str) -> dict[str, Any]:
    """The transfer in `sim`, several times, and in world `emu` there too, once: throughput [bit/s], duration [s], the
    share that was sent again, bytes by path (in `sim` of the first); `digest`: of the scenario, by which kernel and
    simulator of different runs are joined; late_s: how late the emulator was (p99).

    skipped: what this machine has not that the kernel's part needs.
    """
    from pathcast.worlds.emu import Emu

    found: dict[str, Any] = {"digest": digest(about)}
    every = [_simulated(about, about["seed"] + 100 * n) for n in range(REPEATS)]
    found |= {key: [value for one in every for value in one[key]] for key in ("sim_bps", "sim_s", "sim_again")}
    found["sim_by_path"] = every[0]["sim_by_path"]
    if world == "emu":
        try:
            with Emu(topology(about)) as emulated, emulated.judged() as verdict:
                done = _transfer(emulated, about, SETTLE_S)
        except PathcastError as error:
            if error.exit != Exit.MISSING:
                raise
            return {**found, "skipped": error.code}
        verdict.check()
        done.check()
        found |= _columns("emu", about, done) | {"late_s": verdict.release_error["p99_s"]}
        found["ratio"] = [median(found["sim_bps"]) / found["emu_bps"][0]]
    return found


def _simulated(about: Mapping[str, Any], seed: int) -> dict[str, Any]:
    from pathcast.worlds.sim import Sim

    with Sim(simulated(about, seed)) as network:
        return _columns("sim", about, _transfer(network, about, SETTLE_S + STANDS_S))


def digest(about: Mapping[str, Any]) -> str:
    """By which a scenario is known, whatever ran it; the traces are in its text by their names."""
    named = {key: value for key, value in about.items() if key != "traces"}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]


def topology(about: Mapping[str, Any], seed: int | None = None, more: Sequence[str] = ()) -> Topology:
    """The network of a drawn scenario, with hosts as the emulator sets them."""
    from pathcast.worlds.topology import Topology

    sets = [f"seed={about['seed'] if seed is None else seed}", f"tcp.receive_buffer={ROOM}", f"tcp.send_buffer={ROOM}"]
    return Topology.parse(about["text"], [*sets, "tcp.idle_restart=false", *more], base=str(TOPOLOGIES))


def simulated(about: Mapping[str, Any], seed: int) -> Topology:
    """The same with links that let packets go as late as the emulator's do, where they have no jitter of their own."""
    plain = [
        link["name"]
        for link in topology(about).scenario["links"]
        if not ("jitter" in link["ab"] or "jitter" in link["ba"])
    ]
    jitter = f'{{ amplitude = "{LATE}", step = "1ms" }}'
    return topology(about, seed, [f"link.{name}.jitter={jitter}" for name in plain])


def _transfer(network: World, about: Mapping[str, Any], settle_s: float) -> Transfer:
    network.wait(settle_s)
    paths = about["paths"]
    if len(paths) > 1:
        return network.transfer(paths, about["bytes"], about["control"], plain=True)
    return network.tcp_probe(paths[0], about["bytes"], about["control"])


def _columns(world: str, about: Mapping[str, Any], done: Transfer) -> dict[str, Any]:
    again = sum(one.bytes_retransmitted for one in done.subflows) / max(1, about["bytes"])
    values = {"bps": done.throughput_bps, "s": done.elapsed_s, "again": again}
    return {f"{world}_{key}": [value] for key, value in values.items()} | {
        f"{world}_by_path": done.bytes_by_path(about["paths"])
    }


def _side_by_side(scenario: str) -> dict[str, Any]:
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
    found: dict[str, Any] = {"ratio": [a.goodput_bps / b.goodput_bps if b.goodput_bps else None for a, b in pairs]}
    for done in (simulated, emulated):
        again = [flow.bytes_retransmitted / max(1, flow.bytes_acked) for flow in done.flows]
        found[f"{done.world}_bps"] = [flow.goodput_bps for flow in done.flows]
        found |= {f"{done.world}_again": again, f"{done.world}_s": [flow.completion_s for flow in done.flows]}
    return found
