"""World `host`: what it says of lines that have no path."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from pathcast.lines.config import Line
from pathcast.worlds.host import Host
from pathcast.worlds.results import Path


def test_steered_paths_are_listed_as_they_are_measured():
    host = Host.__new__(Host)
    host.candidates = [{"name": "path1", "local": "10.9.1.2", "remote": "10.9.9.1", "interface": "eth0", "line": None}]
    host.paths = tuple(Path(name, ("10.9.1.2",), "10.9.9.1") for name in ("left", "right"))
    assert [one["name"] for one in host.listed] == ["left", "right"]
    assert [(one["local"], one["interface"]) for one in host.listed] == [("10.9.1.2", "eth0")] * 2


def test_idle_lines_are_told_by_their_names_where_they_have_one():
    host = Host.__new__(Host)
    host.unusable = [
        {"local": f"10.9.{n}.2", "remote": "10.9.9.1", "reason": f"near{n} is down", "line": line}
        for n, line in ((1, "dsl"), (2, None))
    ]
    host._names, host._line_of = {}, {}
    host._lines = {name: Line(name, addresses=(f"10.9.{n}.2",)) for n, name in ((1, "dsl"), (3, "lte"))}
    assert host.idle == {
        "dsl is down: near1 is down": "dsl",
        "the line of 10.9.2.2 is down: near2 is down": None,
        "lte is down: this host has no 10.9.3.2 now, or no address of the far end's kind": "lte",
    }


@pytest.fixture
def surveyed():
    """Of a host beside a controller that joins these locals by these paths: its names where these locals are usable."""
    host = Host.__new__(Host)
    host._names, host._line_of, host._lines, host._ways = {}, {}, {}, {}

    def look(joined, *local):
        host._controlled = SimpleNamespace(joining=lambda one, _: joined.get(one, []))
        pairs = [{"name": f"path{n}", "local": one, "remote": "10.9.9.1"} for n, one in enumerate(local, 1)]
        host._client = SimpleNamespace(paths=lambda: json.dumps({"usable": pairs, "unusable": []}))
        host.refresh()
        return [path.name for path in host.paths]

    look.host = host
    return look


@pytest.mark.parametrize("line", ["path2", "round"])
def test_a_steered_path_is_never_called_as_another_pair_is(surveyed, line):
    joined = {"10.9.1.2": ["path1", "path2", "round"]}
    surveyed.host._lines = {line: Line(line, addresses=("10.9.2.2",))}
    names = surveyed(joined, "10.9.1.2", "10.9.2.2", "10.9.3.2")
    assert len(set(names)) == 5
    host = surveyed.host
    # what is measured is found by its name, also where a pair is known by its number, too
    assert [host.path(path.name) for path in host.paths] == list(host.paths)
    assert [host.path(name).local[0] for name in (line, "path3")] == ["10.9.2.2", "10.9.3.2"]
    assert [host._ways[name][1] for name in names[:3]] == joined["10.9.1.2"]
    assert surveyed(joined, "10.9.1.2", "10.9.2.2", "10.9.3.2") == names


def test_a_pair_that_comes_later_leaves_steered_paths_their_names(surveyed):
    joined = {"10.9.1.2": ["path1", "path2", "round"]}
    assert surveyed(joined, "10.9.1.2") == joined["10.9.1.2"]
    surveyed.host._lines = {"round": Line("round", addresses=("10.9.3.2",))}
    names = surveyed(joined, "10.9.1.2", "10.9.2.2", "10.9.3.2")
    assert names == [*joined["10.9.1.2"], "path3", "round-2"]


def test_paths_of_two_steered_pairs_have_names_of_their_own(surveyed):
    both = ["path1", "path1-path2", "path2"]
    names = surveyed({"10.9.1.2": both, "10.9.2.2": both}, "10.9.1.2", "10.9.2.2")
    assert len(set(names)) == 6
    assert [surveyed.host._ways[name][1] for name in names] == [*both, *both]
