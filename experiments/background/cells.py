"""From runs to pairs, from pairs to shares: what claims and tables ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pathcast.lab import parts
from pathcast.lab.experiment import Results

from .samples import MSS_BYTES, PACKET_BYTES

# what a share is of, and what it is called in the table
KEPT, ALONE, REST = "kept", "alone", "rest"


@dataclass(frozen=True, order=True)
class Path:
    """A path and its buffer in bandwidth-delay products."""

    rate_mbit: int
    rtt_ms: int
    buffer: float

    def __str__(self) -> str:
        return f"{self.rate_mbit} Mbit/s, {self.rtt_ms} ms, {self.buffer:g} BDP"

    @property
    def payload_bps(self) -> float:
        """What it carries of payload at most [bit/s]."""
        return self.rate_mbit * 1e6 * MSS_BYTES / PACKET_BYTES


# control, path, foreground, quantity: by seed
Shares = dict[tuple[str, Path, str, str], dict[int, float]]


def shares(results: Results, grid: str) -> Shares:
    """Of every pair of a grid by seed, 1 is all; pairs of which a run is missing are left out, planned cells are not.

    kept: the foreground's bytes beside over its bytes alone. alone: the background's over what the path carries. rest:
    over what virtual traffic of half of the link leaves.
    """
    return results.once(lambda _: _shares(results, grid), ("shares", grid))


def _shares(results: Results, grid: str) -> Shares:
    runs: dict[tuple[str, Path, str], dict[tuple[str, int], Mapping[str, Any]]] = {}
    for (role, control, rate, rtt, buffer, foreground), rows in parts.cells(results, grid).items():
        cell = runs.setdefault((control, Path(rate, rtt, buffer), foreground), {})
        cell.update({(role, row["seed"]): row for row in rows})
    found: Shares = {}
    for (control, path, foreground), of in runs.items():
        for quantity in (KEPT, ALONE, REST):
            found[control, path, foreground, quantity] = values = {}
            for _, seed in of:
                if (share := _share(of, path, quantity, seed)) is not None:
                    values[seed] = share
    return found


def _share(of: Mapping[tuple[str, int], Mapping[str, Any]], path: Path, quantity: str, seed: int) -> float | None:
    if quantity == KEPT:
        beside, alone = of.get(("beside", seed)), of.get(("alone", seed))
        return beside["foreground_bytes"] / alone["foreground_bytes"] if beside and alone else None
    run = of.get(("unopposed" if quantity == ALONE else "rest", seed))
    if run is None:
        return None
    share = run["background_bytes"] * 8 / (run["span_s"] * path.payload_bps)
    return share if quantity == ALONE else 2 * share
