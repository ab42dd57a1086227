"""One pair of paths: every probe and the transfers that they are to predict, one after the other.

A probe is a transfer of few bytes. Over one path it is plain TCP, x_j of the paper's section 6.1; over both it is
Multipath TCP with the first subflow on path 1, the x of section 2. The paths differ in their RTTs only, as the paper's,
or are a WAN's (wan.py).
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathcast.errors import usage
from pathcast.forecast import rounds
from pathcast.worlds.emu import Emu
from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

from . import wan

TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
PATHS = ("path1", "path2")
# of setup.steer: the topology with the same links and paths between switches
_STEERED = {"openflow": "openflow.toml"}
# on average what the topology's jitter adds to a direction
_JITTER_US = 1000


@functools.cache
def _topology(name: str) -> str:
    return (TOPOLOGIES / name).read_text(encoding="utf-8")


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The topology's text, what is set over it, and the transfers; raises PathcastError for a label without a setup."""
    if point["network"] not in setup["network"]:
        raise usage(f"plan.toml: there is no [setup.network.{point['network']}]")
    network = setup["network"][point["network"]]
    # in the emulator TCP is the kernel's own
    network = {key: value for key, value in network.items() if world == "sim" or not key.startswith("tcp.")}
    common = {"control": setup["control"], "alone": setup["alone"], "pause_s": setup["pause_s"]}
    steer = setup["steer"]
    if steer != "none" and steer not in _STEERED:
        raise usage(f"--set steer={steer}: allowed are none, {', '.join(_STEERED)}")
    if point["grid"] == "wan":
        return {**common, **_wan(point, setup, network)}
    rtts_ms = _rtts(point)
    # what is drawn is the same for all networks and worlds, so that they are compared in pairs
    about = f"mptcp-prediction {rtts_ms[0]} {rtts_ms[1]} {point['seed']}"
    sets = {"seed": random.Random(about).getrandbits(62)}
    for n, rtt_ms in enumerate(rtts_ms, 1):
        sets[f"link.wan{n}.delay"] = f"{rtt_ms * 500 - _JITTER_US}us"
    sets |= network
    shares = "pair" in point
    plain = not shares and point["seed"] in setup["plain"][world]
    return {
        **common,
        "text": _topology(_STEERED.get(steer, setup["topology"])),
        "sets": [f"{key}={value}" for key, value in sets.items()],
        "probes": [] if shares else setup["probes"],
        "multipath": setup["shares"] if shares else [*setup["singles"], setup["data"]],
        "subflows_of": [] if shares else setup["probes"],
        "plain": [setup["data"]] if plain else [],
        "draws": about,
    }


def _wan(point: Mapping[str, Any], setup: Mapping[str, Any], network: Mapping[str, Any]) -> dict[str, Any]:
    """What is a WAN's own: its links, the values that they were made of, what is measured of them."""
    about = f"mptcp-prediction wan {point['seed']}"
    lines, r = wan.draw(about), random.Random(f"{about} seeds")
    return {
        "text": wan.text(lines, r.getrandbits(62), setup["steer"] != "none"),
        "sets": [f"{key}={value}" for key, value in network.items()],
        "settings": {f"path{n}_{key}": value for n, line in enumerate(lines, 1) for key, value in vars(line).items()},
        "probes": setup["wan"]["probes"],
        "multipath": [*setup["wan"]["singles"], setup["data"]],
        "subflows_of": setup["wan"]["singles"],
        "plain": [],
        "warm_s": setup["wan"]["warm_s"],
        "measure_seed": r.getrandbits(62),
        "draws": about,
    }


def _rtts(point: Mapping[str, Any]) -> tuple[int, int]:
    """Of the two paths [ms]."""
    if "pair" in point:
        first, second = point["pair"].split("/")
        return int(first), int(second)
    return point["rtt1_ms"], point["rtt2_ms"]


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Throughputs [bit/s]: `tcp1_SIZE_bps` and `tcp2_SIZE_bps` over each path, `mptcp_SIZE_bps` over both.

    Of probes over a path `tcp1_SIZE_connect_s` too, from SYN to SYN/ACK. Of Multipath TCP `share_SIZE`: what subflow 1
    carried, 0..1; of small transfers `mptcp_SIZE_rtt1_s` and `_rtt2_s`, the subflows' least RTTs, and
    `mptcp_SIZE_joined_s`, when subflow 2 was there: null where it was not before the end; and of the last of them
    `retransmitted_bytes`. Of a WAN too what its paths were drawn as (`path1_rate_bps` and so on), `past_SIZE_bps`, an
    earlier transfer like the last, and what was measured just before the last. Raises PathcastError: `late`,
    `fallback`, `join`, or a transfer's own.
    """
    topology = Topology.parse(scenario["text"], scenario["sets"])
    # the smallest first: whatever a transfer leaves in the links is then small beside the next one
    plan = [(size, (path,)) for size in scenario["probes"] for path in PATHS]
    plan += [(size, PATHS) for size in scenario["multipath"]]
    plan += [(size, PATHS[:1]) for size in scenario["plain"]]
    draw = random.Random(scenario["draws"])
    last, wide = scenario["multipath"][-1], "settings" in scenario
    values: dict[str, Any] = dict(scenario.get("settings", {}))
    with (Emu if world == "emu" else Sim)(topology) as net:
        with net.judged() as verdict:
            if wide:
                net.wait(scenario["warm_s"])
                values |= _past(net, last, scenario)
            for size, paths in plan:
                if wide and size == last:
                    values |= _measured(net, scenario["measure_seed"])
                net.wait(draw.uniform(0, scenario["pause_s"]))
                values |= _sent(net, size, paths, scenario)
        verdict.check()
    return values


def _past(net: Any, size: str, scenario: Mapping[str, Any]) -> dict[str, Any]:
    found = _sent(net, size, PATHS, scenario)
    return {f"past_{size}_bps": found[f"mptcp_{size}_bps"]}


def _measured(net: Any, seed: int) -> dict[str, Any]:
    """What `pathcast measure` says of each path towards the server, null where it has no value; and what it cost.

    `path1_available_bps`, `path1_capacity_bps`, `path1_queueing_s` (median delay less the least), `path1_probes_lost`
    (a share), `measure_bytes`, `measure_s`.
    """
    found = net.measure(PATHS, Request(directions=("out",), seed=seed))
    values = {"measure_bytes": found.probe_bytes, "measure_s": found.elapsed_s}
    for path in PATHS:
        of = found.path(path).directions["out"]
        least, median = of.delay_s.minimum.value, of.delay_s.median.value
        values[f"{path}_available_bps"] = of.available_bps.value
        values[f"{path}_capacity_bps"] = of.capacity_bps.value
        values[f"{path}_queueing_s"] = None if least is None or median is None else median - least
        values[f"{path}_probes_lost"] = of.loss.share
    return values


def _sent(net: Any, size: str, paths: tuple[str, ...], scenario: Mapping[str, Any]) -> dict[str, Any]:
    from pathcast import _native

    control = scenario["alone" if len(paths) == 1 else "control"]
    done = rounds.send(net, paths, _native.parse_bytes(size), control, plain=True)
    if len(paths) == 1:
        label = f"tcp{PATHS.index(paths[0]) + 1}_{size}"
        found = {f"{label}_bps": done.throughput_bps}
        return found if size in scenario["plain"] else {**found, f"{label}_connect_s": done.connect_s}
    # a connection that fell back, or a large transfer of one subflow only, is no sample of Multipath TCP
    done.check(subflows=len(PATHS) if size == scenario["multipath"][-1] else 1)
    first, second = done.bytes_by_path(list(PATHS))
    values = {
        f"mptcp_{size}_bps": done.throughput_bps,
        f"share_{size}": first / (first + second),
        "retransmitted_bytes": sum(sub.bytes_retransmitted for sub in done.subflows),
    }
    if size in scenario["subflows_of"]:
        by_path = {sub.path: sub for sub in done.subflows}
        for n, path in enumerate(PATHS, 1):
            values[f"mptcp_{size}_rtt{n}_s"] = by_path[path].min_rtt_s if path in by_path else None
        values[f"mptcp_{size}_joined_s"] = by_path[PATHS[1]].joined_s if PATHS[1] in by_path else None
    return values
