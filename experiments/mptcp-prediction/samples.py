"""One pair of round trip times: every probe and the transfers that they are to predict, one after the other.

A probe is a transfer of few bytes. Over one path it is plain TCP, x_j of the paper's section 6.1; over both it is
Multipath TCP with the first subflow on path 1, the x of section 2.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.worlds.emu import Emu
from pathcast.worlds.results import Transfer
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
PATHS = ("path1", "path2")
# on average what the topology's jitter adds to a direction
_JITTER_US = 1000


@functools.cache
def _topology(name: str) -> str:
    return (TOPOLOGIES / name).read_text(encoding="utf-8")


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The topology's text, what is set over it, and the transfers; raises PathcastError for a label without a setup."""
    if point["network"] not in setup["network"]:
        raise usage(f"plan.toml: there is no [setup.network.{point['network']}]")
    rtts_ms = _rtts(point)
    # what is drawn is the same for all networks and worlds, so that they are compared in pairs
    about = f"mptcp-prediction {rtts_ms[0]} {rtts_ms[1]} {point['seed']}"
    sets = {"seed": random.Random(about).getrandbits(62)}
    for n, rtt_ms in enumerate(rtts_ms, 1):
        sets[f"link.wan{n}.delay"] = f"{rtt_ms * 500 - _JITTER_US}us"
    network = setup["network"][point["network"]]
    # in the emulator TCP is the kernel's own
    sets |= {key: value for key, value in network.items() if world == "sim" or not key.startswith("tcp.")}
    shares = "pair" in point
    plain = not shares and point["seed"] in setup["plain"][world]
    return {
        "text": _topology(setup["topology"]),
        "sets": [f"{key}={value}" for key, value in sets.items()],
        "control": setup["control"],
        "alone": setup["alone"],
        "probes": [] if shares else setup["probes"],
        "multipath": setup["shares"] if shares else [*setup["singles"], setup["data"]],
        "plain": [setup["data"]] if plain else [],
        "pause_s": setup["pause_s"],
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

    Of Multipath TCP `share_SIZE` too: what subflow 1 carried, 0..1; and of the last of them `retransmitted_bytes`.
    Raises PathcastError: `late`, `fallback`, `join`, or a transfer's own.
    """
    topology = Topology.parse(scenario["text"], scenario["sets"])
    # the smallest first: whatever a transfer leaves in the links is then small beside the next one
    plan = [(size, (path,)) for size in scenario["probes"] for path in PATHS]
    plan += [(size, PATHS) for size in scenario["multipath"]]
    plan += [(size, PATHS[:1]) for size in scenario["plain"]]
    draw = random.Random(scenario["draws"])
    values: dict[str, Any] = {}
    with (Emu if world == "emu" else Sim)(topology) as net:
        with net.judged() as verdict:
            for size, paths in plan:
                net.wait(draw.uniform(0, scenario["pause_s"]))
                values |= _sent(net, size, paths, scenario)
        if not verdict.valid:
            late_ms = verdict.release_error.get("p99_s", 0) * 1e3
            lost = verdict.dropped_unmodelled
            raise PathcastError(
                "late", f"the emulator was late: p99 {late_ms:.2f} ms, {lost} packets lost beside the links"
            )
    return values


def _sent(net: Any, size: str, paths: tuple[str, ...], scenario: Mapping[str, Any]) -> dict[str, Any]:
    from pathcast import _native

    bytes = _native.parse_bytes(size)
    if len(paths) == 1:
        alone = net.tcp_probe(paths[0], bytes, scenario["alone"])
        return {f"tcp{PATHS.index(paths[0]) + 1}_{size}_bps": alone.throughput_bps}
    both = net.transfer(paths, bytes, scenario["control"])
    _check(both, last=size == scenario["multipath"][-1])
    first, second = both.bytes_by_path(list(PATHS))
    return {
        f"mptcp_{size}_bps": both.throughput_bps,
        f"share_{size}": first / (first + second),
        "retransmitted_bytes": sum(sub.bytes_retransmitted for sub in both.subflows),
    }


def _check(both: Transfer, last: bool) -> None:
    """A connection that fell back, or a large transfer of one subflow only, is no sample of Multipath TCP."""
    if both.fallback is not None:
        raise PathcastError("fallback", f"Multipath TCP fell back to TCP: {both.fallback}")
    if last and {sub.path for sub in both.subflows} != set(PATHS):
        raise PathcastError("join", f"a subflow is missing: {'; '.join(both.notes) or 'no reason is known'}")
