"""`pathcast learn`: rounds of probes and transfers into a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.cli import quantity
from pathcast.cli.historyoptions import HistoryUrl, NoHistory, recorder
from pathcast.cli.limits import LimitEvents
from pathcast.cli.output import Json, console, print_json
from pathcast.cli.target import Host, KeyFile, Paths, Set, TopologyFile, World, names, target
from pathcast.errors import need
from pathcast.units import bits, size

if TYPE_CHECKING:
    from pathcast.forecast.rounds import Round, Task

ModelFile = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="The model's file (default: $XDG_DATA_HOME/pathcast/models/<host>.model).",
        show_default=False,
    ),
]


def learn(
    host: Host = None,
    size: Annotated[str, typer.Option("--size", help="Bytes of a transfer, for example 64MB.")] = ...,  # type: ignore[assignment] # Typer: required
    rounds: Annotated[int, typer.Option(help="Rounds to measure now; they are added to the model's.")] = 12,
    probe: Annotated[
        str | None, typer.Option(help="Bytes of a probe (default: the model's, or 64KB).", show_default=False)
    ] = None,
    paths: Paths = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(help="A further choice of paths to measure, such as path1,path3; may be repeated."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(help="Congestion controller (default: the model's, or the kernel's).", show_default=False),
    ] = None,
    pause: Annotated[str, typer.Option(help="Time between rounds, for example 10m.")] = "0s",
    key_file: KeyFile = None,
    model: ModelFile = None,
    world: World = "host",
    topology: TopologyFile = None,
    set: Set = None,
    limit_events: LimitEvents = None,
    history: HistoryUrl = None,
    no_history: NoHistory = False,
    json: Json = False,
) -> None:
    """Measure rounds of probes and transfers, and learn to predict the transfers from the probes."""
    from pathcast.forecast.learn import LearnOptions
    from pathcast.forecast.learn import learn as run
    from pathcast.forecast.model import default_file

    far = target(host, world, topology, set, key_file, limit_events, recorder(history, no_history, "learn"))
    options = LearnOptions(
        bytes=quantity.size("--size", size),
        rounds=rounds,
        probe_bytes=None if probe is None else quantity.size("--probe", probe),
        paths=None if paths is None else names("--paths", paths),
        choices=tuple(names("--choice", c) for c in choice or []),
        control=control,
        pause_s=quantity.duration_s("--pause", pause),
        set=far.set,
    )
    need("numpy", "sklearn")
    file = model or default_file(far.world, far.name)
    with far.open() as open_world, _listener(json) as listener:
        done = run(file, far.world, far.name, open_world, options, listener)
    if json:
        print_json("learn", done.document())
    else:
        predict = f"pathcast predict {far.command} --size {size} --model {file}"
        _summary(done.document(), predict)
    if error := done.untrustworthy():
        raise error


def _summary(document: dict[str, Any], predict: str) -> None:
    from rich.table import Table

    out, model = console(), document["model"]
    table = Table("size", "rounds", "paths", "expected error", title=f"learnt of {document['target']}")
    for learnt in model["sizes"]:
        first = (size(learnt["bytes"]), str(learnt["rounds"]))
        for choice in learnt["choices"]:
            table.add_row(*first, " + ".join(choice["paths"]), bits(choice["rmse_bps"]))
            first = ("", "")
        if learnt["needed"]:
            table.add_row(*first, "", f"{learnt['needed']} more rounds are needed")
    out.print(table)
    for warning in document["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    counted = document["counted"]
    where = f"model: {model['file']}" if model["sizes"] else document["kept"]  # without a round there is no file
    print(
        f"{counted['measured']} rounds measured, {counted['left_out']} left out, {counted['repeated']} repeated, "
        f"{size(document['sent_bytes'])} sent; {where}"
    )
    [now] = [s for s in model["sizes"] if s["bytes"] == document["size_bytes"]] or [None]
    if now and not now["needed"]:
        print(f"try: {predict}")


class _Lines:
    """One line a round; on a terminal a progress bar below them."""

    def __init__(self, show: bool, bar: bool) -> None:
        self._show, self._bar = show, None
        if bar:
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)

    def __enter__(self) -> _Lines:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self, task: Task, rounds: int) -> None:
        self._each, self._rounds, self._done = task.sent_bytes, rounds, 0
        told = f"{rounds} round{'' if rounds == 1 else 's'} of {size(task.sent_bytes)}"
        self._say(f"{told}: {size(rounds * task.sent_bytes)} will be sent")
        if self._bar:
            self._task = self._bar.add_task(f"round 1 of {rounds}", total=rounds * task.sent_bytes)

    def progress(self, bytes: int) -> None:
        if self._bar:
            self._bar.update(self._task, completed=self._done * self._each + min(bytes, self._each))

    def round(self, number: int, round: Round) -> None:
        self._done = number
        if self._bar:
            next = min(number + 1, self._rounds)
            self._bar.update(self._task, completed=number * self._each, description=f"round {next} of {self._rounds}")
        self._say(f"round {number} of {self._rounds}: {_words(round)}")

    def _say(self, line: str) -> None:
        if self._bar:
            self._bar.console.print(line, markup=False)
        elif self._show:
            print(line, file=sys.stderr, flush=True)


def _words(round: Round) -> str:
    if round.left_out is not None:
        return f"left out: {round.left_out}"
    words = [f"probes {' / '.join(bits(b) for b in round.probes_bps or ())}"]
    if round.actual_bps is not None:
        words.append(f"all paths {bits(round.actual_bps)}")
    words.append(f"each alone {' / '.join(bits(b) for b in round.tcp_bps or ())}")
    words += [f"{'+'.join(subset.paths)} {bits(subset.actual_bps)}" for subset in round.subset_bps or ()]
    return ", ".join(words)


def _listener(json: bool) -> _Lines:
    terminal = sys.stderr.isatty()
    return _Lines(show=not json, bar=terminal)
