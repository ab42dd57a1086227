"""World `host`: the user's own network, to a far end that runs `pathcast serve`."""

from __future__ import annotations

import ipaddress
import itertools
import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from pathcast.control.kernel import Controls
from pathcast.errors import PathcastError, usage
from pathcast.interruptible import interruptible
from pathcast.lines import carried, config, here
from pathcast.runtime import steered
from pathcast.runtime.keys import read_key
from pathcast.steer.fabric import Fabric
from pathcast.steer.rules import Flow
from pathcast.worlds.measurement import Away, Measurement, Request
from pathcast.worlds.results import Path
from pathcast.worlds.verbs import Verbs

if TYPE_CHECKING:
    from pathcast import _native


PORT = 5275


def address(text: str, default_port: int) -> tuple[str, int]:
    """`HOST`, `HOST:PORT`, `ADDRESS`, `[ADDRESS]:PORT` as host and port."""
    host, port = text, ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise usage(f"`{text}` is not a host; write [ADDRESS]:PORT")
        port = rest[1:]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise usage(f"`{port}` is not a port; allowed: 1 to 65535")
    if not host:
        raise usage(f"`{text}` names no host")
    return host, int(port) if port else default_port


def label(text: str) -> str:
    """What a far end is called in the history: its port where that is another one."""
    name, port = address(text, PORT)
    return name.lower() if port == PORT else f"{name.lower()}:{port}"


Ends = tuple[str, str]


@dataclass
class Names:
    """What paths to one far end were called, for sessions one after the other.

    numbers: the numbered names of address pairs, the oldest first. devices: by local address the last that had it.
    """

    numbers: dict[Ends, str] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)


class Host(Verbs):
    """The paths to one far end. Use it in a `with`.

    A path is called by the line that it leaves by, where the user named that, else path1, path2, …; it keeps its name
    for as long as this lives, whatever comes and goes, and whatever addresses its line gets. lost: by name, why a path
    that is known cannot be used now. names: of sessions one after the other the same, which they fill. A pair whose
    packets a controller on this host steers (`pathcast steer`) is as many paths as the controller has between the two.
    """

    world = "host"
    _client: _native.Client
    _controls: Controls

    def __init__(
        self,
        host: str,
        key_file: FilePath | None = None,
        port: int = PORT,
        names: Names | None = None,
    ) -> None:
        import socket

        from pathcast import _native

        name, number = address(host, port)
        key = read_key(key_file)
        try:
            found = socket.getaddrinfo(name, number, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # the latter: not a name of the DNS
            reason = getattr(error, "strerror", None) or "it is no name of a host"
            raise PathcastError("resolve", f"cannot find the host `{name}`: {reason}") from None
        addresses = [str(where[0]) for *_, where in found]
        # its zone is of this host only, and no path goes by it
        addresses = [one for one in addresses if not ipaddress.ip_address(one).is_link_local or "." in one]
        if not addresses:
            raise usage(
                f"`{name}` is a link-local IPv6 address, by which there are no paths",
                "name another address of the far end; it listens on all of its own",
            )
        self._ways: dict[str, tuple[Ends, str]] = {}
        self._controlled = next(iter(steered.controllers()), None)
        if self._controlled is not None:
            self._fabric = Fabric(
                self._controlled.client, self._passes, lambda path: self._ways.get(path, (None, path))[1]
            )
        self._client = _native.Client(None, addresses, number, key.id, key.secret, self._fabric)
        self.address, self.port = addresses[0], number
        self._controls = Controls()
        names = names or Names()
        self._names, self._devices = names.numbers, names.devices
        # what pairs were called before they got the name of one that is no more
        self._former: dict[str, Ends] = {}
        self._labels: dict[Ends, str] = {}
        self._lines = config.load()
        self._count()
        self._line_of: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Looks again which paths there are: lines come and go."""
        survey = json.loads(self._client.paths())
        usable = {(pair["local"], pair["remote"]): pair for pair in survey["usable"]}
        self._devices |= {pair["local"]: pair["interface"] for pair in usable.values() if pair.get("interface")}
        locals = {local for local, _ in (*self._names, *usable)}
        named = {local: here.named(self._lines, local, self._devices.get(local)) for local in locals}
        self._line_of = {local: line.name for local, line in named.items() if line}
        there = {*usable, *((pair["local"], pair["remote"]) for pair in survey["unusable"])}
        for gone in [ends for ends in self._names if ends not in there]:
            self._renumbered(gone, usable)
        for ends, pair in usable.items():
            if ends not in self._names:
                self._names[ends] = self._free(pair["name"])
        self._labels = self._called()
        for pair in survey["usable"]:
            pair["name"] = self._labels[pair["local"], pair["remote"]]
            pair["line"] = self._line_of.get(pair["local"])
        self.candidates, self.unusable = survey["usable"], survey["unusable"]
        devices = {one.local: one.dev for one in here.addresses()} if self._lines else {}
        for pair in self.unusable:
            line = here.named(self._lines, pair["local"], devices.get(pair["local"]))
            pair["line"] = line.name if line else self._line_of.get(pair["local"])
        self.paths = tuple(self._path(p["local"], p["remote"]) for p in self.candidates)
        present = {path.name for path in self.paths}
        self.paths = tuple(way for path in self.paths for way in self._over(path))
        reasons = {(pair["local"], pair["remote"]): pair["reason"] for pair in self.unusable}
        here_now = {local for local, _ in there}
        self.lost = {
            name: reasons.get(ends, _why_gone(ends, here_now))
            for ends, name in self._labels.items()
            if name not in present
        }

    def _renumbered(self, gone: Ends, usable: Collection[Ends]) -> None:
        """What a pair of addresses that is no more was called, one of the same line and family is called: a new one
        where there is one, else one that came later."""
        order = list(self._names)
        heirs = [
            ends
            for ends in usable
            if self._same_line(ends, gone) and (ends not in order or order.index(ends) > order.index(gone))
        ]
        if not heirs:
            return
        heir = min(heirs, key=lambda ends: (ends in self._names, ends[0] != gone[0] and ends[1] != gone[1]))
        self._former = {name: heir if ends == gone else ends for name, ends in self._former.items()}
        # a round that was begun asks by these
        self._former |= dict.fromkeys((of[heir] for of in (self._names, self._labels) if heir in of), heir)
        numbers = {heir if ends == gone else ends: name for ends, name in self._names.items() if ends != heir}
        self._names.clear()
        self._names.update(numbers)
        for label, (ends, way) in list(self._ways.items()):
            if ends == gone:
                del self._ways[label]
                if (heir, way) not in self._ways.values():
                    self._ways[label] = heir, way

    def _same_line(self, one: Ends, other: Ends) -> bool:
        lines = [self._line_of.get(local) for local, _ in (one, other)]
        devices = [self._devices.get(local) for local, _ in (one, other)]
        same = lines[0] == lines[1] and (lines[0] is not None or None is not devices[0] == devices[1])
        return same and (":" in one[0]) == (":" in other[0])

    @property
    def listed(self) -> list[dict[str, Any]]:
        """The pair of addresses of each path, by the path's name: steered paths share one."""
        pairs = {(pair["local"], pair["remote"]): pair for pair in self.candidates}
        return [{**pairs[path.local[0], path.remote], "name": path.name} for path in self.paths]

    @property
    def over(self) -> set[str]:
        """The named lines that paths go over now, whatever those are called."""
        return {pair["line"] for pair in self.candidates if pair["line"]}

    def _over(self, path: Path) -> list[Path]:
        """The paths that one of addresses is: itself, or those of the controller that steers it."""
        ends = path.local[0], path.remote
        names = [] if self._controlled is None else self._controlled.joining(*ends)
        known = {way: label for label, way in self._ways.items()}
        taken = {name for of in (self._names, self._labels) for pair, name in of.items() if pair != ends}
        for name in names:
            if (ends, name) not in known:
                stem = f"{path.name}-{name}"
                labels = itertools.chain([name, stem], (f"{stem}-{n}" for n in itertools.count(2)))
                label = next(one for one in labels if one not in taken and one not in self._ways)
                self._ways[label], known[ends, name] = (ends, name), label
        return [Path(known[ends, name], path.local, path.remote) for name in names] or [path]

    def way(self, name: str) -> str | None:
        """The ports of switches that a path leaves from, whatever it is called; None where nothing steers it."""
        if self._controlled is None or name not in self._ways:
            return None
        return ",".join(self._controlled.via(self._ways[name][1]))

    def _passes(self, flow: Flow) -> bool:
        """Whether nobody steers a flow."""
        return all(ends != (flow.local, flow.remote) for ends, _ in self._ways.values())

    def _free(self, wanted: str) -> str:
        taken = {*self._names.values(), *self._ways, *self._former}
        names = itertools.chain([wanted], (f"path{n}" for n in itertools.count(1)))
        return next(name for name in names if name not in taken)

    def _called(self) -> dict[Ends, str]:
        """The names of all pairs: several of one line are `cable`, `cable-2`, …"""
        labels: dict[Ends, str] = {}
        for ends, number in self._names.items():
            stem, count = self._line_of.get(ends[0], number), 1
            taken = {*labels.values(), *(way for way, (pair, _) in self._ways.items() if pair != ends)}
            while (label := f"{stem}-{count}" if count > 1 else stem) in taken:
                count += 1
            labels[ends] = label
        return labels

    def _path(self, local: str, remote: str) -> Path:
        first = next(ends for ends in self._names if ends[0] == local) == (local, remote)
        others = {*self._labels.values(), *self._names.values(), *self._ways}
        former = [name for name, ends in self._former.items() if ends == (local, remote) and name not in others]
        also = (self._names[local, remote], *([local] if first else []), *former)
        return Path(self._labels[local, remote], (local,), remote, also)

    @property
    def idle(self) -> dict[str, str | None]:
        """As in every world; bridges are no lines."""
        said: dict[str, str] = {}
        known, named = {local for local, _ in self._names}, set()
        for pair in self.unusable:
            device, down, _ = pair["reason"].partition(" is down")
            bridge = FilePath("/sys/class/net", device, "bridge").exists()
            if pair["local"] not in known and (pair["line"] or (down and not bridge)):
                name = pair["line"] or f"the line of {pair['local']}"
                said[name] = f"{name} is down: {pair['reason']}"
                named |= {name} if pair["line"] else set()
        used = {self._line_of.get(local) for local in known}
        for line in self._lines.values():
            if line.name not in used and line.name not in said:
                what = " and ".join(line.addresses) or line.dev
                said[line.name] = (
                    f"{line.name} is down: this host has no {what} now, or no address of the far end's kind"
                )
                named.add(line.name)
        return {sentence: name if name in named else None for name, sentence in said.items()}

    def path(self, name: str) -> Path:
        """The path of that name; of one that was there the reason why it is not."""
        for ends, label in self._labels.items():
            if label in self.lost and name in (label, *self._path(*ends).also):
                raise PathcastError("path-gone", f"path `{label}` is down: {self.lost[label]}")
        return super().path(name)

    def silent(self, paths: Sequence[str] | None = None) -> dict[str, str]:
        """Of all paths, or the named ones, those over which the far end does not answer now, and why; in about 2 s."""
        paths = None if paths is None else [self._label(name) for name in paths]
        wanted = [path for path in self.paths if paths is None or path.name in paths]
        answers = json.loads(self._client.reach(json.dumps([path.pair() for path in wanted])))
        dead = {path.name: why for path, why in zip(wanted, answers, strict=True) if why is not None}
        return {**dead, **{name: why for name, why in self.lost.items() if paths is None or name in paths}}

    def look(self, path: Path, multipath: bool, patience_s: float) -> dict[str, Any]:
        """What both ends see of one connection over the path, as `crates/net/src/look.rs` has it."""
        seen: dict[str, Any] = json.loads(self._client.look(json.dumps(path.pair()), multipath, patience_s))
        return seen

    def look_ecn(self, path: Path, patience_s: float) -> dict[str, Any]:
        """What becomes of a connection with explicit congestion notification: `outcome` and `reason`, as there."""
        seen: dict[str, Any] = json.loads(self._client.look_ecn(json.dumps(path.pair()), patience_s))
        return seen

    def echo(
        self, path: Path, sizes: tuple[int, int] | None, classes: Sequence[int], patience_s: float
    ) -> dict[str, Any]:
        """What becomes of packets over the path, as `crates/measure/src/echoes/document.rs` has it.

        sizes: the largest out and in [IP bytes]; None: the far end does not know the question, only its clock is read.
        classes: traffic classes, 1 to 255.
        """
        from pathcast import _native

        job = _native.Job()
        asked = {"path": path.pair(), "sizes": sizes, "classes": list(classes), "patience_s": patience_s}
        seen: dict[str, Any] = json.loads(interruptible(lambda: self._client.echo(job, json.dumps(asked)), job.cancel))
        return seen

    def stamp(self, path: Path, port: int, wait_s: float) -> int:
        """How many of a few questions the far end's STAMP reflector answers over the path."""
        return int(json.loads(self._client.stamp(json.dumps(path.pair()), port, wait_s)))

    def measure(
        self,
        paths: Sequence[str] | None = None,
        request: Request | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Measurement:
        """As in every world, over the paths that are there; the others are told as away."""
        self.refresh()
        # two that were asked for may be one by now
        paths = None if paths is None else list(dict.fromkeys(self._label(name) for name in paths))
        away = tuple(Away(name, why) for name, why in self.lost.items() if paths is None or name in paths)
        there = [path.name for path in self.paths] if paths is None else [p for p in paths if p not in self.lost]
        if not there and away:
            raise PathcastError("path-gone", "; ".join(one.sentence for one in away))
        found = super().measure(there, request, progress)
        return replace(found, away=away, notes=(*found.notes, *self.idle))

    def _label(self, name: str) -> str:
        """The path's own name, for what it may be called."""
        if any(name == path.name for path in self.paths):
            return name
        for ends, label in self._labels.items():
            if name in (label, *self._path(*ends).also):
                return label
        return name

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._controls.close()
        self._client.close()
        self._count()

    def _count(self) -> None:
        """What the lines carry is booked where that can be."""
        with suppress(OSError, PathcastError):
            carried.look(self._lines)


def _why_gone(ends: Ends, locals: Collection[str]) -> str:
    if ends[0] in locals:
        return f"{ends[1]} is not an address of the far end any more"
    return f"{ends[0]} is not an address of this host any more"
