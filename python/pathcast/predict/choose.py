"""Which paths to take: choices in the order of their predicted throughput, and what a wrong choice cost.

Hamazaki, Abe, Kato name this purpose in sections 1 and 7 (after Maeda et al.); ranking and regret are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def rank(predictions: Iterable[Mapping[str, Any]], by: str = "predicted_bps") -> list[dict[str, Any]]:
    """The choices, best first: greatest `by` [bit/s]; at a tie the one with fewer paths, then the first.

    A choice is `{"paths": [...], "predicted_bps": ...}`; other keys are kept. Raises ValueError if there is
    none, if one lacks paths or value, or has a value that is not positive and finite, or if two are over the
    same paths.
    """
    choices = [dict(item) for item in predictions]
    values = _by_paths(choices, by)
    return sorted(choices, key=lambda item: (-values[tuple(item["paths"])], len(item["paths"])))


def best(predictions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The first of `rank`. Raises ValueError as it does."""
    return rank(predictions)[0]


def regret(chosen: Sequence[str], measured: Iterable[Mapping[str, Any]]) -> float:
    """(best actual - actual of the chosen) / best actual, 0..1; 0 is the best choice.

    chosen: its path names. measured: `{"paths": [...], "actual_bps": ...}` for every choice. Raises
    ValueError if the chosen paths were not measured, and as `rank` does.
    """
    values = _by_paths([dict(item) for item in measured], "actual_bps")
    if tuple(chosen) not in values:
        raise ValueError(f"no measurement of the chosen paths {list(chosen)}; measured are {[list(k) for k in values]}")
    top = max(values.values())
    return (top - values[tuple(chosen)]) / top


def _by_paths(choices: list[dict[str, Any]], by: str) -> dict[tuple[str, ...], float]:
    if not choices:
        raise ValueError("there is no choice of paths")
    values: dict[tuple[str, ...], float] = {}
    for item in choices:
        missing = [key for key in ("paths", by) if key not in item]
        if missing or isinstance(item.get("paths"), str) or not item["paths"]:
            raise ValueError(f'choice {item!r} must be {{"paths": [names], "{by}": bit/s}}')
        paths = tuple(item["paths"])
        if paths in values:
            raise ValueError(f"the choice of paths {list(paths)} is given twice")
        if not math.isfinite(item[by]) or item[by] <= 0:
            raise ValueError(f"{by} of paths {list(paths)} is {item[by]!r}, not a positive finite throughput in bit/s")
        values[paths] = float(item[by])
    return values
