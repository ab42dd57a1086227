"""The simulator beside the real kernel: the same flows in worlds `sim` and `emu`, simulated over emulated goodput.

- single: one Reno or Cubic flow over links of several rates, round trips and buffers.
- pair: two flows share a link; the second starts a second later.
- multipath: two disjoint paths, of equal and of unequal round trips, uncoupled (Reno) and coupled.
- short: a transfer of 64 KB or 1 MB; the ratio is of goodput to completion, too.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from statistics import median
from typing import Any

from pathcast.lab.kernel.runs import command

SINGLE, PAIR, MULTIPATH, SHORT = "single", "pair", "multipath", "short"
RATES, RTTS_MS, BUFFERS = (5, 20, 100), (20, 50, 100), (0.25, 1.0, 4.0)
# two flows take turns for longer than one takes to settle
END_S = {PAIR: 60.0}
OTHER_END_S = 15.0
# a ratio farther from 1 than this is marked
BOUND = 0.15


@dataclass(frozen=True)
class Cell:
    """rate_mbit: of each link. rtt_ms: of each path, without queueing. buffer: in bandwidth-delay products.

    controls: of each flow. bytes: of a short transfer, else 0.
    """

    what: str
    controls: tuple[str, ...]
    rate_mbit: int
    rtt_ms: tuple[int, ...]
    buffer: float = 1.0
    bytes: int = 0


def _cells() -> list[Cell]:
    grid = list(itertools.product(RATES, RTTS_MS))
    single = [Cell(SINGLE, (c,), r, (t,), b) for c in ("reno", "cubic") for r, t in grid for b in BUFFERS]
    short = [Cell(SHORT, ("cubic",), r, (t,), bytes=n) for r, t in grid for n in (64_000, 1_000_000)]
    pairs = (("reno", "reno"), ("cubic", "cubic"), ("cubic", "reno"))
    pair = [Cell(PAIR, controls, 20, (50,), b) for controls in pairs for b in BUFFERS]
    ways = itertools.product(("reno", "lia", "olia", "balia"), ((40, 40), (20, 100)), BUFFERS[1:])
    return [*single, *short, *pair, *(Cell(MULTIPATH, (c,), 20, rtts, b) for c, rtts, b in ways)]


CELLS = _cells()


def scenario(cell: Cell, seed: int) -> str:
    """A link and a path for every round trip; a flow for every controller."""
    end_s = END_S.get(cell.what, OTHER_END_S)
    text = f'name = "beside"\nseed = {seed}\n' + ("" if cell.bytes else f'end = "{end_s}s"\n')
    # the emulator's hosts have room for every window here, the simulated ones have it only so
    text += '[tcp]\nreceive_buffer = "64MiB"\nsend_buffer = "64MiB"\n'
    for n, rtt_ms in enumerate(cell.rtt_ms, 1):
        packets = max(4, round(cell.buffer * cell.rate_mbit * 1e3 * rtt_ms / 8 / 1500))
        text += f'[[link]]\nname = "wan{n}"\na = "client"\nb = "server"\nrate = "{cell.rate_mbit}Mbit"\n'
        text += f'delay = "{rtt_ms * 500}us"\nqueue = {{ ab = "{packets} packets", ba = "1000 packets" }}\n'
        text += f'[[path]]\nname = "path{n}"\nlinks = ["wan{n}"]\n'
    paths = ", ".join(f'"path{n}"' for n in range(1, len(cell.rtt_ms) + 1))
    for n, control in enumerate(cell.controls):
        text += f'[[flow]]\nname = "flow{n + 1}"\npaths = [{paths}]\ncontrol = "{control}"\nstart = "{n}s"\n'
        text += f'bytes = "{cell.bytes}B"\n' if cell.bytes else ""
    return text


def measure(cell: Cell, seed: int) -> dict[str, Any]:
    """One run in each world: goodput of every flow over its life, what was sent again, and completion."""
    from pathcast.worlds.emu import Emu, Topology
    from pathcast.worlds.sim import Sim

    topology = Topology.parse(scenario(cell, seed))
    with Sim(topology) as world:
        simulated = world.flows()
    with Emu(topology) as world:
        emulated = world.flows()
    return {
        "valid": emulated.verdict.valid and all(flow.error is None for flow in emulated.flows),
        "release_error_s": emulated.verdict.release_error,
        "notes": [note for flow in emulated.flows for note in flow.notes],
        **{
            done.world: [
                {
                    "goodput_bps": flow.goodput_bps,
                    "again": flow.bytes_retransmitted / max(1, flow.bytes_acked),
                    "completion_s": flow.completion_s,
                }
                for flow in done.flows
            ]
            for done in (simulated, emulated)
        },
    }


def table(lines: list[dict[str, Any]]) -> list[list[str]]:
    """A row a flow of a cell: medians over the valid runs."""
    rows = [
        [
            "what",
            "Mbit/s",
            "RTT ms",
            "buffer",
            "flow",
            "runs",
            "sim",
            "kernel",
            "least to most",
            "sent again",
            "sim/kernel",
        ]
    ]
    for key, group in itertools.groupby(lines and sorted(lines, key=_order), key=lambda line: line["cell"]):
        own = list(group)
        valid = [line for line in own if line["valid"]]
        unit = f"{key['bytes'] // 1000} KB" if key["bytes"] else f"{key['buffer']:g} BDP"
        head = [key["what"], str(key["rate_mbit"]), "+".join(map(str, key["rtt_ms"])), unit]
        for n, control in enumerate(key["controls"]):
            others = " and ".join(c for m, c in enumerate(key["controls"]) if m != n)
            flow = f"{control} beside {others}" if others else control
            rows.append([*head, flow, f"{len(valid)} of {len(own)}", *_compared(valid, n)])
    return rows


def _compared(lines: list[dict[str, Any]], n: int) -> list[str]:
    if not lines:
        return ["-"] * 5
    sim, emu = ([line[world][n] for line in lines] for world in ("sim", "emu"))
    rates = [[of["goodput_bps"] / 1e6 for of in found] for found in (sim, emu)]
    again = [f"{median(of['again'] for of in found):.2%}" for found in (sim, emu)]
    ratio = median(rates[0]) / median(rates[1])
    mark = "" if abs(ratio - 1) <= BOUND else " **beyond**"
    shown = [f"{median(rates[0]):.2f}", f"{median(rates[1]):.2f}", f"{min(rates[1]):.2f} to {max(rates[1]):.2f}"]
    return [*shown, f"{again[0]}, {again[1]}", f"{ratio:.2f}{mark}"]


def _order(line: dict[str, Any]) -> int:
    cell = line["cell"]
    return CELLS.index(Cell(**{**cell, "controls": tuple(cell["controls"]), "rtt_ms": tuple(cell["rtt_ms"])}))


if __name__ == "__main__":
    sys.exit(command("beside", CELLS, measure, table))
