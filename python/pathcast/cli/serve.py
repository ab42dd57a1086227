"""`pathcast serve`: the far end."""

from __future__ import annotations

import ipaddress
import json as json_module
import os
import signal
import sys
import threading
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathcast.cli.output import Json, as_file, print_json
from pathcast.errors import usage

if TYPE_CHECKING:
    from pathcast import _native

# how the log says that a key is not among those that were read
_UNKNOWN = "wrong key or unknown key id"


def serve(
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=as_file,
            help="0600 file of lines `ID SECRET`; see --new-key. -: one line of standard input, until that closes.",
            show_default=False,
        ),
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", parser=as_file, help="Make a key file with one fresh key, and end.", show_default=False
        ),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Serve everyone without a key, on every address.")] = False,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            help="An address to listen on; may be repeated (default: all with a key or --open, else loopback)."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP and UDP port; 0: the system chooses one.")] = 5275,
    announce: Annotated[
        list[str] | None,
        typer.Option(help="An address of this host to tell clients; may be repeated (default: all that are up)."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE of what measurements are granted, for example rate=100Mbit; see docs/serve.md. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    stamp_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="UDP port of a STAMP reflector (RFC 8762); the standard's 862 needs a privilege (default: none).",
            show_default=False,
        ),
    ] = None,
    stamp_open: Annotated[
        bool,
        typer.Option("--stamp-open", help="The reflector answers everyone, not only who has a key of the key file."),
    ] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Say who opens sessions and sends: key, address, bytes; on standard error.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer probes and receive transfers, until interrupted."""
    from pathcast import _native
    from pathcast.runtime.keys import OPEN_ID, OPEN_SECRET, Key, parse_keys, read_keys, write_key

    if new_key is not None:
        key = write_key(new_key)
        if json:
            print_json("key", {"file": str(new_key), "id": key.id})
        else:
            print(f"wrote the key `{key.id}` to {new_key}; copy the file to the clients over a safe channel")
        return
    if key_file is not None and open:
        raise usage("--key-file and --open exclude each other: with a key file only its keys are served")
    if stamp_open and stamp_port is None:
        raise usage("--stamp-open goes with --stamp-port")
    for option, given in (("--bind", bind), ("--announce", announce)):
        for text in given or []:
            _check_address(option, text)
    piped = key_file is not None and str(key_file) == "-"
    changed = None if piped or key_file is None else _Changed(key_file)  # before it is read
    if piped:
        keys = parse_keys(sys.stdin.readline(), "standard input")
    else:
        keys = read_keys(key_file) if key_file else [Key(OPEN_ID, OPEN_SECRET)]
    loopback = key_file is None and not open
    config = {
        "bind": bind or [],
        "loopback": loopback,
        "port": port,
        "keys": [vars(k) for k in keys],
        "addresses": announce or [],
        "limits": limit or [],
        "stamp_port": stamp_port,
        "stamp_open": stamp_open or key_file is None,
        "log": log,
    }
    if loopback and any(not ipaddress.ip_address(a).is_loopback for a in bind or []):
        raise usage("without a key the far end listens on loopback only", "give --key-file FILE, or --open")
    server = _native.Server(None, json_module.dumps(config))
    about = json_module.loads(server.describe())
    if json:
        print_json("serve", about)
        sys.stdout.flush()
    else:
        print("listening on " + ", ".join(about["listening"]))
        if loopback:
            print("only on loopback; give --key-file FILE or --open to serve others", file=sys.stderr)
        whom = "everyone" if key_file is None else f"who has the key {' or '.join(f'`{key.id}`' for key in keys)}"
        whom = whom if server.serves() else "nobody"
        print(f"serving {whom}, until this command ends (Ctrl-C)", file=sys.stderr)
        sys.stdout.flush()
    over = threading.Event()
    warner = threading.Thread(target=_warn, args=(server, over, changed), daemon=True)
    try:
        warner.start()
        while piped and sys.stdin.read(4096):
            pass  # whoever started it holds the other end
        while not piped:
            signal.pause()
    finally:
        server.stop()  # first, so that what it ends is logged
        over.set()
        if warner.is_alive():
            warner.join(1)  # longer where nobody reads what is said


class _Changed:
    """Whether a key file is another one than when this was made."""

    def __init__(self, file: Path) -> None:
        self._file, self._seen = file, self._stamp(file)

    def told(self) -> str | None:
        """A sentence; once for every change."""
        if (now := self._stamp(self._file)) == self._seen:
            return None
        self._seen = now
        return f"{self._file} has changed since the start: its keys as they were then are served until a restart"

    @staticmethod
    def _stamp(file: Path) -> object:
        from pathcast.lines.config import stamp_of

        return stamp_of(file)


def _warn(server: _native.Server, over: threading.Event, changed: _Changed | None = None) -> None:
    """Says what the far end warns of, and what it logs, until it is over."""
    ended = False
    while True:
        said = [f"note: {warning}" for warning in server.warnings()]
        for at, line in server.log():
            when = f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S %Z}"
            said.append(f"{when} {line}")
            if changed is not None and _UNKNOWN in line and (told := changed.told()) is not None:
                said.append(f"{when} {told}")
        for line in said:
            _write(f"{line}\n".encode())
        if ended:
            return
        ended = over.wait(1)


def _write(line: bytes) -> None:
    """On standard error; not through Python's own buffer, whose lock would hold up the end where nobody reads. What
    cannot be written now, as on a full disc, is lost, and what comes later is not."""
    with suppress(OSError):
        while line:
            line = line[os.write(2, line) :]


def _check_address(option: str, text: str) -> None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise usage(f"{option} `{text}` is not an IP address, such as 192.0.2.1 or 2001:db8::1") from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:  # it means nothing elsewhere
        raise usage(f"{option} `{text}`: write it without a zone, such as 2001:db8::1")
