"""What a command measures: HOST, or an emulated or simulated network in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.cli.paths import KeyFile
from pathcast.errors import usage

__all__ = ["Host", "KeyFile", "Paths", "Set", "Target", "TopologyFile", "World", "names", "target"]

Host = Annotated[
    str | None, typer.Argument(help="HOST or HOST:PORT of a `pathcast serve`.", show_default=False, metavar="[HOST]")
]
World = Annotated[
    str, typer.Option(help="host: your own network; emu: emulated links and the real kernel; sim: a simulation.")
]
TopologyFile = Annotated[
    Path | None,
    typer.Option(
        "--topology",
        help="With --world emu or sim: the network, a file or one of `pathcast net topologies`, in place of HOST.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="With --world emu or sim: KEY=VALUE over the file's; may be repeated.", show_default=False
    ),
]
Paths = Annotated[
    str | None, typer.Option("--paths", help="Names with commas between (default: all).", show_default=False)
]

NETWORKS = {"emu": "emulated", "sim": "simulated"}


@dataclass(frozen=True)
class Target:
    """A world and what is at its other end.

    command: the arguments that name it, for hints. set: of a network from a file, what is set over it.
    """

    world: str
    name: str
    command: str
    set: dict[str, str] | None
    _open: Callable[[], AbstractContextManager[Callable[[], AbstractContextManager[Any]]]]

    def open(self) -> AbstractContextManager[Callable[[], AbstractContextManager[Any]]]:
        """Gives a maker of worlds: of a host a new session each time, of a network from a file the same one."""
        return self._open()


def target(
    host: str | None,
    world: str,
    topology: Path | None,
    set: list[str] | None,
    key_file: Path | None,
    limit_events: int | None = None,
) -> Target:
    """The target of these options; refuses those that do not go together."""
    if limit_events is not None and world != "sim":
        raise usage(f"--limit-events {limit_events}: it goes with --world sim, whose events it counts")
    if world == "host":
        if host is None:
            raise usage(
                "no HOST was given",
                "name a host that runs `pathcast serve`, or give --world emu (or sim) --topology FILE",
            )
        if topology is not None or set:
            raise usage("--topology and --set go with --world emu or sim")
        return _host(host, key_file)
    if world not in NETWORKS:
        raise usage(f"--world `{world}`: allowed are host, {', '.join(NETWORKS)}")
    if topology is None:
        raise usage(f"--world {world} needs --topology FILE", "a file, or a name of `pathcast net topologies`")
    if host is not None or key_file is not None:
        raise usage(
            f"HOST and --key-file do not go with --world {world}: both ends are in the {NETWORKS[world]} network"
        )
    return _network(world, topology, set or [], limit_events)


def names(option: str, text: str) -> tuple[str, ...]:
    """`a,b` as names."""
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise usage(f"{option} `{text}`: give names with commas between, for example path1,path2")
    return found


def _host(host: str, key_file: Path | None) -> Target:
    from pathcast.worlds.host import Host, address

    name, port = address(host, 5275)

    names: dict[tuple[str, str], str] = {}

    def open() -> AbstractContextManager[Any]:
        return nullcontext(lambda: Host(host, key_file, names=names))

    key = f" --key-file {key_file}" if key_file else ""
    return Target("host", name.lower() if port == 5275 else f"{name.lower()}:{port}", f"{host}{key}", None, open)


def _network(world: str, file: Path, sets: list[str], limit_events: int | None) -> Target:
    from pathcast.worlds.topology import Topology

    topology = Topology.load(file, sets)

    @contextmanager
    def open() -> Iterator[Callable[[], AbstractContextManager[Any]]]:
        if world == "sim":
            from pathcast.worlds.sim import Sim

            made: Sim | Emu = Sim(topology, events=limit_events)
        else:
            from pathcast.worlds.emu import Emu

            made = Emu(topology)
        with made as network:
            yield lambda: nullcontext(network)

    command = f"--world {world} --topology {file}" + "".join(f" --set {item}" for item in sets)
    return Target(world, topology.scenario["name"], command, dict(topology.sets), open)
