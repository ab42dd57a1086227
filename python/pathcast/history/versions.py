"""The version of a history's tables: made, brought to ours, or refused with the command that does it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast.errors import Exit, PathcastError
from pathcast.history.faults import history_error

if TYPE_CHECKING:
    from sqlalchemy import Connection

# the newest file of `revisions`
HEAD = "0001"
# a table of our own, should others keep theirs in the same database
TABLE = "pathcast_version"
REVISIONS = Path(__file__).with_name("revisions")


def current(connection: Connection) -> str | None:
    """The version of what is there; None: nothing is."""
    from sqlalchemy import inspect, text

    if not inspect(connection).has_table(TABLE):
        return None
    rows = connection.execute(text(f"SELECT version_num FROM {TABLE}")).all()
    return str(rows[0][0]) if rows else None


def plainly(raw: sqlite3.Connection) -> bool:
    """Whether a file of SQLite has tables of our version."""
    try:
        return raw.execute(f"SELECT version_num FROM {TABLE}").fetchall() == [(HEAD,)]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        return False  # there is no such table


def check(connection: Connection, shown: str, foreign: bool) -> bool:
    """Whether the tables are of our version; False: they are to be made.

    foreign: whether tables that are not ours make it something else than a history. Raises PathcastError (exit 2) for
    another version, with the command that brings it to ours, and for something else.
    """
    from sqlalchemy import inspect

    found = current(connection)
    if found == HEAD:
        return True
    if found is None:
        others = inspect(connection).get_table_names() if foreign else []
        if others:
            raise history_error("foreign", f"`{shown}` holds something else: {', '.join(others[:3])}", None, Exit.USAGE)
        return False
    raise older(found, shown) if found in known() else newer(found, shown)


def older(found: str, shown: str) -> PathcastError:
    """It has to be brought to our version first, which all that use it must know."""
    return history_error(
        "older",
        f"the history `{shown}` has version {found}, this pathcast {HEAD}",
        f"when all that use it are of this version: pathcast history upgrade --history '{shown}'",
        Exit.USAGE,
    )


def newer(found: str, shown: str) -> PathcastError:
    """A newer pathcast, or somebody else, has made it."""
    return history_error(
        "newer",
        f"the history `{shown}` has version {found}, which this pathcast ({HEAD}) does not know",
        "use the pathcast that has made it, or --history with another one",
        Exit.USAGE,
    )


def known() -> list[str]:
    """Versions that can be brought to the newest."""
    return sorted(file.name.partition("_")[0] for file in REVISIONS.glob("[0-9]*_*.py"))


def upgrade(connection: Connection) -> None:
    """Brings the tables to the newest version, in the connection's transaction: all of it or nothing."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(REVISIONS.parent), version_locations=[str(REVISIONS)])
    with EnvironmentContext(Config(), script, fn=lambda rev, _: script._upgrade_revs("head", rev)) as environment:
        environment.configure(connection=connection, version_table=TABLE, transactional_ddl=True)
        environment.run_migrations()
