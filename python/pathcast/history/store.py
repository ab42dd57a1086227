"""A history's database: SQLite in a file (WAL, so that commands and daemons use it at once) or PostgreSQL by URL."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pathcast.errors import PathcastError
from pathcast.history import versions
from pathcast.history.faults import history_error, told
from pathcast.history.place import Place
from pathcast.history.plain import OfFile, OfServer, Plain, as_json, check, sound

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

# table by table
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
# how long another writer is waited for, and how long for a server [s]
PATIENCE_S = 10
_CONNECT_S = 5
# how long a server may take for one statement, where nobody waits who could interrupt it [s]
_STATEMENT_S = 20
# how long who only reads waits for a writer [s]
_GLANCE_S = 2
# of an open file: its index of the log, and a page of the log [byte]
_BESIDE = 64 * 1024
# in PostgreSQL our tables have a schema of their own
SCHEMA = "pathcast"
# the number of the lock under which tables are made there
_LOCK = 0x7061_7468_6361_7374


class Store:
    """One database. What `add` has returned from is on the disc. Raises PathcastError as faults.py tells them."""

    def __init__(self, place: Place, read_only: bool = False, patient: bool = False) -> None:
        """read_only: nothing is made, changed or brought to our version; who writes is waited for a moment only.
        patient: a server may take its time for an answer."""
        self.place, self.read_only, self.patient = place, read_only, patient
        self._ready = False
        self._asked = threading.local()

    def close(self) -> None:
        """Ends its connections."""
        if "_engine" in self.__dict__:
            self._engine.dispose()
            del self.__dict__["_engine"]
        self._ready = False

    def add(self, rows: Rows) -> int:
        """Stores all of the rows or none; what is there already stays. How many were new."""
        with self.writing() as connection:
            return insert(connection, rows)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; it is on the disc when this ends without an error."""
        with self._told():
            self._prepare()
            with self._engine.connect().execution_options(pathcast_write=True) as connection, connection.begin():
                yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        file = self.place.file
        if not self.read_only and file is not None and file.exists() and _full(file):
            with closing(Store(self.place, read_only=True)) as glance, glance.reading() as connection:
                yield connection
            return
        with self._told():
            self._prepare()
            with self._engine.connect() as connection, connection.begin():
                yield connection

    @contextmanager
    def asking(self) -> Iterator[Plain]:
        """As `reading`, without SQLAlchemy where it is a file; inside of itself the same transaction."""
        if (within := getattr(self._asked, "plain", None)) is not None:
            yield within
            return
        with self._told(), self._plainly() as plain:
            self._asked.plain = plain
            try:
                yield plain
            finally:
                self._asked.plain = None

    @contextmanager
    def changing(self) -> Iterator[Plain]:
        """As `writing`, without SQLAlchemy where it is a file."""
        with self._told(), self._plainly(write=True) as plain:
            yield plain

    @property
    def exists(self) -> bool:
        """Whether there is anything to read; of a server: always."""
        return self.place.file is None or self.place.file.exists()

    def upgrade(self) -> tuple[str | None, str]:
        """Brings the tables to our version: from which to which."""
        with self._told(), self._connect_to_change() as connection:
            found = versions.current(connection)
            if found is not None and found not in versions.known():
                raise versions.newer(found, self.place.shown)
            if found != versions.HEAD:
                versions.upgrade(connection)
            return found, versions.HEAD

    def compact(self) -> None:
        """Gives the space of removed rows back: of a file; a server does that by itself."""
        if self.place.file is None:
            return
        with self._told(), self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            raw: Any = connection.connection.dbapi_connection
            raw.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")  # `execute` takes one step

    @contextmanager
    def _plainly(self, write: bool = False) -> Iterator[Plain]:
        """A transaction, once the tables are there and of our version."""
        if (file := self.place.file) is None:
            self._prepare()
            options = {"pathcast_write": write}
            with self._engine.connect().execution_options(**options) as connection, connection.begin():
                yield OfServer(connection)
            return
        if not self.read_only:
            _make(self.place)
            if not file.stat().st_size:
                self._prepare()  # who makes it is alone with it
        begin = "BEGIN IMMEDIATE" if write else "BEGIN"
        glances = self.read_only or (not write and _full(file))
        with closing(_glance(file) if glances else _open(file)) as raw:
            raw.execute(begin)
            if not versions.plainly(raw):
                raw.rollback()
                self._prepare()
                raw.execute(begin)
            try:
                yield OfFile(raw)
            except BaseException:
                raw.rollback()
                raise
            raw.commit()

    def _prepare(self) -> None:
        """The tables are there and of our version. A file's are brought to it; a server's have others who use them."""
        if self.place.file is None:
            if self._ready:
                return
        elif not self.read_only:
            _make(self.place)  # it may have been moved away since the last look
        with self._engine.connect() as connection, connection.begin():
            try:
                ready = versions.check(connection, self.place.shown, foreign=self.place.file is not None)
            except PathcastError as error:
                if error.code != "history-older" or self.place.file is None or self.read_only:
                    raise
                ready = False
        if not ready and self.read_only:
            raise history_error("empty", f"the history `{self.place.shown}` is empty: nothing was recorded yet")
        if not ready:
            with self._connect_to_change() as connection:
                # another one may have been faster
                if versions.current(connection) != versions.HEAD:
                    versions.upgrade(connection)
        self._ready = True

    @contextmanager
    def _connect_to_change(self) -> Iterator[Connection]:
        """Alone: SQLite's writers always are."""
        from sqlalchemy import text

        with self._engine.connect().execution_options(pathcast_write=True) as connection, connection.begin():
            if self.place.file is None:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # where it was not loaded nothing of it was raised
            alchemy = getattr(sys.modules.get("sqlalchemy.exc"), "SQLAlchemyError", OSError)
            if not isinstance(error, (alchemy, sqlite3.Error, OSError, ImportError)):
                raise
            if self.place.file is None:
                self.close()  # the connection may be a dead one
            raise told(error, self.place.shown) from None

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine, event
        from sqlalchemy.pool import NullPool

        url, file = self.place.url, self.place.file
        if file is None:
            options: dict[str, Any] = {
                "connect_timeout": _CONNECT_S,
                "tcp_user_timeout": PATIENCE_S * 1000,
                "keepalives_idle": PATIENCE_S,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "application_name": "pathcast",
                "options": f"-c search_path={SCHEMA} -c lock_timeout={PATIENCE_S}s -c timezone=UTC",
            }
            if self.read_only:
                options["options"] += " -c default_transaction_read_only=on"
            if not self.patient:
                options["options"] += f" -c statement_timeout={_STATEMENT_S}s"
            engine = create_engine(url, connect_args=options, json_serializer=as_json, pool_size=1, pool_pre_ping=True)
            if not self.patient:
                from pathcast.history.impatient import Impatient

                @event.listens_for(engine, "do_connect")
                def _(_: object, __: object, given: Any, named: Any) -> Any:
                    return Impatient.connect(*given, **named)

            return engine
        if self.read_only:
            return _reading(file)
        _make(self.place)
        options = {"timeout": PATIENCE_S, "check_same_thread": False}
        engine = create_engine(url, connect_args=options, json_serializer=as_json, poolclass=NullPool)

        @event.listens_for(engine, "connect")
        def _(connection: Any, _: object) -> None:
            connection.isolation_level = None  # transactions are begun below
            _set_up(connection)

        @event.listens_for(engine, "begin")
        def _(connection: Connection) -> None:
            # who reads first and then writes would not be waited for, but refused
            write = connection.get_execution_options().get("pathcast_write")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

        return engine


def insert(connection: Connection, rows: Rows) -> int:
    """Adds rows in the order of what they refer to; those that are there already stay as they are."""
    from pathcast.history.tables import ORDER

    return sum(insert_many(connection, table, rows[table.name]) for table in ORDER if rows.get(table.name))


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """The same of one table: how many were new. Raises PathcastError (`history-rows`) for what is no row of it."""
    from sqlalchemy.dialects import postgresql, sqlite

    dialect = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = dialect(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    needed = {column.name for column in table.columns if not column.nullable}
    new = 0
    for row in rows:
        check(table.name, row, set(table.columns.keys()), needed)
        try:
            new += max(0, connection.execute(statement, sound(row)).rowcount)
        except (ValueError, TypeError, OverflowError) as error:
            raise history_error("rows", f"`{table.name}` cannot hold this: {error}") from None
    return new


def _open(file: Path) -> sqlite3.Connection:
    """To read and write, at once beside others."""
    made = sqlite3.connect(file, timeout=PATIENCE_S, isolation_level=None)
    _set_up(made)
    return made


def _set_up(connection: sqlite3.Connection) -> None:
    # before there are tables, so that pruning gives the space back
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")  # NORMAL would lose the last ones when the power fails
    connection.execute("PRAGMA foreign_keys=ON")


def _full(file: Path) -> bool:
    """Whether its disc has no room for what SQLite keeps beside it while it is open."""
    of = os.statvfs(file.parent)
    return of.f_bavail * of.f_frsize < _BESIDE


def _glance(file: Path) -> sqlite3.Connection:
    """To read only, also where nothing can be written beside it: who finds no journal there reads it as it lies."""
    where = f"file:{quote(str(file))}?mode=ro"
    # nobody writes there, or nothing can be written: SQLite needs a file beside it else
    closed = not os.access(file.parent, os.W_OK) or _full(file)
    log = file.with_name(file.name + "-wal")
    lies = closed and not (log.exists() and log.stat().st_size)
    made = sqlite3.connect(
        where + ("&immutable=1" if lies else ""),
        uri=True,
        timeout=_GLANCE_S,
        check_same_thread=False,
        isolation_level=None,
    )
    made.execute("PRAGMA query_only=ON")
    return made


def _reading(file: Path) -> Engine:
    """Of a file that is only read."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    engine = create_engine("sqlite://", creator=lambda: _glance(file), json_serializer=as_json, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _make(place: Place) -> None:
    """The file, which its user alone may read: it tells when who was connected to whom.

    One that is there is not opened: whoever closes it gives up all locks that SQLite holds on it in this process, and
    another process then takes itself for the last one and removes the log, to which this one goes on writing.
    """
    assert place.file is not None
    place.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not place.file.exists():
        # closed before it has its name
        made, name = tempfile.mkstemp(prefix=".making-", dir=place.file.parent)
        os.close(made)
        try:
            os.link(name, place.file)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            with suppress(FileExistsError):
                os.close(os.open(place.file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        finally:
            os.unlink(name)
    if place.file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place.file))
    if not os.access(place.file, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place.file))
