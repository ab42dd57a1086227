"""What a user sets of a controller, read."""

from __future__ import annotations

import pytest

from pathcast.control.kernel import parse_sets
from pathcast.errors import Exit, PathcastError


def test_values_are_written_as_in_a_scenario():
    sets = ["initial_ssthresh_bytes=10KB", "lp.delta = 200", "control.lp.least_us=4ms"]
    assert parse_sets("lp", sets) == {"initial_ssthresh_bytes": 10_000, "delta": 200, "least_us": 4000}
    assert parse_sets("lp", ["initial_ssthresh_bytes=14480"]) == {"initial_ssthresh_bytes": 14_480}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("delta=10KB", "--set `delta=10KB`: `10KB` is not a whole number"),
        ("delta=", "`` is not a whole number"),
        ("initial_ssthresh_bytes=10Kbit", "sizes are in bytes, not in bits"),
        ("reno.delta=1", "is of `reno`, and the controller is `lp`"),
        ("delta", "is not PARAMETER=VALUE"),
    ],
)
def test_what_is_no_value_is_refused(item, words):
    with pytest.raises(PathcastError, match=words) as error:
        parse_sets("lp", [item])
    assert error.value.exit == Exit.USAGE
