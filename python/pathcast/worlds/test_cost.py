"""What a measurement is said to cost."""

from __future__ import annotations

from pathcast.worlds.cost import cost
from pathcast.worlds.measurement import Request


def test_limits_are_for_each_direction_of_each_path():
    assert cost(Request(bytes=300_000, time_s=2), 2) == "at most 1.2 MB and 8 s (2 paths, 4 directions)"
    assert cost(Request(bytes=300_000, time_s=2, at_once=True), 2) == "at most 1.2 MB and 4 s (2 paths, 4 directions)"
    assert cost(Request(("out",), bytes=300_000), 1).startswith("at most 300 KB and 30 s (1 path, 1 direction)")


def test_light_ones_are_by_path_and_a_month_of_them_is_a_gigabyte():
    assert cost(Request(effort="light"), 2) == "at most 231.4 KB and 40 s (2 paths, 4 directions)"
    assert "every 5 min that is 999.6 MB in 30 days" in cost(Request(effort="light"), 1, 300)


def test_without_limits_it_depends_on_what_is_found():
    said = cost(Request(), 1)
    for words in ("1.86 MB and 4.8 s at 5 Mbit/s", "20 MB and 1.2 s at 1 Gbit/s", "at most 40 MB and 60 s"):
        assert words in said
    assert "10 s" in cost(Request(("out",), effort="thorough"), 1)


def test_a_thorough_one_of_several_paths_holds_every_two_against_each_other():
    thorough = Request(("out",), bytes=1_000_000, time_s=2, effort="thorough")
    assert cost(thorough, 1).startswith("at most 1 MB and 2 s")
    # a part each, and two of a pair
    assert cost(thorough, 2).startswith("at most 4 MB and 6 s")
