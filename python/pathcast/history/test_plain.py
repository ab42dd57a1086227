"""Rows by the text of SQL: what it knows of the tables is what they are, whatever the database."""

from __future__ import annotations

import pytest
from sqlalchemy import Boolean

from pathcast.errors import PathcastError
from pathcast.history import tables
from pathcast.history.plain import DOCUMENTS, TABLES, TRUTHS, spread
from pathcast.history.store import Store

HOST = {"id": "h", "name": "far \ud800 end", "added_us": 1}
EVENT = {"id": "e", "at_us": 2, "boot_us": 3, "boot": "b", "host_id": "h", "world": "sim", "kind": "k", "text": "t"}


def test_tables_and_the_columns_that_are_read_by_name_are_those_of_the_history():
    assert {table.name for table in tables.ORDER} == set(TABLES)
    for at, name in enumerate(TABLES):
        assert {key.column.table.name for key in tables.NAMES[name].foreign_keys} <= set(TABLES[:at])
    columns = [column for table in tables.ORDER for column in table.columns]
    assert {column.name for column in columns if column.type is tables._JSON} == DOCUMENTS
    assert {column.name for column in columns if isinstance(column.type, Boolean)} == TRUTHS
    assert not {column.name for column in columns if column.type is not tables._JSON} & DOCUMENTS


def test_what_is_changed_is_what_is_asked_for(place):
    store = Store(place)
    about = {"list": [1, 2.5, None], "text": "\u00e9"}
    with store.changing() as plain:
        assert plain.insert("host", [HOST]) == 1
        assert plain.insert("host", [HOST]) == 0
        assert plain.insert("event", [{**EVENT, "about": about, "circumstances": {}}]) == 1
    with store.asking() as plain, store.asking() as within:
        assert within is plain
        [row] = plain.rows("SELECT event.*, host.name FROM event JOIN host ON host.id = event.host_id")
        assert (row.about, row.circumstances, row.line, row.name) == (about, {}, None, "far ? end")
        assert plain.rows("SELECT id FROM event WHERE id IN :ids", ids=[]) == []
        assert len(plain.rows("SELECT id FROM event WHERE id IN :ids AND at_us = :at_us", ids=["x", "e"], at_us=2)) == 1
    store.close()


def test_a_change_that_fails_changes_nothing(place):
    store = Store(place)
    with pytest.raises(PathcastError) as refused, store.changing() as plain:
        plain.insert("host", [HOST, {"id": "other", "nonsense": 1}])
    assert refused.value.code == "history-rows"
    assert "added_us, name, nonsense" in refused.value.message
    with pytest.raises(PathcastError) as refused, store.changing() as plain:
        plain.insert("host", [{**HOST, "added_us": 1 << 70}])
    assert refused.value.code == "history-rows"
    with store.asking() as plain:
        assert plain.rows("SELECT * FROM host") == []
    store.close()


def test_a_list_is_spread():
    text, values = spread("x IN :ids AND y = :ids_too", {"ids": ("a", "b"), "ids_too": 1})
    assert text == "x IN (:ids_0, :ids_1) AND y = :ids_too"
    assert values == {"ids_0": "a", "ids_1": "b", "ids_too": 1}
