"""Coupled controllers over the kernel's Multipath TCP: LIA's share beside Reno, both paths' use, GSAM's transition.

- shared: two subflows and one plain Reno flow over one bottleneck that drops at random; throughput of the first over
  that of the second. RFC 6356's goal is 1; uncoupled subflows take nearly 2.
- disjoint: two paths of its own; how much of each is used.
- transition: GSAM over 1, 2 and 4 subflows of one bottleneck: the smoothed RTT of a subflow where its transition was
  first seen, over the threshold of `gsam.h` from its own smallest RTT. It is looked every 5 ms at what the kernel shows
  every 20 ms, while the queue grows; the first subflow is judged, since those that join a full queue see their first
  RTTs jump over the threshold.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from statistics import median
from typing import Any

from pathcast.lab.kernel.runs import command

SHARED, DISJOINT, TRANSITION = "shared", "disjoint", "transition"
RTT_S = 0.04
LOOK_S = 0.005


@dataclass(frozen=True)
class Cell:
    """What runs over what. `subflows` of the one connection."""

    what: str
    control: str
    subflows: int = 2
    loss: float = 0.0


CELLS = [
    *(Cell(SHARED, control, loss=loss) for control in ("lia", "reno", "olia", "balia") for loss in (0.005, 0.01)),
    *(Cell(DISJOINT, control) for control in ("lia", "olia", "balia", "reno")),
    *(Cell(TRANSITION, "gsam", subflows) for subflows in (1, 2, 4)),
]


def scenario(cell: Cell, seed: int) -> str:
    """Every network has an RTT of 40 ms and runs for a minute, but for the transition's five seconds."""
    text = f'name = "coupling"\nseed = {seed}\nend = "{_end_s(cell)}s"\n'
    if cell.what == DISJOINT:
        text += _link("wan1", "client", "server", "10Mbit", RTT_S / 2, 34)
        text += _link("wan2", "client", "server", "10Mbit", RTT_S / 2, 34)
        text += _path("path1", "wan1") + _path("path2", "wan2")
        return text + _flow("coupled", ["path1", "path2"], cell.control, 2)
    rate, queue = ("20Mbit", 200) if cell.what == SHARED else ("5Mbit", 50)
    text += _link("access1", "client", "r", None, 0, None) + _link("access2", "client", "r", None, 0, None)
    text += _link("bottleneck", "r", "server", rate, RTT_S / 2, queue, cell.loss)
    text += _path("path1", "access1", "bottleneck") + _path("path2", "access2", "bottleneck")
    names = ["path1", "path2"][: cell.subflows]
    text += _flow("coupled", names, cell.control, cell.subflows)
    return text + (_flow("single", ["path1"], "reno", 1) if cell.what == SHARED else "")


def _end_s(cell: Cell) -> float:
    return 5.0 if cell.what == TRANSITION else 60.0


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


def measure(cell: Cell, seed: int) -> dict[str, Any]:
    """One run: goodputs of flows and subflows after a quarter of it, or where the transition began."""
    from pathcast.control.watch import Watch
    from pathcast.worlds.emu import Emu, Topology

    began: dict[int, dict[str, Any]] = {}

    def see(_time: float, flows: list[dict[str, Any]]) -> None:
        for flow in flows:
            if flow["phase"] == "smooth-transition":
                began.setdefault(flow["id"], flow)

    with Emu(Topology.parse(scenario(cell, seed))) as world:
        if cell.what == TRANSITION:
            with Watch(world.controller(cell.control), LOOK_S, see):
                done = world.flows()
        else:
            done = world.flows()
    from_s, to_s = _end_s(cell) / 4, _end_s(cell)
    flow = done.flow("coupled")
    ends = [
        flow.samples[min(range(len(flow.samples)), key=lambda i: abs(flow.samples[i].t_s - at))]
        for at in (from_s, to_s)
    ]
    subflows = [b.bytes_acked - a.bytes_acked for a, b in zip(*(sample.subflows for sample in ends), strict=True)]
    return {
        "valid": done.verdict.valid and all(f.error is None for f in done.flows),
        "release_error_s": done.verdict.release_error,
        "goodput_bps": {f.name: f.goodput(from_s, to_s) for f in done.flows},
        "subflows": [n / max(1, sum(subflows)) for n in subflows],
        "transitions": [
            {"subflow": f["subflow"], "rtt_s": f["rtt_s"], "threshold_s": threshold_s(f["state"])}
            for f in began.values()
        ],
        "notes": [note for f in done.flows for note in f.notes],
    }


def threshold_s(state: str) -> float:
    """`gsam.h`: RTT_min + max(RTT_min / 8, 4 ms); RTT_min is the second word of the state."""
    rtt_us = int.from_bytes(bytes.fromhex(state)[4:8], sys.byteorder)
    return (rtt_us + max(rtt_us // 8, 4000)) / 1e6


def table(lines: list[dict[str, Any]]) -> list[list[str]]:
    """A row a cell."""
    rows = [["network", "controller", "subflows", "loss", "runs", "median", "least to most", "verdict"]]
    for cell, group in itertools.groupby(sorted(lines, key=_cell), key=_cell):
        own = list(group)
        valid = [line for line in own if line["valid"]]
        what, control, subflows, loss = cell
        values, bar, told = _values(what, control, valid)
        row = [told, control, f"{subflows}", f"{loss:.1%}" if loss else "-", f"{len(valid)} of {len(own)}"]
        if not values:
            rows.append([*row, "-", "-", "nothing seen"])
            continue
        low, high = bar
        middle = median(values)
        holds = "told only" if low is None else "holds" if low <= middle <= high else "missed"
        rows.append([*row, f"{middle:.2f}", f"{min(values):.2f} to {max(values):.2f}", holds])
    return rows


def _values(what: str, control: str, lines: list[dict[str, Any]]) -> tuple[list[float], tuple[Any, Any], str]:
    """What a cell is judged by, of each run; between which bounds; and what it is."""
    if what == SHARED:
        ratios = [g["coupled"] / g["single"] for g in (line["goodput_bps"] for line in lines)]
        bars = {"lia": (0.8, 1.3), "reno": (1.6, 2.4)}
        return ratios, bars.get(control, (None, None)), "shared bottleneck: throughput over that of Reno"
    if what == DISJOINT:
        least = [min(line["subflows"]) for line in lines]
        return least, (0.3, 0.5) if control == "lia" else (None, None), "disjoint paths: the smaller path's part"
    first = (t for line in lines for t in line["transitions"] if t["subflow"] <= 1)
    found = [t["rtt_s"] / t["threshold_s"] for t in first]
    return found, (1.0, 1.25), "smooth transition: the first subflow's RTT at its begin over the threshold"


def _cell(line: dict[str, Any]) -> tuple[str, str, int, float]:
    cell = line["cell"]
    return cell["what"], cell["control"], cell["subflows"], cell["loss"]


if __name__ == "__main__":
    sys.exit(command("coupling", CELLS, measure, table))
