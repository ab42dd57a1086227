"""The lines of this host as its user names them: `[line.NAME]` in a TOML file.

A line is known by a local address or a device; it owns a cap, a price, hours and a rank. Its name is a label for people
and options; `id` is what the history knows it by, and stays when the name changes.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.files import read_file
from pathcast.say import say

ENVIRONMENT = "PATHCAST_CONFIG"
SYSTEM = Path("/etc/pathcast/pathcast.toml")
LARGEST_BYTES = 1 << 20
PERIODS = ("day", "week", "month")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# what a path may be called already, and words of options
_TAKEN = re.compile(r"path\d+|auto|all|none")
_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]|24):([0-5]\d)")
_DEVICE = re.compile(r"[^\s/]{1,15}")

# of the whole file; the fields are those of `Line`
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "pathcast.toml",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "line": {
            "type": "object",
            "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "anyOf": [{"required": ["from"]}, {"required": ["dev"]}],
                "properties": {
                    "from": {
                        "description": "its local address; several, as of IPv4 and IPv6, in a list",
                        "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
                    },
                    "dev": {"description": "its device", "type": "string", "pattern": f"^{_DEVICE.pattern}$"},
                    "cap": {"description": "bytes in a period, both ways: 1TB/month", "type": "string"},
                    "reset": {
                        "description": "when the period begins: day of the month (1 to 28), or of the week (1: Monday)",
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 28,
                    },
                    "price": {"description": "money for bytes, in any one currency: 0.5/GB", "type": "string"},
                    "use": {
                        "description": "hours by /etc/localtime: 22:00-06:00; several in a list; default: always",
                        "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
                    },
                    "prefer": {"description": "rank, 1 first", "type": "integer", "minimum": 1, "maximum": 100},
                    "id": {"description": "what the history knows it by", "type": "string", "minLength": 1},
                },
            },
        }
    },
}
KEYS = tuple(SCHEMA["properties"]["line"]["additionalProperties"]["properties"])


@dataclass(frozen=True)
class Cap:
    """Bytes in a period (day, week, month), both ways; `reset` is its first day, of the month or of the week."""

    bytes: int
    period: str
    reset: int = 1


@dataclass(frozen=True)
class Line:
    """What is known of a line. price: money for a byte. use: minutes of the day, from and to; empty: always."""

    name: str
    addresses: tuple[str, ...] = ()
    dev: str | None = None
    cap: Cap | None = None
    price: float | None = None
    use: tuple[tuple[int, int], ...] = ()
    prefer: int | None = None
    id: str | None = None

    @property
    def known_by(self) -> str:
        """What its bytes are booked under."""
        return self.id or self.name

    def has(self, local: str, device: str | None) -> bool:
        """Whether a local address, or what has it, is this line's."""
        if self.addresses:
            return local in self.addresses
        return device is not None and device == self.dev


def file() -> Path:
    """The file that is read and written: PATHCAST_CONFIG, else root's, else the user's."""
    if chosen := os.environ.get(ENVIRONMENT):
        return Path(chosen)
    if os.geteuid() == 0:
        return SYSTEM
    home = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(home) if home else Path.home() / ".config") / "pathcast/pathcast.toml"
    except RuntimeError:
        raise usage(f"this user has no home for a configuration; {ENVIRONMENT} names a file") from None


def load() -> dict[str, Line]:
    """The lines by name; of a user without a file of their own those of the whole host. Raises PathcastError (exit 2)
    for a file that is wrong."""
    path = source()
    return {} if path is None else read(path)


def source() -> Path | None:
    """The file that the lines are read from; None: there is none. One that may not be looked at is none, and it is
    said, once."""
    for path in _files():
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            _unseen(path, str(error.strerror))
            continue
        return path
    return None


@cache
def _unseen(path: Path, reason: str) -> None:
    """Its directory may be there for keys alone, so that it is no error; but if it has caps, they are not kept."""
    say(f"cannot look at `{path}` ({reason}): its lines and caps, if any, are not known")


def stamp() -> object:
    """Another one after every change of what `load` reads."""
    return [stamp_of(path) for path in _files()]


def stamp_of(path: Path) -> object:
    """Another one after every change of a file; None without it."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size


def _files() -> list[Path]:
    own = file()
    return list(dict.fromkeys((own, own if os.environ.get(ENVIRONMENT) else SYSTEM)))


def read(path: Path) -> dict[str, Line]:
    """The lines of a file. Raises PathcastError (exit 2) that names the place, the value and what is allowed."""
    try:
        text = read_file(path, LARGEST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise usage(f"cannot read `{path}`: {reason}") from None
    return parse(text, str(path))


def parse(text: str, source: str) -> dict[str, Line]:
    """The lines of a text; `source` is what it is called in refusals."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PathcastError("config", f"{source}: {error}", 'it is TOML: KEY = "VALUE"', 2) from None
    return lines(document, source, lambda *keys: _place(text, keys))


def lines(document: Mapping[str, Any], source: str, place: Callable[..., str] = lambda *_: "") -> dict[str, Line]:
    """The lines of a document. place: the line of the text, by name and key, as `:12`."""
    for key in document:
        if key != "line":
            raise _refused(f"{source}{place(key)}", f"`{key}` is not known here", "allowed is [line.NAME]")
    table = document.get("line", {})
    if not isinstance(table, dict) or not all(isinstance(one, dict) for one in table.values()):
        raise _refused(f"{source}{place('line')}", "`line` is no table of lines", "write [line.NAME]")
    found: dict[str, Line] = {}
    for name, given in table.items():
        line = _line(name, given, _at(source, place, name))
        for other in found.values():
            if common := _common(line, other):
                key, same = common
                told = f"`{same}` is line `{other.name}` already"
                words = "a line has addresses, or a device, and an id of its own; without `id` its name is that"
                raise _refused(f"{source}{place(name, key)}", told, words)
        found[name] = line
    return found


def _at(source: str, place: Callable[..., str], name: str) -> Callable[[str], str]:
    return lambda key: f"{source}{place(name, key)}"


def _common(line: Line, other: Line) -> tuple[str, str] | None:
    """What two lines cannot both have: the key and its value."""
    if shared := set(line.addresses) & set(other.addresses):
        return "from", min(shared)
    if line.dev is not None and line.dev == other.dev and not (line.addresses and other.addresses):
        return "dev", line.dev
    if line.known_by == other.known_by:  # one would be booked the other's counters
        return "id", line.known_by
    return None


def _line(name: str, given: Mapping[str, Any], where: Callable[[str], str]) -> Line:
    check_name(name, where("name"))
    for key in given:
        if key not in KEYS:
            raise _refused(where(key), f"`{key}` is not known of a line", f"allowed are {', '.join(KEYS)}")

    def take(key: str, kind: type | tuple[type, ...], words: str, check: Callable[[Any], Any]) -> Any:
        if (value := given.get(key)) is None:
            return None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _refused(where(key), f"{key} = {_shown(value)}", words)
        try:
            return check(value)
        except PathcastError as error:
            raise _refused(where(key), f"{key} = {_shown(value)}: {error.message}", words) from None
        except ValueError:
            raise _refused(where(key), f"{key} = {_shown(value)}", words) from None

    addresses: tuple[str, ...] = (
        take("from", (str, list), "an address of this host, or a list of them", _addresses) or ()
    )
    dev = take("dev", str, "the name of a device, such as eth1", _device)
    if not addresses and dev is None:
        raise _refused(where("name"), f"line `{name}` has neither `from` nor `dev`", "give its address, or its device")
    cap = take("cap", str, f"bytes in a {', '.join(PERIODS)}, for example 1TB/month", _cap)
    reset = take("reset", int, "the first day of the period: 1 to 28 of a month, 1 (Monday) to 7 of a week", int)
    if reset is not None:
        most = {"month": 28, "week": 7}.get(cap.period, 0) if cap else 0
        if cap is None:
            raise _refused(where("reset"), f"reset = {reset} without a cap", "give `cap`, or leave it out")
        if not 1 <= reset <= most:
            words = f"allowed are 1 to {most} with a cap by the {cap.period}" if most else "a day begins at midnight"
            raise _refused(where("reset"), f"reset = {reset}", words)
        cap = Cap(cap.bytes, cap.period, reset)
    return Line(
        name,
        addresses,
        dev,
        cap,
        take("price", str, "money for bytes, for example 0.5/GB", _price),
        take("use", (str, list), "hours, for example 22:00-06:00, or a list of them", _windows) or (),
        take("prefer", int, "a rank, 1 to 100, 1 first", _rank),
        take("id", str, "what the history knows it by", str),
    )


def check_name(name: str, where: str) -> None:
    """Refuses what cannot name a line."""
    if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
        words = (
            "allowed are lower-case letters, digits, _ and -, a letter first, at most 32; not path1, auto, all, none"
        )
        raise _refused(where, f"`{name}` cannot name a line", words)


def _refused(where: str, problem: str, words: str) -> PathcastError:
    return PathcastError("config", f"{where}: {problem}", words, 2)


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _place(text: str, keys: tuple[str, ...]) -> str:
    """Where a key of a table stands, as `:12`; the table where it has no such key."""
    table: tuple[str, ...] = ()
    found = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*(.+?)\s*\]", line):
            table = tuple(part.strip(" \t\"'") for part in header[1].split("."))
        name = re.match(r"\s*([\w-]+|\"[^\"]*\")\s*[=.]", line)
        here = (*table, name[1].strip('"')) if name else table
        if here[-len(keys) :] == keys:
            return f":{number}"
        if not found and keys[0] in here:
            found = f":{number}"
    return found


def _addresses(value: str | list[Any]) -> tuple[str, ...]:
    several = value if isinstance(value, list) else [value]
    if not several or not all(isinstance(one, str) for one in several):
        raise ValueError
    found = [ipaddress.ip_address(one) for one in several]
    if any(one.is_unspecified or one.is_multicast for one in found):
        raise ValueError
    return tuple(map(str, found))


def _device(value: str) -> str:
    if not _DEVICE.fullmatch(value):
        raise ValueError
    return value


def _cap(value: str) -> Cap:
    from pathcast import _native

    size, _, period = value.partition("/")
    if period.strip() not in PERIODS:
        raise ValueError
    bytes = _native.parse_bytes(size.strip())
    if bytes == 0 and re.search(r"[1-9]", size):  # 0 itself is a line that carries nothing
        raise ValueError
    return Cap(bytes, period.strip())


def _price(value: str) -> float:
    from pathcast import _native

    money, _, unit = value.partition("/")
    unit = unit.strip()
    number = abs(float(money)) if float(money) == 0 else float(money)  # -0, too
    if not 0 <= number < 1e9 or not unit:
        raise ValueError
    bytes = _native.parse_bytes(f"1{unit}" if unit[0].isalpha() else unit)
    if bytes == 0:
        raise ValueError
    return number / bytes


def _windows(value: str | list[Any]) -> tuple[tuple[int, int], ...]:
    found = []
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, str) or not (hours := _WINDOW.fullmatch(one.replace(" ", ""))):
            raise ValueError
        begin, end = (60 * int(hours[i]) + int(hours[i + 1]) for i in (1, 3))
        if begin == end or end > 24 * 60:
            raise ValueError
        found.append((begin, end))
    if not found:
        raise ValueError
    return tuple(found)


def _rank(value: int) -> int:
    if not 1 <= value <= 100:
        raise ValueError
    return value
