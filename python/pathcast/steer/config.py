"""What a controller is told: a TOML file, or the same as plain data from a world that makes the switches itself.

    listen = "tcp:127.0.0.1:6653"   # or "unix:/run/x/of", which processes in any network namespace reach
    [[switch]]                      # names for datapath ids; others are called as they call themselves
    name = "s1"
    id = 1
    [[host]]                        # else learnt by the ARP packets that it sends
    address = "10.0.0.2"
    at = "s1:1"                     # switch and OpenFlow port
    [[link]]                        # else found by LLDP
    ends = ["s1:2", "s2:2"]
    [[path]]                        # else all that there are, named path1, path2, …
    name = "cable"
    via = ["s1:2"]                  # the port out of each switch but the last; the way back is the same

What has no path of its own goes over the first one that stands.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pathcast import codec
from pathcast.errors import PathcastError, usage
from pathcast.files import read_file
from pathcast.steer.rules import Port

LISTEN = "tcp:127.0.0.1:6653"
# a file is some hundred bytes
_LARGEST = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
# the largest physical port of OpenFlow 1.3
_PORT = 0xFFFFFF00


@dataclass(frozen=True)
class Switch:
    """A name for a datapath id."""

    name: str
    id: int


@dataclass(frozen=True)
class Host:
    """An end host's address, and the port behind which it is."""

    address: str
    at: str


@dataclass(frozen=True)
class Link:
    """Two switches' ports that are joined."""

    ends: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """A path's name, and the ports out of its switches."""

    name: str
    via: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """As the file has it; `drain_s` is how long packets may be on their way over a path that was left."""

    listen: str = LISTEN
    switch: tuple[Switch, ...] = ()
    host: tuple[Host, ...] = ()
    link: tuple[Link, ...] = ()
    path: tuple[Chain, ...] = ()
    drain_s: float = 1.0
    ids: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for one in self.switch:
            if not _NAME.fullmatch(one.name):
                raise usage(f"switch `{one.name}`: a name is 1 to 32 letters, digits, `_`, `.` and `-`")
            if not 0 < one.id < 1 << 64:
                raise usage(f"switch `{one.name}`: datapath id {one.id}: allowed are 1 to {(1 << 64) - 1}")
            if one.name in self.ids or one.id in self.ids.values():
                raise usage(f"switch `{one.name}` or its id {one.id} is there twice")
            self.ids[one.name] = one.id
        if not 0 <= self.drain_s <= 60:
            raise usage(f"drain_s = {self.drain_s}: allowed are 0 to 60")
        self.hosts()
        self.links()
        self.paths()

    @classmethod
    def of(cls, data: Any) -> Config:
        """Of plain data. Raises PathcastError (exit 2) that names what is wrong and the allowed keys."""
        _known(cls, data, "")
        try:
            return codec.read(cls, {key: value for key, value in data.items() if key != "ids"})
        except ValueError as error:
            raise usage(str(error)) from None

    @classmethod
    def load(cls, file: Path | None, listen: str | None = None) -> Config:
        """Of a TOML file, or of none; listen: in place of the file's. Raises PathcastError (exit 2) with the file."""
        over = {} if listen is None else {"listen": listen}
        if file is None:
            return cls.of(over)
        try:
            return cls.of(tomllib.loads(read_file(file, _LARGEST).decode()) | over)
        except OSError as error:
            raise usage(f"cannot read {file}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise usage(f"{file} is not TOML: {error}") from None
        except PathcastError as error:
            raise usage(f"{file}: {error.message}") from None

    def document(self) -> dict[str, Any]:
        """As plain data, for `of`."""
        return {key: value for key, value in asdict(self).items() if key != "ids"}

    def port(self, text: str) -> Port:
        """Of `SWITCH:PORT`. Raises PathcastError (exit 2)."""
        name, _, number = text.rpartition(":")
        if name not in self.ids:
            raise usage(f"`{text}`: there is no switch `{name}`; allowed: {', '.join(self.ids) or 'none is named'}")
        if not number.isdecimal() or not 0 < int(number) <= _PORT:
            raise usage(f"`{text}` is not SWITCH:PORT, such as s1:2")
        return Port(self.ids[name], int(number))

    def hosts(self) -> dict[str, Port]:
        """Where the hosts are that it tells."""
        found: dict[str, Port] = {}
        for one in self.host:
            try:
                address = str(ip_address(one.address))
            except ValueError as error:
                raise usage(f"host: {error}") from None
            if address in found:
                raise usage(f"host {address} is there twice")
            found[address] = self.port(one.at)
        return found

    def links(self) -> dict[Port, Port]:
        """The links that it tells, both ways."""
        found: dict[Port, Port] = {}
        for one in self.link:
            ends = [self.port(end) for end in one.ends]
            if len(ends) != 2 or ends[0].switch == ends[1].switch:
                raise usage(f"link {' to '.join(one.ends)}: its ends are two ports of two switches")
            for a, b in (ends, ends[::-1]):
                if a in found:
                    raise usage(f"link {' to '.join(one.ends)}: one of its ports has a link already")
                found[a] = b
        return found

    def paths(self) -> dict[str, tuple[Port, ...]]:
        """The paths that it tells, by name."""
        found: dict[str, tuple[Port, ...]] = {}
        for one in self.path:
            if not _NAME.fullmatch(one.name):
                raise usage(f"path `{one.name}`: a name is 1 to 32 letters, digits, `_`, `.` and `-`")
            if one.name in found:
                raise usage(f"path `{one.name}` is there twice")
            found[one.name] = tuple(self.port(out) for out in one.via)
        return found


def _known(kind: Any, data: Any, where: str) -> None:
    """Refuses keys that a dataclass does not have, with the allowed ones."""
    if not isinstance(data, dict):
        raise usage(f"{where or 'it'} is no table")
    allowed = [f.name for f in fields(kind) if f.init]
    for key, value in data.items():
        if key not in allowed:
            raise usage(f"there is no key `{where}{key}`; allowed: {', '.join(allowed)}")
        below = {"switch": Switch, "host": Host, "link": Link, "path": Chain}.get(key)
        if kind is Config and below is not None:
            if not isinstance(value, list | tuple):
                raise usage(f"`{key}` is a list of tables, written [[{key}]]")
            for one in value:
                _known(below, one, f"{key}.")
