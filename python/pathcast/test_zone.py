"""The machine's zone is that of its file, whatever the process was told."""

from __future__ import annotations

import struct
import time
from datetime import UTC, datetime, timedelta

import pytest

from pathcast import zone

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
# TZif (RFC 8536): one type of time, 9 h east
_PART = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 0, 1, 4) + struct.pack(">lBB4s", 9 * 3600, 0, 0, b"JST\0")
TOKYO = _PART + _PART + b"\nJST-9\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(zone, "FILE", tmp_path / "localtime")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield tmp_path / "localtime"
    monkeypatch.undo()
    time.tzset()


def test_it_is_that_of_the_file(file):
    file.write_bytes(TOKYO)
    assert NOON.astimezone(zone.zone()).isoformat() == "2026-11-26T21:00:00+09:00"


def test_moments_there_compare_as_they_are_and_say_their_zone_where_the_process_has_another(file, monkeypatch):
    file.write_bytes(TOKYO)
    first, second = zone.local(NOON.timestamp()), zone.local(NOON.timestamp() + 60)
    assert (first.isoformat(), second - first) == ("2026-11-26T21:00:00+09:00", timedelta(seconds=60))
    assert zone.clock(NOON.timestamp()) == datetime(2026, 11, 26, 21)
    assert abs(zone.local().timestamp() - time.time()) < 60
    assert zone.mark(first) == " JST"
    monkeypatch.setenv("TZ", "Asia/Seoul")  # the same time
    time.tzset()
    assert zone.mark(first) == zone.mark(datetime(2026, 11, 26, 21)) == ""


@pytest.mark.parametrize("text", [None, b"", b"UTC\n", *(TOKYO[:n] for n in (4, 30, 60, 80))])
def test_where_there_is_none_it_is_utc(file, text):
    if text is not None:
        file.write_bytes(text)
    assert NOON.astimezone(zone.zone()).utcoffset().total_seconds() == 0
