"""How numbers are shown to people, and documents to programs."""

from __future__ import annotations

import json
import math

import pytest

from pathcast.cli import output
from pathcast.cli.output import brief, console, print_json
from pathcast.units import bits, seconds, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (1000, "1 kbit/s"),
        (93_200_000, "93.2 Mbit/s"),
        (100_000_000, "100 Mbit/s"),
        (123_456_789, "123 Mbit/s"),
        (1.5e9, "1.5 Gbit/s"),
        (2.5e12, "2500 Gbit/s"),
        (-5e6, "-5 Mbit/s"),
    ],
)
def test_rates(value, text):
    assert bits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0 µs"), (36e-6, "36 µs"), (0.0932, "93.2 ms"), (1.0, "1 s"), (12.34, "12.3 s")],
)
def test_times(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 KB"), (64_000, "64 KB"), (25_600_000, "25.6 MB"), (1e12, "1 TB")],
)
def test_sizes(value, text):
    assert size(value) == text


def test_a_document_begins_with_its_schema(capsys, monkeypatch):
    monkeypatch.setattr(output, "printed", False)
    print_json("paths", {"host": "wüste", "paths": []})
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["schema", "host", "paths"]
    assert document["schema"] == "pathcast.paths/1"
    assert output.printed


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_json_is_not_printed(value, capsys, monkeypatch):
    monkeypatch.setattr(output, "printed", False)
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json("x", {"value": value})
    assert capsys.readouterr().out == ""
    assert not output.printed


def test_the_console_writes_where_it_should(capsys):
    console().print("data")
    console(stderr=True).print("words")
    caught = capsys.readouterr()
    assert (caught.out, caught.err) == ("data\n", "words\n")


def test_a_hundred_lines_that_are_down_are_one_sentence_and_a_few_are_each_their_own():
    down = [f"l{n} is down: this host has no nodev{n} now" for n in range(100)]
    assert brief(["before", *down[:50], "between", *down[50:]]) == [
        "before",
        "100 lines are down: l0, l1, l2 and 97 others; `pathcast paths HOST` tells why",
        "between",
    ]
    assert brief(["before", *down[:5]]) == ["before", *down[:5]]
    assert brief(iter([])) == []
