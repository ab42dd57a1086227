"""`pathcast control`: the congestion controllers, and those of them that are in this kernel."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any

import typer

from pathcast.cli.output import Json, console, print_json
from pathcast.cli.output import show as show_table
from pathcast.errors import PathcastError, usage
from pathcast.units import bits, seconds, size

app = typer.Typer(no_args_is_help=True, help="The congestion controllers, and those in this kernel.")

Loaded = Annotated[str, typer.Argument(help="A controller, or a name in the kernel, as `control list` shows them.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="PARAMETER=VALUE, for example imtcp_bg.delta=1300; may be repeated."),
]


@app.callback()
def _group() -> None:
    pass


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Argument(help="One controller, with all of its parameters.")] = None,
    json: Json = False,
) -> None:
    """Show the controllers: paper, what of it is our reconstruction, parameters, and which are in this kernel."""
    from pathcast.control import kernel

    found, here = kernel.register(), kernel.instances()
    if name is not None:
        chosen = [c for c in found if c["name"] == name]
        if not chosen:
            raise usage(f"there is no controller `{name}`; allowed: {', '.join(c['name'] for c in found)}")
        found = chosen
        here = [i for i in here if i.name == name]
    documents = [_document(c, here) for c in found]
    if json:
        stale = [{"kernel_name": i.kernel_name, "path": i.path} for i in here if i.stale]
        print_json("control-list", {"controllers": documents, "stale": stale})
    elif name is None:
        _all(documents)
        for instance in here:
            if instance.stale:
                print(f"left behind, nothing in force: {instance.path}; `pathcast undo` removes it")
    else:
        _one(documents[0])


@app.command()
def load(
    name: Annotated[str, typer.Argument(help="A controller, as `control list` shows them.")],
    set: Sets = None,
    pin: Annotated[bool, typer.Option("--pin", help="Let it stay after this command, until `control unload`.")] = False,
    json: Json = False,
) -> None:
    """Bring a controller into the kernel, for programs that may choose it; without --pin until Ctrl-C."""
    from pathcast.control import kernel
    from pathcast.runtime import state

    state.clean()
    kernel.check(name)
    params = kernel.parse_sets(name, set or [])
    if pin:
        about = kernel.pin(name, params)
        if json:
            print_json("control-load", about)
        else:
            print(f"{name} is in the kernel as {about['kernel_name']}, pinned at {about['pinned']}")
            print(f"unload it with: pathcast control unload {about['kernel_name']}")
        return
    with kernel.hold(name, params) as part:
        about = part.ask("describe")
        if json:
            print_json("control-load", about)
        else:
            print(f"{name} is in the kernel as {about['kernel_name']}, until this command ends (Ctrl-C)")
        import sys

        sys.stdout.flush()
        while part.record.alive:
            time.sleep(0.2)
    raise PathcastError("unloaded", f"{about['kernel_name']} was unloaded by somebody else")


@app.command()
def unload(name: Loaded, json: Json = False) -> None:
    """Take a controller out of the kernel. Connections that use it keep it until they end."""
    from pathcast.control import kernel

    instance = kernel.find(name)
    instance.unload()
    if json:
        print_json("control-unload", {"kernel_name": instance.kernel_name, "name": instance.name})
    else:
        print(f"{instance.kernel_name} is unloaded")


@app.command("set")
def set_(
    name: Loaded,
    changes: Annotated[list[str], typer.Argument(help="PARAMETER=VALUE, for example delta=1300.")],
    json: Json = False,
) -> None:
    """Change parameters of a loaded controller, for living connections too."""
    from pathcast.control import kernel

    instance = kernel.find(name)
    if instance.name is None:
        raise usage(f"`{name}` is not in force: only its pins are left", "`pathcast undo` removes them")
    about = instance.ask("set", params=kernel.parse_sets(instance.name, changes))
    if json:
        print_json("control-set", about)
    else:
        print(f"{about['kernel_name']}: " + ", ".join(f"{k} = {v}" for k, v in about["parameters"].items()))


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="Only this one (default: all that pathcast has loaded).")] = None,
    watch: Annotated[
        float | None, typer.Option(min=0.1, help="Show it anew every so many seconds, until interrupted.")
    ] = None,
    json: Json = False,
) -> None:
    """Show every live connection and subflow of the controllers in this kernel, with the controller's own state."""
    if json:
        if watch is not None:
            raise usage("--watch and --json exclude each other")
        print_json("control-show", {"controllers": _shown(name)})
        return
    if watch is None:
        console().print(_view(_shown(name)))
        return
    from rich.live import Live

    with Live(_view(_shown(name)), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(watch)
            live.update(_view(_shown(name)), refresh=True)


def _shown(name: str | None) -> list[dict[str, Any]]:
    from pathcast.control import kernel
    from pathcast.runtime import state

    chosen = [kernel.find(name)] if name else [i for i in kernel.instances() if not i.stale]
    found = []
    for instance in chosen:
        try:
            found.append({**instance.ask("describe"), **instance.ask("flows"), "pid": instance.pid})
        except PathcastError:
            if name:
                raise  # of all, one may end while it is asked
    if not found:
        state.see("controllers", "pathcast control show")
    return found


def _document(control: dict[str, Any], here: list[Any]) -> dict[str, Any]:
    mine = [i for i in here if i.name == control["name"]]
    pinned = next((i.path for i in mine if i.path is not None), None)
    return {
        "name": control["name"],
        "kernel_name": control["kernel_name"],
        "parameters": [
            {
                "name": p["name"],
                "default": p["default"],
                "range": [p["least"], p["most"]],
                "text": p["text"],
                "source": p["source"],
            }
            for p in control["params"]
        ],
        "paper": control["paper"],
        "basis": control["basis"],
        "loaded": bool(mine),
        "pinned": pinned,
        "version": mine[0].version if mine else None,
        "instances": [vars(i) for i in mine],
    }


def _all(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("name", "in the kernel", "paper", "basis")
    for control in found:
        table.add_row(control["name"], _where(control), control["paper"], control["basis"])
    show_table(table)


def _where(control: dict[str, Any]) -> str:
    if not control["instances"]:
        return f"not loaded ({control['kernel_name']})" if control["kernel_name"] else "simulator only"
    words = []
    for instance in control["instances"]:
        how = f"pinned by {instance['version']}" if instance["path"] else f"held by process {instance['pid']}"
        words.append(f"[bold]{instance['kernel_name']}[/] {how}")
    return "; ".join(words)


def _one(control: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    out = console()
    for line in (control["paper"], control["basis"]):
        out.print(escape(line))
    out.print(f"in the kernel: {_where(control)}")
    table = Table("parameter", "default", "range", "meaning", "source")
    for p in control["parameters"]:
        least, most = p["range"]
        cells = (p["name"], p["default"], f"{least} to {most}", p["text"], p["source"])
        table.add_row(*(escape(str(cell)) for cell in cells))
    out.print(table)
    out.print(f"in a scenario: \\[control.{control['name']}], or --set control.{control['name']}.PARAMETER=VALUE")


def _view(shown: list[dict[str, Any]]) -> Any:
    from rich.console import Group
    from rich.table import Table

    if not shown:
        return "no controller of pathcast is loaded; one is by: pathcast control load NAME"
    tables = []
    for control in shown:
        counts = control["counts"]
        title = (
            f"{control['kernel_name']} ({control['name']} of pathcast {control['version']}): "
            f"{len(control['flows'])} live, {counts['closed']} ended with {size(counts['bytes_acked'])} acknowledged"
        )
        for field, text in (
            ("unstored", "ran as the kernel's Reno for want of memory"),
            ("ungrouped", "ran uncoupled: the map was full"),
            ("unlisted", "not shown: the list was full"),
        ):
            title += f"; {counts[field]} {text}" if counts[field] else ""
        table = Table(title=title, title_justify="left")
        for column in ("connection", "subflow", "phase", "window", "threshold", "RTT", "pace", "available", "acked"):
            table.add_column(column, justify="left" if column in ("connection", "phase") else "right")
        live = Counter(flow["token"] for flow in control["flows"])
        for flow in control["flows"]:
            table.add_row(
                f"{flow['local']} > {flow['remote']}",
                f"{flow['subflow']} of {live[flow['token']]}" if flow["token"] else "-",
                flow["phase"],
                f"{flow['cwnd_packets']}",
                "-" if flow["ssthresh_packets"] is None else f"{flow['ssthresh_packets']}",
                seconds(flow["rtt_s"]),
                bits(flow["pace_bps"]),
                bits(flow["available_bps"]),
                size(flow["bytes_acked"]),
            )
        tables.append(table)
    return Group(*tables)
