"""World `host`: what it says of lines that have no path."""

from __future__ import annotations

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
