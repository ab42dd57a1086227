"""What a watch knows of one path."""

from __future__ import annotations

from pathcast.history.clock import Moment
from pathcast.service.watched import Watched


def test_when_a_round_was_stays_the_same_until_the_clock_is_set():
    path = Watched("cable", [], at_s=100.0)
    first = path.utc_s(Moment(1_700_000_000_000_000, 160_000_000, "b"))
    assert first == 1_700_000_000 - 60
    assert path.utc_s(Moment(1_700_000_015_000_007, 175_000_003, "b")) == first  # the clocks were not read at once
    assert path.utc_s(Moment(1_700_003_600_000_000, 190_000_000, "b")) == 1_700_003_600 - 90
    path.at_s = 180.0
    assert path.utc_s(Moment(1_700_003_600_000_000, 190_000_000, "b")) == 1_700_003_600 - 10
