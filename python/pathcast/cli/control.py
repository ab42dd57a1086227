"""`pathcast control`: the congestion controllers, with their papers and parameters."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pathcast.cli.output import Json, console, print_json
from pathcast.errors import usage

app = typer.Typer(no_args_is_help=True, help="The congestion controllers.")


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Argument(help="One controller, with all of its parameters.")] = None,
    json: Json = False,
) -> None:
    """Show the controllers: paper, what of it is our reconstruction, parameters with default, range and source."""
    found = register()
    if name is not None:
        chosen = [c for c in found if c["name"] == name]
        if not chosen:
            raise usage(f"there is no controller `{name}`; allowed: {', '.join(c['name'] for c in found)}")
        found = chosen
    if json:
        print_json("control-list", {"controllers": found})
    elif name is None:
        _all(found)
    else:
        _one(found[0])


def register() -> list[dict[str, Any]]:
    """The register of controllers."""
    import json

    from pathcast import _native

    return json.loads(_native.controllers())


def _all(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("name", "in the kernel", "paper", "basis")
    for control in found:
        table.add_row(control["name"], control["kernel_name"] or "-", control["paper"], control["basis"])
    console().print(table)


def _one(control: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    out = console()
    for line in (control["paper"], control["basis"], f"in the kernel: {control['kernel_name'] or 'not offered'}"):
        out.print(escape(line))
    table = Table("parameter", "default", "range", "meaning", "source")
    for p in control["params"]:
        cells = (p["name"], p["default"], f"{p['least']} to {p['most']}", p["text"], p["source"])
        table.add_row(*(escape(str(cell)) for cell in cells))
    out.print(table)
    out.print(f"in a scenario: \\[control.{control['name']}], or --set control.{control['name']}.PARAMETER=VALUE")
