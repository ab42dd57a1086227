"""The simulator beside the emulator: the rounds of `evidence --world emu` again in world `sim`.

`python -m pathcast.lab.demo.beside DIRECTORY` reads the rounds that `python -m pathcast.lab.demo.evidence` has written
and prints, for each kind of transfer, simulated over emulated throughput.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathcast.lab.demo.plan import PATHS, Plan
from pathcast.lab.demo.rounds import apply
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

SHARES = (0, 10, 50, 90, 100)


def rounds(directory: Path) -> list[dict[str, Any]]:
    """The rounds that were not left out, of every seed."""
    import pyarrow.parquet as pq

    files = sorted(directory.glob("seed-*/rounds.parquet"))
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    return [row for row in found if not row["left_out"]]


def ratios(emulated: list[dict[str, Any]], sets: list[str]) -> dict[str, list[float]]:
    """Simulated over emulated throughput by kind of transfer; every transfer begins afresh."""
    plan = Plan()
    found: dict[str, list[float]] = {}
    with Sim(Topology.parse(plan.topology(), sets)) as world:
        for row in emulated:
            for kind, paths, size, actual in transfers(plan, row):
                apply(world, plan.fixed(tuple(row["rtt_s"])), 0)
                if len(paths) == 1:
                    done = world.tcp_probe(paths[0], size, plan.control)
                else:
                    done = world.transfer(paths, size, plan.control)
                found.setdefault(kind, []).append(done.throughput_bps / actual)
    return found


def transfers(plan: Plan, row: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], int, float]]:
    """What a round has measured: kind, paths, bytes, throughput."""
    for path, probe, whole in zip(PATHS, row["probes_bps"], row["tcp_bps"] or (None,) * len(PATHS), strict=True):
        yield "TCP, 64 KB", (path,), plan.probe_bytes, probe
        if whole:
            yield "TCP, 16 MB", (path,), plan.transfer_bytes, whole
    # the first path carries the handshake, and what is queued before the second joins
    where = "first path's RTT 1.5 times the other's" if row["rtt_s"][0] > 1.5 * row["rtt_s"][1] else "else"
    yield f"MPTCP, 128 KB, {where}", PATHS, plan.probe_total_bytes, row["mptcp_probe_bps"]
    yield f"MPTCP, 16 MB, {where}", PATHS, plan.transfer_bytes, row["actual_bps"]


def main() -> None:
    """Prints the table as Markdown."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    print("| transfer | n | least | 10 % | median | 90 % | most |\n|---|---|---|---|---|---|---|")
    for kind, values in ratios(rounds(arguments.directory), arguments.set).items():
        print(f"| {kind} | {len(values)} | " + " | ".join(f"{x:.2f}" for x in np.percentile(values, SHARES)) + " |")


if __name__ == "__main__":
    main()
