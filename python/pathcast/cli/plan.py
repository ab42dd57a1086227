"""`pathcast plan`: what of a job fits, over which lines and when, and what it takes of caps and money."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast import zone
from pathcast.cli import planoptions
from pathcast.cli.historyoptions import HistoryUrl, NoHistory, recorder
from pathcast.cli.limits import LimitEvents
from pathcast.cli.output import Json, brief, print_json, show
from pathcast.cli.planoptions import Budget, By, Cheap, Hurry, MaxRate, Most
from pathcast.cli.target import Host, KeyFile, Paths, Set, Target, TopologyFile, World, names, target
from pathcast.errors import need, usage
from pathcast.units import size as written
from pathcast.units import span

if TYPE_CHECKING:
    from pathcast.forecast.controls import Controls
    from pathcast.forecast.means import Bound
    from pathcast.lines.config import Line
    from pathcast.plan.plan import Plan
    from pathcast.plan.terms import LineTerms, Way, Wish
    from pathcast.worlds.measurement import Request

# a plan that is over sooner is told by the second [s]
_MINUTES_S = 600.0


def plan(
    host: Host = None,
    size: Annotated[str, typer.Option("--size", help="Bytes of the job, for example 300GB.")] = ...,  # type: ignore[assignment] # Typer: required
    by: By = None,
    max: Most = None,
    budget: Budget = None,
    max_rate: MaxRate = None,
    cheap: Cheap = False,
    background: Annotated[bool, typer.Option("--background", help="Give way to everybody else.")] = False,
    hurry: Hurry = False,
    paths: Paths = None,
    inwards: Annotated[bool, typer.Option("--in", help="A transfer from HOST, not to it.")] = False,
    light: Annotated[
        bool, typer.Option("--light", help="Measure with at most 116 kB a path, or 2 % of the job.")
    ] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="Measure up to 10 s a direction.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure, though the history holds a measurement of the last 5 minutes.")
    ] = False,
    key_file: KeyFile = None,
    world: World = "host",
    topology: TopologyFile = None,
    set: Set = None,
    limit_events: LimitEvents = None,
    history: HistoryUrl = None,
    no_history: NoHistory = False,
    json: Json = False,
) -> None:
    """Measure the paths, and plan a job by its forecast: within the lines' caps, hours and prices, never above a bound.

    As soon as possible, or as cheap (--cheap) or as quiet (--background --hurry) as the deadline allows. Where it does
    not fit: what would have to change.
    """
    from pathcast.runtime.state import tidy
    from pathcast.worlds.measurement import Request

    asked = planoptions.Asked(size, by, max, budget, max_rate, cheap, background, hurry)
    wish, most, limit = asked.checked()
    only = None if paths is None else names("--paths", paths)
    if light and thorough:
        raise usage("--light and --thorough exclude each other")
    need("scipy")
    tidy(_say)
    request = Request(effort="light" if light else "thorough" if thorough else "usual")
    far = target(host, world, topology, set, key_file, limit_events, recorder(history, no_history, "plan"))
    document, made = planned(far, wish, "in" if inwards else "out", most, only, request, limit, fresh, json)
    if json:
        print_json("plan", document)
    else:
        _show(document, made)


def planned(
    far: Target,
    wish: Wish,
    direction: str,
    most: dict[str, int],
    only: tuple[str, ...] | None,
    request: Request,
    limit: Any,
    fresh: bool = False,
    quiet: bool = False,
) -> tuple[dict[str, Any], Plan]:
    """Measures, forecasts and plans: the document of `pathcast plan --json`, and the plan."""
    from dataclasses import asdict, replace

    from pathcast.cli.progress import busy
    from pathcast.lines import carried, config
    from pathcast.plan.plan import plan as plan_of
    from pathcast.plan.words import sentence

    forecast, ways, lines, now = measured_ways(far, wish, direction, most, only, request, limit, fresh, quiet)
    with busy("planning", quiet):
        made = plan_of(ways, lines, replace(wish, deadline_s=forecast["deadline_s"]))
    apart = carried.apart({name: line for name, line in config.load().items() if name in lines})
    document = {
        "world": far.world,
        "target": far.name,
        "direction": direction,
        "from": now.isoformat(timespec="seconds"),
        "by": forecast["by"],
        "sentence": sentence(made, _clock_of(made, now)),
        **asdict(made),
        "down": forecast["down"],
        "notes": [*forecast["notes"], *filter(None, (apart,))],
        "forecast": {name: of for name, of in forecast.items() if name not in ("measured", "loads")},
    }
    return document, made


def measured_ways(
    far: Target,
    wish: Wish,
    direction: str,
    most: dict[str, int],
    only: tuple[str, ...] | None,
    request: Request,
    limit: Any,
    fresh: bool = False,
    quiet: bool = False,
    within_s: float | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> tuple[dict[str, Any], list[Way], dict[str, LineTerms], datetime]:
    """The document of `predict`, its ways, the terms of their lines, and the moment from which these count. within_s:
    about how long it may take. tell: hears of lines that are down, and that caps have no room to measure."""
    from pathcast.cli.predict import measured_forecast
    from pathcast.lines import config
    from pathcast.service.terms import room

    known = config.load()  # what is wrong with it is said before anything is sent
    lines_of: dict[str, str] = {}

    def see(network: Any) -> Mapping[str, Bound]:
        lines_of.update(_lines_of(network))
        # one that is down may be bounded as well
        planoptions.known(most, sorted({*lines_of.values(), *(known if far.world == "host" else ())}))
        if only is not None or far.world != "host":
            return {}
        left = room(lines_of.values(), known, zone.local())
        return _bounds(lines_of, left, request, wish.size_bytes)

    forecast = measured_forecast(
        far,
        wish.size_bytes,
        direction,
        lambda here: controls_of(here, wish.background),
        only,
        request,
        limit,
        see,
        fresh,
        quiet,
        within_s,
        tell,
    )
    now = zone.local()
    ways, lines = from_forecast(forecast, lines_of, known, most, now)
    return forecast, ways, lines, now


def from_forecast(
    forecast: dict[str, Any], lines_of: dict[str, str], known: Mapping[str, Line], most: dict[str, int], now: datetime
) -> tuple[list[Way], dict[str, LineTerms]]:
    """The ways of a document of `predict`, and the terms of their lines."""
    from pathcast.forecast.controls import BACKGROUND
    from pathcast.plan.program import HORIZON_S
    from pathcast.plan.terms import ways_of
    from pathcast.service.terms import terms

    ways = ways_of(forecast["options"], lines_of, BACKGROUND)
    reach_s = max(HORIZON_S, forecast.get("deadline_s") or 0.0)
    return ways, terms(sorted({name for way in ways for name in way.lines}), known, most, now, reach_s=reach_s)


def _bounds(
    lines_of: Mapping[str, str], left: Mapping[str, int], request: Request, size_bytes: int
) -> dict[str, Bound]:
    """Of the paths whose lines' caps have no room for the measuring why, and whether they have for a light one."""
    from pathcast.forecast.means import Bound
    from pathcast.forecast.watch import light_bytes
    from pathcast.worlds.cost import most_bytes

    # of several paths one may take what the others leave
    light, found = light_bytes(len(lines_of), size_bytes), {}
    for path, line in lines_of.items():
        of_line = sum(one == line for one in lines_of.values())
        most = light if request.effort == "light" else of_line * most_bytes(request)
        if line in left and left[line] < most:
            may = request.effort != "light" and left[line] >= light
            what = "measuring takes" if may or request.effort == "light" else "even --light takes"
            told = f"{what} up to {written(most if may else light)}"
            found[path] = Bound(f"{written(left[line])} of its cap are left, and {told}", may)
    return found


def _lines_of(network: Any) -> dict[str, str]:
    """Of every path its line: that of its address here; in a network from a file the one that is called so."""
    found = {path.name: path.name for path in network.paths}
    for pair in getattr(network, "candidates", ()):
        if pair.get("line"):
            found[pair["name"]] = pair["line"]
    return found


def controls_of(here: Any, background: bool) -> Controls:
    """Of auto; in the background full speed beside it, to tell what that would change."""
    from pathcast.forecast.controls import AUTO, Controls, controls

    full = controls((AUTO,), here)
    if not background:
        return full
    quiet = controls((AUTO,), here, background=True)
    return Controls(quiet.single + full.single, quiet.several + full.several, careful=True)


def clock(now: datetime, planned_s: Iterable[float | None]) -> Callable[[float], str]:
    """Times for people: `03:12`, on other days with the day; `03:12:05` of the next minutes, where what is planned [s
    from now] is over in minutes."""
    short = any(end_s is not None and end_s < _MINUTES_S for end_s in planned_s)
    now = zone.local(now.timestamp()).replace(microsecond=0)

    def told(after_s: float) -> str:
        at = zone.local(now.timestamp() + after_s)
        return f"{written_at(at, after_s)}{zone.mark(at)}"

    def written_at(at: datetime, after_s: float) -> str:
        if short and after_s < _MINUTES_S:
            return f"{at:%H:%M:%S}"
        days = (at.date() - now.date()) // timedelta(days=1)
        if days == 0 or (days == 1 and at.hour < 12):
            return f"{at:%H:%M}"
        return f"{at:%a %H:%M}" if days < 7 else f"{at:%Y-%m-%d %H:%M}"

    return told


def _clock_of(made: Plan, now: datetime) -> Callable[[float], str]:
    return clock(now, (made.duration_s.value, made.deadline_s))


def _show(document: dict[str, Any], made: Plan) -> None:
    from rich.table import Table

    from pathcast.plan.words import money_written

    at = _clock_of(made, datetime.fromisoformat(document["from"]))
    told = document["sentence"]
    print(told[:1].upper() + told[1:] + ".")
    table = Table("from", "to", "lines", "control", "carries", title=f"careful plan to {document['target']}")
    for stage in made.stages:
        how = f"{stage.control} (gives way)" if stage.background else stage.control
        bytes = written(stage.bytes)
        table.add_row(at(stage.begin_s), at(stage.end_s), " + ".join(stage.lines), how, bytes)
    show(table)
    table = Table("line", "carries (IP)", "left of its bound", "money")
    for part in made.parts:
        left = "" if part.left_bytes is None else written(part.left_bytes)
        table.add_row(part.line, written(part.line_bytes), left, money_written(part.money) if part.money else "")
    show(table)
    if made.changes:
        print("It would fit with:" if made.fits == "no" else "It would fit for certain with:")
        for change in made.changes:
            told = change.sentence
            if change.what == "deadline" and change.to is not None and made.deadline_s is not None:
                told = f"time until {at(change.to)} ({span(change.to - made.deadline_s)} more)"
            print(f"- {told}")
    forecast = document["forecast"]
    if forecast["measured_age_s"] is None:
        print(f"measured with {written(forecast['probe_bytes'])}; {span(forecast['elapsed_s'])} in all")
    for note in brief(document["notes"]):
        print(f"note: {note}", file=sys.stderr)


def _say(text: str) -> None:
    print(f"pathcast: {text}", file=sys.stderr)
