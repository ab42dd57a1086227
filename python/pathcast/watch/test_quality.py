"""What a long time comes to."""

from __future__ import annotations

import pytest

from pathcast.watch.quality import FEWEST, HOUR_S, quality
from pathcast.watch.seen import UNKNOWN, Level

EVERY_S = 300.0


def seen(values):
    return [(n * EVERY_S, value if isinstance(value, Level) else Level(value)) for n, value in enumerate(values)]


def test_the_share_is_one_of_time():
    found = quality(seen([10e6] * 60 + [6e6] * 20 + [8e6] * 20))
    assert found.usual_bps == 10e6
    assert found.judged_s == 100 * EVERY_S
    assert found.share == pytest.approx(0.2)
    # an hour holds twelve of them
    assert found.hours[0].share == 1
    assert found.hours[6].share == pytest.approx((8 * 0.6 + 4 * 0.8) / 12)
    assert [hour.at_s for hour in found.hours] == [n * HOUR_S for n in range(9)]


def test_what_was_not_looked_at_is_neither():
    values = seen([10e6] * 50)
    later = [(at_s + 50 * EVERY_S + 7 * 86_400, Level(1e6)) for at_s, _ in values[:10]]
    found = quality([*values, *later])
    # the last one before the week stands for three intervals
    assert found.judged_s == pytest.approx((49 + 3 + 10) * EVERY_S)
    assert found.degraded_s == pytest.approx(10 * EVERY_S)


def test_bounds_count_where_they_tell():
    known = [10e6] * 40
    found = quality(seen([*known, Level(None, 9e6, None), Level(None, None, 2e6), Level(None, 1e6, None), UNKNOWN]))
    assert (found.judged_s, found.degraded_s) == (42 * EVERY_S, EVERY_S)


@pytest.mark.parametrize("values", [[], [1e6], [1e6] * (FEWEST - 1), [UNKNOWN] * 50, [0.0] * 50])
def test_too_little_is_not_judged(values):
    found = quality(seen(values))
    assert (found.usual_bps, found.share, found.hours) == (None, None, ())
