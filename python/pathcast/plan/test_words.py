"""The sentence of a plan: what is said of the whole job, and what of the part that is planned with care."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathcast.plan.plan import Part, Plan, Span
from pathcast.plan.words import money_written, sentence

MB = 10**6
PARTS = (Part("cable", 5 * MB, 0.0025, 0), Part("dsl", 8_793_000, 0.0, None))
PERHAPS = Plan(20 * MB, 20.0, "perhaps", 0.75, 11_670_000, Span(10.8, 1.49, 99.5), 0.0025, (), PARTS, ())
JOB = "20 MB in 10.8 s (1.49 s to 99.5 s), done @10.8"


def told(made):
    return sentence(made, lambda after_s: f"@{after_s:g}")


def test_what_lines_carry_is_said_of_the_part_that_is_planned():
    part = "11.67 MB of it in nine of ten cases by @20: cable 5 MB, dsl 8.793 MB (IP) for 0.0025"
    assert told(PERHAPS) == f"may fit (chance 75 %): {JOB}; {part}"
    whole = replace(PERHAPS, fits="yes", probability=0.95, carried_bytes=20 * MB)
    assert told(whole) == f"fits (chance 95 %): {JOB}; cable 5 MB, dsl 8.793 MB (IP) for 0.0025"
    nothing = replace(PERHAPS, carried_bytes=0, parts=(), money=0.0)
    assert told(nothing) == f"may fit (chance 75 %): {JOB}; 0 B of it in nine of ten cases by @20"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (90.0, "90"),
        (12.345, "12.35"),
        (0.1234, "0.12"),
        (0.1, "0.1"),
        (0.0996, "0.1"),
        (0.0346, "0.035"),
        (0.0025, "0.0025"),
        (0.000_012_3, "0.000012"),
        (2e-9, "less than 0.000001"),
        (0.0, "0"),
    ],
)
def test_little_money_is_not_nothing(value, words):
    assert money_written(value) == words
