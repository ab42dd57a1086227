"""Retention by age and by size; a clock that was set wrong is no reason to forget."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.history import keep
from pathcast.history import place as places
from pathcast.history.journal import Journal
from pathcast.history.keep import Keep, prune
from pathcast.history.read import Reader
from pathcast.history.testing import KEY1, KEY2, KEYS, forecast, measure, measured, origin, transfer

DAY_S = 86_400
# of `testing.origin`
HOST = "host-1"


def test_what_is_too_old_goes_with_all_that_belongs_to_it(journal, reader, at):
    for _ in range(4):
        measure(journal)
        forecast(journal)
        transfer(journal, ("path1", "path2"))
        at.passes(10 * DAY_S)
    done = prune(journal.store, Keep(age_s=25 * DAY_S), at(), host=HOST)
    assert done.rows == {"measurement": 4, "transfer": 2, "forecast": 2, "event": 0, "usage": done.rows["usage"]}
    assert done.rows["usage"] > 0
    assert len(reader().measurements(KEY1)) == 2
    assert len(reader().transfers([KEY1, KEY2])) == 2
    assert len(reader().forecasts([KEY1])) == 2
    with journal.store.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM transfer_path").scalar() == 4
        assert connection.exec_driver_sql("SELECT count(*) FROM forecast_path").scalar() == 2


def test_of_what_is_too_much_the_oldest_goes(journal, reader, at, place):
    acts, chance = [], random.Random(1)
    for _ in range(60):
        acts.append(measure(journal, padding=chance.randbytes(2500).hex()))
        at.passes(60)
    with journal.store.reading() as connection:
        size = keep.size_bytes(connection)
    assert size > 300_000
    done = prune(journal.store, Keep(bytes=size // 2), at(), host=HOST)
    left = [of.id for of in reader().measurements(KEY1, limit=100)]
    assert left == acts[::-1][: len(left)]
    assert 15 < len(left) < 45
    assert done.after_bytes <= size // 2 < done.before_bytes
    if place.file is not None:
        journal.close()
        assert os.stat(place.file).st_size < 0.7 * size  # the space is given back
    assert prune(journal.store, Keep(bytes=size // 2), at(), host=HOST).rows["measurement"] == 0


def test_a_dry_run_only_counts(journal, reader, at):
    measure(journal)
    at.passes(500 * DAY_S)
    assert prune(journal.store, Keep(), at(), dry=True, host=HOST).rows["measurement"] == 2
    assert len(reader().measurements(KEY1)) == 1


def test_a_clock_that_nobody_vouches_for_forgets_nothing(journal, reader, at):
    measure(journal)
    at.is_set(3000 * DAY_S)
    prune(journal.store, Keep(), at(), synchronised=False, host=HOST)
    assert len(reader().measurements(KEY1)) == 1
    prune(journal.store, Keep(), at(), synchronised=True, host=HOST)
    assert len(reader().measurements(KEY1)) == 0


def test_who_records_prunes_once_a_day(place, at, reader, monkeypatch):
    done = []
    monkeypatch.setattr(keep, "prune", lambda *_, **__: done.append(at()))
    for hours in (0, 1, 22, 2, 23, 2):
        at.passes(hours * 3600)
        journal = Journal(place, at)
        measure(journal)
        measure(journal)
        journal.close()
    assert len(done) == 3


def test_who_records_for_days_prunes_every_day(journal, at, monkeypatch):
    done = []
    monkeypatch.setattr(keep, "prune", lambda *_, **__: done.append(at()))
    for _ in range(3):
        measure(journal)
        at.passes(600)
        measure(journal)
        at.passes(2 * DAY_S)
    assert len(done) == 3


@pytest.mark.parametrize("vouched", [False, True])
def test_what_was_recorded_under_a_wrong_clock_does_not_vouch_for_it(place, reader, at, monkeypatch, vouched):
    """Nor do those of the days before, where there was a clock that could be trusted."""
    monkeypatch.setattr("pathcast.machine.clock_state", lambda: {"synchronised": False})
    first = Journal(place, at)
    measure(first, clock={"synchronised": vouched})
    first.close()
    at.is_set(3000 * DAY_S)
    for _ in range(1 + vouched):
        later = Journal(place, at)
        measure(later, clock={"synchronised": False})
        later.close()
        at.passes(2 * DAY_S)
    assert len(reader().measurements(KEY1)) == 2 + vouched


def test_where_usage_is_what_is_too_much_it_goes_too(journal, reader, at):
    """What lines have carried is booked hour by hour, whether anything is measured or not."""
    with journal.store.reading() as connection:
        empty = keep.size_bytes(connection)
    act = journal.act(origin())
    for hour in range(1200):
        act.usage("cable", 1, 1, hour_us=at().utc_us + hour * 3_600_000_000)
    journal.add(act)
    at.passes(1200 * 3600)
    last = measure(journal)
    with journal.store.reading() as connection:
        limit = empty + (keep.size_bytes(connection) - empty) // 3
    done = prune(journal.store, Keep(bytes=limit), at(), host=HOST)
    assert done.after_bytes <= limit
    assert 300 < done.rows["usage"] < 1200
    assert [of.id for of in reader().measurements(KEY1)] == [last]


def test_where_the_paths_are_what_is_too_much_nothing_else_goes(tmp_path, empty, at):
    (tmp_path / "history.db").write_bytes(empty.read_bytes())
    journal = Journal(places.parse(str(tmp_path / "history.db")), at)
    measure(journal)
    assert not any(prune(journal.store, Keep(bytes=100), at()).rows.values())


def test_of_a_server_every_host_keeps_its_own(postgres, empty_database, at):
    place = places.parse(postgres.database("shared", empty_database))
    journal = Journal(place, at)
    theirs = journal.act(replace(origin(), host_id="host-2"))
    theirs.measurement(measured(), KEYS, ("out", "in"))
    journal.add(theirs)
    measure(journal)
    at.passes(30 * DAY_S)
    assert prune(journal.store, Keep(age_s=25 * DAY_S), at(), host=HOST).rows["measurement"] == 2
    measure(journal)
    with journal.store.reading() as connection:
        own, all_bytes = keep.size_bytes(connection, HOST), keep.size_bytes(connection)
    assert 0 < own < all_bytes
    assert not any(prune(journal.store, Keep(bytes=own), at(), host=HOST).rows.values())
    assert prune(journal.store, Keep(bytes=own - 1), at(), host=HOST).rows["usage"] > 0
    assert len(Reader(journal.store, at(), "host-2").measurements(KEY1)) == 1
    assert len(Reader(journal.store, at(), "host-2").usage()) == 1
    journal.close()


def test_the_limits_are_those_of_the_environment(monkeypatch):
    assert Keep.of_environment() == Keep(400 * DAY_S, 10**9)
    monkeypatch.setenv(keep.AGE, "30d")
    monkeypatch.setenv(keep.SIZE, "50MB")
    assert Keep.of_environment() == Keep(30 * DAY_S, 50_000_000)


@pytest.mark.parametrize(("age", "size"), [("1h", None), (None, "5kB"), ("soon", None), (None, "10Mbit")])
def test_limits_that_would_forget_everything_are_refused(age, size):
    with pytest.raises(PathcastError) as refused:
        Keep.parse(age, size)
    assert refused.value.exit == Exit.USAGE
    assert (age or size) in refused.value.message
