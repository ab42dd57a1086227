"""Hours and periods in seconds, over midnight, over resets, and where the clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from pathcast.plan.hours import allowances, open_hours
from pathcast.plan.terms import Allowance

HOUR = 3600.0
NIGHT = ((22 * 60, 6 * 60),)


def at(hour, minute=0, day=23):
    return datetime(2026, 11, day, hour, minute, tzinfo=ZoneInfo("Europe/Berlin"))


def hours(use, now, horizon_h):
    return [(begin / HOUR, end / HOUR) for begin, end in open_hours(use, now, horizon_h * HOUR)]


def test_a_night_goes_over_midnight():
    assert hours(NIGHT, at(20), 40) == [(2, 10), (26, 34)]
    assert hours(NIGHT, at(1), 10) == [(0, 5)]
    assert hours(NIGHT, at(6), 16) == []


def test_windows_that_touch_are_one():
    assert hours(((0, 12 * 60), (12 * 60, 24 * 60)), at(8), 48) == [(0, 48)]
    assert hours((), at(8), 48) == []


def test_a_night_in_which_the_clocks_change_is_longer_or_shorter():
    berlin = ZoneInfo("Europe/Berlin")
    assert hours(NIGHT, datetime(2026, 10, 24, 21, tzinfo=berlin), 20) == [(1, 10)]
    assert hours(NIGHT, datetime(2027, 3, 27, 21, tzinfo=berlin), 20) == [(1, 8)]


def test_a_cap_begins_anew_and_others_need_some_of_it():
    now = datetime(2026, 11, 30, 22, tzinfo=UTC)
    now = now.replace(tzinfo=ZoneInfo("UTC"))
    found = allowances(500, 10_000, [date(2026, 12, 1), date(2027, 1, 1)], now, 10 * HOUR)
    assert found == (Allowance(0, 2 * HOUR, 500), Allowance(2 * HOUR, 10 * HOUR, 10_000))
    found = allowances(500, 10_000_000, [date(2026, 12, 1)], now, 10 * HOUR, others_bps=800)
    assert [one.bytes for one in found] == [500 - 2 * 3600 * 100, 10_000_000 - 8 * 3600 * 100]
    assert {one.others_bps for one in found} == {800}
