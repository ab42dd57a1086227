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
from pathcast.results.rundir import RunDir


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Exit 0 whatever the verdicts are: they are results."""
    parser = argparse.ArgumentParser(prog="python -m pathcast.lab.measuring", description=__doc__)
    parser.add_argument("what", choices=("bars", "cases"))
    parser.add_argument("--world", choices=("sim", "emu"), default="sim")
    parser.add_argument("--runs", type=int, help="a row (default: 20), or random cases (default: 3000)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--rows", help="only those whose names contain this text")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once in the simulator")
    parser.add_argument("--out", type=Path, help="directory of the samples")
    options = parser.parse_args(arguments)
    try:
        if options.runs is not None and options.runs < 1:
            raise usage(f"--runs {options.runs}: at least 1")
        _cases(options) if options.what == "cases" else _bars(options)
    except PathcastError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return int(error.exit)
    return 0


def _bars(options: argparse.Namespace) -> None:
    rows = [row for row in ROWS if options.rows is None or options.rows in row.name]
    if not rows:
        raise usage(f"--rows `{options.rows}`: no row has it; rows: {'; '.join(row.name for row in ROWS)}")
    samples = []
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}", flush=True)

    def done(verdict, of) -> None:
        samples.extend(asdict(sample) for sample in of)
        print(markdown(verdict), flush=True)

    seeds = range(options.first_seed, options.first_seed + (20 if options.runs is None else options.runs))
    verdicts = run(rows, options.world, seeds, options.jobs, done)
    if options.out:
        directory = RunDir(options.out)
        directory.samples(f"bars-{options.world}", samples)
        directory.run({"world": options.world, "holds": {v.row.name: v.holds for v in verdicts}})


def _cases(options: argparse.Namespace) -> None:
    from pathcast.lab.measuring import cases
    from pathcast.results.style import style

    if options.world != "sim":
        raise usage("random cases are run in the simulator only")
    count = 3000 if options.runs is None else options.runs
    lines = cases.run(range(options.first_seed, options.first_seed + count), options.jobs)
    print(f"| {' | '.join(cases.HEADER)} |\n|{'---|' * len(cases.HEADER)}")
    for row in cases.rows(lines):
        print(f"| {' | '.join(row)} |")
    print("\n".join(["", *cases.others(lines)]))
    if options.out:
        directory = RunDir(options.out)
        directory.samples("cases", lines)
        directory.table("cases", cases.HEADER, cases.rows(lines))
        with style():
            directory.figure("errors", cases.figure(lines))
        directory.run({"world": "sim", "first_seed": options.first_seed, "cases": count})


if __name__ == "__main__":
    sys.exit(main())
