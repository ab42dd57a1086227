"""A history of another version is brought to ours, or refused with the command that does it."""

from __future__ import annotations

import shutil
import sqlite3

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from pathcast.errors import Exit, PathcastError
from pathcast.history import place as places
from pathcast.history import tables, versions
from pathcast.history.journal import Journal
from pathcast.history.read import Reader
from pathcast.history.store import Store
from pathcast.history.testing import KEY1, measure

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{before}"


def upgrade():
    op.add_column("host", sa.Column("note", sa.Text()))
    {more}
"""


@pytest.fixture
def newer_pathcast(tmp_path, monkeypatch):
    """A pathcast of the future, whose histories have another column."""

    def make(more=""):
        revisions = tmp_path / "revisions"
        shutil.copytree(versions.REVISIONS, revisions, dirs_exist_ok=True)
        (revisions / "9999_next.py").write_text(NEXT.format(before=versions.HEAD, more=more))
        monkeypatch.setattr(versions, "REVISIONS", revisions)
        monkeypatch.setattr(versions, "HEAD", "9999")

    return make


def test_what_is_made_is_what_the_tables_say(new_place):
    store = Store(new_place)
    with store.reading() as connection:
        options = {"version_table": versions.TABLE}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), tables.metadata) == []
        assert versions.current(connection) == versions.HEAD == versions.known()[-1]
    store.close()


def test_an_older_file_is_brought_to_this_version(tmp_path, empty, newer_pathcast):
    file = tmp_path / "history.db"
    shutil.copy(empty, file)
    place = places.parse(str(file))
    act = measure(Journal(place))
    newer_pathcast()
    journal = Journal(place)
    then = measure(journal)
    assert journal.trouble is None
    assert {of.id for of in Reader(journal.store, host="host-1").measurements(KEY1)} == {act, then}
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT note FROM host").fetchall() == [(None,)]


def test_an_older_server_is_refused_with_the_command_and_the_command_does_it(
    postgres, empty_database, newer_pathcast, at
):
    place = places.parse(postgres.database("older", empty_database))
    first = measure(Journal(place, at))
    newer_pathcast()
    journal = Journal(place, at)
    waits = measure(journal)
    assert journal.trouble.code == "history-older"
    assert f"pathcast history upgrade --history '{place.shown}'" in journal.trouble.hint
    with pytest.raises(PathcastError, match="version 0001") as refused:
        Reader(journal.store, at(), "host-1").measurements(KEY1)
    assert refused.value.exit == Exit.USAGE
    assert journal.store.upgrade() == ("0001", "9999")
    assert journal.send() == (1, 0)
    assert {of.id for of in Reader(journal.store, at(), "host-1").measurements(KEY1)} == {first, waits}
    assert journal.store.upgrade() == ("9999", "9999")
    journal.close()


def test_a_newer_one_is_refused_and_what_comes_waits(place, at, monkeypatch, newer_pathcast):
    measure(Journal(place, at))
    newer_pathcast()
    Store(place).upgrade()
    monkeypatch.undo()
    journal = Journal(place, at)
    measure(journal)
    assert journal.trouble.code == "history-newer"
    assert "9999" in journal.trouble.message
    assert len(journal.spool) == 1
    with pytest.raises(PathcastError, match="does not know"):
        journal.store.upgrade()
    journal.close()


def test_an_upgrade_that_breaks_off_has_done_nothing(place, newer_pathcast, at):
    first = measure(Journal(place, at))
    newer_pathcast("raise RuntimeError('the power failed')")
    with pytest.raises(RuntimeError):
        Store(place).upgrade()
    with Store(place)._engine.connect() as connection:
        assert versions.current(connection) == "0001"
        assert "note" not in connection.exec_driver_sql("SELECT * FROM host").keys()  # noqa: SIM118
        assert connection.exec_driver_sql("SELECT act FROM measurement").scalar() == first


def test_somebody_elses_file_is_left_alone(tmp_path):
    file = tmp_path / "photos.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE photos (id)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(PathcastError, match="something else: photos"):
        Store(places.parse(str(file))).add({})
    assert file.read_bytes()[100:] == before[100:]  # in the head stands that it is read with a journal of its own


def test_others_tables_in_the_same_server_are_no_harm(postgres, at):
    import psycopg

    url = postgres.database("shared")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE host (mine int)")
        connection.execute("CREATE TABLE alembic_version (version_num text)")
    journal = Journal(places.parse(url), at)
    measure(journal)
    assert journal.trouble is None
    journal.close()
