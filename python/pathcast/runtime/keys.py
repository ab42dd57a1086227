"""Keys of far ends: a 0600 file of lines `ID SECRET`, the secret 64 hexadecimal digits."""

from __future__ import annotations

import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from pathcast.errors import PathcastError, usage

# Known to everyone: what a far end without a key file uses. It keeps strangers' garbage out, nobody else.
OPEN_ID = "open"
OPEN_SECRET = "00" * 32


@dataclass(frozen=True)
class Key:
    """A shared secret and the name that both ends know it by."""

    id: str
    secret: str


def read_keys(path: Path) -> list[Key]:
    """Every key of a file. Refuses a file that others may read, and malformed lines with their number."""
    try:
        with path.open() as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise usage(
            f"cannot read the key file `{path}`: {reason}", f"make one with `pathcast serve --new-key {path}`"
        ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PathcastError("key-file", f"the key file `{path}` can be read by others", f"chmod 600 {path}", exit=4)
    return parse_keys(text, f"the key file `{path}`")


def parse_keys(text: str, source: str) -> list[Key]:
    """Every key of lines `ID SECRET`; refuses malformed ones with their number."""
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]{1,32})\s+([0-9a-fA-F]{64})", line.strip())
        if not match:
            raise usage(f"line {number} of {source} is not `ID SECRET` with 64 hexadecimal digits")
        keys.append(Key(match[1], match[2].lower()))
    if not keys:
        raise usage(f"{source} holds no key")
    if len({k.id for k in keys}) < len(keys):
        raise usage(f"{source} names an id twice")
    return keys


def read_key(path: Path | None) -> Key:
    """The first key of a file; without a file the open key."""
    return Key(OPEN_ID, OPEN_SECRET) if path is None else read_keys(path)[0]


def write_key(path: Path, id: str = "key1") -> Key:
    """Makes a key file with one fresh key; refuses to overwrite."""
    key = Key(id, secrets.token_hex(32))
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise usage(f"`{path}` is there already; a key file is never overwritten") from None
    except OSError as error:
        raise usage(f"cannot write the key file `{path}`: {error.strerror}") from None
    try:
        with os.fdopen(fd, "w") as file:
            file.write(f"{key.id} {key.secret}\n")
            file.flush()
            os.fsync(fd)
    except BaseException as error:
        path.unlink()  # or it would stay without its key, and never be overwritten
        if isinstance(error, OSError):
            raise usage(f"cannot write the key file `{path}`: {error.strerror}") from None
        raise
    return key
