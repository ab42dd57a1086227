"""World `host`: the user's own network, to a far end that runs `pathcast serve`."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from pathcast.control.kernel import Controls
from pathcast.errors import PathcastError, usage
from pathcast.runtime.keys import read_key
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
    """The paths to one far end. Use it in a `with`."""

    world = "host"
    _client: _native.Client
    _controls: Controls

    def __init__(self, host: str, key_file: FilePath | None = None, port: int = 5275) -> None:
        import socket

        from pathcast import _native

        name, number = address(host, port)
        key = read_key(key_file)
        try:
            found = socket.getaddrinfo(name, number, type=socket.SOCK_STREAM)
        except OSError as error:
            raise PathcastError("resolve", f"cannot find the host `{name}`: {error.strerror}") from None
        errors = []
        for *_, where in found:
            self.address = str(where[0])
            try:
                self._client = _native.Client(None, self.address, number, key.id, key.secret)
                break
            except PathcastError as error:
                errors.append(error)
        else:
            raise errors[-1]
        self._controls = Controls()
        survey = json.loads(self._client.paths())
        self.candidates, self.unusable = survey["usable"], survey["unusable"]
        self.paths = tuple(Path(p["name"], (p["local"],), p["remote"]) for p in self.candidates)

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._controls.close()
        self._client.close()
