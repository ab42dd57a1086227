"""Changes to the file of the lines: what its user wrote around them stays (tomlkit)."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.files import read_file
from pathcast.lines import config
from pathcast.lines.config import LARGEST_BYTES, Line
from pathcast.runtime.state import locked

# within this a line is written; what it refuses is not
Around = Callable[[Line], contextlib.AbstractContextManager[object]]


def _nothing(_: Line) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext()


def add(path: Path, name: str, values: Mapping[str, Any], around: Around = _nothing) -> Line:
    """Adds a line. An id that another line has, or a name without one, gives way to the name, or that with a number.
    Raises PathcastError (exit 2) where there is one of that name, or a value is wrong."""

    def put(lines: Any) -> None:
        if name in lines:
            raise usage(f"there is a line `{name}` already", f"pathcast line set {name} … changes it")
        import tomlkit

        table = tomlkit.table()
        for key, value in values.items():
            table[key] = value
        # a line that moved to another device keeps the id that it had from the first
        taken = {other.get("id") or known for known, other in lines.items()}
        if values.get("id", name) in taken:
            table["id"] = next(id for id in _variants(name) if id not in taken)
        lines[name] = table

    return _changed(path, put, name, around)[name]


def _variants(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def change(
    path: Path, name: str, values: Mapping[str, Any], without: tuple[str, ...] = (), around: Around = _nothing
) -> Line:
    """Changes a line; the keys of `without` are taken out."""

    def put(lines: Any) -> None:
        table = _there(lines, name)
        for key in without:
            table.pop(key, None)
        for key, value in values.items():
            table[key] = value

    return _changed(path, put, name, around)[name]


def remove(path: Path, name: str) -> None:
    """Takes a line out."""

    def take(lines: Any) -> None:
        _there(lines, name)
        del lines[name]

    _changed(path, take, name)


def _there(lines: Any, name: str) -> Any:
    if name not in lines:
        known = ", ".join(lines) or "none yet"
        raise usage(f"there is no line `{name}`; there are: {known}", "pathcast line add makes one")
    return lines[name]


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else changes the file meanwhile."""
    with _writing(path):
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
    with locked("lines"):
        yield


def _changed(path: Path, change: Any, name: str, around: Around = _nothing) -> dict[str, Line]:
    with _alone(path):
        return _changed_alone(path, change, name, around)


def _changed_alone(path: Path, change: Any, name: str, around: Around) -> dict[str, Line]:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        text = read_file(path, LARGEST_BYTES).decode() if path.exists() else ""
        config.parse(text, str(path))  # what is wrong already is said with its place
        document = tomlkit.parse(text)
    except OSError as error:
        raise usage(f"cannot read `{path}`: {error.strerror}") from None
    except UnicodeDecodeError:
        raise usage(f"cannot read `{path}`: it is not UTF-8 text") from None
    except TOMLKitError as error:
        raise usage(f"{path}: {error}") from None
    if "line" not in document:
        document["line"] = tomlkit.table(is_super_table=True)
    change(document["line"])
    if not document["line"]:
        del document["line"]
    new = tomlkit.dumps(document)
    lines = config.lines(tomllib.loads(new), f"line {name}")
    with around(lines[name]) if name in lines else contextlib.nullcontext():
        _write(path, new)
    return lines


def _write(path: Path, text: str) -> None:
    """Beside the file, then renamed over it: whoever reads sees the old one or the new one."""
    target = path.resolve()  # a link stays one
    with _writing(path):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777 if target.exists() else 0o644)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "make room there" if full else "as root, or PATHCAST_CONFIG=FILE"
        raise PathcastError("config", f"cannot write `{path}`: {error.strerror}", hint) from None
