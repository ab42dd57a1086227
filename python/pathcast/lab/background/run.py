"""Runs pairs and keeps each as a line of `pairs.jsonl` as soon as it is there; what is there is not run again.

A line's key is the hash of the pair's scenarios and of the world's version. Pairs over one path with one seed are run
together, one after the other, and share the runs that are the same: the foreground alone, the background alone.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pathcast.lab.background.cells import ROLES, Cell, scenario, times
from pathcast.lab.background.runners import RUNNERS, Runner

SCHEMA = "pathcast.background-pair/1"
Pair = tuple[Cell, int]


def key(pair: Pair, runner: Runner, clock: str) -> str:
    """What a pair's result depends on; `clock`: the world whose durations hold."""
    cell, seed = pair
    texts = [scenario(cell, roles, seed, clock) for roles in ROLES.values()]
    at = times(cell, seed, clock)
    return hashlib.sha256(json.dumps([runner.version(), texts, at.from_s, at.to_s]).encode()).hexdigest()


def measure(pairs: Iterable[Pair], runner: Runner, clock: str) -> Iterator[dict[str, Any]]:
    """The line of each pair; equal scenarios run once."""
    once = functools.cache(runner.run)
    for cell, seed in pairs:
        at = times(cell, seed, clock)
        got = {name: once(scenario(cell, roles, seed, clock), at.from_s, at.to_s) for name, roles in ROLES.items()}
        yield {
            "schema": SCHEMA,
            "key": key((cell, seed), runner, clock),
            "world": runner.world,
            "cell": asdict(cell),
            "seed": seed,
            "times": asdict(at),
            "bytes": got,
        }


def stored(path: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file by key; one that was not written to its end is left out."""
    found = {}
    for text in path.read_bytes().splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("schema") == SCHEMA:
            found[line["key"]] = line
    return found


def run(
    pairs: Sequence[Pair],
    world: str,
    clock: str,
    path: Path,
    jobs: int = 1,
    done: Callable[[int], object] = lambda count: None,
) -> list[dict[str, Any]]:
    """Runs what `path` does not have yet, in `jobs` processes; returns the lines of all pairs, in their order.

    `clock` is the world whose durations hold; `done` is told how many pairs became ready.
    """
    from joblib import Parallel, delayed

    runner = RUNNERS[world]()
    lines, keys = stored(path), [key(pair, runner, clock) for pair in pairs]
    units: dict[tuple, list[Pair]] = {}
    for pair, name in zip(pairs, keys, strict=True):
        if name not in lines:
            cell, seed = pair
            units.setdefault((cell.rate_mbit, cell.rtt_ms, cell.buffer_bdp, seed), []).append(pair)
    work = (delayed(_unit)(unit, world, clock) for unit in units.values())
    # one process: pair after pair, so that little is lost when it is broken off
    ready = (
        ([line] for unit in units.values() for line in measure(unit, runner, clock))
        if jobs == 1
        else Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(work)
    )
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            os.write(file, b"\n")
        for some in ready:
            for line in some:
                text = json.dumps(line, separators=(",", ":"))
                os.write(file, text.encode() + b"\n")
                lines[line["key"]] = json.loads(text)
            os.fsync(file)
            done(len(some))
    finally:
        os.close(file)
    return [lines[name] for name in keys]


def _unit(pairs: list[Pair], world: str, clock: str) -> list[dict[str, Any]]:
    """One unit, in whatever process."""
    return list(measure(pairs, RUNNERS[world](), clock))
