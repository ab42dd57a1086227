"""`pathcast demo`: two lines with others' traffic, forecast and sent, on a network that is emulated or simulated."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.cli.limits import LimitEvents
from pathcast.cli.output import Json, as_directory, console, print_json
from pathcast.errors import Exit, usage


def demo(
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", parser=as_directory, help="Directory of the results (default: out/demo-SEED…)."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help="Controller of every transfer (default: cubic over one path, lia over both).", show_default=False
        ),
    ] = None,
    world: Annotated[
        str, typer.Option(help="emu: emulated links and the real kernel (root); sim: a simulation, for any user.")
    ] = "emu",
    paper: Annotated[
        bool, typer.Option("--paper", help="In its place the papers' experiment: learn from rounds of small probes.")
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(help="With --paper: training rounds (default: 24).", show_default=False)
    ] = None,
    vary_rate: Annotated[
        bool,
        typer.Option("--vary-rate", help="With --paper: draw the line rates too (10 to 200 Mbit/s), which is harder."),
    ] = False,
    lanes: Annotated[
        int | None, typer.Option(help="With --paper: networks side by side (default: 3).", show_default=False)
    ] = None,
    steer: Annotated[
        str | None,
        typer.Option(help="With --paper: openflow puts switches, which steer each subflow, between the hosts."),
    ] = None,
    limit_events: LimitEvents = None,
    json: Json = False,
) -> None:
    """Measure two lines, forecast every choice of paths, take the best, send, compare; change a line, and once more."""
    from pathcast.lab.demo.run import WORLDS
    from pathcast.limits import limited
    from pathcast.results.rundir import RunDir

    if world not in WORLDS:
        raise usage(f"--world `{world}`: allowed are {', '.join(WORLDS)}")
    if limit_events is not None and world != "sim":
        raise usage(f"--limit-events {limit_events}: it goes with --world sim, whose events it counts")
    given = {"--rounds": rounds is not None, "--vary-rate": vary_rate, "--lanes": lanes is not None}
    given["--steer"] = steer is not None
    if not paper and any(given.values()):
        raise usage(f"{next(name for name, there in given.items() if there)} goes with --paper")
    if lanes is not None and not 1 <= lanes <= 8:
        raise usage(f"--lanes {lanes}: allowed are 1 to 8")
    words = {"paper": paper, "vary-rate": vary_rate, steer: steer not in (None, "none"), "sim": world == "sim"}
    ending = "".join(f"-{word}" for word, there in words.items() if there)
    if paper:
        from pathcast.cli.paperdemo import carry_out, summary
        from pathcast.lab.paper.plan import TRAINING
        from pathcast.lab.paper.plan import Plan as PaperPlan

        old = PaperPlan(
            seed=seed,
            rounds=TRAINING if rounds is None else rounds,
            vary_rate=vary_rate,
            control="cubic" if control is None else control,
            steer="none" if steer is None else steer,
        )
        directory = RunDir(out or Path("out") / f"demo-{seed}{ending}")
        with limited(limit_events):
            document = carry_out(old, world, 3 if lanes is None else lanes, directory, json)
    else:
        from pathcast.lab.demo.page import write
        from pathcast.lab.demo.plan import Plan
        from pathcast.lab.demo.run import make_world, run

        plan = Plan(seed=seed, control=control)
        directory = RunDir(out or Path("out") / f"demo-{seed}{ending}")
        with limited(limit_events):
            document = run(plan, make_world(plan, world), Told(json))
        write(document, directory)
    document["directory"] = str(directory.path)
    if json:
        print_json("demo", document, 1 if paper else 2)
    else:
        (summary if paper else _summary)(document)
        print(f"results: {directory.path}, the page: {directory.path / 'index.html'}")
    if document["untrustworthy"]:
        print(f"not to be trusted: {document['untrustworthy']}", file=sys.stderr)
        if world == "emu":
            hint = "leave the machine alone while it measures; `pathcast doctor` shows its wake-ups"
            print(f"hint: {hint}", file=sys.stderr)
        raise typer.Exit(Exit.UNTRUSTWORTHY)


class Told:
    """Says on the standard error stream how far the demo is, a line a step; nothing where JSON is wanted."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def phase(self, text: str) -> None:
        """What begins."""
        self._say(f"{text} …")

    def forecast(self, round: dict[str, Any]) -> None:
        """What was forecast."""
        from pathcast.lab.demo.page import interval
        from pathcast.units import span

        for one in round["options"]:
            name = " + ".join(one["paths"])
            self._say(f"  forecast over {name}: {span(one['duration_s']['value'])} ({interval(one)})")

    def sent(self, round: dict[str, Any], option: dict[str, Any]) -> None:
        """What came."""
        from pathcast.units import span

        self._say(f"  it took {span(option['sent']['duration_s'])}")

    def _say(self, text: str) -> None:
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)


def _summary(document: dict[str, Any]) -> None:
    from rich.table import Table

    from pathcast.lab.demo.page import COLUMNS, is_chosen, option_row, verdict
    from pathcast.units import size

    out = console()
    what = size(document["plan"]["size_bytes"])
    # what the lines carried is on the page: a terminal has 80 columns
    shown = [at for at, name in enumerate(COLUMNS) if "shares" not in name]
    for number, round in enumerate(document["rounds"], 1):
        table = Table(*(COLUMNS[at] for at in shown), title=f"{number}. {what}, {round['told']}")
        for option in round["options"]:
            cells = option_row(option)
            first = f"[bold]{cells[0]}[/] (chosen)" if is_chosen(round, option) else cells[0]
            table.add_row(first, *(cells[at] for at in shown[1:]))
        out.print(table)
        out.print(verdict(round))
    out.print(f"nobody had learnt anything before; {document['elapsed_s']:.0f} s in all")
