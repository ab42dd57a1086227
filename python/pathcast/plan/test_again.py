"""Due times, over midnight and after a sleep; when a broken job is started again, and when no more."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from pathcast.plan import again
from pathcast.plan.again import FIRST_S, MOST_S, Attempt, last_due, next_due, wait_s

AT = (time(22), time(2, 30))
HOUR = 3600.0


def day(of, hour, minute=0):
    return datetime(2026, 11, of, hour, minute)


def is_due(at, now, *more):
    return again.is_due(at, now.replace(tzinfo=UTC), *more)


def test_times_of_day():
    assert last_due(AT, day(23, 22)) == day(23, 22)
    assert last_due(AT, day(23, 21, 59)) == day(23, 2, 30)
    assert last_due(AT, day(23, 1)) == day(22, 22)
    assert next_due(AT, day(23, 22)) == day(24, 2, 30)
    assert next_due(AT, day(23, 21)) == day(23, 22)


def test_due_once_and_not_after_its_deadline():
    at = (time(22),)
    for until in (time(6), timedelta(hours=8)):
        assert is_due(at, day(23, 22), None, until)
        assert is_due(at, day(24, 5), day(22, 22), until)  # the host was off at ten
        assert not is_due(at, day(24, 6), day(22, 22), until)
        assert not is_due(at, day(23, 23), day(23, 22, 1), until)
    assert not is_due(AT, day(24, 7), day(23, 22), time(6))
    assert is_due(AT, day(24, 5), day(23, 22), time(6))
    assert is_due(at, day(23, 22, 10), None, None)
    assert is_due(at, day(23, 22), day(23, 22) + timedelta(days=365), time(6))  # by a clock that was wrong
    assert not is_due(at, day(23, 23), None, None)


def test_a_time_before_it_was_added_is_not_its_own():
    at, until = (time(22),), time(6)
    assert not is_due(at, day(23, 23, 30), None, until, day(23, 23, 30))
    assert not is_due(at, day(24, 5), None, until, day(23, 23, 30))
    assert is_due(at, day(24, 22), None, until, day(23, 23, 30))
    assert is_due(at, day(23, 22, 1), None, until, day(23, 22, 1))  # a moment ago
    assert is_due(at, day(23, 23), None, until, day(23, 21))
    assert is_due(at, day(23, 23), None, until, day(23, 23) + timedelta(days=365))  # by a clock that was wrong


@pytest.mark.parametrize(
    ("at", "until", "utc", "due"),
    [
        # the clock goes forward at 01:00 UTC, from 02:00 to 03:00
        (time(2, 30), None, (2027, 3, 28, 0, 59, 59), False),
        (time(2, 30), None, (2027, 3, 28, 1, 0, 5), True),
        (time(2, 30), None, (2027, 3, 28, 1, 44, 59), True),
        (time(2, 30), None, (2027, 3, 28, 1, 45), False),
        (time(1, 59), None, (2027, 3, 28, 1, 13, 59), True),
        (time(1, 59), None, (2027, 3, 28, 1, 14), False),
        (time(22), timedelta(hours=8), (2027, 3, 28, 4, 59, 59), True),
        (time(22), timedelta(hours=8), (2027, 3, 28, 5), False),
        # and back at 01:00 UTC, from 03:00 to 02:00
        (time(22), timedelta(hours=8), (2026, 10, 25, 3, 59, 59), True),
        (time(22), timedelta(hours=8), (2026, 10, 25, 4), False),
        (time(2, 30), None, (2026, 10, 25, 0, 44, 59), True),
        (time(2, 30), None, (2026, 10, 25, 1, 30), False),
    ],
)
def test_in_a_night_in_which_the_clock_is_changed_an_hour_is_an_hour(at, until, utc, due):
    now = datetime(*utc, tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin"))
    assert again.is_due([at], now, None, until) == due


@pytest.mark.parametrize(
    ("attempts", "left_s", "wait"),
    [
        ([Attempt(0, 5)], HOUR, None),
        ([Attempt(12, 5)], HOUR, FIRST_S),
        ([Attempt(12, 5)] * 3, HOUR, 4 * FIRST_S),
        ([Attempt(12, 5)] * 5 + [Attempt(12, HOUR)], HOUR, FIRST_S),
        ([Attempt(12, 5)] * 9, HOUR, MOST_S),
        ([Attempt(12, 5)] * 11, HOUR, None),
        ([Attempt(12, 5)], -HOUR, FIRST_S),
        ([Attempt(127, 0)], HOUR, None),
        ([Attempt(143, 5, barred=True)] * 30, HOUR, MOST_S),
        ([Attempt(143, 5, barred=True)], 60, 60),
        ([Attempt(143, 5, final=True)], HOUR, None),
        ([Attempt(143, 5, barred=True)], 0, None),
    ],
)
def test_started_again(attempts, left_s, wait):
    assert wait_s(attempts, 10, left_s) == wait
