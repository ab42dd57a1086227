"""Times as people read them."""

from __future__ import annotations

import pytest

from pathcast.units import bits, size, span, spans


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.4, "5.4 s"),
        (99, "99 s"),
        (101, "1 min 40 s"),
        (178, "3 min"),
        (594, "9 min 50 s"),
        (596, "10 min"),
        (18_960, "5 h 16 min"),
        (800_000, "9 days"),
    ],
)
def test_a_time(value, text):
    assert span(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.2, 0.35, "200 ms to 350 ms"),
        (3.51, 5.39, "3.51 to 5.39 s"),
        (95, 120, "95 to 120 s"),
        (95, 1200, "1.58 to 20 min"),
        (4, 10_800, "4 s to 3 h"),
        (12_840, 43_200, "3.57 to 12 h"),
        (40 * 3600, 41 * 3600, "40 to 41 h"),
        (3 * 86_400, 9 * 86_400, "3 to 9 days"),
        (50, None, "50 s to no end"),
        (None, None, "-"),
    ],
)
def test_two_times_are_one_form(low, high, text):
    assert spans(low, high) == text


def test_what_rounds_to_the_next_unit_is_written_in_it():
    sizes = {999_960_000_000: "1 TB", 999_940_000_000: "999.9 GB", 999_990: "1 MB", 999: "999 B"}
    assert [size(of) for of in sizes] == list(sizes.values())
    rates = {999_600_000: "1 Gbit/s", 999_400_000: "999 Mbit/s", 999_700: "1 Mbit/s", 999: "999 bit/s"}
    assert [bits(of) for of in rates] == list(rates.values())
