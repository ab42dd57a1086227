"""`pathcast history`: what was measured, forecast and sent, to look at, to draw, to take elsewhere."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.cli import quantity
from pathcast.cli.closest import closest
from pathcast.cli.output import Json, as_directory, print_json, printable
from pathcast.cli.progress import busy
from pathcast.errors import PathcastError, usage
from pathcast.units import size as written

if TYPE_CHECKING:
    from pathcast.history.browse import Browser
    from pathcast.history.journal import Journal
    from pathcast.history.place import Place

app = typer.Typer(
    help="What was measured, forecast and sent: list it, plot it, take it elsewhere.", no_args_is_help=True
)

Url = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="URL",
        help="A FILE, or postgresql://… (default: $PATHCAST_HISTORY, or in the state directory).",
        show_default=False,
    ),
]
Since = Annotated[str | None, typer.Option(help="Nothing older, for example 7d or 12h.", show_default=False)]
Line = Annotated[str | None, typer.Option(help="Of this line only: its name, or its id.", show_default=False)]
To = Annotated[str | None, typer.Option("--target", help="Of this HOST or network only.", show_default=False)]

World = Annotated[
    str | None,
    typer.Option(
        help="Of this world: host, emu, sim, or all (default: host; all with --line or --target, and of events).",
        show_default=False,
    ),
]

_WORLDS, _ALL = ("host", "emu", "sim"), "all"
_READING = "reading the history"
WHATS = ("paths", "measurements", "transfers", "forecasts", "events", "usage")


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help=f"{', '.join(WHATS)}.")] = WHATS[0],
    since: Since = None,
    line: Line = None,
    to: To = None,
    world: World = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 50,
    history: Url = None,
    json: Json = False,
) -> None:
    """List paths and what is known of them, or measurements, transfers, forecasts, events, or bytes by the hour."""
    if what not in WHATS:
        raise usage(f"`{what}`: allowed are {', '.join(WHATS)}")
    if to is not None and what in ("paths", "events", "usage"):
        raise usage(f"--target goes with measurements, transfers and forecasts, not with {what}")
    if line is not None and what in ("paths", "forecasts", "events"):
        raise usage(f"--line goes with measurements, transfers and usage, not with {what}")
    if world is None:
        # what happened to this host, it was doing what it would
        world = "host" if line is None and to is None and what != "events" else _ALL
    if world not in (*_WORLDS, _ALL):
        raise usage(f"--world `{world}`: allowed are {', '.join(_WORLDS)} and {_ALL}")
    newer_than_s, line = _seconds("--since", since), _line_id(line)
    with busy(_READING, quiet=json):
        journal, browser = _open(history)
        rows = _rows(browser, what, newer_than_s, limit, line, to, None if world == _ALL else world)
        elsewhere = {} if world == _ALL else {name: n for name, n in _worlds(browser, what).items() if name != world}
        if not rows:
            _check(browser, line, to)
    if json:
        about = {"history": journal.place.shown, "what": what, "waiting": len(journal.spool), "lines": _names()}
        about |= {"world": world, "elsewhere": elsewhere}
        print_json("history.list", {**about, "rows": [_brief(row) for row in rows]})
        return
    from pathcast.cli.historytables import listed

    listed(what, rows, _names())
    if not rows:
        print(f"nothing of that is in {journal.place.shown}", file=sys.stderr)
    for name, number in elsewhere.items():
        print(f"note: {number} more in world {name}: --world {name} shows them", file=sys.stderr)


def _rows(
    browser: Browser,
    what: str,
    newer_than_s: float | None,
    limit: int,
    line: str | None,
    to: str | None,
    world: str | None,
) -> list[Any]:
    if what == "paths":
        known = [of for of in browser.paths() if newer_than_s is None or (of.age_s or 0) <= newer_than_s]
        known = [of for of in known if of.last is not None]  # all that there was of others has been removed
        return [of for of in known if _in(world, of.key.line_id)][:limit]
    if what == "measurements":
        return browser.measurements_of(newer_than_s, limit, line, to, world)
    if what == "transfers":
        return browser.transfers_of(newer_than_s, limit, line, to, world)
    if what == "forecasts":
        return browser.forecasts_of(newer_than_s, limit, to, world)
    if what == "events":
        return browser.events(newer_than_s, limit, world=world)
    since_us = 0 if newer_than_s is None else browser.at.utc_us - round(newer_than_s * 1e6)
    hours = browser.usage(None if line is None else [line], since_us)
    return [hour for hour in hours if _in(world, hour.line_id)][-limit:]


def _in(world: str | None, line_id: str) -> bool:
    from pathcast.history.identity import world_of

    return world is None or world_of(line_id) == world


def _worlds(browser: Browser, what: str) -> dict[str, int]:
    """How many of that there are in each world."""
    from collections import Counter

    from pathcast.history.identity import world_of

    if what == "paths":
        return Counter(world_of(of.key.line_id) for of in browser.paths() if of.last is not None)
    if what == "usage":
        return Counter(world_of(hour.line_id) for hour in browser.usage())
    return browser.worlds(what[:-1])


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="The key, or how it begins, as `history list …` shows it.")],
    history: Url = None,
    json: Json = False,
) -> None:
    """Show all that was recorded of one measurement, transfer, forecast or event."""
    with busy(_READING, quiet=json):
        _, browser = _open(history)
        found = browser.act(id)
    kind = "measurement" if isinstance(found, list) else type(found).__name__.lower()
    kind = {"sent": "transfer", "forecasted": "forecast"}.get(kind, kind)
    if json:
        record = {"paths": [asdict(of) for of in found]} if isinstance(found, list) else asdict(found)
        print_json("history.show", {"kind": kind, **record})
        return
    from pathcast.cli.historytables import shown

    shown(kind, found, _names())


@app.command()
def plot(
    what: Annotated[
        str, typer.Option(help="Quantities with commas between: available, capacity, rtt, delay, loss, throughput.")
    ] = "available,rtt,loss,throughput",
    out: Annotated[Path, typer.Option(help="The file: .svg, .png or .pdf.")] = Path("history.svg"),
    since: Since = "28d",
    line: Line = None,
    to: To = None,
    history: Url = None,
    json: Json = False,
) -> None:
    """Draw what was measured and sent over time, and what had been forecast for it."""
    from pathcast.errors import need
    from pathcast.history.plot import QUANTITIES, figure

    wanted = [name.strip() for name in what.split(",")]
    if wrong := [name for name in wanted if name not in QUANTITIES]:
        raise usage(f"--what `{wrong[0]}`: allowed are {', '.join(QUANTITIES)}")
    if out.suffix not in (".svg", ".png", ".pdf"):
        raise usage(f"--out `{out}`: allowed are files that end with .svg, .png or .pdf")
    need("matplotlib")
    newer_than_s, line = _seconds("--since", since), _line_id(line)
    with busy("drawing", quiet=json):
        _, browser = _open(history)
        points = browser.series(newer_than_s, line, to)
        sent = browser.transfers_of(newer_than_s, 10_000, line, to)
        forecasts = browser.forecasts_of(newer_than_s, 10_000, to)
        if not points and not sent:
            _check(browser, line, to)
            raise PathcastError("nothing", f"nothing of that is in {browser.store.place.shown} to draw")
        from pathcast.results.style import style

        try:
            with style():
                figure(points, sent, forecasts, wanted, _names()).savefig(out)
        except OSError as error:
            raise usage(f"cannot write `{out}`: {error.strerror}") from None
    if json:
        print_json("history.plot", {"file": str(out), "points": len(points), "transfers": len(sent)})
    else:
        print(f"{out}: {len(points)} points of measurements, {len(sent)} transfers")


@app.command()
def export(
    directory: Annotated[Path, typer.Argument(parser=as_directory, metavar="DIR", help="A new or empty directory.")],
    format: Annotated[str, typer.Option(help="parquet, csv or jsonl (JSON lines).")] = "parquet",
    since: Since = None,
    history: Url = None,
    json: Json = False,
) -> None:
    """Write every table into files, which `import` and other programs read."""
    from pathcast.history import exchange

    newer_than_s = _seconds("--since", since)
    journal, browser = _open(history)
    if not journal.store.exists:
        raise PathcastError("nothing", f"there is no history `{journal.place.shown}` yet")
    since_us = None if newer_than_s is None else browser.at.utc_us - round(newer_than_s * 1e6)
    with busy("writing", quiet=json):
        rows = exchange.export(journal.store, directory, format, since_us)
    if json:
        print_json("history.export", {"directory": str(directory), "format": format, "rows": rows})
    else:
        print(f"{directory}: {_counts(rows)}")


@app.command("import")
def import_(
    directory: Annotated[Path, typer.Argument(parser=as_directory, metavar="DIR", help="What `export` has written.")],
    history: Url = None,
    json: Json = False,
) -> None:
    """Add what `export` has written elsewhere. What is there already stays as it is."""
    from pathcast.history import exchange

    journal, _ = _open(history, new=True)
    with busy("adding", quiet=json):
        rows = exchange.import_(journal.store, directory)
    if json:
        print_json("history.import", {"history": journal.place.shown, "new": rows})
    else:
        print(f"{journal.place.shown}: new are {_counts(rows)}")


@app.command()
def prune(
    older: Annotated[
        str | None,
        typer.Option(help="Remove what is older (default: $PATHCAST_HISTORY_KEEP, or 400d).", show_default=False),
    ] = None,
    larger: Annotated[
        str | None,
        typer.Option(
            help="Then the oldest of what is more (default: $PATHCAST_HISTORY_SIZE, or 1GB).", show_default=False
        ),
    ] = None,
    world: Annotated[
        str | None,
        typer.Option(help="Only what is of emulated or simulated networks: emu or sim; all of it, without --older."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is too old.")] = False,
    history: Url = None,
    json: Json = False,
) -> None:
    """Remove what is too old or too much. The commands that record do so themselves, once a day."""
    import os

    from pathcast.history import keep
    from pathcast.history.identity import NETWORKS

    if world is not None and (world not in NETWORKS or larger is not None):
        told = f"--world `{world}`: allowed are {' and '.join(NETWORKS)}"
        raise usage(told if larger is None else "--larger is for all worlds together, not for --world")
    if world is None:
        called = ("--older" if older else keep.AGE, "--larger" if larger else keep.SIZE)
        wanted = keep.Keep.parse(older or os.environ.get(keep.AGE), larger or os.environ.get(keep.SIZE), called)
    else:
        older_s = _seconds("--older", older) or 0.0
    journal, browser = _open(history)
    if not journal.store.exists:
        raise PathcastError("nothing", f"there is no history `{journal.place.shown}` yet")
    with busy("looking" if dry_run else "removing", quiet=json):
        if world is None:
            done = keep.prune(journal.store, wanted, browser.at, dry=dry_run)
        else:
            done = keep.forget(journal.store, world, browser.at, older_s, dry_run)
    if json:
        print_json("history.prune", {"history": journal.place.shown, "dry_run": dry_run, **asdict(done)})
    else:
        would = "would go" if dry_run else "gone"
        print(f"{would}: {_counts(done.rows)}; {written(done.before_bytes)} before, {written(done.after_bytes)} now")


@app.command()
def upgrade(history: Url = None, json: Json = False) -> None:
    """Bring a history of an earlier pathcast to this one's version: in PostgreSQL, for all who use it."""
    journal = _journal(history)
    with busy("bringing it to this version", quiet=json):
        before, now = journal.store.upgrade()
    if json:
        print_json("history.upgrade", {"history": journal.place.shown, "from": before, "to": now})
    else:
        print(f"{journal.place.shown}: version {now}" + (f", was {before}" if before not in (None, now) else ""))


def _journal(history: str | None) -> Journal:
    from pathcast.history.journal import Journal
    from pathcast.history.place import ENVIRONMENT, OFF, find

    place = find(history)
    if place is None:
        raise usage(f"no history is kept: {ENVIRONMENT}={OFF}", "--history names one")
    return Journal(place, patient=True)


def _open(history: str | None, new: bool = False) -> tuple[Journal, Browser]:
    """The history, with what waited for it. new: one that is named here may be made.

    Raises PathcastError where it cannot be read.
    """
    from pathcast.history.browse import Browser

    journal = _journal(history)
    if len(journal.spool):
        _send(journal)
    if not new:
        _there(journal.place)
    return journal, Browser(journal.store)


def _send(journal: Journal) -> None:
    """Takes what waited into the database; where that cannot be written to and can be read, it waits on.

    Raises PathcastError where it cannot be read.
    """
    refused, why = 0, ""
    try:
        _, refused = journal.send()
    except PathcastError as error:
        why = f": {error.message}"
        if journal.store.exists:
            with journal.store.asking():
                pass
    if refused:
        told = f"{refused} acts in {journal.place.spool} are not what a history takes; they lie there as *.refused"
        print(f"pathcast: {told}", file=sys.stderr)
    if waiting := len(journal.spool):
        wait = "waits" if waiting == 1 else "wait"
        print(f"note: {waiting} more {wait} in {journal.place.spool} for the database{why}", file=sys.stderr)


def shown_place(history: str | None) -> Place | None:
    """The history of what only shows it; None: none is kept. Raises PathcastError (exit 2) of one that is named and is
    not there."""
    from pathcast.history.place import find

    place = find(history)
    if place is not None:
        _there(place)
    return place


def _there(place: Place) -> None:
    """Of one's own, which nobody named, there may be nothing yet."""
    if place.given and place.file is not None and not place.file.exists():
        raise usage(f"there is no history `{place.shown}`", "it is made by what measures, forecasts or sends")


def _check(browser: Browser, line: str | None, to: str | None) -> None:
    """Refuses (exit 2) a line, by its id, and a target that nothing is known of."""
    from pathcast.lines import config

    shown = browser.store.place.shown
    if line is not None:
        lines = config.load().values()
        known = [name for one in lines for name in (one.name, one.id) if name] + browser.line_ids()
        if line not in known:
            told = f"there is no line `{line}`, neither with a name nor in {shown}"
            raise usage(told, _meant(line, known, "`pathcast line list` and `pathcast history list` show them"))
    # of a history where nothing has a target it cannot be told
    if to is not None and (targets := browser.targets()) and to not in targets:
        raise usage(f"there is no target `{to}` in {shown}", _meant(to, targets, "`pathcast history list` shows them"))


def _meant(word: str, known: list[str], else_: str) -> str:
    nearest = closest(word, known)
    return f"did you mean `{printable(nearest)}`?" if nearest else else_


def _names() -> dict[str, str]:
    """What the user calls lines, by their ids; of a file that cannot be read `pathcast line list` tells why."""
    from pathcast.lines import config

    try:
        return {line.id: line.name for line in config.load().values() if line.id is not None}
    except PathcastError:
        return {}


def _line_id(line: str | None) -> str | None:
    """The id of a line by its name; others are taken as ids."""
    return next((id for id, name in _names().items() if name == line), line)


def _seconds(option: str, text: str | None) -> float | None:
    return None if text is None else quantity.duration_s(option, text)


def _counts(rows: dict[str, int]) -> str:
    return ", ".join(f"{count} of {name}" for name, count in rows.items() if count) or "nothing"


def _brief(row: Any) -> dict[str, Any]:
    """A record without what `show` is for."""
    return {name: value for name, value in asdict(row).items() if name not in ("report", "circumstances", "answer")}
