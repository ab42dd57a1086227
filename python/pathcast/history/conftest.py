"""Histories of the tests' own, in SQLite and in a real PostgreSQL."""

from __future__ import annotations

import shutil

import pytest

from pathcast.history import place as places
from pathcast.history.journal import Journal
from pathcast.history.read import Reader
from pathcast.history.store import Store
from pathcast.history.testing import Clock, Postgres


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    """Spools of servers lie in the state directory."""
    monkeypatch.setenv(places.STATE, str(tmp_path / "state"))


@pytest.fixture(scope="session")
def postgres():
    """The server; skips where there is none."""
    if why := Postgres.lacks():
        pytest.skip(why)
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request, tmp_path):
    """A place where nothing is yet."""
    if request.param == "sqlite":
        return places.parse(str(tmp_path / "deep/history.db"))
    return places.parse(request.getfixturevalue("postgres").database("new"))


@pytest.fixture(scope="session")
def empty(tmp_path_factory):
    """A history in SQLite to copy: making one costs half a second."""
    return _made(places.parse(str(tmp_path_factory.mktemp("empty") / "history.db"))).file


@pytest.fixture(scope="session")
def empty_database(postgres):
    """The same in PostgreSQL."""
    _made(places.parse(postgres.database("empty")))
    return "empty"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """A place with an empty history."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("empty"), tmp_path / "history.db")
        return places.parse(str(tmp_path / "history.db"))
    template = request.getfixturevalue("empty_database")
    return places.parse(request.getfixturevalue("postgres").database("history", template))


def _made(place):
    store = Store(place)
    with store.writing():
        pass
    store.close()
    return place


@pytest.fixture
def at():
    return Clock()


@pytest.fixture
def journal(place, at):
    made = Journal(place, at)
    yield made
    made.close()


@pytest.fixture
def reader(journal, at):
    """Makes a reader of now."""
    return lambda host="host-1": Reader(journal.store, at(), host)
