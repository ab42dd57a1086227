"""`pathcast measure`: one-way delay, available bandwidth and capacity of every path, in both directions."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.cli import quantity
from pathcast.cli.historyoptions import HistoryUrl, NoHistory, recorder
from pathcast.cli.limits import LimitEvents
from pathcast.cli.measureseries import Series
from pathcast.cli.measuretable import show, signed
from pathcast.cli.output import Json, brief, console, print_json, print_line
from pathcast.cli.output import show as show_table
from pathcast.cli.target import Host, KeyFile, Paths, Set, Target, TopologyFile, World, names, target
from pathcast.errors import Exit, PathcastError, usage
from pathcast.units import seconds

if TYPE_CHECKING:
    from pathcast.forecast.record import Recorder
    from pathcast.worlds.measurement import Request

BOTH = "both"
# where nothing else is given
_METHOD, _SSH = "ride", "ssh"
# of the document: /2 is the record of `pathcast.worlds.measurement`
VERSION = 2


def measure(
    host: Host = None,
    paths: Paths = None,
    direction: Annotated[str, typer.Option(help="out (towards HOST), in (from it), or both.")] = BOTH,
    method: Annotated[
        str, typer.Option(help="ride, replay, pathtester, pathtester-old or slops; see docs/measure.md.")
    ] = _METHOD,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Most bytes for each direction of a path, for example 350kB (default: by the capacity found).",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time",
            help="Most time for each direction of a path, for example 5s (default: by the capacity found).",
            show_default=False,
        ),
    ] = None,
    light: Annotated[
        bool, typer.Option("--light", help="At most 116 kB a path: 1 GB a month at one round every five minutes.")
    ] = False,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="Up to 10 s a direction: what kind of line it is, its loss and queue depth too."
        ),
    ] = False,
    queue: Annotated[
        str | None,
        typer.Option(help="With --thorough: the longest queue to build (default: 500ms).", show_default=False),
    ] = None,
    dscp: Annotated[int, typer.Option(help="Code point of all packets, both ways (0 to 63).")] = 0,
    at_once: Annotated[bool, typer.Option("--at-once", help="All paths at the same time, not in turn.")] = False,
    repeat: Annotated[
        str | None,
        typer.Option(help="Measure again and again, a beginning every so long, for example 30s.", show_default=False),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after so many (default: never).", show_default=False)
    ] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print a line of JSON for each measurement.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the trains' random gaps.", show_default=False)
    ] = None,
    key_file: KeyFile = None,
    ssh: Annotated[str, typer.Option(help="The command that reaches an ssh://USER@HOST, with its options.")] = _SSH,
    remote_command: Annotated[
        str | None,
        typer.Option(
            help="How pathcast is called on an ssh://USER@HOST (default: pathcast, else pathcast-far).",
            show_default=False,
        ),
    ] = None,
    world: World = "host",
    topology: TopologyFile = None,
    set: Set = None,
    limit_events: LimitEvents = None,
    history: HistoryUrl = None,
    no_history: NoHistory = False,
    json: Json = False,
) -> None:
    """Measure delay, available bandwidth and capacity to HOST.

    HOST runs `pathcast serve`; ssh://USER@HOST starts a far end there for the time of the measurement;
    stamp://HOST[:PORT] is any STAMP reflector (RFC 8762), which tells delay and loss only.
    """
    from pathcast.worlds.measurement import DIRECTIONS, Request

    if light and thorough:
        raise usage("--light and --thorough exclude each other")
    if queue is not None and not thorough:
        raise usage("--queue goes with --thorough")
    request = Request(
        directions=DIRECTIONS if direction == BOTH else (direction,),
        method=method,
        bytes=None if budget is None else quantity.size("--budget", budget),
        time_s=None if time_limit is None else quantity.duration_s("--time", time_limit),
        dscp=dscp,
        at_once=at_once,
        seed=seed,
        effort="light" if light else "thorough" if thorough else "usual",
        queue_s=Request.queue_s if queue is None else quantity.duration_s("--queue", queue),
    )
    every_s = None if repeat is None else quantity.duration_s("--repeat", repeat)
    if json and jsonl:
        raise usage("--json and --jsonl exclude each other")
    if json and every_s is not None:
        raise usage("--json prints one document; with --repeat give --jsonl")
    if count is not None and every_s is None:
        raise usage("--count goes with --repeat")
    if every_s is not None and every_s < 1:
        raise usage(f"--repeat {repeat}: at least 1s")
    if host is not None and host.startswith("stamp://"):
        given = (paths, budget, repeat, topology, set, limit_events, seed, remote_command)
        if (
            any(option is not None for option in given)
            or (method, ssh) != (_METHOD, _SSH)
            or direction != BOTH
            or at_once
            or light
            or thorough
            or jsonl
            or world != "host"
        ):
            raise usage("stamp://HOST[:PORT] takes --time, --dscp, --key-file and --json only")
        return _stamp(host, request, key_file, json, recorder(history, no_history, "measure"))
    only = None if paths is None else names("--paths", paths)
    into = recorder(history, no_history, "measure")
    with _far(host, world, topology, set, limit_events, key_file, ssh, remote_command, into) as far, far.open() as make:
        if every_s is None:
            with make() as network:
                error = _once(network, far.name, only, request, json, jsonl)
        else:
            error = Series(far.name, make, only, request, every_s, jsonl, VERSION, lambda: listener(quiet=jsonl)).run(
                count
            )
    if error:
        raise error


@contextmanager
def _far(
    host: str | None,
    world: str,
    topology: Path | None,
    set: list[str] | None,
    limit_events: int | None,
    key_file: Path | None,
    ssh: str,
    remote_command: str | None,
    recorder: Recorder | None,
) -> Iterator[Target]:
    if host is None or not host.startswith("ssh://"):
        if ssh != _SSH or remote_command is not None:
            option = "--ssh" if ssh != _SSH else "--remote-command"
            raise usage(f"{option} goes with ssh://USER@HOST" + ("" if host is None else f", not with `{host}`"))
        yield target(host, world, topology, set, key_file, limit_events, recorder)
        return
    if world != "host" or key_file is not None or limit_events is not None:
        told = "--world, --limit-events and --key-file do not go with it"
        raise usage(f"ssh://USER@HOST brings its own far end and key: {told}")
    from pathcast.worlds.remote import far_end

    with far_end(host, ssh, remote_command) as (address, file):
        yield target(address, world, topology, set, file, None, recorder, passing=True)


def _once(
    network: Any, name: str, only: tuple[str, ...] | None, request: Request, json: bool, jsonl: bool
) -> PathcastError | None:
    """Measures and prints; the error of what cannot be trusted at all."""
    from pathcast.worlds.cost import cost
    from pathcast.worlds.late import measured

    print(f"cost: {cost(request, len(only or network.paths))}", file=sys.stderr)
    with listener(quiet=json or jsonl) as progress:
        found = measured(network, only, request, progress)
    document = {"target": name, "world": network.world, **found.document()}
    if jsonl:
        print_line("measure", {"time_s": time.time(), **document}, VERSION)
    elif json:
        print_json("measure", document, VERSION)
    else:
        show(name, found)
    _remarks(found)
    error: PathcastError | None = found.untrustworthy
    return error


def _remarks(found: Any) -> None:
    """What is missing though the rest is good, and notes."""
    if found.untrustworthy is None:
        for sentence in brief(found.missing):
            print(f"not to be trusted: {sentence}" if " is down: " not in sentence else sentence, file=sys.stderr)
    for note in brief(found.notes):
        print(f"note: {note}", file=sys.stderr)


@contextmanager
def listener(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error, on terminals only; and everywhere a line where one waits for others."""
    waiting = False

    def wait(phase: str, done: int, of: int) -> None:
        nonlocal waiting
        if phase == "queue" and not waiting:
            print(f"waiting in the far end's queue, place {of}: others measure there", file=sys.stderr, flush=True)
        waiting = phase == "queue"

    if quiet or not sys.stderr.isatty():
        yield wait
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console(True), transient=True
    ) as bar:
        task = bar.add_task("connecting", total=None)

        def show(phase: str, done: int, of: int) -> None:
            wait(phase, done, of)
            bar.update(task, description=phase, completed=done, total=of or None)

        yield show


_STAMP_WARNINGS = {
    "stamps": "some answers left the reflector before their questions came there, or were longer there than away: "
    "they are left out of the delays",
    "clock": "the reflector's clock was set meanwhile, or is none: there are no delays by direction",
    "claim": "the reflector calls its clock synchronised, which its stamps belie: delays by direction are relative",
    "numbers": "the reflector's numbers count no packets: where packets were lost is not known",
}


def _stamp(url: str, request: Any, key_file: Path | None, json: bool, into: Recorder | None) -> None:
    from pathcast.runtime.keys import read_key
    from pathcast.worlds.stamp import measure

    key = None if key_file is None else read_key(key_file)
    with listener(quiet=json) as progress:
        began = time.monotonic()
        found = measure(url, request.time_s or 2.0, request.dscp, progress, key)
    if into is not None:
        from pathcast.forecast.foreign import answered

        into.target = url
        elapsed_s = time.monotonic() - began
        into.attempt(lambda: answered(into, found, elapsed_s))
        into.close()
    odd = [_STAMP_WARNINGS[word] for word in found["warnings"]]
    if json:
        print_json("stamp", found)
    else:
        _stamp_table(found)
    for line in odd:
        print(f"pathcast: {line}", file=sys.stderr)
    if found["round_trip_s"] is None:
        raise typer.Exit(Exit.UNTRUSTWORTHY)


def _stamp_table(found: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("", "minimum", "median", "95 %", "error", title=f"STAMP to {found['remote']} port {found['port']}")
    if trip := found["round_trip_s"]:
        table.add_row("round trip", *(seconds(trip[of]) for of in ("minimum", "median", "p95")), "")
    for name, entry in (("out", "out_s"), ("in", "in_s")):
        way = found[entry]
        if way is not None and way["synchronised"]:
            least = way["minimum"]
            above = (least + way["median_above_minimum"], least + way["p95_above_minimum"])
            table.add_row(name, *(signed(value) for value in (least, *above)), f"± {seconds(way['error'])}")
        elif way is not None:
            above = (f"+{seconds(way['median_above_minimum'])}", f"+{seconds(way['p95_above_minimum'])}")
            table.add_row(name, "unknown", *above, "clocks not synchronised")
    show_table(table)
    where = (
        ""
        if not found["lost_out"] and not found["lost_in"]
        else f": {found['lost_out']} lost out, {found['lost_in']} in"
    )
    print(f"{found['received']} of {found['sent']} packets were answered{where}")
