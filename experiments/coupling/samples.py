"""Coupled controllers over Multipath TCP: LIA's share beside Reno, both paths' use, where GSAM's transition begins."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

RTT_S = 0.04
# it is looked so often at what the kernel shows every 20 ms
LOOK_S = 0.005


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The network's text and its end. Every network has an RTT of 40 ms."""
    what, end_s = point["grid"], setup["end_s"][point["grid"]]
    text = f'name = "coupling"\nseed = {point["seed"]}\nend = "{end_s}s"\n'
    subflows = point.get("subflows", 2)
    if what == "disjoint":
        text += _link("wan1", "client", "server", "10Mbit", RTT_S / 2, 34)
        text += _link("wan2", "client", "server", "10Mbit", RTT_S / 2, 34)
        text += _path("path1", "wan1") + _path("path2", "wan2")
    else:
        rate, queue = ("20Mbit", 200) if what == "shared" else ("5Mbit", 50)
        text += _link("access1", "client", "r", None, 0, None) + _link("access2", "client", "r", None, 0, None)
        text += _link("bottleneck", "r", "server", rate, RTT_S / 2, queue, point.get("loss", 0.0))
        text += _path("path1", "access1", "bottleneck") + _path("path2", "access2", "bottleneck")
    text += _flow("coupled", ["path1", "path2"][:subflows], point["control"], subflows)
    text += _flow("single", ["path1"], "reno", 1) if what == "shared" else ""
    return {"text": text, "end_s": end_s, "control": point["control"], "watch": what == "transition"}


def _link(name: str, a: str, b: str, rate: str | None, delay_s: float, queue: int | None, loss: float = 0.0) -> str:
    text = f'[[link]]\nname = "{name}"\na = "{a}"\nb = "{b}"\ndelay = "{round(delay_s * 1e6)}us"\n'
    text += f'rate = "{rate}"\n' if rate else ""
    text += f'queue = "{queue} packets"\n' if queue else ""
    return text + (f"loss = {{ ab = {loss}, ba = 0.0 }}\n" if loss else "")


def _path(name: str, *links: str) -> str:
    return f'[[path]]\nname = "{name}"\nlinks = [{", ".join(repr(link) for link in links)}]\n'.replace("'", '"')


def _flow(name: str, paths: list[str], control: str, subflows: int) -> str:
    listed = ", ".join(f'"{path}"' for path in paths)
    return f'[[flow]]\nname = "{name}"\npaths = [{listed}]\ncontrol = "{control}"\nsubflows = {subflows}\n'


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Goodputs after a quarter of the run, and each subflow's part; or where the transitions began.

    `share`: the coupled flow's goodput over that of the single one; `least_part`: of the subflow that carried least;
    `transitions`: subflow, RTT and threshold [s] where its transition was first seen, `first_ratio` of the first's two.
    """
    from pathcast.worlds.topology import Topology

    topology = Topology.parse(scenario["text"])
    if world == "sim":
        from pathcast.worlds.sim import Sim

        began: dict[int, dict[str, Any]] = {}
        with Sim(topology) as network:
            done = network.flows()
    else:
        done, began = _emulated(topology, scenario)
    done.check()
    from_s, to_s = scenario["end_s"] / 4, scenario["end_s"]
    flow, goodput = done.flow("coupled"), {f.name: f.goodput(from_s, to_s) for f in done.flows}
    ends = [min(flow.samples, key=lambda sample, at=at: abs(sample.t_s - at)) for at in (from_s, to_s)]
    subflows = [b.bytes_acked - a.bytes_acked for a, b in zip(*(one.subflows for one in ends), strict=True)]
    transitions = [
        {"subflow": f["subflow"], "rtt_s": f["rtt_s"], "threshold_s": threshold_s(f["state"])} for f in began.values()
    ]
    first = next((t["rtt_s"] / t["threshold_s"] for t in transitions if t["subflow"] <= 1), None)
    return {
        "coupled_bps": goodput["coupled"],
        "share": goodput["coupled"] / goodput["single"] if "single" in goodput else None,
        "least_part": min(subflows) / max(1, sum(subflows)),
        "transitions": transitions,
        "first_ratio": first,
        "notes": [note for f in done.flows for note in f.notes],
    }


def _emulated(topology: Any, scenario: Mapping[str, Any]) -> tuple[Any, dict[int, dict[str, Any]]]:
    """The run, and what each subflow of a GSAM connection showed when its transition was first seen."""
    from pathcast.control.watch import Watch
    from pathcast.worlds.emu import Emu

    began: dict[int, dict[str, Any]] = {}

    def see(_time: float, flows: list[dict[str, Any]]) -> None:
        for flow in flows:
            if flow["phase"] == "smooth-transition":
                began.setdefault(flow["id"], flow)

    with Emu(topology) as network:
        if not scenario["watch"]:
            return network.flows(), began
        with Watch(network.controller(scenario["control"]), LOOK_S, see):
            return network.flows(), began


def threshold_s(state: str) -> float:
    """`gsam.h`: RTT_min + max(RTT_min / 8, 4 ms); RTT_min is the second word of the state."""
    rtt_us = int.from_bytes(bytes.fromhex(state)[4:8], sys.byteorder)
    return (rtt_us + max(rtt_us // 8, 4000)) / 1e6
