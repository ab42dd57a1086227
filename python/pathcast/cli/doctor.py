"""`pathcast doctor`: what this machine can do, what is missing and its mend, what pathcast has changed here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathcast.cli import quantity
from pathcast.cli.output import Json, as_file, print_json, show
from pathcast.errors import usage

if TYPE_CHECKING:
    from pathcast.service.findings import Finding

FarEnd = Annotated[
    str | None, typer.Option("--host", help="HOST or HOST:PORT of a `pathcast serve`: look there.", show_default=False)
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", metavar="PATH", parser=as_file, help="With --host: the far end's key file.", show_default=False
    ),
]
Paths = Annotated[
    str | None,
    typer.Option("--paths", help="With --host: names with commas between (default: all).", show_default=False),
]
Patience = Annotated[
    str | None,
    typer.Option("--patience", help="With --host: how long silence is waited for (default: 4s).", show_default=False),
]
# what may be waited for [s]
PATIENCES = (0.2, 60.0)


def doctor(
    host: FarEnd = None,
    key_file: KeyFile = None,
    paths: Paths = None,
    patience: Patience = None,
    json: Json = False,
) -> None:
    """Show what this machine can do, what is missing and its mend, and what pathcast has changed here.

    With --host: what lies between here and a far end, path by path; exit 1 where there is a fault.
    """
    if host is not None:
        return _between(host, key_file, paths, patience, json)
    if key_file is not None or paths is not None or patience is not None:
        raise usage("--key-file, --paths and --patience go with --host")
    from pathcast.runtime import state
    from pathcast.service import doctor as examine

    if not json and sys.stderr.isatty():
        print("looking; how late wake-ups are takes a second or two …", file=sys.stderr)
    checks, changed = examine.run(), examine.changed()
    if json:
        print_json("doctor", {"checks": [vars(c) for c in checks], "changed": changed})
        return
    from rich.table import Table

    colours = {"ok": "green", "degraded": "yellow", "missing": "red"}
    table = Table(show_header=False, box=None)
    for check in checks:
        table.add_row(f"[{colours[check.status]}]{check.status}[/]", check.name, check.detail)
    show(table)
    for check in checks:
        if check.status != "ok":
            print(f"\n{check.name} is {check.status}; it is needed for {check.needed_for}")
            print(f"mend: {check.mend}")
    print()
    roots = state.hidden()
    if roots is not None:
        print(f"what root's commands changed is recorded in {roots}: sudo pathcast doctor")
    elif not changed:
        print("pathcast has changed nothing on this host")
    for part in changed:
        made = ", ".join(name for names in part["made"].values() for name in names) or "nothing else"
        owner = "pinned" if part["pid"] is None else f"process {part['pid']}"
        how = owner if part["alive"] else "left behind; `pathcast undo` removes it"
        print(f"{part['kind']} {part['id']} ({how}): {made}")


def _between(host: str, key_file: Path | None, paths: str | None, patience: str | None, json: bool) -> None:
    from dataclasses import asdict

    from pathcast.cli.target import names
    from pathcast.errors import Exit
    from pathcast.service import between
    from pathcast.service.findings import FAULT, Between
    from pathcast.worlds.host import Host

    if "://" in host:
        hint = f"`pathcast measure {host}` asks a STAMP reflector" if host.startswith("stamp://") else None
        raise usage(f"--host `{host}`: write HOST or HOST:PORT of a `pathcast serve`", hint)
    wanted = None if paths is None else names("--paths", paths)
    patience_s = between.PATIENCE_S if patience is None else quantity.duration_s("--patience", patience)
    if not PATIENCES[0] <= patience_s <= PATIENCES[1]:
        raise usage(f"--patience `{patience}`: allowed are 200ms to 60s")
    if not json and sys.stderr.isatty():
        print("looking; that takes some 3 s a path, and longer where something is silent …", file=sys.stderr)
    answered, found = between.knock(host, patience_s)
    if answered:
        with Host(host, key_file) as world:
            found += between.look(world, wanted, patience_s)
    faults = sum(one.status == FAULT for one in found)
    if json:
        print_json("between", asdict(Between(host, faults, tuple(found))))
    else:
        _show(found)
    if faults:
        raise typer.Exit(Exit.RUNTIME)


def _show(found: list[Finding]) -> None:
    from rich.markup import escape
    from rich.table import Table

    colours = {"ok": "green", "noted": "cyan", "fault": "red", "unseen": "yellow"}
    table = Table(show_header=False, box=None)
    for one in found:
        table.add_row(one.path, f"[{colours[one.status]}]{one.status}[/]", one.name, escape(one.detail))
    show(table)
    for one in found:
        if one.status in ("fault", "unseen"):
            print(f"\n{one.path}: {one.detail}\nmend: {one.mend}")
