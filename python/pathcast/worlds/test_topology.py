"""Scenario files on their way into a world: what is refused, and how it is said."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.runtime import daemon
from pathcast.runtime.state import check_id
from pathcast.worlds.emu import Topology, _stem
from pathcast.worlds.sim import Sim

SHIPPED = sorted((Path(__file__).parents[3] / "topologies").glob("*.toml"))
SMALL = '[[link]]\nname = "wire"\na = "client"\nb = "server"\n\n[[path]]\nname = "p1"\nlinks = ["wire"]\n'


@pytest.mark.parametrize("file", SHIPPED, ids=lambda f: f.stem)
def test_the_shipped_ones_are_taken(file):
    topology = Topology.load(file)
    assert topology.scenario["name"] == file.stem
    assert topology.source == str(file)


def test_the_shipped_rates_are_what_their_script_writes():
    script = runpy.run_path(str(SHIPPED[0].resolve().parents[3] / "scripts" / "rates.py"))
    files = {file.stem: file.read_text() for file in SHIPPED[0].parent.glob("*.csv")}
    assert files == {name: script["rows"](name) for name in script["FILES"]}


def test_a_set_is_laid_over_the_file():
    topology = Topology.parse(SMALL, [" link.wire.rate = 5Mbit "])
    assert topology.sets == (("link.wire.rate", "5Mbit"),)
    assert "5" in str(topology.scenario["links"][0]["ab"]["rate"])


@pytest.mark.parametrize(
    ("text", "sets", "words"),
    [
        ("rte = 3\n" + SMALL, [], ["line 1", "rte = 3", "unknown key", "allowed: name"]),
        (SMALL.replace('"server"', '"client"', 1), [], ["line 4"]),
        (SMALL + 'local = "x"\n', [], ["line 9", '"x"']),
        (SMALL, ["link.wire.rate=5"], ["--set link.wire.rate=5", "unit is missing"]),
        (SMALL, ["link.wirr.rate=5Mbit"], ["wirr", "allowed: wire"]),
        (SMALL, ["rate"], ["`rate` is not KEY=VALUE"]),
        ("[[", [], ["line 1", "not TOML"]),
    ],
)
def test_what_is_wrong_is_said_with_its_place_value_and_the_allowed(text, sets, words):
    with pytest.raises(PathcastError) as error:
        Topology.parse(text, sets)
    assert error.value.exit == Exit.USAGE
    for word in words:
        assert word in str(error.value)


def test_a_scenario_that_does_not_say_its_name_is_called_as_its_file_is(tmp_path):
    flow = '[[flow]]\nname = "f"\npaths = ["p1"]\nbytes = "1KB"\n'
    file = tmp_path / "home.toml"
    file.write_text(SMALL + flow)
    in_file, in_text = Topology.load(file), Topology.parse(SMALL + flow, base=str(tmp_path))
    for topology, name in ((in_file, "home"), (in_text, "scenario")):
        assert topology.scenario["name"] == name
        with Sim(topology) as world:
            assert (world.name, world.flows().scenario) == (name, name)
    file.write_text('name = "said"\n' + SMALL)
    assert Topology.load(file).scenario["name"] == "said"


@pytest.mark.parametrize(
    ("file", "name"), [("home", "home"), ("My Net (2)", "my-net-2"), ("ü", "scenario"), ("a" * 30, "a" * 24)]
)
def test_every_file_can_name_a_network(tmp_path, monkeypatch, file, name):
    (tmp_path / f"{file}.toml").write_text(SMALL)
    monkeypatch.setattr(daemon, "start", lambda _, config: config)
    assert Topology.load(tmp_path / f"{file}.toml").start()["name"] == name
    with pytest.raises(PathcastError, match="`My Net` is not a name"):
        Topology.load(tmp_path / f"{file}.toml").start("My Net")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, reason in (("none", "No such file"), ("", "Is a directory"), ("binary", "not UTF-8")):
        with pytest.raises(PathcastError, match=reason) as error:
            Topology.load(tmp_path / name)
        assert error.value.exit == Exit.USAGE


@pytest.mark.parametrize("name", ["two-path", "My_Net", "x" * 64, "a-_-b", "0", "A--------------B"])
def test_every_scenarios_name_can_begin_a_networks(name):
    assert Topology.parse(f'name = "{name}"\n' + SMALL).scenario["name"] == name
    assert len(check_id(f"{_stem(name)}-0a1b2c")) <= 24
