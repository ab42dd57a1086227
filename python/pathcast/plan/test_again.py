"""Due times, over midnight and after a sleep; when a broken job is started again, and when no more."""

from __future__ import annotations

from datetime import datetime, time, timedelta

import pytest

from pathcast.plan.again import FIRST_S, MOST_S, Attempt, is_due, last_due, next_due, wait_s

AT = (time(22), time(2, 30))
HOUR = 3600.0


def day(of, hour, minute=0):
    return datetime(2026, 11, of, hour, minute)


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
