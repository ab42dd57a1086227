"""Learning in the simulated world: rounds follow from the seed and their number alone."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from pathcast.forecast.learn import LearnOptions, learn
from pathcast.forecast.model import Model
from pathcast.forecast.predict import predict
from pathcast.forecast.testing import Quiet
from pathcast.worlds.sim import Sim
from pathcast.worlds.test_sim import CROSS, TWO
from pathcast.worlds.topology import Topology

SIZE = 400_000
CHANGE = '[[change]]\nat = "50s"\nlink = "wan2"\nrate = "2Mbit"\n'


@pytest.fixture(autouse=True)
def _own_run_directory(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))


def go(file, more=CROSS, **options):
    with Sim(Topology.parse(TWO + more, ["link.wan1.rate=4Mbit"])) as world:
        options = LearnOptions(bytes=SIZE, **options)
        return learn(file, "sim", "two", lambda: nullcontext(world), options, Quiet()), world.now()


def rounds(file):
    return [{k: v for k, v in r.document().items() if k != "at_unix_s"} for r in Model.load(file).rounds]


def test_rounds_are_repeatable_and_those_of_a_second_run_are_others(tmp_path):
    one, two = tmp_path / "one.model", tmp_path / "two.model"
    for file in (one, two):
        go(file, rounds=3)
        go(file, rounds=3)
    found = rounds(one)
    assert found == rounds(two)
    assert len({(*r["probes_bps"], r["actual_bps"]) for r in found}) == 6
    for r in found:
        assert (r["left_out"], r["attempts"], r["emulator"], r["control"]) == (None, 1, None, "cubic")


def test_a_pause_is_of_simulated_time_and_changes_come_by_it(tmp_path):
    file = tmp_path / "m.model"
    _, now = go(file, CHANGE, rounds=4, pause_s=20.0)
    assert 60 < now < 90
    tcp = [r["tcp_bps"][1] for r in rounds(file)]
    assert tcp[0] == tcp[1] == tcp[2] > 3e6 > tcp[3]


def test_learn_and_predict(tmp_path):
    file = tmp_path / "m.model"
    document = go(file, rounds=10)[0].document()
    assert (document["world"], document["counted"]["left_out"]) == ("sim", 0)
    with Sim(Topology.parse(TWO + CROSS, ["link.wan1.rate=4Mbit"])) as world:

        def foretell():
            return predict(file, "sim", "two", lambda: nullcontext(lambda: nullcontext(world)), SIZE)

        found = foretell()
        assert found == foretell()
    assert found["world"] == "sim"
    assert [set(o["paths"]) for o in found["options"]]
    assert all(1e6 < o["predicted_bps"] < 24e6 for o in found["options"])
