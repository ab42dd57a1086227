"""`pathcast sim`: a scenario in the simulator, once or over a grid of settings."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.cli.output import Json, as_directory, console, print_json
from pathcast.errors import Exit, PathcastError, usage

_EVENTS = 100_000_000_000


def sim(
    file: Annotated[Path, typer.Argument(help="A scenario: a file, or one of `pathcast net topologies`.")],
    set: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE over the file's, for example flow.bulk.control=lia; may be repeated."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", parser=as_directory, help="Write windows, queues and drops over time as Parquet."),
    ] = None,
    trace_every: Annotated[
        str, typer.Option("--trace-every", metavar="TIME", help="Rows at most so often; 0s: at every ACK.")
    ] = "10ms",
    plot: Annotated[
        Path | None, typer.Option(metavar="DIR", parser=as_directory, help="Draw them, as SVG and PNG.")
    ] = None,
    limit_events: Annotated[
        int, typer.Option("--limit-events", metavar="N", min=1, max=2**64 - 1, help="End a run after so many events.")
    ] = _EVENTS,
    limit_time: Annotated[
        str, typer.Option("--limit-time", metavar="TIME", help="End a run after so much simulated time.")
    ] = "1000h",
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="KEY=A,B,C", help="Run every value; a repeated --sweep makes a grid."),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="SEEDS", help="Run every seed, for example 1..20 or 1,5,9.", show_default=False),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes of a sweep (default: one a processor).", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", parser=as_directory, help="Directory of a sweep; an interrupted one continues there."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a scenario in the simulator: how long each flow takes, how full the links are."""
    from pathcast.scenario import Scenario
    from pathcast.simulation.run import Limits

    limits = Limits(limit_events, _duration("--limit-time", limit_time))
    if limits.time_ns == 0:
        raise usage("--limit-time 0s: give a time above zero")
    every = _duration("--trace-every", trace_every)
    scenario = Scenario.load(file, set or [])
    if sweep or seeds is not None:
        if trace is not None or plot is not None:
            raise usage("--trace and --plot are for one run, not for a sweep")
        if out is None:
            raise usage("a sweep needs --out DIR, the directory of its samples")
        _sweep(scenario, limits, sweep or [], seeds, jobs, out, json)
        return
    if out is not None or jobs is not None:
        raise usage("--out and --jobs go with --sweep or --seeds", "for the traces of one run: --trace DIR")
    _once(scenario, limits, trace, every, plot, json)


def _once(scenario: Any, limits: Any, trace: Path | None, every: int, plot: Path | None, json: bool) -> None:
    from pathcast.cli.progress import busy
    from pathcast.errors import need
    from pathcast.simulation.run import checked, simulate, without_effect

    directories = {}
    if trace is not None:
        need("numpy", "pyarrow")
        directories["--trace"] = _directory(trace, "--trace")
    if plot is not None:
        need("numpy", "matplotlib")
        directories["--plot"] = _directory(plot, "--plot")
    with busy("simulating", quiet=json):
        document, traces = simulate(scenario, limits, every if directories else None)
        if directories:
            _write(scenario, document, traces, directories)
    whole = checked(scenario)
    if not document["stopped"]:
        for note in without_effect(whole, document["simulated_s"]):
            print(f"note: {note}", file=sys.stderr)
    if json:
        print_json("sim", document)
    else:
        from pathcast.cli.simtables import tables

        out = console()
        # `"greedy"`, or a table of what there is of it
        sized = {flow["name"] for flow in whole["flows"] if "bytes" in flow["workload"]}
        for table in tables(document, sized):
            out.print(table)
        for option, directory in directories.items():
            print(f"{option.lstrip('-')}: {directory.path}")
    if document["stopped"]:
        _stopped("the run was stopped", document["stopped"], limits)


def _stopped(what: str, stopped: str, limits: Any) -> None:
    """Says which limit ended a run, and ends the command with 3."""
    if stopped == "event-limit":
        limit, raise_it = f"{limits.events} events", f"--limit-events {min(10 * limits.events, 2**64 - 1)}"
    else:
        limit = f"{limits.time_ns / 1e9:.9f}".rstrip("0").rstrip(".") + " s of simulated time"
        # ten times as much, in whole seconds: the largest that can be written has some more than 1.8e10
        raise_it = f"--limit-time {min(-(-limits.time_ns // 10**8), 2**64 // 10**9)}s"
    print(f"pathcast: {what} at its limit of {limit}; the results are those up to then", file=sys.stderr)
    print(f"hint: raise the limit with {raise_it}", file=sys.stderr)
    raise typer.Exit(Exit.UNTRUSTWORTHY)


def _directory(path: Path, option: str) -> Any:
    from pathcast.results.rundir import RunDir

    return RunDir(path, option)


def _write(scenario: Any, document: dict[str, Any], traces: Any, directories: dict[str, Any]) -> None:
    """Traces, plots, and beside each of them the `run.json` that says where they come from."""
    from pathcast.results.style import style
    from pathcast.simulation import plots

    if "--trace" in directories:
        from pathcast.simulation.traces import tables

        for name, table in tables(document, traces).items():
            directories["--trace"].columns(name, table)
    if "--plot" in directories:
        with style():
            for name, figure in plots.figures(document, traces):
                directories["--plot"].figure(name, figure)
    about = {"world": "sim", "seed": document["seed"], "scenario": scenario.source, "set": dict(scenario.sets)}
    for directory in {d.path.resolve(): d for d in directories.values()}.values():
        directory.run({**about, "result": document})


def _sweep(
    scenario: Any, limits: Any, sweep: list[str], seeds: str | None, jobs: int | None, out: Path, json: bool
) -> None:
    from pathcast.cli.progress import samples
    from pathcast.cli.simtables import summary
    from pathcast.errors import need
    from pathcast.simulation import sweep as grids

    need("joblib", "pyarrow")
    grid = grids.Grid.parse(sweep, seeds)
    with ExitStack() as stack:
        run = stack.enter_context(grids.Sweep(scenario, grid, limits, _directory(out, "--out")))
        listener = samples(stack, len(run.todo()))
        if not json:
            refused = sum(sample.error is not None for sample in run.samples)
            told = f"{len(run.samples)} samples, {len(run.samples) - len(run.todo())} done before"
            print(told + (f", {refused} refused" if refused else ""), file=sys.stderr)
        try:
            document = run.run(jobs, listener)
        except BaseException:
            left = len(run.todo())
            print(f"{left} of {len(run.samples)} samples are left; the same command continues", file=sys.stderr)
            raise
    if json:
        print_json("sim-sweep", document)
    else:
        console().print(summary(document))
        print(f"samples: {out}/samples.parquet")
    if document["failed"]:
        error = document["failed"][0]["error"]
        failed = f"{len(document['failed'])} of {document['samples']} samples failed"
        print(f"pathcast: {failed}; the first: {error['message']}", file=sys.stderr)
        raise typer.Exit(Exit.RUNTIME)
    if document["stopped"]:
        kinds = [one["stopped"] for one in document["stopped"]]
        _stopped(f"{len(kinds)} of {document['samples']} samples were stopped", kinds[0], limits)


def _duration(option: str, text: str) -> int:
    """Nanoseconds of a written duration."""
    from pathcast import _native

    try:
        return _native.parse_duration(text)
    except PathcastError as error:
        raise usage(f"{option} `{text}`: {error.message}", "write it as `500ms`, `10s`, `5m` or `1h`") from None
