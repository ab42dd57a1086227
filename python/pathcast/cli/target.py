"""What a command measures: HOST, or an emulated or simulated network in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.cli.paths import KeyFile
from pathcast.errors import PathcastError, usage

if TYPE_CHECKING:
    from pathcast.forecast.pathkeys import Keys
    from pathcast.forecast.record import Recorder

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

    command: the arguments that name it, for hints. set: of a network from a file, what is set over it. recorder: what
    puts all that is measured and sent there into the history. lasting: of a command that goes on for ever.
    """

    world: str
    name: str
    command: str
    set: dict[str, str] | None
    _open: Callable[[], AbstractContextManager[Callable[[], AbstractContextManager[Any]]]]
    _keys: Callable[[], Keys]
    recorder: Recorder | None = None
    lasting: bool = False

    @contextmanager
    def open(self) -> Iterator[Callable[[], AbstractContextManager[Any]]]:
        """Gives a maker of worlds: of a host a new session each time, of a network from a file the same one."""
        if self.recorder is None:
            with self._open() as make:
                yield make
            return
        from pathcast.forecast.record import Recorded

        recorder, keys = self.recorder, self._keys()
        recorder.target = self.name
        recorder.circumstances = {**({"set": self.set} if self.set else {}), **recorder.circumstances}

        @contextmanager
        def recorded(make: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
            with ExitStack() as stack:
                act = recorder.act(self.world)
                try:
                    world = stack.enter_context(make())
                except PathcastError as error:
                    # nobody is there: one who waits for that alone knows it without waiting for a database
                    recorder.failed(act, error, soon=self.lasting)
                    raise
                yield Recorded(world, recorder, keys)

        try:
            with self._open() as make:
                yield lambda: recorded(make)
        finally:
            recorder.close()


def target(
    host: str | None,
    world: str,
    topology: Path | None,
    set: list[str] | None,
    key_file: Path | None,
    limit_events: int | None = None,
    recorder: Recorder | None = None,
    passing: bool = False,
) -> Target:
    """The target of these options; refuses those that do not go together.

    recorder: of what is done there. passing: the key in `key_file` is of this session only.
    """
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
        return _host(host, key_file, recorder, passing)
    if world not in NETWORKS:
        raise usage(f"--world `{world}`: allowed are host, {', '.join(NETWORKS)}")
    if topology is None:
        raise usage(f"--world {world} needs --topology FILE", "a file, or a name of `pathcast net topologies`")
    if host is not None or key_file is not None:
        raise usage(
            f"HOST and --key-file do not go with --world {world}: both ends are in the {NETWORKS[world]} network"
        )
    return _network(world, topology, set or [], limit_events, recorder)


def names(option: str, text: str, example: str = "path1,path2") -> tuple[str, ...]:
    """`a,b` as names."""
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise usage(f"{option} `{text}`: give names with commas between, for example {example}")
    if twice := [name for n, name in enumerate(found) if name in found[:n]]:
        raise usage(f"{option} `{text}`: `{twice[0]}` is named twice; name each once")
    return found


def _host(host: str, key_file: Path | None, recorder: Recorder | None, passing: bool) -> Target:
    from pathcast.worlds.host import Host, Names, label

    name = label(host)
    names = Names()

    def open() -> AbstractContextManager[Any]:
        return nullcontext(lambda: Host(host, key_file, names=names))

    def keys() -> Keys:
        from pathcast.forecast.pathkeys import of_host

        return of_host(key_file, passing)

    key = f" --key-file {key_file}" if key_file else ""
    return Target("host", name, f"{host}{key}", None, open, keys, recorder)


def _network(world: str, file: Path, sets: list[str], limit_events: int | None, recorder: Recorder | None) -> Target:
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
    name = topology.scenario["name"]

    def keys() -> Keys:
        from pathcast.forecast.pathkeys import of_network

        return of_network(world, name, f"{topology.text}\0{sorted(topology.sets)}")

    return Target(world, name, command, dict(topology.sets), open, keys, recorder)
