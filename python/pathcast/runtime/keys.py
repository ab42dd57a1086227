"""Keys of far ends: a 0600 file of lines `ID SECRET`, the secret 64 hexadecimal digits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Known to everyone: what a far end without a key file uses. It keeps strangers' garbage out, nobody else.
OPEN_ID = "open"
OPEN_SECRET = "00" * 32


@dataclass(frozen=True)
class Key:
    """A shared secret and the name that both ends know it by."""

    id: str
    secret: str


def read_keys(path: Path) -> list[Key]:
    """Every key of a file. Refuses one that others may read, change or exchange, and malformed lines by number."""
    from pathcast import _native

    return [Key(*pair) for pair in _native.read_keys(str(path))]


def parse_keys(text: str, source: str) -> list[Key]:
    """Every key of lines `ID SECRET`; refuses malformed ones with their number."""
    from pathcast import _native

    return [Key(*pair) for pair in _native.parse_keys(text, source)]


def read_key(path: Path | None) -> Key:
    """The first key of a file; without a file the open key."""
    return Key(OPEN_ID, OPEN_SECRET) if path is None else read_keys(path)[0]


def write_key(path: Path, id: str = "key1") -> Key:
    """Makes a key file with one fresh key; refuses to overwrite."""
    from pathcast import _native

    return Key(id, _native.write_key(str(path), id))
