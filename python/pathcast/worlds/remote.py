"""A far end that is started over ssh for one command, with a one-time key and a port of the system's choice."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pathcast.errors import PathcastError, usage

# what a far end says when it listens has some hundred bytes
LARGEST_BYTES = 1 << 16
# ssh may ask for a password meanwhile
PATIENCE_S = 60.0
# whichever is there; where none is, the shell says of the first that it is not
EITHER = 'there=$(command -v pathcast || command -v pathcast-far || echo pathcast); exec "$there" "$@"'


@contextmanager
def far_end(url: str, ssh: str = "ssh", command: str | None = None) -> Iterator[tuple[str, Path]]:
    """Starts `pathcast serve` on the host of `ssh://[USER@]HOST[:PORT]`: its address for clients, and its key file.

    ssh: the command with its options. command: how pathcast is called there; None: so, or pathcast-far. The key
    goes to the far end by its standard input, so that no list of processes shows it; it ends when that closes, be it
    that the connection breaks.
    """
    host, arguments = _destination(url, ssh)
    id, secret = "ssh", secrets.token_hex(32)
    called = ["sh", "-c", EITHER, "sh"] if command is None else _words("--remote-command", command, "sudo pathcast")
    serve = [*called, "serve", "--key-file", "-", "--port", "0", "--json"]
    try:
        process = subprocess.Popen([*arguments, shlex.join(serve)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise usage(f"--ssh `{ssh}`: cannot run it: {error.strerror}") from None
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # then it has ended, and why is told below
            process.stdin.write(f"{id} {secret}\n".encode())
            process.stdin.flush()
        port = _started(process, url)
        with tempfile.TemporaryDirectory(prefix="pathcast-") as directory:
            file = Path(directory) / "key"
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as text:
                text.write(f"{id} {secret}\n")
            yield (f"[{host}]:{port}" if ":" in host else f"{host}:{port}"), file
    finally:
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _destination(url: str, ssh: str) -> tuple[str, list[str]]:
    refused = usage(f"`{url}` is not ssh://HOST, ssh://USER@HOST or ssh://USER@HOST:PORT")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or host.startswith("-") or parts.path.strip("/") or parts.query or parts.fragment or parts.password:
        raise refused
    # as it is written: a Host of ssh_config tells upper from lower case
    written = parts.netloc.rpartition("@")[2]
    host = written[1:].partition("]")[0] if written.startswith("[") else written.partition(":")[0]
    there = host if parts.username is None else f"{unquote(parts.username)}@{host}"
    if not there.isprintable():
        raise refused
    return host, [*_words("--ssh", ssh, "ssh -i FILE"), *(["-p", str(port)] if port else []), "--", there]


def _words(option: str, command: str, example: str) -> list[str]:
    """As a shell splits them. Raises PathcastError (exit 2) where there are none."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise usage(f"{option} `{command}`: {str(error).lower()}") from None
    if not words:
        raise usage(f"{option} is empty", f"for example {option} '{example}'")
    return words


def _started(process: subprocess.Popen[bytes], url: str) -> int:
    """The port of the far end, from the document that it prints when it listens."""
    text, deadline = b"", time.monotonic() + PATIENCE_S
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and selector.select(left):
            more = os.read(process.stdout.fileno(), 65536)
            if not more:
                status = process.wait()
                reason = _reason(text) or f"ssh or `pathcast serve` there ended with status {status}"
                hint = (
                    "is pathcast, or pathcast-far, in the PATH of a command that ssh runs there? see --remote-command"
                )
                raise PathcastError("ssh", f"no far end on `{url}`: {reason}", hint)
            text += more
            if len(text) > LARGEST_BYTES:
                break
            with suppress(ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
                port = int(json.loads(text)["listening"][0].rpartition(":")[2])
                if 0 < port < 1 << 16:
                    return port
    if len(text) > LARGEST_BYTES:
        raise PathcastError(
            "ssh", f"no far end on `{url}`: it says more than any", "does a login there print something?"
        )
    raise PathcastError("ssh", f"no far end on `{url}` after {PATIENCE_S:.0f} s", "try to log in by hand first")


def _reason(text: bytes) -> str | None:
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text)["error"]["message"])
    return None
