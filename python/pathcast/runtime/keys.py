"""Keys of far ends: a 0600 file of lines `ID SECRET`, the secret 64 hexadecimal digits."""

from __future__ import annotations

import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from pathcast.errors import PathcastError, usage
from pathcast.files import is_descriptor, open_file, trusted_users

# Known to everyone: what a far end without a key file uses. It keeps strangers' garbage out, nobody else.
OPEN_ID = "open"
OPEN_SECRET = "00" * 32
# some ten thousand keys; what follows is not read
LARGEST_BYTES = 1 << 20


@dataclass(frozen=True)
class Key:
    """A shared secret and the name that both ends know it by."""

    id: str
    secret: str


def read_keys(path: Path) -> list[Key]:
    """Every key of a file. Refuses one that others may read, change or replace, and malformed lines by number."""
    try:
        if not is_descriptor(path) and (link := _anothers_link(path)):
            raise _refused(path, f"is reached by a link of another user's, `{link}`", "name the file itself")
        with open_file(path) as file:
            _check(path, os.fstat(file.fileno()))
            text = file.read(LARGEST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        hint = f"copy the far end's here; at the far end: `pathcast serve --new-key {path}` makes one"
        raise usage(f"cannot read the key file `{path}`: {reason}", hint) from None
    return parse_keys(text, f"the key file `{path}`")


def _refused(path: Path, problem: str, hint: str) -> PathcastError:
    return PathcastError("key-file", f"the key file `{path}` {problem}", hint, exit=4)


def _check(path: Path, about: os.stat_result) -> None:
    """Raises PathcastError (exit 4) for a file that is somebody else's, or that others may use."""
    if not is_descriptor(path) and about.st_uid not in trusted_users():
        hint = f"if you trust them: install -m 600 {path} FILE, and give that"
        raise _refused(path, f"belongs to another user ({about.st_uid})", hint)
    others = stat.S_IRWXG | stat.S_IRWXO
    if about.st_uid == 0 and os.environ.get("CREDENTIALS_DIRECTORY") == str(path.parent):
        others &= (
            ~stat.S_IRGRP
        )  # systemd lets a service read it by an access list, whose mask stands in the group's place
    if about.st_mode & others:
        raise _refused(path, "can be read or changed by others", f"chmod 600 {path}")


def _anothers_link(path: Path) -> Path | None:
    """The first link on the way to a file that somebody else may lead elsewhere."""
    place, ahead = Path("/"), list(reversed(path.absolute().parts[1:]))
    for _ in range(1000):  # more than the kernel follows
        if not ahead:
            break
        part = ahead.pop()
        if part == "..":
            place = place.parent
            continue
        step = place / part
        about = step.lstat()
        if not stat.S_ISLNK(about.st_mode):
            place = step
            continue
        if about.st_uid not in trusted_users():
            return step
        target = step.readlink()
        place = Path("/") if target.is_absolute() else place
        ahead.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))
    return None


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
