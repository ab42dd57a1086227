"""The machine's zone is that of its file, whatever the process was told."""

from __future__ import annotations

import struct
import time
from datetime import UTC, datetime

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


@pytest.mark.parametrize("text", [None, b"", b"UTC\n", *(TOKYO[:n] for n in (4, 30, 60, 80))])
def test_where_there_is_none_it_is_utc(file, text):
    if text is not None:
        file.write_bytes(text)
    assert NOON.astimezone(zone.zone()).utcoffset().total_seconds() == 0
