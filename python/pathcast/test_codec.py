"""Plain data as dataclasses: there and back, and what does not fit."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from pathcast.codec import read


@dataclass(frozen=True)
class Inner:
    name: str
    value: float | None


@dataclass(frozen=True)
class Outer:
    number: int
    flag: bool
    inner: Inner
    row: tuple[float, ...]
    by_name: dict[str, Inner]
    maybe: Inner | None
    either: float | bool
    anything: Any = None
    words: list[str] = field(default_factory=list)


WHOLE = {
    "number": 3,
    "flag": True,
    "inner": {"name": "a", "value": 1.5},
    "row": [1.0, 2],
    "by_name": {"x": {"name": "b", "value": None}},
    "maybe": None,
    "either": True,
    "anything": [{"free": 1}],
    "words": ["w"],
}


def test_there_and_back():
    found = read(Outer, WHOLE)
    inner, by_name = Inner("a", 1.5), {"x": Inner("b", None)}
    assert found == Outer(3, True, inner, (1.0, 2.0), by_name, None, True, [{"free": 1}], ["w"])
    assert [type(one) for one in found.row] == [float, float]
    assert read(Outer, json.loads(json.dumps(asdict(found)))) == found


def test_keys_too_many_and_keys_that_may_be_missing():
    less = {key: value for key, value in WHOLE.items() if key not in ("maybe", "anything", "words")}
    assert read(Outer, {**less, "inner": {"name": "a"}, "tomorrow": 1}).inner == Inner("a", None)
    assert read(Outer, less).words == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("number", 3.0, "Outer.number is 3.0, not int"),
        ("number", True, "Outer.number is True, not int"),
        ("number", None, "Outer.number is None"),
        ("flag", 1, "Outer.flag is 1, not bool"),
        ("inner", [], "Outer.inner is \\[\\], not Inner"),
        ("inner", {"name": 1}, "Outer.inner.name is 1, not str"),
        ("inner", {"name": "a", "value": "1"}, "Outer.inner.value is '1', not float"),
        ("inner", {"name": "a", "value": float("nan")}, "Outer.inner.value is nan"),
        ("inner", {"name": "a", "value": float("inf")}, "Outer.inner.value is inf"),
        ("inner", {"name": "a", "value": True}, "Outer.inner.value is True"),
        ("row", {}, "Outer.row is {}"),
        ("row", "12", "Outer.row is '12'"),
        ("row", [1.0, "2"], "Outer.row\\[1\\] is '2'"),
        ("by_name", {"x": 1}, "Outer.by_name\\['x'\\] is 1"),
        ("either", "x", "Outer.either is 'x', not bool"),
        ("words", ["a" * 1000, 1], "Outer.words\\[1\\] is 1"),
        ("words", "a" * 1000, "Outer.words is 'a{79}, not"),
    ],
)
def test_what_does_not_fit_is_named(key, value, words):
    with pytest.raises(ValueError, match=words):
        read(Outer, {**WHOLE, key: value})


def test_a_number_beyond_all_floats_is_none():
    with pytest.raises(ValueError, match=r"Outer.row\[0\]"):
        read(Outer, {**WHOLE, "row": [10**400]})


def test_a_field_that_is_missing_is_named():
    with pytest.raises(ValueError, match=r"Outer\.number is None, not int"):
        read(Outer, {key: value for key, value in WHOLE.items() if key != "number"})
    with pytest.raises(ValueError, match="Outer is 'text', not Outer"):
        read(Outer, "text")
