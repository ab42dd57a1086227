"""`python -m pathcast.lab.measuring bars`: the bars of `measure` in a world, as a Markdown table and as samples."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pathcast.errors import PathcastError, usage
from pathcast.lab.measuring.bars import HEADER, markdown, run
from pathcast.lab.measuring.rows import ROWS
from pathcast.lab.rundir import RunDir


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Exit 0 whatever the verdicts are: they are results."""
    parser = argparse.ArgumentParser(prog="python -m pathcast.lab.measuring", description=__doc__)
    parser.add_argument("what", choices=("bars",))
    parser.add_argument("--world", choices=("sim", "emu"), default="sim")
    parser.add_argument("--runs", type=int, default=20, help="a row")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--rows", help="only those whose names contain this text")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once in the simulator")
    parser.add_argument("--out", type=Path, help="directory of the samples")
    options = parser.parse_args(arguments)
    try:
        _bars(options)
    except PathcastError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return int(error.exit)
    return 0


def _bars(options: argparse.Namespace) -> None:
    rows = [row for row in ROWS if options.rows is None or options.rows in row.name]
    if not rows:
        raise usage(f"--rows `{options.rows}`: no row has it; rows: {'; '.join(row.name for row in ROWS)}")
    if options.runs < 1:
        raise usage(f"--runs {options.runs}: at least 1")
    samples = []
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}", flush=True)

    def done(verdict, of) -> None:
        samples.extend(asdict(sample) for sample in of)
        print(markdown(verdict), flush=True)

    seeds = range(options.first_seed, options.first_seed + options.runs)
    verdicts = run(rows, options.world, seeds, options.jobs, done)
    if options.out:
        directory = RunDir(options.out)
        directory.samples(f"bars-{options.world}", samples)
        directory.run({"world": options.world, "holds": {v.row.name: v.holds for v in verdicts}})


if __name__ == "__main__":
    sys.exit(main())
