"""What an alert is told of values that are bounded, absent or not to be trusted."""

from __future__ import annotations

from dataclasses import replace

from pathcast.service.looked import seen
from pathcast.watch.seen import UNKNOWN, Seen
from pathcast.worlds.measurement import Clock, Delay, Direction, Down, Loss, PathMeasured, Value

_AT = Value(0.01, 0.009, 0.011)
_WAY = Direction(
    Value(25e6, 24e6, 26e6), Value(5e6, 4e6, 6e6), Delay(_AT, _AT, _AT, 0.001, Clock(True, 0.0)), Loss(2, 400), 1000
)


def out(**rates):
    return seen(PathMeasured("one", "", "", {"out": replace(_WAY, **rates)}, Value(0.02)), "out", None)


def test_what_is_not_to_be_trusted_neither_fires_an_alert_nor_ends_it():
    assert out().available.below(10e6) is True
    doubtful = out(available_bps=Value(5e6, 0.0, 6e6, "inconsistent"), capacity_bps=Value(9e6, 8e6, 9e6, "too-few"))
    assert (doubtful.available, doubtful.capacity) == (UNKNOWN, UNKNOWN)
    assert doubtful.available.below(10e6) is None
    assert doubtful.available.above(10e6) is None


def test_what_is_down_has_its_reason_in_words():
    assert seen(PathMeasured("one", "", "", {}, down=Down(8, 0)), "in", None) == Seen(down=Down(8, 0).said)


def test_what_a_short_look_saw_counts_as_what_was_so_just_then():
    short = Value(5e6, 4e6, 6e6, "too-short")
    seen_then = out(available_bps=short, capacity_bps=short)
    assert (seen_then.available.value, seen_then.capacity) == (5e6, UNKNOWN)


def test_bounds_without_a_value_tell():
    assert out(available_bps=Value(None, 12e6, None, "beyond-limit")).available.below(10e6) is False
