"""What was said to be kept is kept: through kill -9, a database that is away, a full disc, and others who write."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.history import impatient, spool, store
from pathcast.history import place as places
from pathcast.history.journal import Journal
from pathcast.history.read import Reader
from pathcast.history.testing import KEY1, Clock, forecast_of, measure, origin, transfer

# forks writers that each tell the key of every act when it is kept; ends with them
WRITERS = """
    import os, sys
    from pathcast.history import place, clock
    from pathcast.history.journal import Journal
    from pathcast.history.testing import measure, transfer
    os.environ[place.STATE] = sys.argv[2]
    found = place.parse(sys.argv[1])
    import sqlalchemy.dialects.postgresql, sqlalchemy.dialects.sqlite, pathcast.history.read
    if found.file is None: import psycopg
    for _ in range(int(sys.argv[3])):
        if not (child := os.fork()):
            journal = Journal(found)
            for n in range(int(sys.argv[4])):
                act = measure(journal) if n % 2 else transfer(journal)
                os.write(1, f"{os.getpid()} {act}\\n".encode())
            os._exit(0)
        os.write(1, f"{child} started\\n".encode())
    while True:
        try: os.wait()
        except ChildProcessError: break
"""


def writers(place, state: Path, count: int, acts: int) -> subprocess.Popen:
    program = [sys.executable, "-c", textwrap.dedent(WRITERS)]
    return subprocess.Popen([*program, place.url.replace("+psycopg", ""), state, str(count), str(acts)], stdout=-1)


def kept(place, journal) -> set[str]:
    """Keys of all acts, those of the spool included."""
    journal.send()
    reader = Reader(journal.store, host="host-1")
    measured = {of.id for of in reader.measurements(KEY1, limit=100_000)}
    return measured | {of.id for of in reader.transfers([KEY1], limit=100_000)}


def test_an_act_is_there_when_add_returns(journal, reader, place):
    act = measure(journal)
    assert journal.trouble is None
    assert len(journal.spool) == 0
    assert [of.id for of in reader().measurements(KEY1)] == [act]
    if place.file is not None:
        assert place.file.stat().st_mode & 0o077 == 0


def test_the_same_act_twice_is_one(journal, reader):
    act = journal.act(origin())
    act.event("test", "once")
    assert journal.add(act)
    assert journal.add(act)
    assert len(reader().events()) == 1


def test_many_writers_at_once_lose_nothing(place, journal, tmp_path):
    running = writers(place, tmp_path / "state", 4, 8)
    told = [line.split()[1] for line in running.communicate()[0].decode().splitlines() if "started" not in line]
    assert running.returncode == 0
    assert len(told) == 32
    assert kept(place, journal) == set(told)
    assert len(list(place.spool.glob("*.json"))) == 0


def test_many_make_a_new_history_at_once(new_place, tmp_path):
    running = writers(new_place, tmp_path / "state", 6, 2)
    told = [line.split()[1] for line in running.communicate()[0].decode().splitlines() if "started" not in line]
    journal = Journal(new_place)
    assert len(told) == 12
    assert kept(new_place, journal) == set(told)
    assert not list(new_place.spool.glob("*.json"))
    journal.close()


def test_a_second_look_at_the_file_does_not_give_up_the_locks_of_the_first(tmp_path):
    """POSIX locks go with any descriptor of the file that is closed, and without them another process, which ends last
    as it seems, removes the log."""
    place = places.parse(f"sqlite:///{tmp_path}/history.db")
    first, second = Journal(place), Journal(place)
    measure(first)
    held = store._open(place.file)
    held.execute("SELECT count(*) FROM sqlite_master").fetchall()
    with second.store.asking():
        pass
    other = (
        f"import sqlite3; sqlite3.connect({str(place.file)!r}).execute('SELECT count(*) FROM sqlite_master').fetchall()"
    )
    subprocess.run([sys.executable, "-c", other], check=True)
    assert place.file.with_name("history.db-wal").exists(), "somebody has it open"
    held.close()


def test_killed_writers_lose_nothing_that_was_said(place, journal, tmp_path):
    """Each of eight (PATHCAST_KILLS) is killed at some time of its writing, while the others write."""
    kills, chance = int(os.environ.get("PATHCAST_KILLS", "8")), random.Random(7)
    running = writers(place, tmp_path / "state", kills, 1_000_000)
    told, alive = [], {}
    assert running.stdout is not None
    for line in running.stdout:
        pid, what = line.decode().split()
        if what == "started":
            alive[pid] = chance.randrange(1, 12)
            continue
        told.append(what)
        left = alive.pop(pid, 0) - 1
        if left > 0:
            alive[pid] = left
        elif left == 0:  # wherever it is in the next one
            time.sleep(chance.uniform(0, 0.01))
            os.kill(int(pid), signal.SIGKILL)
    running.wait()
    assert len(told) > 20
    assert set(told) <= kept(place, journal)
    if place.file is not None:
        with sqlite3.connect(place.file) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_server_that_is_away_loses_nothing(postgres, empty_database, monkeypatch):
    place = places.parse(postgres.database("away", empty_database))
    clock = Clock()
    journal = Journal(place, clock)
    acts = [measure(journal)]
    postgres.stop()
    try:
        acts += [measure(journal), measure(journal)]
        assert journal.trouble is not None
        assert journal.trouble.code == "history-away"
        assert len(journal.spool) == 2
        with pytest.raises(PathcastError, match="cannot be reached"):
            Reader(journal.store, clock(), "host-1").measurements(KEY1)
    finally:
        postgres.start()
    # another command, later: it takes along what waited
    later = Journal(place, clock)
    acts.append(measure(later))
    assert len(later.spool) == 0
    assert {of.id for of in Reader(later.store, clock(), "host-1").measurements(KEY1)} == set(acts)
    # the first one asks again after a while, with its dead connection gone
    monkeypatch.setattr(journal, "_not_before", 0.0)
    acts.append(measure(journal))
    assert journal.trouble is None
    assert len(Reader(later.store, clock(), "host-1").measurements(KEY1)) == 5
    journal.close()
    later.close()


def test_a_server_that_falls_silent_is_not_waited_for_for_ever(postgres, empty_database, monkeypatch):
    """Its kernel still acknowledges what comes, as that of a server does whose disc hangs."""
    journal = Journal(places.parse(postgres.database("silent", empty_database)))
    insert, stopped = Journal._insert, []

    def silent(self, plain, rows):
        [[pid]] = plain.rows("SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)
        patch.setattr(impatient, "SILENCE_S", 0.3)
        insert(self, plain, rows)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_insert", silent)
            acts = [measure(journal)]
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert len(stopped) == 1
    assert "answers nothing" in journal.trouble.message
    assert journal.trouble.code == "history-away"
    assert len(journal.spool) == 1
    monkeypatch.setattr(journal, "_not_before", 0.0)
    acts.append(measure(journal))
    assert journal.trouble is None
    assert len(journal.spool) == 0
    assert {of.id for of in Reader(journal.store, host="host-1").measurements(KEY1)} == set(acts)
    journal.close()


def test_a_server_gives_a_statement_as_long_as_who_asks_has(postgres, empty_database):
    place = places.parse(postgres.database("slow", empty_database))
    for patient, limit in ((False, "20s"), (True, "0")):
        journal = Journal(place, patient=patient)
        with journal.store.asking() as plain:
            assert plain.rows("SHOW statement_timeout") == [(limit,)]
        journal.close()


def test_a_server_that_never_answers_is_not_waited_for_again_and_again(tmp_path, monkeypatch):
    place = places.parse("postgresql://nobody@127.0.0.1:9/none")
    journal = Journal(place)
    measure(journal)
    assert journal.trouble.code == "history-away"
    monkeypatch.setattr(journal.store, "writing", None)  # would fail
    measure(journal)
    assert len(journal.spool) == 2


def test_a_writer_that_does_not_end_is_not_waited_for_for_ever(tmp_path, monkeypatch, empty):
    monkeypatch.setattr(store, "PATIENCE_S", 0.1)
    file = tmp_path / "history.db"
    file.write_bytes(empty.read_bytes())
    blocker = sqlite3.connect(file, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    journal = Journal(places.parse(str(file)))
    waiting = measure(journal)
    assert "does not end" in journal.trouble.message
    blocker.execute("ROLLBACK")
    blocker.close()
    monkeypatch.setattr(journal, "_not_before", 0.0)
    assert len(journal.spool) == 1
    now = measure(journal)
    assert len(journal.spool) == 0
    assert {of.id for of in Reader(journal.store, host="host-1").measurements(KEY1)} == {waiting, now}


def test_a_full_database_leaves_the_rest_whole_and_the_act_in_the_spool(tmp_path, empty, monkeypatch):
    file = tmp_path / "history.db"
    file.write_bytes(empty.read_bytes())
    journal = Journal(places.parse(str(file)))
    pages = sqlite3.connect(file).execute("PRAGMA page_count").fetchone()[0]
    opened = store._open

    def small(file):
        made = opened(file)
        made.execute(f"PRAGMA max_page_count={pages + 8}")
        return made

    monkeypatch.setattr(store, "_open", small)
    acts = [measure(journal) for _ in range(20) if journal.trouble is None]
    assert journal.trouble.code == "history-full"
    assert len(journal.spool) == 1
    found = {of.id for of in Reader(journal.store, host="host-1").measurements(KEY1)}
    assert found == set(acts[:-1])
    monkeypatch.setattr(store, "_open", opened)  # there is room again
    later = Journal(places.parse(str(file)))
    acts.append(measure(later))
    assert {of.id for of in Reader(later.store, host="host-1").measurements(KEY1)} == set(acts)


def test_no_database_takes_what_is_no_number(journal):
    act = journal.act(origin())
    act.event("test", "a hole", about={"value": float("nan")})
    with pytest.raises(PathcastError, match="cannot hold this"):
        journal.add(act)
    assert len(journal.spool) == 0


def test_an_act_that_was_sent_but_not_removed_is_not_doubled(journal, reader):
    act = journal.act(origin())
    act.event("test", "once")
    journal.put_by(act)
    [file] = journal.spool.directory.glob("*.json")
    text = file.read_text()
    assert journal.send() == (1, 0)
    file.write_text(text)  # as if the process had died before it removed it
    assert journal.send() == (1, 0)
    assert len(reader().events()) == 1


def test_what_is_broken_in_the_spool_keeps_nothing_else_there(journal, reader):
    for number, text in enumerate(
        ("[]", "{", json.dumps({"rows": {"event": [{"id": "x"}]}}), '{"rows": {"event": [{"nosuch": 1}]}}')
    ):
        journal.spool.directory.mkdir(parents=True, exist_ok=True)
        (journal.spool.directory / f"{number}.json").write_text(text)
    act = measure(journal)  # which sends, too
    assert [of.id for of in reader().measurements(KEY1)] == [act]
    assert len(list(journal.spool.directory.glob("*.refused"))) == 4
    assert len(journal.spool) == 0


def test_one_sends_at_a_time(journal):
    act = journal.act(origin())
    act.event("test", "once")
    journal.put_by(act)
    inner = []
    assert journal.spool.send(lambda rows: inner.append(spool.Spool(journal.spool.directory).send(rows.append))) == (
        1,
        0,
    )
    assert inner == [(0, 0)]


def test_a_spool_has_an_end(journal, monkeypatch):
    monkeypatch.setattr(spool, "LARGEST_BYTES", 2000)
    act = journal.act(origin())
    act.event("test", "x" * 3000)
    with pytest.raises(PathcastError, match="no space"):
        journal.put_by(act)
    assert list(journal.spool.directory.iterdir()) == []


def test_a_spool_that_others_may_write_to_is_not_used(journal, tmp_path):
    act = journal.act(origin())
    act.event("test", "once")
    journal.put_by(act)
    assert len(journal.spool) == 1
    journal.spool.directory.chmod(0o777)
    assert len(journal.spool) == 0
    assert journal.send() == (0, 0)
    with pytest.raises(PathcastError, match="another user's"):
        journal.put_by(act)
    elsewhere = tmp_path / "elsewhere"
    journal.spool.directory.chmod(0o700)
    journal.spool.directory.rename(elsewhere)
    journal.spool.directory.symlink_to(elsewhere)
    assert len(journal.spool) == 0


def test_transfers_that_wait_find_their_forecast_too(journal, reader):
    from pathcast.history.testing import forecast

    forecast(journal)
    act = journal.act(origin())
    from pathcast.history.testing import sent

    act.transfer(sent(), [(KEY1, "path1", 10_000_000, 0)])
    journal.put_by(act)
    journal.send()
    assert reader().forecasts([KEY1])[0].came[0].sent.id == act.id


def test_a_transfer_finds_the_forecast_that_waits(journal, reader):
    act = journal.act(origin())
    act.forecast(forecast_of(), {"path1": KEY1}, 10_000_000)
    journal.put_by(act)
    then = transfer(journal)
    assert len(journal.spool) == 0
    assert reader().forecasts([KEY1])[0].came[0].sent.id == then


@pytest.mark.parametrize("again", ["nothing", "an empty file", "another program's"])
def test_a_file_that_was_moved_away_is_made_again(tmp_path, empty, again):
    file = tmp_path / "history.db"
    file.write_bytes(empty.read_bytes())
    journal = Journal(places.parse(str(file)))
    measure(journal)
    for each in tmp_path.glob("history.db*"):
        if each.is_file():
            each.unlink()
    if again == "an empty file":
        file.touch(0o600)
    if again == "another program's":
        with closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE photos (id)")
    act = measure(journal)
    if again == "another program's":
        assert journal.trouble.code == "history-foreign"
        assert len(journal.spool) == 1
        return
    assert journal.trouble is None
    assert [of.id for of in Reader(journal.store, host="host-1").measurements(KEY1)] == [act]
    file.unlink()
    journal.store.add({})
    assert file.stat().st_mode & 0o077 == 0
    assert Reader(journal.store, host="host-1").measurements(KEY1) == []


def test_a_broken_file_is_said_and_not_touched(tmp_path):
    file = tmp_path / "history.db"
    file.write_text("my diary\n" * 500)
    journal = Journal(places.parse(str(file)))
    measure(journal)
    assert journal.trouble.code == "history-corrupt"
    assert file.read_text().startswith("my diary")
    assert len(journal.spool) == 1


def test_what_a_killed_writer_has_begun_is_taken_away(journal):
    journal.put_by(journal.act(origin()))
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = journal.spool.directory / f".writing-{dead.pid}-x"
    mine = journal.spool.directory / f".writing-{os.getpid()}-x"
    left.write_text("{")
    mine.write_text("{")
    journal.send()
    assert not left.exists()
    assert mine.exists()
