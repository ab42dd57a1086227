"""`pathcast control list`."""

from __future__ import annotations

import json

import pytest

from pathcast.cli import runner


def test_all_are_listed(capsys):
    assert runner.run(["control", "list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("reno", "subflow_switch", "imtcp_bg", "pc_gsam"))


def test_one_shows_every_parameter_with_its_range(capsys):
    assert runner.run(["control", "list", "gsam"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("theta_shift", "st_div", "0 to 64", "[us]", "[control.gsam]"))


def test_as_json(capsys):
    assert runner.run(["control", "list", "nice", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pathcast.control-list/1"
    [nice] = document["controllers"]
    assert {p["name"] for p in nice["parameters"]} >= {"threshold", "fraction", "parts_most"}
    assert all(low <= p["default"] <= high for p in nice["parameters"] for low, high in [p["range"]])
    assert set(nice) >= {"name", "kernel_name", "parameters", "paper", "loaded", "pinned", "version"}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_unknown_one_is_refused_with_those_that_exist(capsys, more):
    assert runner.run(["control", "list", "bbr", *more]) == 2
    said = capsys.readouterr()
    assert "no controller `bbr`; allowed: reno, cubic" in said.err
    assert bool(said.out) == bool(more)
