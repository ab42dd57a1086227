"""Standing jobs that a watch forecasts, in the simulator."""

from __future__ import annotations

from datetime import datetime

import pytest

from pathcast.cli import standing
from pathcast.forecast import pathkeys
from pathcast.forecast.effort import Effort
from pathcast.forecast.record import Recorded, Recorder
from pathcast.history import place
from pathcast.history.browse import Browser
from pathcast.service import jobs
from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim
from pathcast.worlds.testing import two_paths
from pathcast.worlds.topology import Topology

TOPOLOGY = Topology.parse('name = "home"\n' + two_paths("20Mbit", ("10ms", "20ms"), "100 packets"))


@pytest.fixture
def add(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))

    def add(name, to, size="300GB", by="06:00"):
        options = (*(("--size", size) if size else ()), *(("--to", to) if to else ()))
        jobs.add(jobs.Job(name, ("22:00",), by, options, ("rsync",), str(tmp_path)))

    return add


def test_a_job_that_goes_there_is_forecast_by_the_round_and_a_deadline_in_danger_is_told(add, tmp_path, monkeypatch):
    for name, *of in (("nightly", "Far:5275"), ("small", "far", "2GB"), ("other", "far:1"), ("unsized", "far", None)):
        add(name, *of)
    monkeypatch.setattr("pathcast.forecast.forecast.effort", lambda *_: Effort(1e9, 4 * 10**6))
    monkeypatch.setattr("pathcast.forecast.forecast.DRAWS", 8)
    said = []
    recorder = Recorder(place.parse(str(tmp_path / "history.db")), "watch", "far", say=said.append)
    made = standing.Standing("far", recorder, said.append)
    with Sim(TOPOLOGY) as sim:
        world = Recorded(sim, recorder, pathkeys.of_network("sim", "home", TOPOLOGY.text))
        for _ in range(standing.ROUNDS):
            assert said == []
            made.look(world, world.measure(None, Request(seed=1)))
        made.look(world, world.measure(None, Request(seed=1)))
        found = Browser(recorder.journal.store).forecasts_of(None, 9)
        assert {(of.answer["job"], of.size_bytes) for of in found} == {("nightly", 300 * 10**9), ("small", 2 * 10**9)}
        assert len(found) == 2  # once an hour
        assert len(said) == 1
        assert said[0].startswith("job nightly: its deadline is in danger: 300 GB would take ")
        assert said[0].endswith(", and it has 8 h")
        # a smaller one of the same name, an hour later
        jobs.remove("nightly")
        add("nightly", "far", "30GB")
        monkeypatch.setattr(standing, "APART_S", 0.0)
        made.look(world, world.measure(None, Request(seed=2)))
        assert said[1].startswith("job nightly: its deadline is no more in danger: 30 GB ")
    recorder.close()


def test_a_job_whose_far_end_is_none_or_that_cannot_be_forecast_is_said_once_and_ends_nothing(add, monkeypatch):
    add("bad", "far:99999")
    add("worse", "far")
    add("z-good", "far", "1GB")
    made_of, said = [], []

    def forecast(self, network, found, job, asked):
        made_of.append(job.name)
        if job.name == "worse":
            raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(standing.Standing, "_forecast", forecast)
    monkeypatch.setattr(standing, "APART_S", 0.0)
    made = standing.Standing("far", None, said.append)
    for _ in range(standing.ROUNDS + 1):
        made.look(None, None)
    assert made_of == ["worse", "z-good"] * 2
    assert said == [
        "job bad is not forecast: --to far:99999: `99999` is not a port; allowed: 1 to 65535",
        "job worse is not forecast: ZeroDivisionError: by nothing",
    ]


@pytest.mark.parametrize(("by", "has_s"), [("06:00", 8 * 3600), ("23:00", 3600), ("90min", 5400), (None, None)])
def test_what_a_job_has_is_from_its_beginning_on(tmp_path, by, has_s):
    job = jobs.Job("nightly", ("22:00",), by, (), ("rsync",), str(tmp_path))
    assert standing.has(job, datetime(2026, 11, 25, 23, 30)) == has_s
