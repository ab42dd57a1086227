"""`python -m pathcast.lab.background`: the grid of background transports, its tables and verdicts.

A run that was broken off is continued by the same command. Exit 0 whatever the verdicts are: they are results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pathcast import _native
from pathcast.errors import PathcastError, usage
from pathcast.lab.background.cells import (
    BUFFERS_BDP,
    CONTROLLERS,
    FOREGROUNDS,
    RATES_MBIT,
    RTTS_MS,
    Cell,
    cells,
    duration_s,
)
from pathcast.lab.background.run import run
from pathcast.lab.background.runners import RUNNERS
from pathcast.lab.background.table import HEADER, csv_rows, markdown, rows
from pathcast.results.rundir import RunDir


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m pathcast.lab.background", description=__doc__)
    parser.add_argument("--world", choices=sorted(RUNNERS), default="sim")
    parser.add_argument("--pairs", type=int, default=5, help="pairs a cell")
    parser.add_argument(
        "--controllers", type=_list(str), default=CONTROLLERS, help="NAME or NAME/PARAMETER=VALUE, with commas"
    )
    parser.add_argument("--rates", type=_list(int), default=RATES_MBIT, help="Mbit/s")
    parser.add_argument("--rtts", type=_list(int), default=RTTS_MS, help="ms")
    parser.add_argument("--buffers", type=_list(float), default=BUFFERS_BDP, help="BDP")
    parser.add_argument("--foregrounds", type=_list(str), default=FOREGROUNDS)
    parser.add_argument("--out", type=Path, required=True, help="directory")
    parser.add_argument("--quick", action="store_true", help="20 Mbit/s, RTT 20 ms, at most 2 pairs a cell")
    parser.add_argument("--times", choices=("sim", "emu"), help="durations as in this world; default: the world's own")
    parser.add_argument("--jobs", type=int, default=1, help="processes; in the emulator, networks at once")
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except PathcastError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return int(error.exit)
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130
    return 0


def _list(kind: type):
    def parse(text: str) -> tuple:
        return tuple(kind(part) for part in text.split(",") if part)

    return parse


def _run(options: argparse.Namespace) -> None:
    count = min(options.pairs, 2) if options.quick else options.pairs
    rates, rtts = ((20,), (20,)) if options.quick else (options.rates, options.rtts)
    grid = cells(_known(options.controllers), rates, rtts, options.buffers, options.foregrounds)
    pairs = [(cell, seed) for cell in grid for seed in range(1, count + 1)]
    clock = options.times or options.world
    directory = RunDir(options.out)

    def done(left: int) -> None:
        print(f"\r{left} runs left ", end="", file=sys.stderr, flush=True)

    found = rows(run(pairs, options.world, clock, directory.path / "runs.jsonl", options.jobs, done))
    print(file=sys.stderr)
    directory.table("cells", HEADER, csv_rows(found))
    text = markdown(found)
    directory.text("cells.md", text + "\n")
    directory.run({"world": options.world, "times": clock, "pairs": count, "longest_run_s": _longest(grid, clock)})
    print(text)


def _known(labels: Sequence[str]) -> Sequence[str]:
    """The labels, if controllers and parameters exist."""
    register = {row["name"]: {p["name"] for p in row["params"]} for row in json.loads(_native.controllers())}
    for label in labels:
        name, *settings = label.split("/")
        keys = [setting.partition("=") for setting in settings]
        if name not in register or any(key not in register[name] or not value.isdigit() for key, _, value in keys):
            raise usage(f"--controllers `{label}`: write NAME or NAME/PARAMETER=VALUE; see `pathcast control list`")
    return labels


def _longest(grid: Sequence[Cell], world: str) -> float:
    return max(duration_s(cell, world) for cell in grid)


if __name__ == "__main__":
    sys.exit(main())
