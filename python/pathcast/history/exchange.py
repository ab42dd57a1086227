"""A history as files, one for each table, and back: Parquet, CSV or JSON lines, which other programs read too."""

from __future__ import annotations

import csv
import errno
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pathcast.errors import Exit, PathcastError, need, usage
from pathcast.history import clock, versions
from pathcast.history.store import Store, insert_many

if TYPE_CHECKING:
    from sqlalchemy import Column, Table

FORMATS = ("parquet", "csv", "jsonl")
MANIFEST = "history.json"
SCHEMA = "pathcast.history/1"
_BATCH = 1000
# the longest field of a CSV file that is read [character]
_LONGEST = 1 << 27
# of whom the time is that of an act
_OWNERS = {"transfer_path": ("transfer", "transfer_id"), "forecast_path": ("forecast", "forecast_id")}

Row = dict[str, Any]


def export(store: Store, directory: Path, format: str, since_us: int | None = None) -> dict[str, int]:
    """Writes every table, as it is at one moment, into a new or empty directory: how many rows each has.

    since_us: of acts no older ones. Beside `at_us` stands `at`, the same in words. Raises PathcastError.
    """
    from pathcast.history.tables import ORDER

    if format not in FORMATS:
        raise usage(f"--format `{format}`: allowed are {', '.join(FORMATS)}")
    if format == "parquet":
        need("pyarrow")
    with _into(directory):
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise usage(f"`{directory}` is not empty", "name a new directory")
        counts = dict.fromkeys((table.name for table in ORDER), 0)
        # what fails within is the directory's, and the history would take it for its own
        with store.reading() as connection, _into(directory):
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for table in ORDER:
                rows = connection.execution_options(yield_per=_BATCH).execute(_of(table, since_us))
                with _writer(directory / f"{table.name}.{format}", table) as write:
                    for batch in rows.mappings().partitions():
                        write([_plain(table, row) for row in batch])
                        counts[table.name] += len(batch)
        about = {"schema": SCHEMA, "version": versions.HEAD, "format": format, "rows": counts}
        # the last: without it the directory is no history
        (directory / MANIFEST).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return counts


@contextmanager
def _into(directory: Path) -> Iterator[None]:
    """Where it cannot be written to that is said."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        message, hint = f"cannot write to `{directory}`: {error.strerror or error}", "make room there" if full else None
        raise PathcastError("export", message, hint, Exit.RUNTIME if full else Exit.USAGE) from None


def import_(store: Store, directory: Path) -> dict[str, int]:
    """Adds what `export` has written, all or nothing; what is there already stays: how many rows of each were new.

    Raises PathcastError (exit 2) for what is no such directory, and for values that a table does not take.
    """
    from pathcast.history.tables import NAMES, ORDER

    about = _manifest(directory)
    new = dict.fromkeys((table.name for table in ORDER), 0)
    with store.writing() as connection:
        for table in ORDER:
            file = directory / f"{table.name}.{about['format']}"
            expected, found = about["rows"].get(table.name), 0
            if expected is None:
                continue
            for batch in _batches(file, about["format"], NAMES[table.name]):
                rows = [_row(NAMES[table.name], row, f"{file.name}, row {found + n}") for n, row in enumerate(batch, 1)]
                found += len(batch)
                new[table.name] += insert_many(connection, table, rows)
            if found != expected:
                raise usage(f"`{file}` has {found} rows, and {MANIFEST} says {expected}", "export it again")
    return new


def _manifest(directory: Path) -> dict[str, Any]:
    file = directory / MANIFEST
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        counts = about["rows"]
        sound = about["schema"] == SCHEMA and about["format"] in FORMATS and isinstance(counts, dict)
    except OSError as error:
        raise usage(f"`{directory}` is no exported history: {file.name}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise usage(f"`{file}` is not what `pathcast history export` writes")
    if about["version"] not in versions.known():
        raise versions.newer(str(about["version"]), str(directory))
    if about["format"] == "parquet":
        need("pyarrow")
    return dict(about)


def _of(table: Table, since_us: int | None) -> Any:
    """The rows of a table that are meant."""
    from sqlalchemy import select

    from pathcast.history.tables import NAMES

    wanted = select(table).order_by(*table.primary_key.columns)
    if since_us is None:
        return wanted
    if table.name in _OWNERS:
        owner, column = _OWNERS[table.name]
        acts = select(NAMES[owner].c.id).where(NAMES[owner].c.at_us >= since_us)
        return wanted.where(table.c[column].in_(acts))
    return wanted.where(table.c.at_us >= since_us) if "at_us" in table.c else wanted


def _kind(column: Column[Any]) -> str:
    name = type(column.type).__name__
    return {"BigInteger": "int", "Integer": "int", "Float": "float", "Boolean": "bool", "JSON": "json"}.get(
        name, "text"
    )


def _plain(table: Table, row: Any) -> Row:
    """As it stands in a file: documents as JSON, the time in words too."""
    found = {
        column.name: json.dumps(row[column.name]) if _kind(column) == "json" else row[column.name]
        for column in table.columns
    }
    return {**found, "at": clock.iso(row["at_us"])} if "at_us" in table.c else found


@contextmanager
def _writer(file: Path, table: Table) -> Iterator[Callable[[list[Row]], object]]:
    """What adds rows to a file."""
    timed = ["at"] if "at_us" in table.c else []
    if file.suffix == ".csv":
        with file.open("x", newline="", encoding="utf-8") as text:
            # it quotes the characters that end a line by what it ends them with itself, up to Python 3.11
            lines = SimpleNamespace(write=lambda line: text.write(line.removesuffix("\r\n") + "\n"))
            writer = csv.DictWriter(lines, [*table.columns.keys(), *timed], lineterminator="\r\n")
            writer.writeheader()
            yield writer.writerows
        return
    if file.suffix == ".jsonl":
        documents = _documents(table)
        with file.open("x", encoding="utf-8") as text:
            yield lambda rows: text.writelines(_line(row, documents) for row in rows)
        return
    import pyarrow
    from pyarrow import parquet

    kinds = {"int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_()}
    fields = [(column.name, kinds.get(_kind(column), pyarrow.string())) for column in table.columns]
    schema = pyarrow.schema([*fields, *((name, pyarrow.string()) for name in timed)])
    with parquet.ParquetWriter(file, schema) as made:
        yield lambda rows: made.write_table(pyarrow.Table.from_pylist(rows, schema))


def _documents(table: Table) -> list[str]:
    """The columns that hold JSON."""
    return [column.name for column in table.columns if _kind(column) == "json"]


def _line(row: Row, documents: list[str]) -> str:
    """A row as one document, in which its documents are documents too."""
    text = {name: value if name not in documents else json.loads(value) for name, value in row.items()}
    return json.dumps(text) + "\n"


def _of_line(line: str, documents: list[str]) -> Row:
    """What `_line` was made of. Raises ValueError."""
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("a line is no JSON object")
    return {name: json.dumps(value) if name in documents else value for name, value in found.items()}


def _of_fields(row: Row, table: Table) -> Row:
    """A row of CSV, where nothing at all stands for None too."""
    empty = {column.name for column in table.columns if column.nullable or _kind(column) != "text"}
    return {name: None if value == "" and name in empty else value for name, value in row.items()}


def _batches(file: Path, format: str, table: Table) -> Iterator[list[Row]]:
    """The rows of a file, as far as they can be read. Raises PathcastError (exit 2)."""
    try:
        if format == "parquet":
            import pyarrow
            from pyarrow import parquet

            try:
                yield from (batch.to_pylist() for batch in parquet.ParquetFile(file).iter_batches(_BATCH))
            except pyarrow.ArrowException as error:
                raise usage(f"`{file}` cannot be read: {str(error).splitlines()[0]}") from None
            return
        csv.field_size_limit(_LONGEST)
        documents = _documents(table)
        with file.open(newline="", encoding="utf-8") as text:
            batch: list[Row] = []
            lines = (_of_line(line, documents) for line in text)
            fields = (_of_fields(row, table) for row in csv.DictReader(text, strict=True))
            for row in lines if format == "jsonl" else fields:
                batch.append(row)
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
            if batch:
                yield batch
    except (csv.Error, ValueError) as error:  # bytes that are no text, text that is no JSON
        raise usage(f"`{file}` cannot be read: {error}") from None
    except OSError as error:
        raise usage(f"cannot read `{file}`: {error.strerror or error}") from None


def _row(table: Table, row: Mapping[str, Any], where: str) -> Row:
    """As the table takes it. Raises PathcastError (exit 2) that names the place and the value."""
    found = {}
    for column in table.columns:
        value = row.get(column.name)
        kind = _kind(column)
        if value is None:
            if not column.nullable:
                raise usage(f"{where}: `{column.name}` is missing")
        else:
            try:
                value = _READ[kind](value)
            except (ValueError, TypeError):
                raise usage(f"{where}: `{column.name}` is `{str(value)[:60]}`, not {kind}") from None
        found[column.name] = value
    return found


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise ValueError
    return str(value).lower() == "true"


def _whole(value: Any) -> int:
    found = int(value)
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError
    return found


def _finite(value: Any) -> float:
    found = float(value)
    if not isfinite(found):
        raise ValueError
    return found


def _json(value: Any) -> Any:
    def refuse(_: str) -> Any:
        raise ValueError

    return json.loads(value, parse_constant=refuse)


_READ: dict[str, Callable[[Any], Any]] = {"int": _whole, "float": _finite, "bool": _bool, "json": _json, "text": str}
