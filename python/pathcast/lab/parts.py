"""A claim about several cells of a grid: each is judged by its mean over the seeds, and the claim by all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.verdict import Verdict

# so many cells are told one by one
_FEW = 3


def cells(results: Results, grid: str) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """The finished samples of a grid of the results' world by the values of its keys but `seed`, in the plan's order.

    A cell that was planned and has none is there too; one that is planned no more is not.
    """
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    names: list[str] = []
    for point in results.plan.points(results.world):
        if point["grid"] == grid:
            names = [name for name in point if name not in ("grid", "seed")]
            found.setdefault(tuple(point[name] for name in names), [])
    for row in results.rows:
        if row["grid"] == grid and row["error"] is None:
            cell = found.get(tuple(row.get(name) for name in names))
            if cell is not None:
                cell.append(row)
    return found


def judged(
    parts: Iterable[tuple[str, Iterable[float | None]]], least: float, most: float, of: str = "cells", form: str = ".2f"
) -> Finding:
    """Whether the mean of every part is between two bounds, by its 95 % interval (Student's t).

    parts: names and values by seed, None where a run has none. of: what the parts are called. Raises Undecided if no
    part has a value.
    """
    verdict, found, without = Verdict(), [], 0
    for name, values in parts:
        every = list(values)
        known = [value for value in every if value is not None]
        if not known:
            without += 1
            continue
        if len(known) == 1:
            few = f" ({len(known)} of {len(every)} seeds)" if len(every) > 1 else ""
            told, met = f"{known[0]:{form}} in one run{few}", None
        else:
            mean = Interval.mean(every)
            told, met = mean.told(form=form), mean.within(least, most)
        found.append((met, told))
        verdict.details.append(f"{name}: {told}")
        verdict.needs(met, f"{name}: {told}")
    if not found:
        raise Undecided("none of its runs is there")
    if without:
        verdict.missing.append(f"{without} of {len(found) + without} {of}")
    if len(found) <= _FEW:
        return verdict.finding(", ".join(told for _, told in found))
    return verdict.finding(f"{sum(met is True for met, _ in found)} of {len(found)} {of}")
