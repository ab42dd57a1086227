"""What programs give to the verbs, refused by its value and what is allowed before the extension meets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError, usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pathcast.worlds.topology import Topology


def whole(what: str, value: Any, least: int = 0, bits: int = 64) -> int:
    """A whole number from `least` to what so many bits hold."""
    try:
        number = index(value)
    except TypeError:
        number = -1
    if not least <= number < 1 << bits:
        raise usage(f"{what} {value!r}: allowed are whole numbers from {least} to 2^{bits}-1")
    return number


def size(bytes: Any) -> int:
    """Of a transfer. That 0 measures nothing is said where it would be made, to commands too."""
    return 0 if bytes == 0 else whole("bytes", bytes, 1)


def names(paths: Sequence[str]) -> Sequence[str]:
    """Names of paths; one text would be read as a list of letters."""
    if isinstance(paths, str):
        raise usage(f"paths {paths!r}: a list of names is needed, for example [{paths!r}]")
    return paths


def network(topology: Topology) -> Topology:
    """What a world is made of."""
    from pathcast.worlds.topology import Topology

    if not isinstance(topology, Topology):
        raise usage(f"network {topology!r}: a Topology is needed, for example Topology.load('network.toml')")
    return topology


@contextmanager
def changed(changes: Mapping[str, Any]) -> Iterator[None]:
    """Changes of a link; what is refused in the block is told without the option that a command has for it."""
    for key, value in changes.items():
        if not isinstance(value, str):
            raise usage(f"{key} {value!r}: a text with a unit is needed, for example rate='5Mbit'")
    try:
        yield
    except PathcastError as error:
        raise PathcastError(error.code, error.message.removeprefix("--set "), error.hint, error.exit) from None
