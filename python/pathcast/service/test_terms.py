"""What the user changes of a line while a job runs over it is seen, and what is wrong leaves all as it was."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from pathcast import zone
from pathcast.errors import PathcastError
from pathcast.lines import carried, config, edit
from pathcast.service import terms as module
from pathcast.service.terms import Changes, account, terms

GB = 10**9


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    path = config.file()
    edit.add(path, "cable", {"from": "192.0.2.1", "cap": "10GB/month"})
    edit.add(path, "dsl", {"from": "192.0.2.2"})
    return path


def test_a_cap_that_is_raised_and_what_the_provider_says_are_seen_once(file):
    changes = Changes(config.load())
    assert changes.look({}) == {}
    edit.change(file, "cable", {"cap": "50GB/month"})
    [(name, found)] = changes.look({}).items()
    assert (name, found.allowances[0].bytes) == ("cable", 50 * GB)
    assert changes.look({}) == {}
    carried.correct(config.load()["cable"], 20 * GB, datetime.now())
    carried.correct(config.load()["dsl"], GB, datetime(2026, 1, 1))
    found = changes.look({})
    assert sorted(found) == ["cable", "dsl"]
    assert found["cable"].allowances[0].bytes <= 30 * GB
    assert changes.look({}) == {}


def test_what_the_job_itself_has_carried_is_not_taken_for_that_of_others(file):
    line = config.load()["cable"]
    changes = Changes({"cable": line})
    carried.correct(line, 4 * GB, datetime.now())
    left = changes.look({"cable": 4 * GB})["cable"].allowances[0].bytes
    assert left == 6 * GB


def test_a_file_that_is_wrong_and_a_line_that_is_gone_leave_what_was(file):
    changes = Changes(config.load())
    text = file.read_text()
    file.write_text(text + "[line.")
    with pytest.raises(PathcastError):
        changes.look({})
    assert changes.look({}) == {}
    file.write_text(text)
    edit.remove(file, "cable")
    assert changes.look({}) == {}
    file.unlink()
    assert changes.look({}) == {}


def test_a_line_that_is_gone_is_said_once_and_one_that_has_another_name_is_the_same(file):
    said = []
    changes = Changes(config.load(), said.append)
    text = file.read_text()
    edit.remove(file, "cable")
    assert changes.look({}) == {}
    edit.change(file, "dsl", {"prefer": 1})
    assert set(changes.look({})) == {"dsl"}
    assert said == ["cable is no line any more: until this ends its terms stay as they were"]
    # it comes back, then under another name, with its old terms and with new ones
    file.write_text(text)
    assert set(changes.look({})) == {"dsl"}
    file.write_text(text.replace("line.cable", "line.coax"))
    assert changes.look({}) == {}
    file.write_text(text.replace("line.cable", "line.coax").replace("10GB", "50GB"))
    [(name, found)] = changes.look({}).items()
    assert (name, found.name, found.allowances[0].bytes) == ("cable", "cable", 50 * GB)
    assert len(said) == 1
    edit.remove(file, "coax")
    assert changes.look({}) == {}
    assert len(said) == 2


def test_hours_and_periods_are_the_machines_whatever_a_command_was_told(file, tmp_path, monkeypatch):
    edit.change(file, "cable", {"use": "22:00-06:00"})
    monkeypatch.setattr(zone, "FILE", tmp_path / "localtime")  # without it: UTC
    late, found = datetime(2026, 11, 29, 23, tzinfo=UTC).timestamp(), []
    try:
        for name in ("UTC", "Asia/Tokyo", "America/New_York"):
            with monkeypatch.context() as patch:
                patch.setenv("TZ", name)
                time.tzset()
                found.append(terms(["cable"], config.load(), {}, datetime.fromtimestamp(late).astimezone())["cable"])
    finally:
        time.tzset()
    assert found[0].hours[0] == (0.0, 7 * 3600.0)
    assert found[0].allowances[0].end_s == 25 * 3600.0
    assert found[0] == found[1] == found[2]


def test_where_nothing_is_counted_a_cap_has_what_pathcast_itself_carried(file, monkeypatch):
    line, now = config.load()["cable"], datetime.now(UTC)
    assert account(line, now).sentence() == "0 B of 10 GB; nothing is counted yet"
    monkeypatch.setattr(module, "own_bytes", lambda *_: 4 * GB)
    told = "4 GB of 10 GB; only what pathcast itself carried is counted yet"
    assert account(line, now).sentence() == told
    left = [terms(["cable"], {"cable": line}, {}, now, own)["cable"].allowances[0].bytes for own in ({}, {"cable": GB})]
    assert left == [6 * GB, 5 * GB]
    carried.correct(line, GB, now)
    assert account(line, now).bytes == GB
