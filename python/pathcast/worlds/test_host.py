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
    """Of a host beside a controller that joins these locals by these paths: its names where these locals are usable. A
    local may be `ADDRESS DEVICE`."""
    host = Host.__new__(Host)
    host._names, host._line_of, host._lines, host._ways = {}, {}, {}, {}
    host._devices, host._former, host._labels = {}, {}, {}

    def look(joined, *local, remotes=("10.9.9.1",)):
        host._controlled = SimpleNamespace(joining=lambda one, _: joined.get(one, []))
        pairs = [
            {"name": f"path{n}", "local": one, "remote": remote, "interface": device or None}
            for n, (remote, (one, _, device)) in enumerate(
                ((remote, of.partition(" ")) for remote in remotes for of in local), 1
            )
        ]
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


@pytest.mark.parametrize("lines", [{"dsl": Line("dsl", dev="eth1")}, {}])
def test_a_line_keeps_its_name_when_it_gets_another_address(surveyed, lines):
    host = surveyed.host
    host._lines = lines
    first = surveyed({}, "10.9.1.2 eth1", "10.9.2.2 eth2")
    assert surveyed({}, "10.9.2.2 eth2", "10.9.1.9 eth1") == first[::-1]
    assert (host.path(first[0]).local, host.lost) == (("10.9.1.9",), {})
    # another address of the far end, as after its provider renumbers
    surveyed({}, "10.9.1.9 eth1", "10.9.2.2 eth2", remotes=["10.9.9.7"])
    assert [(path.name, path.remote) for path in host.paths] == [(name, "10.9.9.7") for name in first]
    assert host.lost == {}
    # unplugged it is away; a further session is told the same
    host._line_of, host._former, host._labels = {}, {}, {}
    surveyed({}, "10.9.2.2 eth2")
    assert host.lost == {first[0]: "10.9.1.9 is not an address of this host any more"}
    assert surveyed({}, "10.9.2.2 eth2", "10.9.1.5 eth1") == first[::-1]


def test_a_line_whose_addresses_overlap_keeps_its_name_and_the_rounds_begun_go_on(surveyed):
    host = surveyed.host
    host._lines = {"dsl": Line("dsl", dev="eth1")}
    assert surveyed({}, "10.9.1.2 eth1", "10.9.1.9 eth1", "10.9.2.2 eth2") == ["dsl", "dsl-2", "path3"]
    assert surveyed({}, "10.9.1.9 eth1", "10.9.2.2 eth2") == ["dsl", "path3"]
    assert host.lost == {}
    assert host._label("dsl-2") == host._label("path2") == "dsl"
    # a further address has a name of its own, also where that was another's
    assert surveyed({}, "10.9.1.9 eth1", "10.9.1.4 eth1") == ["dsl", "dsl-2"]
    assert host.path("dsl-2").local == ("10.9.1.4",)


def test_no_other_line_and_no_other_family_inherits_a_name(surveyed):
    surveyed.host._lines = {"dsl": Line("dsl", dev="eth1")}
    surveyed({}, "10.9.1.2 eth1", "10.9.2.2 eth2")
    assert surveyed({}, "10.9.3.2 eth3", "10.9.2.2 eth2") == ["path3", "path2"]
    assert set(surveyed.host.lost) == {"dsl"}
    # one address of two that goes leaves the other its name
    surveyed({}, "10.9.2.2 eth2", remotes=["10.9.9.1", "10.9.9.2"])
    surveyed({}, "10.9.2.2 eth2")
    assert surveyed.host.lost["path4"] == "10.9.9.2 is not an address of the far end any more"
    assert surveyed({}, "fd00::2 eth2", remotes=["fd00::1"]) == ["path5"]


def test_steered_paths_of_a_line_keep_their_names_when_it_gets_another_address(surveyed):
    names = surveyed({"10.9.1.2": ["left", "right"]}, "10.9.1.2 eth1")
    assert surveyed({"10.9.1.9": ["left", "right"]}, "10.9.1.9 eth1") == names == ["left", "right"]


def test_the_lines_that_paths_go_over_are_known_whatever_those_are_called(surveyed):
    surveyed.host._lines = {"dsl": Line("dsl", dev="eth1"), "lte": Line("lte", dev="eth2")}
    surveyed({"10.9.1.2": ["left", "right"]}, "10.9.1.2 eth1", "10.9.3.2 eth3")
    assert surveyed.host.over == {"dsl"}
