"""`pathcast line`: lines with names, caps, prices and hours; what they carried; their policy routing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast import zone
from pathcast.cli.output import Json, print_json, show
from pathcast.errors import PathcastError, usage
from pathcast.units import size

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pathcast.lines.config import Line
    from pathcast.lines.edit import Around

app = typer.Typer(help="Lines with names: caps, prices, hours, and what they carried.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Its name: lower-case letters, digits, _ and -.")]
From = Annotated[
    list[str] | None, typer.Option("--from", help="Its local address; may be repeated.", show_default=False)
]
Dev = Annotated[str | None, typer.Option(help="Its device, for example eth1.", show_default=False)]
CapOption = Annotated[
    str | None,
    typer.Option("--cap", help="Bytes in a day, week or month, both ways: 1TB/month.", show_default=False),
]
Reset = Annotated[
    int | None, typer.Option(help="First day of the cap's month, or of its week (1: Monday).", show_default=False)
]
Price = Annotated[str | None, typer.Option(help="Money for bytes: 0.5/GB.", show_default=False)]
Use = Annotated[
    list[str] | None,
    typer.Option(help="Hours in which it may be used: 22:00-06:00; may be repeated.", show_default=False),
]
Prefer = Annotated[int | None, typer.Option(help="Rank, 1 first.", show_default=False)]
Used = Annotated[
    str | None,
    typer.Option(help="What it carried in this period until now, as the provider says: 300GB.", show_default=False),
]
Routes = Annotated[bool, typer.Option("--routes", help="Set the policy routing that is missing; `undo` removes it.")]
Gateway = Annotated[
    list[str] | None,
    typer.Option(help="The router's address on this line; may be repeated: IPv4 and IPv6.", show_default=False),
]


@app.command()
def add(
    name: Name,
    from_: From = None,
    dev: Dev = None,
    cap: CapOption = None,
    reset: Reset = None,
    price: Price = None,
    use: Use = None,
    prefer: Prefer = None,
    used: Used = None,
    routes: Routes = False,
    gateway: Gateway = None,
    json: Json = False,
) -> None:
    """Name a line of this host, by its local address or its device."""
    from pathcast.lines import config, edit
    from pathcast.lines.routes import gateways

    passed, via = _bytes(used), gateways(gateway or ())
    values = _values(from_, dev, cap, reset, price, use, prefer)
    if not from_ and dev is None:
        raise usage(f"line add {name}: neither --from nor --dev", "give its local address, or its device")
    [line] = config.lines({"line": {name: values}}, f"line {name}").values()
    if (id := _id(line)) is not None:
        values["id"] = id
    commands: list[list[str]] = []
    line = edit.add(config.file(), name, values, _routed(routes, via, commands))
    _after(line, passed, commands, via, json)


@app.command("set")
def set_(
    name: Name,
    from_: From = None,
    dev: Dev = None,
    cap: CapOption = None,
    reset: Reset = None,
    price: Price = None,
    use: Use = None,
    prefer: Prefer = None,
    used: Used = None,
    without: Annotated[
        list[str] | None, typer.Option(help="A key to take out, for example cap; may be repeated.")
    ] = None,
    routes: Routes = False,
    gateway: Gateway = None,
    json: Json = False,
) -> None:
    """Change a line; what is not given stays."""
    from pathcast.lines import config, edit
    from pathcast.lines.routes import gateways

    passed, via = _bytes(used), gateways(gateway or ())
    keys = [key for key in config.KEYS if key != "id"]
    for key in without or ():
        if key not in keys:
            raise usage(f"--without {key}: a line has no such key", f"allowed are {', '.join(keys)}")
    values = _values(from_, dev, cap, reset, price, use, prefer)
    commands: list[list[str]] = []
    around = _routed(routes, via, commands)
    line = edit.change(config.file(), name, values, tuple(without or ()), around)
    _after(line, passed, commands, via, json)


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget a line, and take back the routes that were set for it. What it carried stays in the books."""
    from pathcast.lines import config, edit, routes

    edit.remove(config.file(), name)
    removed = routes.remove(name)
    if json:
        print_json("line-remove", {"name": name, "removed": removed})
        return
    print(f"line {name} is forgotten")
    for sentence in removed:
        print(f"removed {sentence}")


@app.command("list")
def list_(json: Json = False) -> None:
    """Show the lines, what each carried, and whether its packets leave by it."""
    from pathcast.lines import carried, config

    lines = config.load()
    about = _about(lines)
    apart = carried.apart(lines)
    if json:
        notes = [] if apart is None else [apart]
        print_json("line-list", {"file": str(config.file()), "lines": about, "notes": notes})
        return
    if not lines:
        print("no line has a name yet; try: pathcast line add cable --from ADDRESS")
        return
    from rich.table import Table

    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "line": lambda of: of["name"],
        "address": lambda of: " ".join(of["addresses"]) or "down",
        "device": lambda of: of["device"] or "",
        "carried": lambda of: of["carried"]["sentence"],
        "by pathcast": lambda of: size(of["carried"]["own_bytes"]) if of["carried"]["own_bytes"] else "",
        "price": lambda of: of["price"] or "",
        "use": lambda of: ", ".join(of["use"]),
        "rank": lambda of: "" if of["prefer"] is None else str(of["prefer"]),
    }
    rows = {head: [str(cell(of)) for of in about] for head, cell in columns.items()}
    kept = [head for head, cells in rows.items() if any(cells)]
    table = Table(*kept)
    for cells in zip(*(rows[head] for head in kept), strict=True):
        table.add_row(*cells)
    show(table)
    for of in about:
        _routing(of["name"], of["routes_missing"])
    if apart is not None:
        print(f"note: {apart}", file=sys.stderr)


def _values(
    from_: list[str] | None,
    dev: str | None,
    cap: str | None,
    reset: int | None,
    price: str | None,
    use: list[str] | None,
    prefer: int | None,
) -> dict[str, Any]:
    given = {"from": _one(from_), "dev": dev, "cap": cap, "reset": reset, "price": price, "use": _one(use)}
    return {key: value for key, value in {**given, "prefer": prefer}.items() if value not in (None, [])}


def _one(values: list[str] | None) -> str | list[str] | None:
    return values[0] if values and len(values) == 1 else values


def _id(line: Line) -> str | None:
    """What the history has known it by until now, so that its past stays its own; None while it has no address."""
    from pathcast.lines import here
    from pathcast.lines.ids import line_ids

    addresses = here.addresses()
    ids = line_ids([(one.local, one.dev) for one in addresses])
    return next((ids[one.local] for one in here.of_line(line, addresses)), None)


def _bytes(used: str | None) -> int | None:
    """Of --used; refused before anything is changed."""
    from pathcast import _native

    try:
        return None if used is None else _native.parse_bytes(used)
    except PathcastError as error:
        raise usage(f"--used: {error.message}") from None


def _routed(routes: bool, gateways: dict[int, str], commands: list[list[str]]) -> Around:
    """With --routes a line is written only where they can be set. commands: takes those that were."""
    from contextlib import nullcontext

    from pathcast.lines import routes as routing

    def around(line: Line) -> AbstractContextManager[object]:
        if not routes:
            return nullcontext()
        commands.extend(routing.lacking(line, gateways))
        return routing.with_set(line, commands)

    return around


def _after(line: Line, used: int | None, commands: list[list[str]], gateways: dict[int, str], json: bool) -> None:
    from pathcast.lines import carried, config
    from pathcast.lines import routes as routing
    from pathcast.service.terms import correct

    if used is not None:
        carried.look({line.name: line})
        correct(line, used, zone.local())
    [of] = _about({line.name: line}, gateways)
    if json:
        print_json("line", {"file": str(config.file()), **of})
        return
    print(f"{line.name}: {of['carried']['sentence']}")
    print(f"written to {config.file()}")
    if commands:
        print("set until the next boot, or `pathcast undo`:")
        for command in routing.shown(commands):
            print(f"  {command}")
    if not of["addresses"]:
        print(f"{line.name} is down: this host has no such address or device now", file=sys.stderr)
    _routing(line.name, of["routes_missing"])


def _about(lines: dict[str, Line], gateways: dict[int, str] | None = None) -> list[dict[str, Any]]:
    from contextlib import suppress

    from pathcast.lines import carried, here, routes
    from pathcast.service.terms import account, own_bytes

    with suppress(OSError):  # who may not write the books may read them
        for name, device in carried.look(lines).items():
            if lines[name].cap is not None:
                told = "its cap counts nothing but what pathcast itself sends and receives"
                print(f"note: the counters of {device} ({name}) cannot be read: {told}", file=sys.stderr)
    now, addresses, found = zone.local(), here.addresses(), []
    for line in lines.values():
        of = account(line, now)
        own = here.of_line(line, addresses)
        commands: list[str] = []
        with suppress(PathcastError):
            commands = routes.shown(routes.lacking(line, gateways)) if own else []
        cap = (
            None if line.cap is None else {"bytes": line.cap.bytes, "period": line.cap.period, "reset": line.cap.reset}
        )
        found.append(
            {
                "name": line.name,
                "id": line.id,
                "addresses": [one.local for one in own],
                "device": line.dev or next((one.dev for one in own), None),
                "cap": cap,
                "price": None if line.price is None else f"{line.price * 1e9:.4g}/GB",
                "use": [_window(*window) for window in line.use],
                "prefer": line.prefer,
                "carried": {
                    "bytes": of.bytes,
                    "since": of.since.isoformat() if of.since else None,
                    "period": [of.begin.isoformat(), of.end.isoformat()],
                    "full": of.full.isoformat() if of.full else None,
                    "by_end_bytes": of.by_end,
                    "sentence": of.sentence(),
                    "own_bytes": own_bytes(line, of.begin),
                },
                "routes_missing": commands,
            }
        )
    return found


def _window(begin: int, end: int) -> str:
    return "-".join(f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (begin, end))


def _routing(name: str, commands: list[str]) -> None:
    if commands:
        print(f"packets from {name}'s address do not leave by it; as root, or `pathcast line set {name} --routes`:")
        for command in commands:
            print(f"  {command}")
