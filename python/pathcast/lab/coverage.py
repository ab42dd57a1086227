"""Whether the samples are there that a claim is judged on. What failed or was never run is told, and nothing holds
without it: what is there may be what came out well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pathcast.lab.plan import Claim, Point

if TYPE_CHECKING:
    from pathcast.lab.experiment import Finding, Results


@dataclass
class Coverage:
    """Of a claim's samples: how many there ought to be and how many are missing, which seeds, and which lack one."""

    planned: int = 0
    missing: int = 0
    seeds: set[Any] = field(default_factory=set)
    lacking: set[Any] = field(default_factory=set)
    # of the whole plan, where this is a part of it
    whole_samples: int = 0
    whole_seeds: int = 0

    def add(self, point: Point, there: bool) -> None:
        """A sample that ought to be there."""
        self.planned += 1
        self.seeds.add(point.get("seed"))
        if not there:
            self.missing += 1
            self.lacking.add(point.get("seed"))

    def judged(self, found: Finding) -> Finding:
        """The finding, with what is missing; it may still say no."""
        if self.missing:
            seeds = f"{len(self.seeds - self.lacking)} of {len(self.seeds)} seeds complete"
            lacks = f"{seeds}, {self.missing} of {self.planned} samples missing"
            holds = False if found.holds is False else None
            reason = found.reason if holds is False or found.holds is None else lacks
            found = replace(found, ours=f"{found.ours}; {lacks}", holds=holds, reason=reason)
        parts = (len(self.seeds), self.whole_seeds, "seeds"), (self.planned, self.whole_samples, "samples")
        if told := ", ".join(f"{part} of {whole} {what}" for part, whole, what in parts if part < whole):
            found = replace(found, ours=f"{found.ours}; {told}")
        return found


def covered(results: Results, claims: Iterable[Claim]) -> dict[str, Coverage]:
    """By claim; of a part of the plan (`results.quick`) the samples that were chosen ought to be there."""
    every = list(claims)
    found = {claim.id: Coverage() for claim in every}
    names = {grid["name"]: ("grid", *grid["over"]) for grid in results.plan.grids}
    # a grid that is no longer in the plan counts for nothing
    rows = [row for row in results.rows if row.get("grid") in names]
    if not rows:
        return found

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in names[row["grid"]])

    there = results.once(lambda _: {key(row) for row in rows if row["error"] is None}, "finished")
    points = rows if results.quick else results.plan.points(results.world)
    of_grid = {grid: [claim for claim in every if claim.of("grid", grid)] for grid in names}
    for point in points:
        own = {name: point.get(name) for name in names[point["grid"]]}
        for claim in of_grid[point["grid"]]:
            if claim.about(own):
                found[claim.id].add(own, key(own) in there)
    if results.quick:
        for point in results.plan.points(results.world):
            for claim in of_grid[point["grid"]]:
                found[claim.id].whole_samples += claim.about(point)
        for claim in every:
            found[claim.id].whole_seeds = len(results.plan.seeds(results.world, claim))
    return found
