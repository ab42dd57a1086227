"""`pathcast web`: the page, on this host only."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
from typing import Annotated

import typer

from pathcast.cli.history import Url, shown_place
from pathcast.errors import Exit, PathcastError, need, usage

_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")


def web(
    listen: Annotated[
        str, typer.Option(metavar="PORT", help="A port of the loopback, or ADDRESS:PORT of it; 0: any that is free.")
    ] = "9276",
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="/PATH",
            help="Where the page lies behind a reverse proxy, for example /pathcast.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="A further name that it answers as, of the reverse proxy; may be repeated.", show_default=False
        ),
    ] = None,
    history: Url = None,
) -> None:
    """Serve a page of lines, forecasts, jobs, transfers, caps and alerts to browsers on this host. It only shows."""
    from pathcast.service.metrics import where

    address, port = where(listen, "--listen", "127.0.0.1:9276")
    if not ipaddress.ip_address(address).is_loopback:
        told = f"--listen {listen}: the page has no password, and is served on the loopback only"
        raise PathcastError(
            "refused", told, "let a reverse proxy of your own with a password forward to it: docs/web.md", Exit.REFUSED
        )
    below = (prefix or "").rstrip("/")
    if below and (not _PREFIX.fullmatch(below) or {".", ".."} & set(below.split("/"))):
        raise usage(f"--prefix `{prefix}`: allowed is a path, for example /pathcast")
    for one in name or ():
        if not _NAME.fullmatch(one):
            raise usage(f"--name `{one}`: allowed is a host's name without a port, for example pathcast.example.org")
    place = shown_place(history)
    need("jinja2", "starlette", "uvicorn")
    from pathcast.web.app import LOOPBACK, application
    from pathcast.web.facts import Facts
    from pathcast.web.server import server

    shown = f"[{address}]" if ":" in address else address
    app = application(Facts(place), {*LOOPBACK, shown, *(name or ())}, below)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((address, port))
            made.listen(64)
        except OSError as error:
            raise PathcastError("address", f"cannot listen on {address} port {port}: {error.strerror}") from None
        print(f"http://{shown}:{made.getsockname()[1]}{below}/", flush=True)
        print("pathcast: every user of this host can read it; Ctrl-C ends it", file=sys.stderr, flush=True)
        server(app).run(sockets=[made])
