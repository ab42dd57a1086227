"""Where results go: one JSON document, or Rich on the terminal; everything that is not data goes to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# what a cell holds that says nothing
_NOTHING = ("", "-")
# more lines that are down than that are told as one, by the names of so many
_MANY, _NAMED = 5, 3
_DOWN = " is down: "

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


# whether the one document of this command is out: an error after it goes to standard error only
printed = False


def console(stderr: bool = False) -> Console:
    """A Rich console; colours only on a terminal, none with NO_COLOR."""
    from rich.console import Console

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, width=None if terminal else 160)


def show(table: Table) -> None:
    """Prints a table without the columns in which nothing stands."""
    kept = [column for column in table.columns if any(str(cell) not in _NOTHING for cell in column.cells)]
    if table.rows and kept:
        for number, column in enumerate(kept):
            column._index = number  # by which Rich pads the first and the last one
        table.columns = kept
    console().print(table)


def brief(sentences: Iterable[str], more: str = "`pathcast paths HOST` tells why") -> list[str]:
    """What people read of them: many lines that are down are one sentence. more: what shows them all."""
    told = list(sentences)
    names = [one.partition(_DOWN)[0] for one in told if _DOWN in one]
    if len(names) <= _MANY:
        return told
    first = next(n for n, one in enumerate(told) if _DOWN in one)
    some = f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"
    gathered = f"{len(names)} lines are down: {some}; {more}"
    return [*told[:first], gathered, *(one for one in told[first:] if _DOWN not in one)]


def as_directory(text: str) -> Path:
    """Parses an option that names a directory; an empty name, as of a variable that is not set, is refused."""
    if not text:
        raise typer.BadParameter("`` is no directory")
    return Path(text)


def as_file(text: str) -> Path:
    """The same of an option that names a file."""
    if not text:
        raise typer.BadParameter("`` is no file")
    return Path(text)


def printable(text: str) -> str:
    """What a file or another host says must not command the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def print_json(schema: str, document: dict[str, Any], version: int = 1) -> None:
    """Prints `{"schema": "pathcast.<schema>/<version>", …}`."""
    global printed
    text = json.dumps({"schema": f"pathcast.{schema}/{version}", **document}, indent=1, allow_nan=False)
    printed = True
    print(text)


def print_line(schema: str, document: dict[str, Any], version: int = 1) -> None:
    """Prints the same as one line of many, at once."""
    print(json.dumps({"schema": f"pathcast.{schema}/{version}", **document}, allow_nan=False), flush=True)
