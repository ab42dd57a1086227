"""What a controller writes down, so that the next one of its name goes on: flows stay in the switches when it dies."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pathcast import codec
from pathcast.errors import PathcastError
from pathcast.steer.client import Owner
from pathcast.steer.rules import Flow, Port

_LARGEST = 1 << 24
_SUFFIX = ".kept"


@dataclass(frozen=True)
class PlannedFlow:
    """A flow, its path, and the process with which it ends."""

    flow: Flow
    path: str
    owner: Owner | None = None


@dataclass(frozen=True)
class Kept:
    """listen: where switches find it; cookie: of its entries; the rest as it was known last."""

    listen: str = ""
    cookie: int = 0
    switches: dict[str, int] | None = None
    flows: tuple[PlannedFlow, ...] = ()
    link: tuple[tuple[Port, ...], ...] = ()
    host: dict[str, Port] | None = None
    path: dict[str, tuple[Port, ...]] | None = None
    pair: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(
        cls,
        listen: str,
        cookie: int,
        switches: Mapping[str, int],
        plan: Mapping[Flow, tuple[str, Owner | None]],
        links: Mapping[Port, Port],
        hosts: Mapping[str, Port],
        paths: Mapping[str, tuple[Port, ...]],
        pairs: Iterable[tuple[str, str]],
    ) -> Kept:
        """Of what the controller knows."""
        flows = tuple(PlannedFlow(flow, path, owner) for flow, (path, owner) in plan.items())
        link = tuple((a, b) for a, b in links.items() if a < b)
        return cls(listen, cookie, dict(switches), flows, link, dict(hosts), dict(paths), tuple(sorted(pairs)))

    def plan(self) -> dict[Flow, tuple[str, Owner | None]]:
        """The flows whose processes are still there."""
        return {one.flow: (one.path, one.owner) for one in self.flows if one.owner is None or one.owner.alive}

    def links(self) -> dict[Port, Port]:
        """Both ways."""
        return {a: b for one in self.link if len(one) == 2 for a, b in (one, one[::-1])}

    def hosts(self) -> dict[str, Port]:
        return self.host or {}

    def paths(self) -> dict[str, tuple[Port, ...]]:
        return self.path or {}

    def pairs(self) -> set[tuple[str, str]]:
        return {(one[0], one[1]) for one in self.pair if len(one) == 2}


def place(directory: Path, name: str) -> Path:
    """Where the controller of a name writes."""
    return directory / f"steer-{name}{_SUFFIX}"


def places(directory: Path) -> dict[str, Path]:
    """What controllers have written, by their names."""
    found = sorted(directory.glob(f"steer-*{_SUFFIX}"))
    return {path.name.removeprefix("steer-").removesuffix(_SUFFIX): path for path in found}


def load(path: Path) -> Kept | None:
    """What is written there; None where nothing is. Raises PathcastError for what is no such thing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _bad(path, str(error.strerror)) from None
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if about.st_uid != os.geteuid() or not stat.S_ISREG(about.st_mode):
            raise _bad(path, "it is another user's, or no file")
        try:
            return codec.read(Kept, json.loads(file.read(_LARGEST)))
        except (ValueError, TypeError, RecursionError, PathcastError) as error:
            raise _bad(path, str(error)) from None


def _bad(path: Path, why: str) -> PathcastError:
    told = f"what the last controller wrote to {path} cannot be read: {why}"
    return PathcastError("kept", told, "remove it; entries that were left in switches then stay until they are named")


def store(path: Path, kept: Kept) -> None:
    """Writes it, whole or not at all. Raises OSError."""
    fresh = path.with_suffix(".new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump(asdict(kept), file)
    os.replace(fresh, path)
