"""The drawn scenarios' transfers, simulator and kernel side by side; in world `sim` the kernel's are those stored."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from pathcast.lab.experiment import Results

from .drawn import Case, case

STORED = Path(__file__).parent / "data" / "emu-kernel.csv"
COLUMNS = ("case", "seed", "digest", "bps", "s", "again", "by_path", "late_s")


@dataclass(frozen=True)
class Pair:
    """One scenario's transfers: the kernel's, one a seed, and as often the simulator's, each several times. again:
    medians of the share that was sent again, simulator and kernel."""

    number: int
    of: Case
    sim_bps: Sequence[Sequence[float]]
    emu_bps: Sequence[float]
    again: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Median throughput in the simulator over that in the kernel."""
        return self.simulated / median(self.emu_bps)

    @property
    def simulated(self) -> float:
        """Median throughput in the simulator [bit/s]."""
        return median(bps for seed in self.sim_bps for bps in seed)

    @property
    def spreads(self) -> tuple[float, float] | None:
        """Standard deviation of the logarithm of throughput, simulator and kernel; none of one transfer. The
        simulator's is the mean over sets of as many transfers as the kernel's: two or three deviate less than many
        do."""
        if len(self.sim_bps) < 2:
            return None
        sets = zip(*self.sim_bps, strict=True)
        return mean(_deviation(one) for one in sets), _deviation(self.emu_bps)


def _deviation(bps: Sequence[float]) -> float:
    return stdev(map(math.log, bps))


def pairs(results: Results) -> list[Pair]:
    """Of all scenarios that have transfers in both worlds, by number."""
    return results.once(_pairs)


def lacking(results: Results, multipath: bool) -> list[str]:
    """What a claim about a transport lacks, in words: simulated transfers without the kernel's part. Those that were
    not simulated are told by the lab."""
    every = [other is None for row, other in results.once(_sides) if case(row["case"]).multipath == multipath]
    of = f"{sum(every)} of {len(every)} {'Multipath TCP' if multipath else 'TCP'} transfers in the kernel"
    return [of] if any(every) else []


def _sides(results: Results) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """Each finished transfer, and what has the kernel's part of it."""
    stored = kernel() if results.world == "sim" else {}
    rows = [row for row in results.rows if row["grid"] == "drawn" and row["error"] is None]
    return [(row, row if row.get("emu_bps") else stored.get(row["digest"])) for row in rows]


def _pairs(results: Results) -> list[Pair]:
    found: dict[int, list[tuple[list[float], float, float, float]]] = {}
    for row, other in results.once(_sides):
        if other is not None:
            of_kernel = [float(other[f"emu_{key}"][0]) for key in ("bps", "again")]
            found.setdefault(row["case"], []).append(
                (row["sim_bps"], median(row["sim_again"]), of_kernel[0], of_kernel[1])
            )
    made = []
    for number, rows in sorted(found.items()):
        sim, sim_again, emu, emu_again = zip(*rows, strict=True)
        made.append(Pair(number, case(number), sim, emu, (median(sim_again), median(emu_again))))
    return made


def kernel(file: Path = STORED) -> dict[str, dict[str, Any]]:
    """What is stored of the kernel's transfers, by the digest of their scenarios."""
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {row["digest"]: {"emu_bps": [float(row["bps"])], "emu_again": [float(row["again"])]} for row in rows}
