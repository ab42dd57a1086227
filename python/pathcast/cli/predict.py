"""`pathcast predict`: how long a transfer will take, over which paths, with which controller, and how sure that is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.cli import quantity
from pathcast.cli.historyoptions import HistoryUrl, NoHistory, recorder
from pathcast.cli.limits import LimitEvents
from pathcast.cli.output import Json, brief, print_json, show
from pathcast.cli.target import Host, KeyFile, Paths, Set, Target, TopologyFile, World, names, target
from pathcast.errors import usage
from pathcast.units import bits, span, spans
from pathcast.units import size as written

if TYPE_CHECKING:
    from pathcast.cli.deadline import Deadline
    from pathcast.forecast.means import Bound, Means
    from pathcast.worlds.measurement import Request

# of the document: /1 is that of a trained model
VERSION = 2


def predict(
    host: Host = None,
    size: Annotated[str, typer.Option("--size", help="Bytes of the transfer, for example 300GB.")] = ...,  # type: ignore[assignment] # Typer: required
    by: Annotated[
        str | None,
        typer.Option(
            help="When it is to be done: 06:00, 2027-03-01T06:00, or 8h from now. "
            "A few draws exclude nothing: of 8 none or all in time are told as 6 % or 94 %.",
            show_default=False,
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help="Controllers with commas between, or auto (default): the best of those here.", show_default=False
        ),
    ] = None,
    paths: Paths = None,
    inwards: Annotated[bool, typer.Option("--in", help="A transfer from HOST, not to it.")] = False,
    light: Annotated[
        bool, typer.Option("--light", help="Measure with at most 116 kB a path, or 2 % of the job.")
    ] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Measure up to 10 s a direction: queue, loss and what others do, too.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure, though the history holds a measurement of the last 5 minutes.")
    ] = False,
    background: Annotated[
        bool, typer.Option("--background", help="By the controllers that give way to others.")
    ] = False,
    aggressive: Annotated[
        bool, typer.Option("--aggressive", help="Also by controllers that are harder on others than cubic.")
    ] = False,
    key_file: KeyFile = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Ask this model of `pathcast learn` in place of the twin.", show_default=False),
    ] = None,
    world: World = "host",
    topology: TopologyFile = None,
    set: Set = None,
    limit_events: LimitEvents = None,
    history: HistoryUrl = None,
    no_history: NoHistory = False,
    json: Json = False,
) -> None:
    """Measure the paths for seconds, try this very transfer in simulated networks like them, and say how long it takes.

    Every choice of paths and controllers, the fastest first, each with its 90 % interval. Nothing is learnt before.
    """
    bytes = quantity.size("--size", size)
    if bytes < 1:
        raise usage(f"--size {size}: a transfer has at least one byte")
    only = None if paths is None else names("--paths", paths)
    if model is not None:
        given = {
            "--by": by is not None,
            "--in": inwards,
            "--light": light,
            "--thorough": thorough,
            "--fresh": fresh,
            "--background": background,
            "--aggressive": aggressive,
        }
        if wrong := [name for name, there in given.items() if there]:
            raise usage(f"{wrong[0]} does not go with --model, which knows transfers to HOST as they were learnt")
        from pathcast.cli.trained import trained

        into = recorder(history, no_history, "predict")
        far = target(host, world, topology, set, key_file, limit_events, into)
        trained(far, bytes, size, model, only, control, json)
        return
    from pathcast.cli.deadline import deadline
    from pathcast.forecast.controls import AUTO, controls
    from pathcast.worlds.measurement import Request

    if light and thorough:
        raise usage("--light and --thorough exclude each other")
    limit = None if by is None else deadline(by)
    wanted = (AUTO,) if control is None else names("--control", control, "cubic,lia")
    # what is wrong with them is said before anything is opened
    controls(wanted, wanted, background, aggressive) if AUTO not in wanted else None
    request = Request(effort="light" if light else "thorough" if thorough else "usual")
    into = recorder(history, no_history, "predict")
    far = target(host, world, topology, set, key_file, limit_events, into)
    choose = lambda here: controls(wanted, here, background, aggressive)  # noqa: E731
    document = measured_forecast(
        far, bytes, "in" if inwards else "out", choose, only, request, limit, fresh=fresh, quiet=json
    )
    if json:
        print_json("predict", document, VERSION)
    else:
        _show(document)


def measured_forecast(
    far: Target,
    bytes: int,
    direction: str,
    choose: Callable[[Any], Any],
    only: tuple[str, ...] | None,
    request: Request,
    limit: Deadline | None,
    see: Callable[[Any], Mapping[str, Bound]] = lambda network: {},
    fresh: bool = False,
    quiet: bool = False,
    within_s: float | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Measures, forecasts, and records both: the document of `predict`. choose: of the controllers there those to try.
    see: is shown the network before anything is sent, and may refuse, or name paths that are not to be measured so.
    fresh: measure whatever the history holds. within_s: about how long looks and draws may take, where time is short.
    tell: hears of lines that are down, and of those that `see` named."""
    from pathcast.cli.measure import listener
    from pathcast.forecast.ask import ask
    from pathcast.forecast.forecast import Job
    from pathcast.forecast.means import means

    began = time.monotonic()
    with far.open() as make, make() as network:
        bounds = see(network)
        job = Job(bytes, choose(network.controls), direction, network.ends)
        names = tuple(path.name for path in network.paths) if only is None else _own(network, only)
        past = far.recorder.past(network.keys, direction, names) if far.recorder else None
        by = means(network, names, job, request, past, fresh, bounds)
        if by.sends:
            print(f"cost: {_cost(by, request, bytes)}", file=sys.stderr)
        with listener(quiet) as progress:
            answer = ask(network, job, request, only and names, progress, past, fresh, within_s, by)
        real_time = network.real_time
        keys = network.keys if far.recorder else {}  # paths may have come meanwhile
    wall_s = time.monotonic() - began
    elapsed_s = wall_s if real_time else answer.elapsed_s
    told = answer.document(None if limit is None else limit.left_s(None if real_time else elapsed_s))
    step = limit.step() if limit else None
    measured_now = request.effort == "usual" and answer.age_s is None
    dear = _dear(bytes, told["probe_bytes"], len(names)) if measured_now else None
    document = {
        "world": far.world,
        "target": far.name,
        **told,
        "by": None if limit is None else limit.written(),
        "elapsed_s": elapsed_s,
        "wall_s": wall_s,
        "notes": [*told["notes"], *filter(None, (step, dear))],
    }
    for remark in answer.remarks:
        tell(remark)
    if far.recorder:
        measured = answer.seen.measured
        far.recorder.measured += answer.made_from
        far.recorder.forecast(far.world, document, {path.name: keys[path.name] for path in measured.paths}, direction)
    return document


def _own(network: Any, given: tuple[str, ...]) -> tuple[str, ...]:
    """The paths' own names, by which history and measurement know them; a path may be called by others, too."""
    found = tuple(network.path(name).name for name in given)
    if len(set(found)) < len(found):
        raise usage(f"--paths {','.join(given)}: name each path once")
    return found


def _cost(by: Means, request: Request, bytes: int) -> str:
    """What will be sent at most to know the paths by these means, before a job of so many bytes."""
    from dataclasses import replace

    from pathcast.forecast.watch import light_bytes
    from pathcast.worlds.cost import cost, usual_bytes

    apart = written(light_bytes(len(by.light), bytes))
    if not by.measured:
        every = cost(replace(request, effort="light"), len(by.light))
        return f"{every}; with looks at how the load varies in all at most {apart}"
    paths = len(by.measured)
    least = written(light_bytes(paths, bytes))
    again = "; at most as much again to see how the load varies"
    if request.effort == "light":
        again = f"; with looks at how the load varies in all at most {least}"
    elif request.effort == "usual" and bytes < usual_bytes(request, paths):
        again += f"; that is more than the job: --light takes at most {least}"
    if by.light:
        again += f"; and of {', '.join(by.light)} at most {apart}"
    return f"{cost(request, paths)}{again}"


def _dear(bytes: int, probe_bytes: int, paths: int) -> str | None:
    """What is to be known where asking took more than the job will."""
    from pathcast.forecast.watch import light_bytes

    if probe_bytes <= bytes:
        return None
    light = written(light_bytes(paths, bytes))
    return f"measured with more than the job's {written(bytes)}; --light takes at most {light}, and is less sure"


def _show(document: dict[str, Any]) -> None:
    from rich.table import Table

    print(document["why"][:1].upper() + document["why"][1:] + ".")
    way = "to" if document["direction"] == "out" else "from"
    title = f"{written(document['size_bytes'])} {way} {document['target']}"
    columns = ["paths", "control", "throughput", "90 %", "duration", "90 %", "shares"]
    timed = document["deadline_s"] is not None
    table = Table(*columns, *(["in time"] if timed else []), title=title)
    for one in document["options"]:
        rate, took = one["throughput_bps"], one["duration_s"]
        best = (one["paths"], one["control"]) == (document["chosen"], document["chosen_control"])
        name = " + ".join(one["paths"])
        whole = sum(one["bytes_by_path"]) or 1
        table.add_row(
            f"[bold]{name}[/] (best)" if best else name,
            one["control"],
            bits(rate["value"]),
            f"{bits(rate['low'])} to {bits(rate['high'])}",
            span(took["value"]),
            spans(took["low"], took["high"]),
            " : ".join(f"{share / whole:.0%}" for share in one["bytes_by_path"]),
            *([f"{one['deadline_probability']:.0%}"] if timed else []),
        )
    show(table)
    if document["measured_age_s"] is None:
        print(
            f"measured with {written(document['probe_bytes'])} ({document['measured']['effort']}); "
            f"{span(document['elapsed_s'])} in all"
        )
    for note in brief(document["notes"]):
        print(f"note: {note}", file=sys.stderr)
