"""`--set` of `lab run`: what stands in place of the setup's values, and what is refused."""

from __future__ import annotations

from datetime import date

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.sets import over

SETUP = {
    "begin": date(2026, 1, 1),
    "file": "a.jsonl",
    "count": 3,
    "share": 0.5,
    "all": True,
    "list": [1],
    "inner": {"rate": "5Mbit"},
}


def test_values_are_read_as_what_stands_there():
    pairs = [("file", "b=c"), ("count", "4"), ("share", "1"), ("all", "false"), ("inner.rate", "1Mbit")]
    found = over(SETUP, pairs)
    assert found == {**SETUP, "file": "b=c", "count": 4, "share": 1.0, "all": False, "inner": {"rate": "1Mbit"}}
    assert type(found["share"]) is float
    assert SETUP["inner"] == {"rate": "5Mbit"}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("files", "x", "--set files=x: .* there are: begin, file, count"),
        ("inner", "x", "there are: begin, file"),
        ("list", "x", "there are: begin, file"),
        ("inner.speed", "x", "there are: rate"),
        ("file.name", "x", "there are: begin, file"),
        ("count", "4.5", "--set count=4.5: a whole number is wanted, as 3"),
        ("share", "half", "a finite number is wanted, as 0.5"),
        *(("share", value, f"--set share={value}: a finite number is wanted") for value in ("nan", "-inf", "1e999")),
        ("begin", "2026-01-02", "the plan has a date or time, 2026-01-01"),
        ("all", "yes", "true or false is wanted"),
    ],
)
def test_what_is_refused_is_named(key, value, words):
    with pytest.raises(PathcastError, match=words) as error:
        over(SETUP, [(key, value)])
    assert error.value.exit == 2


def test_a_plan_without_a_setup_says_so():
    with pytest.raises(PathcastError, match="no \\[setup\\]"):
        over({}, [("a", "b")])
