"""Runs what the pairs need and keeps each run as a line of `runs.jsonl` as soon as it is there, once and for all.

A run's key is the hash of its scenario, of the interval that is measured and of the world's version. Pairs share the
runs that are the same: the foreground alone over one path with one seed, the background alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pathcast import parallel
from pathcast.errors import PathcastError
from pathcast.lab.background.cells import ROLES, Cell, scenario, times
from pathcast.lab.background.runners import RUNNERS, Runner
from pathcast.results.lines import Lines

SCHEMA = "pathcast.background-run/1"
Pair = tuple[Cell, int]


@dataclass(frozen=True)
class Run:
    """One scenario, and the interval of it that is measured [s]."""

    text: str
    from_s: float
    to_s: float

    def key(self, version: str) -> str:
        """What its result depends on; `version`: of the world."""
        return hashlib.sha256(json.dumps([version, self.text, self.from_s, self.to_s]).encode()).hexdigest()


def runs(pair: Pair, clock: str) -> dict[str, Run]:
    """What a pair needs, by role; `clock`: the world whose durations hold."""
    cell, seed = pair
    at = times(cell, seed, clock)
    return {name: Run(scenario(cell, roles, seed, clock), at.from_s, at.to_s) for name, roles in ROLES.items()}


def pair_lines(pairs: Iterable[Pair], clock: str, found: Callable[[Run], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each pair's flows had acknowledged, by role; `error` in its place where a run failed."""
    lines = []
    for cell, seed in pairs:
        got = {name: found(run) for name, run in runs((cell, seed), clock).items()}
        errors = [one["error"] for one in got.values() if "error" in one]
        line = {"cell": asdict(cell), "seed": seed, "times": asdict(times(cell, seed, clock))}
        lines.append(line | ({"error": errors[0]} if errors else {"bytes": {n: o["bytes"] for n, o in got.items()}}))
    return lines


def finished(line: Mapping[str, Any]) -> bool:
    """Whether a line has a result; one that failed is run again by the next command."""
    return line.get("schema") == SCHEMA and "bytes" in line


def run(
    pairs: Sequence[Pair],
    world: str,
    clock: str,
    path: Path,
    jobs: int = 1,
    done: Callable[[int], object] = lambda left: None,
) -> list[dict[str, Any]]:
    """Runs what `path` does not have yet, in `jobs` processes; returns the lines of all pairs, in their order.

    `clock` is the world whose durations hold; `done` is told how many runs are left.
    """
    version = RUNNERS[world]().version()
    by_seed = sorted(pairs, key=lambda pair: pair[1])  # a grid that is broken off has few seeds everywhere
    wanted = {one.key(version): one for pair in by_seed for one in runs(pair, clock).values()}
    with Lines(path, finished) as lines:
        missing = {key: one for key, one in wanted.items() if key not in lines.stored}
        done(left := len(missing))
        for line in parallel.unordered(_line, ((key, one, world) for key, one in missing.items()), jobs):
            lines.add(line)
            done(left := left - 1)
    return pair_lines(pairs, clock, lambda one: lines.stored[one.key(version)])


def _line(key: str, one: Run, world: str) -> dict[str, Any]:
    """One run, in whatever process. What fails for want of time or by a fault of its own is a result too."""
    line = {"schema": SCHEMA, "key": key, "world": world}
    runner: Runner = RUNNERS[world]()
    try:
        return {**line, "bytes": runner.run(one.text, one.from_s, one.to_s)}
    except PathcastError as error:
        if error.code not in ("late", "transfer"):
            raise
        return {**line, "error": str(error)}
