"""`pathcast steer`: a controller of OpenFlow switches, which sends flows over the paths of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.cli.output import Json, print_json, show
from pathcast.errors import PathcastError, usage
from pathcast.units import size

app = typer.Typer(help="OpenFlow 1.3 switches that send flows over the paths of a plan.", no_args_is_help=True)

Name = Annotated[str, typer.Option(help="The controller's name.")]
Local = Annotated[str, typer.Argument(help="ADDRESS:PORT that the flow leaves from, for example 10.0.0.2:40001.")]
Remote = Annotated[str, typer.Argument(help="ADDRESS:PORT that it goes to.")]
Udp = Annotated[bool, typer.Option("--udp", help="A flow of UDP (default: of TCP).")]


@app.command()
def up(
    file: Annotated[
        Path | None, typer.Argument(help="Names of switches, hosts, links and paths (default: all are found).")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Where switches connect: tcp:ADDRESS:PORT or unix:PATH (default: tcp:127.0.0.1:6653)."),
    ] = None,
    name: Name = "steer",
    json: Json = False,
) -> None:
    """Start the controller; it stays until `steer down --name NAME`."""
    from pathcast.runtime import daemon
    from pathcast.runtime.state import check_id
    from pathcast.steer.config import Config

    config = {"name": check_id(name), "told": Config.load(file, listen).document()}
    with daemon.start("steer", config) as part:
        state = part.ask("state")
        part.detach()
    if json:
        print_json("steer", {"name": name, **state})
        return
    print(f"{name} listens at {state['listen']}; of Open vSwitch: ovs-vsctl set-controller BRIDGE {state['listen']}")
    print("what it sees: pathcast steer status")


@app.command()
def status(json: Json = False) -> None:
    """Show switches, links, paths and flows of the controllers that run, and what they carry."""
    from pathcast.runtime import daemon, state

    state.clean()
    found: list[dict[str, Any]] = []
    for record in state.records("steer"):
        try:
            part = daemon.Daemon(record)
            found.append({"name": record.id, "pid": record.pid, **part.ask("state"), "counters": part.ask("counters")})
        except PathcastError as error:
            found.append({"name": record.id, "pid": record.pid, "error": error.message})
    if not found:
        state.see("controllers", "pathcast steer status")
    if json:
        print_json("steer-status", {"controllers": found})
        return
    if not found:
        print("no controller runs; one is started by: pathcast steer up")
    for one in found:
        _show(one)


@app.command("set")
def set_(
    local: Local,
    remote: Remote,
    path: Annotated[str, typer.Argument(help="A path, as `steer status` shows them.")],
    udp: Udp = False,
    name: Name = "steer",
    json: Json = False,
) -> None:
    """Send a flow over a path, until `steer unset`; one that runs is moved without loss."""
    flow = _flow(local, remote, udp)
    [taken] = _client(name).begin({flow: path}, keep=True).values()
    if json:
        print_json("steer-set", {"name": name, "planned": path, "path": taken})
    else:
        print(f"{local} > {remote} goes over {taken}" + (f", since {path} is down" if taken != path else ""))


@app.command()
def unset(local: Local, remote: Remote, udp: Udp = False, name: Name = "steer", json: Json = False) -> None:
    """Send a flow over the first path that stands again, as all that has none of its own."""
    flow = _flow(local, remote, udp)
    _client(name).end([flow])
    if json:
        print_json("steer-unset", {"name": name})
    else:
        print(f"{local} > {remote} has no path of its own")


@app.command()
def down(
    name: Name = "steer",
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave its entries in the switches, for the next one of its name.")
    ] = False,
    json: Json = False,
) -> None:
    """End the controller and remove its entries from the switches."""
    from pathcast.runtime import daemon, state

    part = daemon.find("steer", name)
    if keep:
        part.ask("keep")
    left = [told for told in part.down() if told.startswith(state.KEPT)]
    if json:
        print_json("steer-down", {"name": name, "kept": keep, "not_removed": left})
    else:
        print(f"{name} is down" + ("; its entries stay" if keep else ""))
    if left:
        raise PathcastError("not-removed", left[0], "`pathcast undo` removes them once the switches can be reached")


def _client(name: str) -> Any:
    from pathcast.runtime import daemon
    from pathcast.steer.client import Client

    return Client(daemon.find("steer", name).record.socket)


def _flow(local: str, remote: str, udp: bool) -> Any:
    from pathcast.steer.rules import Flow

    ends = []
    for text in (local, remote):
        address, _, port = text.rpartition(":")
        if not address or not port.isdecimal():
            raise usage(f"`{text}` is not ADDRESS:PORT, such as 10.0.0.2:40001 or [2001:db8::1]:40001")
        ends.append((address.removeprefix("[").removesuffix("]"), int(port)))
    [(here, from_port), (there, to_port)] = ends
    return Flow(here, there, from_port, to_port, "udp" if udp else "tcp")


def _show(one: dict[str, Any]) -> None:
    from rich.table import Table

    if "error" in one:
        print(f"{one['name']}: {one['error']}")
        return
    print(f"{one['name']} listens at {one['listen']}")
    if not one["switches"]:
        print("no switch has connected yet")
        return
    table = Table("switch", "state", "ports up", "entries", "others' entries")
    for switch in one["switches"]:
        ports = [port["up"] for port in switch["ports"]]
        counts = (f"{sum(ports)} of {len(ports)}", f"{switch['entries']}", f"{switch['others_entries']}")
        table.add_row(switch["name"], "connected" if switch["connected"] else "away", *counts)
    show(table)
    hosts = ", ".join(f"{host['address']} at {host['at']} ({host['known']})" for host in one["hosts"])
    print(f"hosts: {hosts or 'none yet; each is known when it has sent ARP'}")
    carried = {path["name"]: path for path in one["counters"]["paths"]}
    table = Table("path", "out of", "state", "flows", "they sent", "received", "dropped by links")
    for path in one["paths"]:
        of = carried.get(path["name"])
        if of is None:  # found since
            continue
        ends = [end for link in of["links"] for end in (link["there"], link["back"]) if end is not None]
        dropped = sum(end["dropped"] + end["errors"] for end in ends)
        cells = (f"{of['flows']}", size(of["sent_bytes"]), size(of["received_bytes"]), f"{dropped}")
        table.add_row(path["name"], " > ".join(path["via"]), "stands" if path["stands"] else "down", *cells)
    if one["paths"]:
        show(table)
    for flow in one["flows"]:
        told = f"{flow['local']}:{flow['local_port']} > {flow['remote']}:{flow['remote_port']}"
        instead = "" if flow["path"] == flow["planned"] else f", planned over {flow['planned']}"
        print(f"{flow['protocol']} {told}: {flow['path'] or 'no path is left'}{instead}")
    for note in one["notes"]:
        print(f"note: {note}")
