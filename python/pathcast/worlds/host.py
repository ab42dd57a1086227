"""World `host`: the user's own network, to a far end that runs `pathcast serve`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from pathcast.control.kernel import Controls
from pathcast.errors import PathcastError, usage
from pathcast.runtime.keys import read_key
from pathcast.worlds.measurement import Away, Measurement, Request
from pathcast.worlds.results import Path
from pathcast.worlds.verbs import Verbs

if TYPE_CHECKING:
    from pathcast import _native


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


class Host(Verbs):
    """The paths to one far end. Use it in a `with`.

    A path keeps its name for as long as this lives, whatever comes and goes. lost: by name, why a path that is known
    cannot be used now. names: what address pairs are called; of sessions one after the other the same, which they fill.
    """

    world = "host"
    _client: _native.Client
    _controls: Controls

    def __init__(
        self,
        host: str,
        key_file: FilePath | None = None,
        port: int = 5275,
        names: dict[tuple[str, str], str] | None = None,
    ) -> None:
        import socket

        from pathcast import _native

        name, number = address(host, port)
        key = read_key(key_file)
        try:
            found = socket.getaddrinfo(name, number, type=socket.SOCK_STREAM)
        except OSError as error:
            raise PathcastError("resolve", f"cannot find the host `{name}`: {error.strerror}") from None
        addresses = [str(where[0]) for *_, where in found]
        self._client = _native.Client(None, addresses, number, key.id, key.secret)
        self.address = addresses[0]
        self._controls = Controls()
        self._names: dict[tuple[str, str], str] = {} if names is None else names
        self.refresh()

    def refresh(self) -> None:
        """Looks again which paths there are: lines come and go."""
        survey = json.loads(self._client.paths())
        for pair in survey["usable"]:
            ends = pair["local"], pair["remote"]
            pair["name"] = self._names.setdefault(ends, self._free(pair["name"]))
        self.candidates, self.unusable = survey["usable"], survey["unusable"]
        self.paths = tuple(Path(p["name"], (p["local"],), p["remote"]) for p in self.candidates)
        reasons = {(pair["local"], pair["remote"]): pair["reason"] for pair in self.unusable}
        there = {path.name for path in self.paths}
        self.lost = {
            name: reasons.get(ends, f"{ends[0]} is not an address of this host any more")
            for ends, name in self._names.items()
            if name not in there
        }

    def _free(self, wanted: str) -> str:
        taken = set(self._names.values())
        names = itertools.chain([wanted], (f"path{n}" for n in itertools.count(1)))
        return next(name for name in names if name not in taken)

    @property
    def idle(self) -> list[str]:
        """A sentence for every line of this host that is down though it has an address; bridges are no lines."""
        said = {}
        for pair in self.unusable:
            device, down, _ = pair["reason"].partition(" is down")
            bridge = FilePath("/sys/class/net", device, "bridge").exists()
            if down and not bridge and pair["local"] not in {local for local, _ in self._names}:
                said[pair["local"]] = f"the line of {pair['local']} is down: {pair['reason']}"
        return list(said.values())

    def path(self, name: str) -> Path:
        """The path of that name; of one that was there the reason why it is not."""
        if name in self.lost:
            raise PathcastError("path-gone", f"path `{name}` is down: {self.lost[name]}")
        return super().path(name)

    def silent(self, paths: Sequence[str] | None = None) -> dict[str, str]:
        """Of all paths, or the named ones, those over which the far end does not answer now, and why; in about 2 s."""
        wanted = [path for path in self.paths if paths is None or path.name in paths]
        answers = json.loads(self._client.reach(json.dumps([path.pair() for path in wanted])))
        dead = {path.name: why for path, why in zip(wanted, answers, strict=True) if why is not None}
        return {**dead, **{name: why for name, why in self.lost.items() if paths is None or name in paths}}

    def measure(
        self,
        paths: Sequence[str] | None = None,
        request: Request | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Measurement:
        """As in every world, over the paths that are there; the others are told as away."""
        self.refresh()
        away = tuple(Away(name, why) for name, why in self.lost.items() if paths is None or name in paths)
        there = [path.name for path in self.paths] if paths is None else [p for p in paths if p not in self.lost]
        if not there and away:
            raise PathcastError("path-gone", "; ".join(one.sentence for one in away))
        found = super().measure(there, request, progress)
        return replace(found, away=away, notes=(*found.notes, *self.idle))

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._controls.close()
        self._client.close()
