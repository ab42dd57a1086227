"""ImTCP's inline measurement in the real kernel: its results beside the truth, which the emulator knows.

One ImTCP flow over one bottleneck with constant cross traffic (packets of 1500 B). Truth: the link's rate less that of
the cross traffic, as payload (1448 of 1500 B), since the controller counts payload. Results of the first third of a run
are left out.
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from pathcast.lab.kernel.runs import command

PAYLOAD = 1448 / 1500
LOOK_S = 0.05
BAR = 0.15


@dataclass(frozen=True)
class Cell:
    """One path and its cross traffic, a share of the link's rate."""

    rate_mbit: int
    rtt_ms: int
    cross: float
    control: str = "imtcp"

    @property
    def duration_s(self) -> float:
        """Long enough for the window to fill the path: Reno adds a packet an RTT."""
        return 30.0 if self.rtt_ms < 50 else 60.0

    @property
    def truth_bps(self) -> float:
        """Available bandwidth [bit/s of payload]."""
        return self.rate_mbit * 1e6 * (1 - self.cross) * PAYLOAD


CELLS = [Cell(*values) for values in itertools.product((20, 100), (20, 100), (0.0, 0.2, 0.4, 0.6))]


def scenario(cell: Cell, seed: int) -> str:
    """One bottleneck with a queue of a bandwidth-delay product."""
    queue = round(cell.rate_mbit * 1e3 * cell.rtt_ms / 8 / 1500)
    cross = f"""
[[traffic]]
name = "cross"
kind = "constant"
link = "bottleneck"
direction = "ab"
packet = "1500B"
rate = "{round(cell.rate_mbit * cell.cross * 1000)}kbit"
"""
    return f"""
name = "inline"
seed = {seed}
end = "{cell.duration_s}s"
[[link]]
name = "bottleneck"
a = "client"
b = "server"
rate = "{cell.rate_mbit}Mbit"
delay = "{cell.rtt_ms * 500}us"
queue = "{queue} packets"
[[path]]
name = "path1"
links = ["bottleneck"]
[[flow]]
name = "flow"
paths = ["path1"]
control = "{cell.control}"
[host.client]
send_segments = 1
{cross if cell.cross else ""}"""


def measure(cell: Cell, seed: int) -> dict[str, Any]:
    """One run: every result of the controller after the first third, over the truth."""
    from pathcast.control.watch import Watch
    from pathcast.worlds.emu import Emu, Topology

    results: dict[int, float] = {}
    began = 0.0

    def see(now: float, flows: list[dict[str, Any]]) -> None:
        for flow in flows:
            number = flow["words"][1]
            if flow["available_bps"] and now - began > cell.duration_s / 3:
                results.setdefault(number, flow["available_bps"] / cell.truth_bps)

    with Emu(Topology.parse(scenario(cell, seed))) as world:
        part = world.controller(cell.control)
        began = time.monotonic()
        with Watch(part, LOOK_S, see):
            done = world.flows()
        [flow] = done.flows
        goodput = flow.goodput(cell.duration_s / 3, cell.duration_s)
    return {
        "valid": done.verdict.valid and flow.error is None,
        "release_error_s": done.verdict.release_error,
        "results": list(results.values()),
        "goodput": goodput / cell.truth_bps,
    }


def table(lines: list[dict[str, Any]]) -> list[list[str]]:
    """A row a cell: medians of the runs, their least and greatest, and all results of all runs."""
    header = [
        "rate",
        "RTT",
        "cross",
        "runs",
        "results a second",
        "result / truth",
        "runs' medians",
        "10 to 90 % of all",
    ]
    rows = [[*header, "goodput / truth", "verdict"]]
    for cell, group in itertools.groupby(sorted(lines, key=_cell), key=_cell):
        own = list(group)
        rate, rtt, cross = cell
        found = [line["results"] for line in own if line["valid"] and line["results"]]
        medians, everything = [median(r) for r in found], [r for results in found for r in results]
        row = [f"{rate} Mbit/s", f"{rtt} ms", f"{cross:.0%}", f"{len(found)} of {len(own)}"]
        if not everything:
            rows.append([*row, "0", "-", "-", "-", "-", "no result"])
            continue
        time_s = Cell(*cell).duration_s * 2 / 3 * len(found)
        tenths = quantiles(everything, n=10) if len(everything) > 1 else everything * 9
        middle = median(everything)
        rows.append(
            [
                *row,
                f"{len(everything) / time_s:.1f}",
                f"{middle:.2f}",
                f"{min(medians):.2f} to {max(medians):.2f}",
                f"{tenths[0]:.2f} to {tenths[-1]:.2f}",
                f"{median(line['goodput'] for line in own if line['valid']):.2f}",
                "holds" if abs(middle - 1) <= BAR else f"missed: {middle - 1:+.0%}",
            ]
        )
    return rows


def _cell(line: dict[str, Any]) -> tuple[int, int, float]:
    cell = line["cell"]
    return cell["rate_mbit"], cell["rtt_ms"], cell["cross"]


if __name__ == "__main__":
    sys.exit(command("inline", CELLS, measure, table))
