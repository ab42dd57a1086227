"""`pathcast history` over a database that takes nothing more: what is there is shown all the same."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from pathcast.history import place, store
from pathcast.history.identity import host_id
from pathcast.history.journal import Journal
from pathcast.history.rows import Origin


@pytest.fixture
def full(tmp_path, monkeypatch, own_directories):
    """A history of one event that no further one fits into; it waits."""
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    journal = Journal(place.parse(str(tmp_path / "h.db")))
    acts = [journal.act(Origin("host", host_id=host_id())) for _ in range(2)]
    acts[0].event("test", "it is there")
    acts[1].event("test", "too much " * 10_000)
    assert journal.add(acts[0])
    journal.put_by(acts[1])
    opened = store._open
    with closing(sqlite3.connect(tmp_path / "h.db")) as connection:
        [pages] = connection.execute("PRAGMA page_count").fetchone()

    def small(file):
        made = opened(file)
        made.execute(f"PRAGMA max_page_count={pages}")
        return made

    monkeypatch.setattr(store, "_open", small)
    return journal, acts[0].id


@pytest.mark.parametrize("command", ["list events", "show", "export", "prune"])
def test_what_waits_and_cannot_be_added_keeps_nobody_from_reading(full, pathcast, tmp_path, command):
    journal, act = full
    more = {"show": (act,), "export": (tmp_path / "out", "--format", "csv")}.get(command, ())
    status, out, told = pathcast("history", *command.split(), *more, "--history", tmp_path / "h.db")
    assert status == 0, told
    assert (act[:12] in out) == (command in ("list events", "show"))
    why = f"no space is left for the history `{journal.place.shown}`"
    assert told == f"note: 1 more waits in {journal.place.spool} for the database: {why}\n"
    assert len(journal.spool) == 1


def test_where_it_cannot_be_read_either_that_alone_is_said(full, pathcast, tmp_path, monkeypatch):
    def broken(*_):
        raise sqlite3.OperationalError("nothing goes")

    monkeypatch.setattr(store, "_open", broken)
    status, out, told = pathcast("history", "list", "--history", tmp_path / "h.db")
    assert (status, out) == (1, "")
    assert told.count("nothing goes") == 1
    assert "more waits" not in told
