"""Rows by the text of SQL that both databases understand: by SQLite's own module, or over SQLAlchemy to a server.

SQLAlchemy takes longer to load than a forecast from a fresh history may take in all. What such a one reads and writes
goes this way.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from pathcast.history.faults import history_error

if TYPE_CHECKING:
    from sqlalchemy import Connection

# what a row refers to stands before it
TABLES = (
    "host",
    "line",
    "path",
    "measurement",
    "transfer",
    "transfer_path",
    "forecast",
    "forecast_path",
    "usage",
    "event",
)
# columns that SQLite keeps as text and as numbers, in whatever table
DOCUMENTS = {"about", "answer", "chosen", "circumstances", "knowledge", "made_from", "pair", "report"}
TRUTHS = {"down", "valid"}


class Plain(Protocol):
    """A transaction. Parameters are named (`:id`); one that is a list stands for all of its values (`IN :ids`)."""

    def rows(self, text: str, **values: Any) -> list[Any]:
        """The rows, with a field for every column."""

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """Adds rows; those that are there already stay as they are: how many were new.

        Raises PathcastError (`history-rows`) for what is no row of the table.
        """


class OfFile:
    """Of a file of SQLite. Raises sqlite3.Error."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self._columns: dict[str, dict[str, tuple[str, bool]]] = {}

    def rows(self, text: str, **values: Any) -> list[Any]:
        """As of `Plain`."""
        cursor = self._raw.execute(*spread(text, values))
        names = tuple(column[0] for column in cursor.description)
        row, changed = _row(names), [(at, read) for at, name in enumerate(names) if (read := _reader(name))]
        found = []
        for each in cursor:
            given = list(each)
            for at, read in changed:
                given[at] = None if given[at] is None else read(given[at])
            found.append(row(*given))
        return found

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """As of `Plain`."""
        columns = self._of(table)
        needed, new = {name for name, (_, needed) in columns.items() if needed}, 0
        for row in rows:
            check(table, row, set(columns), needed)
            names = list(row)
            text = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"
            try:
                values = {name: _written(columns[name][0], sound(value)) for name, value in row.items()}
                new += max(0, self._raw.execute(f"{text} ON CONFLICT DO NOTHING", values).rowcount)
            except (ValueError, TypeError, OverflowError, sqlite3.InterfaceError, sqlite3.ProgrammingError) as error:
                raise history_error("rows", f"`{table}` cannot hold this: {error}") from None
        return new

    def _of(self, table: str) -> dict[str, tuple[str, bool]]:
        """Of every column its type, and whether it must have a value."""
        if table not in self._columns:
            about = self._raw.execute(f"PRAGMA table_info({table})")
            self._columns[table] = {name: (kind, bool(needed)) for _, name, kind, needed, *_ in about}
        return self._columns[table]


class OfServer:
    """Over a connection of SQLAlchemy."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, text: str, **values: Any) -> list[Any]:
        """As of `Plain`."""
        from sqlalchemy import text as of

        wanted, given = spread(text, values)
        return list(self._connection.execute(of(wanted), given).all())

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """As of `Plain`."""
        from pathcast.history.store import insert_many
        from pathcast.history.tables import NAMES

        return insert_many(self._connection, NAMES[table], rows)


def spread(text: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """With a parameter of its own for every value of a list."""
    given: dict[str, Any] = {}
    for name, value in values.items():
        if not isinstance(value, (list, tuple, set, frozenset)):
            given[name] = value
            continue
        each = {f"{name}_{n}": one for n, one in enumerate(value)}
        inside = ", ".join(f":{one}" for one in each) or "NULL"
        text = re.sub(rf":{name}\b", f"({inside})", text)
        given |= each
    return text, given


def check(table: str, row: Mapping[str, Any], columns: set[str], needed: set[str]) -> None:
    """Raises PathcastError (`history-rows`) that names the columns that are missing or unknown."""
    wrong = (row.keys() - columns) | {name for name in needed if row.get(name) is None}
    if wrong:
        raise history_error("rows", f"this is no row of `{table}`: {', '.join(sorted(wrong))}")


def sound(value: Any) -> Any:
    """What every database can hold: names from anywhere may have lone surrogates and zeros."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if isinstance(value, Mapping):
        return {sound(key): sound(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [sound(one) for one in value]
    return value


def as_json(value: Any) -> str:
    """As documents are stored. Raises ValueError for what is no JSON."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _written(kind: str, value: Any) -> Any:
    return as_json(value) if kind == "JSON" and value is not None else value


def _reader(name: str) -> Callable[[Any], Any] | None:
    return json.loads if name in DOCUMENTS else bool if name in TRUTHS else None


@cache
def _row(names: tuple[str, ...]) -> Callable[..., Any]:
    """With the names of the columns; of two that are called the same the second has none."""
    return namedtuple("Row", names, rename=True)
