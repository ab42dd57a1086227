"""Runs of cells with several seeds, each kept as a line as soon as it is there; what is there is not run again.

A run in which the emulator did not keep its time is repeated twice, and then told as invalid.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pathcast import parallel
from pathcast.errors import PathcastError, usage
from pathcast.lab.version import code
from pathcast.results.lines import Lines
from pathcast.results.rundir import RunDir

Cell = TypeVar("Cell")
# one run: the cell and the seed to what was found; `valid` says whether the emulator kept its time
Measure = Callable[[Any, int], dict[str, Any]]
TRIES = 3


def key(cell: Any, seed: int, measure: Measure) -> str:
    """What a line's result depends on: the cell, the seed, and the code of the experiment and of the extension."""
    source = Path(sys.modules[measure.__module__].__file__ or "").read_bytes()
    text = json.dumps([repr(cell), seed, code(), hashlib.sha256(source).hexdigest()])
    return hashlib.sha256(text.encode()).hexdigest()


def tried(measure: Measure, cell: Any, seed: int) -> dict[str, Any]:
    """The first valid of three tries, else the last one."""
    for attempt in range(1, TRIES + 1):
        line = {**measure(cell, seed), "tries": attempt}
        if line["valid"]:
            break
    return line


def run(cells: Iterable[Cell], seeds: Iterable[int], measure: Measure, path: Path, jobs: int) -> list[dict[str, Any]]:
    """The lines of all cells and seeds, in their order; those that `path` lacks are run in `jobs` processes."""
    wanted = [(cell, seed) for seed in seeds for cell in cells]
    keys = {pair: key(*pair, measure) for pair in wanted}
    with Lines(path, lambda line: "valid" in line) as lines:
        missing = [pair for pair in wanted if keys[pair] not in lines.stored]
        calls = ((keys[pair], measure, *pair) for pair in missing)
        for number, line in enumerate(parallel.unordered(_line, calls, jobs), 1):
            lines.add(line)
            print(f"\r{len(missing) - number} runs left ", end="", file=sys.stderr, flush=True)
    return [lines.stored[keys[pair]] for pair in wanted]


def _line(name: str, measure: Measure, cell: Any, seed: int) -> dict[str, Any]:
    return {"key": name, "cell": vars(cell), "seed": seed, **tried(measure, cell, seed)}


def command(
    program: str, cells: Sequence[Any], measure: Measure, table: Callable[[list[dict[str, Any]]], list[list[str]]]
) -> int:
    """The command line of an experiment: runs its cells, prints and stores its table, whose first row is the header."""
    parser = argparse.ArgumentParser(prog=f"python -m pathcast.lab.kernel.{program}")
    parser.add_argument("--runs", type=int, default=5, help="runs a cell")
    parser.add_argument("--jobs", type=int, default=1, help="networks at once")
    parser.add_argument("--only", default="", help="cells whose text has this in it")
    parser.add_argument("--out", type=Path, required=True, help="directory; a run that was broken off is continued")
    options = parser.parse_args()
    try:
        directory = RunDir(options.out)
        chosen = [cell for cell in cells if options.only in repr(cell)]
        if not chosen:
            raise usage(f"--only `{options.only}` is in the text of no cell; one of them is {cells[0]!r}")
        lines = run(chosen, range(1, options.runs + 1), measure, directory.path / "runs.jsonl", options.jobs)
        header, *rows = table(lines)
        directory.table("cells", header, rows)
        directory.run({"runs": options.runs, "jobs": options.jobs})
        text = markdown(header, rows)
        directory.text("cells.md", text)
        print(f"\n{text}", end="")
    except PathcastError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return int(error.exit)
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130
    return 0


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as documents have it."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
