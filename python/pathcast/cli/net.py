"""`pathcast net`: emulated networks between two namespaces, from a topology file."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.cli.output import Json, console, print_json, show
from pathcast.cli.signals import hand_over
from pathcast.errors import PathcastError, missing, usage
from pathcast.units import bits, seconds

app = typer.Typer(help="Emulated networks between two namespaces, with the real kernel.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The network, as `net list` shows it.")]


@app.command()
def up(
    file: Annotated[Path, typer.Argument(help="A topology: a file, or one of `net topologies`.")],
    name: Annotated[str | None, typer.Option(help="Its name (default: the topology's).")] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE over the file's, for example link.wan1.rate=5Mbit.")
    ] = None,
    json: Json = False,
) -> None:
    """Build the network; it stays until `net down`."""
    from pathcast.cli.progress import busy
    from pathcast.worlds.emu import Topology

    topology = Topology.load(file, set or [])
    with (
        busy("building the network", quiet=json),
        topology.start(name) as network,
    ):  # interrupted until here, it is taken down
        about = network.ask("describe")
        network.detach()
    if json:
        print_json("net", {"name": network.record.id, **about})
        return
    console().print(_table(network.record.id, about))
    print(f"try: pathcast net exec {network.record.id} client -- ip addr")


@app.command()
def topologies(json: Json = False) -> None:
    """Show the topologies that come with pathcast, which `net up`, `sim` and --topology take by their names."""
    from pathcast.scenario import shipped
    from pathcast.worlds.topology import Topology

    known = [{"name": name, **Topology.load(file).about()} for name, file in shipped().items()]
    if json:
        print_json("net-topologies", {"topologies": known})
        return
    from rich.table import Table

    table = Table("name", "what it is", "path", "up", "down", "RTT")
    for one in known:
        for i, path in enumerate(one["paths"]):
            head = (one["name"], one["about"]) if i == 0 else ("", "")
            table.add_row(*head, path["name"], bits(path["up_bps"]), bits(path["down_bps"]), seconds(path["rtt_s"]))
    show(table)


@app.command("list")
def list_(json: Json = False) -> None:
    """Show the networks that are up, and what their links carried, dropped and released late."""
    from pathcast.runtime import daemon, state

    state.clean()
    networks = []
    for record in state.records("net"):
        try:
            part = daemon.Daemon(record)
            networks.append({"name": record.id, "pid": record.pid, **part.ask("describe"), **part.ask("ledger")})
        except PathcastError as error:
            networks.append({"name": record.id, "pid": record.pid, "error": error.message})
    if not networks:
        state.see("networks", "pathcast net list")
    if json:
        print_json("net-list", {"networks": networks})
        return
    if not networks:
        print("no network is up")
    for network in networks:
        if "error" in network:
            print(f"{network['name']}: {network['error']}")
        else:
            console().print(_table(network["name"], network))
            if "switch" in network:
                print(_switches(network))
            console().print(_ledger(network))
            for fault in _faults(network):
                print(fault)


@app.command()
def down(name: Name, json: Json = False) -> None:
    """Remove the network and everything that it made, and end what `net exec` started and still runs."""
    from pathcast.runtime import daemon

    ended = daemon.find("net", name).down()
    if json:
        print_json("net-down", {"name": name, "ended": ended})
    else:
        print("\n".join([f"{name} is down", *ended]))


@app.command("set")
def set_(
    name: Name,
    link: Annotated[str, typer.Argument(help="A link of the topology.")],
    changes: Annotated[list[str], typer.Argument(help="KEY=VALUE, for example rate=2Mbit delay=40ms loss=0.01.")],
    direction: Annotated[str | None, typer.Option(help="ab or ba (default: both).")] = None,
    json: Json = False,
) -> None:
    """Change a link while it runs."""
    from pathcast.runtime import daemon

    if direction not in (None, "ab", "ba"):
        raise usage(f"--direction `{direction}`: allowed are ab and ba")
    pairs: list[list[str]] = []
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise usage(f"`{change}` is not KEY=VALUE, for example rate=2Mbit")
        if any(key == before for before, _ in pairs):
            raise usage(f"`{change}`: {key} is given twice")
        pairs.append([key, value])
    try:
        result = daemon.find("net", name).ask("set", link=link, direction=direction, changes=pairs)
    except PathcastError as error:
        error.message = error.message.replace(f"--set link.{link}.", "")  # as it was written here
        error.message = error.message.replace("leave it out for", "`rate=` for")
        raise
    if json:
        print_json("net-set", {"name": name, **result})
    else:
        print(f"{link} changed in {name}: {', '.join(changes)}")


@app.command(context_settings={"ignore_unknown_options": True})
def exec(
    name: Name,
    host: Annotated[str, typer.Argument(help="client, server, or switch where there are any.")],
    command: Annotated[list[str], typer.Argument(help="The command, after `--`.")],
) -> None:
    """Run a command on a host of the network; its output and exit status are the command's own."""
    from pathcast.runtime import daemon
    from pathcast.service.doctor import enters_namespaces

    hosts = daemon.find("net", name).record.about["hosts"]
    if host not in hosts:
        raise usage(f"host `{host}` is not in {name}; allowed: {', '.join(hosts)}")
    if not enters_namespaces():
        raise missing(f"no right to enter {hosts[host]}: no CAP_SYS_ADMIN", "run as root")
    _startable(command[0])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so in the command
        signal.signal(number, signal.SIG_DFL)
    hand_over()
    os.execvp("ip", ["ip", "netns", "exec", hosts[host], *command])


def _startable(command: str) -> None:
    """Refuses what cannot be started, with the status that shells have for it: 127 if it is not there, else 126."""
    if shutil.which(command) is not None:
        return
    places = [command] if "/" in command else [os.path.join(place, command) for place in os.get_exec_path()]
    there = any(os.path.exists(place) for place in places)
    why = "cannot be executed" if there else "is no command here"
    error = PathcastError("command", f"`{command}` {why}")
    error.exit = 126 if there else 127  # type: ignore[assignment] # as shells have it; no code of ours
    raise error


def _table(name: str, about: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table("path", "client", "server", "links", title=f"network {name}", title_justify="left")
    for path in about["paths"]:
        table.add_row(path["name"], ", ".join(path["local"]), path["remote"], " > ".join(path["links"]))
    return table


def _switches(network: dict[str, Any]) -> str:
    if "steer" not in network:
        return f"switches in {network['switch']}, with another controller than pathcast's"
    about = (
        f"{s['name']} ({s['entries']} entries{'' if s['connected'] else ', away'})"
        for s in network["steer"]["switches"]
    )
    return f"switches in {network['switch']}: {', '.join(about)}; flows: {len(network['steer']['flows'])}"


def _rate(params: dict[str, Any]) -> str:
    trace = params.get("trace")
    return Path(trace["file"]).name if trace else str(params.get("rate", "no limit"))


def _loss(loss: Any) -> str:
    if not isinstance(loss, dict):
        return f"{100 * loss:.3g} %" if loss else "0"
    bad = loss["p"] / (loss["p"] + loss["r"])
    return f"{100 * ((1 - bad) * loss['good'] + bad * loss['bad']):.3g} % in bursts"


def _ledger(network: dict[str, Any]) -> Any:
    from rich.table import Table

    late = "late: median, 99 %"
    table = Table("link", "rate", "delay", "loss", "packets carried", "dropped", "waiting", late)
    for group in network["groups"]:
        error = group["release_error"]
        for link in group["links"]:
            c, p = link["counters"], link["params"]
            dropped = sum(cause["packets"] for cause in c["dropped"].values())
            table.add_row(
                link["name"],
                _rate(p),
                p["delay"],
                _loss(p["loss"]),
                f"{c['carried']['packets']}",
                f"{dropped}",
                f"{link['backlog']['packets']}",
                f"{seconds(error['p50_s'])}, {seconds(error['p99_s'])}" if error["n"] else "-",
            )
    return table


def _faults(network: dict[str, Any]) -> list[str]:
    """What keeps the network from doing as it is modelled."""
    groups = network["groups"]

    def without(key: str) -> str:
        number = sum(not group[key] for group in groups)
        return f"{number} of {len(groups)}; packets may leave late" if number else ""

    removed = sum(group["devices_removed"] for group in groups)
    told = {
        "threads without real-time priority": without("realtime"),
        "threads that cannot keep the processors awake": without("processors_kept_awake"),
        "devices that somebody removed": f"{removed}; nothing comes by them any more" if removed else "",
        "packets that a device refused": sum(group["write_failures"] for group in groups),
        "packets dropped before the emulator could read them": sum(device["dropped"] for device in network["devices"]),
    }
    return [f"{what}: {count}" for what, count in told.items() if count]
