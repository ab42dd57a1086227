"""`pathcast lab`: the papers' experiments, in a chosen world."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.cli.limits import LimitEvents
from pathcast.cli.output import Json, as_directory, print_json, show
from pathcast.errors import Exit, PathcastError, missing, usage

app = typer.Typer(help="The papers' experiments: run, judged claim by claim, reported.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(help="An experiment, as `pathcast lab list` has it.")]
_World = Annotated[str | None, typer.Option(help="sim or emu (default: the plan's first).", show_default=False)]
_Experiments = Annotated[
    Path | None,
    typer.Option(metavar="DIR", parser=as_directory, help="Folder of experiments (default: the checkout's)."),
]
_Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", parser=as_directory, help="Directory of the results (default: out/lab/NAME-WORLD)."),
]
_VERDICT = {True: "[green]holds[/]", False: "[red]does not hold[/]", None: "[yellow]undecided[/]"}


@app.command("list")
def list_(experiments: _Experiments = None, json: Json = False) -> None:
    """The experiments, their worlds and sizes."""
    from pathcast.lab import experiment as lab

    found: list[dict[str, Any]] = []
    for name, directory in lab.experiments(experiments).items():
        plan = lab.Experiment(directory).plan
        counts = {world: _counts(plan, world) for world in plan.worlds}
        about = {"name": name, "title": plan.title, "paper": plan.paper, "worlds": counts}
        found.append({**about, "claims": len(plan.claims), "directory": str(directory)})
    if json:
        print_json("lab-list", {"experiments": found})
        return
    from rich.table import Table

    table = Table("experiment", "what", "world", "samples", "quick", "claims")
    for one in found:
        for world, count in one["worlds"].items():
            numbers = ("-" if number is None else str(number) for number in count.values())
            table.add_row(one["name"], one["title"], world, *numbers)
    show(table)


def _counts(plan: Any, world: str) -> dict[str, int | None]:
    claims = sum(world in claim.worlds for claim in plan.claims)
    return {"samples": _samples(plan, world), "quick": _samples(plan, world, quick=True), "claims": claims}


def _samples(plan: Any, world: str, quick: bool = False) -> int | None:
    """None where they are those of a file that is not there."""
    try:
        return sum(1 for _ in plan.points(world, quick))
    except PathcastError:
        return None


@app.command()
def run(
    name: _Name,
    world: _World = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the plan's quick subset.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only samples with this value of a key; several of a key: any of them."),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="In place of a value of the plan's setup, for example profiles=my.jsonl."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes (default: one a processor, in emu one).", show_default=False),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, for example tcp://scheduler:8786.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Only if there is something to continue.")] = False,
    limit_events: LimitEvents = None,
    out: _Out = None,
    experiments: _Experiments = None,
    json: Json = False,
) -> None:
    """Run an experiment's plan, or what is left of it, and judge the paper's claims by the results."""
    from pathcast.lab.campaign import Campaign, document, status

    pairs = [_pair("--only", item) for item in only or ()]
    sets = [_pair("--set", item) for item in set or ()]
    experiment, world = _chosen(name, world, experiments, sets)
    if limit_events is not None and world != "sim":
        raise usage(f"--limit-events {limit_events}: it goes with --world sim, whose events it counts")
    if cluster is not None:
        from pathcast.lab import cluster as dask

        if world == "emu" or jobs is not None:
            raise usage("--cluster is for the world sim, and without --jobs")
        dask.check(cluster)
    _need()
    if world == "emu":
        _privileged()
    with ExitStack() as stack:
        place = stack.enter_context(_place(out, name, world))
        campaign = stack.enter_context(Campaign(experiment, world, quick, place, pairs, limit_events))
        if resume:
            campaign.needed()
        left = len(campaign.todo())
        if not json:
            count = campaign.count  # points of one scenario are computed once
            print(f"{count} sample{'' if count == 1 else 's'}, {count - left} done before", file=sys.stderr)
        from pathcast.cli.progress import samples

        bar = stack.enter_context(ExitStack())
        try:
            computed = campaign.run(jobs, cluster, samples(bar, left, lines=True))
        except BaseException:
            bar.close()
            left = len(campaign.todo())
            print(f"{left} of {campaign.count} samples are left; the same command continues", file=sys.stderr)
            raise
        bar.close()
        results = campaign.results()
        found = document(experiment, results, computed, place.path)
        written = campaign.write(results, found)
    if json:
        print_json("lab", found)
    else:
        _told(found)
        if found["quick"]:
            whole = _command("run", name, world, out, experiments, set)
            print(f"this judges a part of the plan only, maybe some claims not at all; the whole run decides: {whole}")
        print(f"results: {written}; the page: {_command('report', name, world, out, experiments)}")
    _ended(found, status(found, results))


@app.command()
def report(
    name: _Name,
    world: _World = None,
    readme: Annotated[
        bool, typer.Option("--readme", help="Also renew README.md and plots/ in the experiment's folder.")
    ] = False,
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Also print a table, as Markdown; `all`: every one.")
    ] = None,
    out: _Out = None,
    experiments: _Experiments = None,
    json: Json = False,
) -> None:
    """Draw the last run's tables and plots, and one self-contained HTML page; no sample is computed anew."""
    from pathcast.lab import report as pages
    from pathcast.lab.campaign import document, last, load

    experiment, world = _chosen(name, world, experiments)
    _need("matplotlib", "markdown_it")
    where = out or _default(name, world)
    source = last(where, whole=readme)
    if source is None and out is None:
        source = next(experiment.directory.glob(f"data/{world}.parquet"), None)
    if source is None:
        what = "results of a whole run" if readme else "results"
        raise usage(f"there are no {what} in `{where}`", _command("run", name, world, out, experiments))
    results, about = load(source, experiment.plan)
    if readme and about.get("set"):
        told = " ".join(f"--set {key}={value}" for key, value in about["set"].items())
        raise usage(f"--readme: the results in `{where}` are of a run with {told}", "run it without --set")
    if about["plan"] != experiment.plan.text:
        print("the plan has changed since these results: they are judged by what it says now", file=sys.stderr)

    def say(what: str) -> None:
        if not json:
            print(f"{what} …", file=sys.stderr)

    with _place(out, name, world) as place:
        say("judging the claims")
        found = document(experiment, results, 0, place.path)
        made = pages.shown(experiment, results, say)
        page = pages.write(experiment, results, found, about, place, made, say)
    written = pages.renew(experiment, results, found, about, made, say) if readme else []
    tables = pages.tables(experiment, results, table or (), made)
    if json:
        more = {"tables": tables} if table else {}
        print_json("lab-report", {**found, "page": str(page), "readme": [str(path) for path in written], **more})
        return
    _told(found)
    for name, (header, *rows) in tables.items():
        print(f"{name}\n\n{pages.markdown(header, rows)}")
    print(f"the page{' (a part of the plan)' if results.quick else ''}: {page}")
    for path in written:
        print(f"renewed: {path}")


def _chosen(
    name: str, world: str | None, experiments: Path | None, sets: Sequence[tuple[str, str]] = ()
) -> tuple[Any, str]:
    from pathcast.lab.experiment import find

    experiment = find(name, experiments, sets)
    known = experiment.plan.worlds
    if world is not None and world not in known:
        raise usage(f"--world `{world}`: {name} has {', '.join(known)}")
    return experiment, world or known[0]


_KEYS = {
    "--only": "keys are those of the grids in plan.toml, for example seed=1",
    "--set": "keys are those of [setup] in plan.toml",
}


def _pair(option: str, item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not key or not equals:
        raise usage(f"{option} `{item}` is not KEY=VALUE", _KEYS[option])
    return key, value


def _need(*packages: str) -> None:
    from pathcast.errors import need

    need("joblib", "pandas", "pyarrow", *packages)


def _privileged() -> None:
    from pathcast.service import doctor

    if lacking := doctor.missing("privilege", "iproute2", "namespaces", "tun", "mptcp"):
        told = "; ".join(f"{check.name} ({check.detail})" for check in lacking)
        raise missing(f"the emulator needs {told}", "see `pathcast doctor`, or take --world sim")


def _default(name: str, world: str) -> Path:
    return Path("out") / "lab" / f"{name}-{world}"


def _command(
    verb: str, name: str, world: str, out: Path | None, experiments: Path | None, sets: Sequence[str] | None = None
) -> str:
    """The command that goes on from this one, with the directories that this one was given."""
    words = ["pathcast", "lab", verb, name, "--world", world]
    for option, path in (("--out", out), ("--experiments", experiments)):
        words += [option, str(path)] if path is not None else []
    for item in sets or ():
        words += ["--set", item]
    return shlex.join(words)


def _place(out: Path | None, name: str, world: str) -> Any:
    from pathcast.results.rundir import RunDir

    return RunDir(out or _default(name, world))


def _told(found: dict[str, Any]) -> None:
    from rich.table import Table

    from pathcast.lab.tally import told

    table = Table("claim", "whose", "statement", "paper", "here", "verdict", "why", show_lines=True)
    for one in found["claims"]:
        verdict = _VERDICT[one["holds"]] + (f"; not counted: {one['uncounted']}" if one["uncounted"] else "")
        table.add_row(*(one[key] for key in ("id", "kind", "text", "paper", "ours")), verdict, one["reason"] or "")
    show(table)
    print(told(found["claims"]))


def _ended(found: dict[str, Any], status: Exit) -> None:
    if found["failed"]:
        told = f"{found['failed']} of {found['samples']} samples failed"
        print(f"pathcast: {told}; the first: {found['errors'][0]}", file=sys.stderr)
    if status != Exit.OK:
        raise typer.Exit(status)
