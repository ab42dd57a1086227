"""Lines whose caps have no room to measure: `plan` takes what is known, or measures lightly; `run` says so."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime

import pytest

from pathcast.cli import auto, planoptions
from pathcast.cli.plan import measured_ways
from pathcast.forecast.effort import Effort
from pathcast.forecast.past import Past
from pathcast.forecast.test_means import NAMES, World, earlier
from pathcast.lines import carried, config, edit
from pathcast.plan.terms import Wish
from pathcast.worlds.measurement import Request

MB = 10**6


class Far:
    """A target on this host, with a history that holds these measurements; `keys` of the network are no matter here."""

    world, name = "host", "far"

    def __init__(self, network, past):
        self.network, self.recorder, self._past = network, self, past
        network.keys, network.candidates = dict.fromkeys(NAMES, "key"), [{"name": one, "line": one} for one in NAMES]
        self.measured, self.made = [], []

    def open(self):
        return nullcontext(lambda: nullcontext(self.network))

    def past(self, keys, direction, only):
        return self._past

    def forecast(self, *of):
        self.made.append(of)


@pytest.fixture
def cap(tmp_path, monkeypatch):
    """Leaves so many bytes of cable's cap."""
    monkeypatch.setattr("pathcast.forecast.forecast.effort", lambda *_: Effort(1e9, 10**6))
    monkeypatch.setattr("pathcast.forecast.forecast.DRAWS", 8)
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    edit.add(config.file(), "cable", {"from": "192.0.2.1", "cap": "150MB/month"})

    def left(bytes):
        carried.correct(config.load()["cable"], 150 * MB - bytes, datetime.now())

    return left


def planned(far, **more):
    document, ways, lines, _ = measured_ways(far, Wish(40 * MB), "out", {}, None, Request(), None, **more)
    assert {line for way in ways for line in way.lines} == set(lines)
    return document, sorted(lines)


def test_a_fresh_measurement_is_used_whatever_a_cap_has_left(cap, capsys):
    cap(79 * MB)
    far = Far(World(), Past({name: (earlier(name, 170),) for name in NAMES}))
    document, lines = planned(far)
    assert lines == ["cable", "dsl"]
    assert far.network.asked == []
    assert "cost" not in capsys.readouterr().err
    assert not [note for note in document["notes"] if "cap" in note]


def test_a_line_is_measured_lightly_where_its_cap_has_room_for_that_only(cap, capsys):
    cap(79 * MB)
    document, lines = planned(Far(World(), Past()))
    assert lines == ["cable", "dsl"]
    assert "cable is measured lightly: 79 MB of its cap are left, and measuring takes up to 80 MB" in document["notes"]
    assert "; and of cable at most 800 KB\n" in capsys.readouterr().err
    cap(700_000)
    document, lines = planned(Far(World(), Past()))
    assert lines == ["dsl"]
    why = "700 KB of its cap are left, and even --light takes up to 800 KB"
    assert f"cable is not measured: {why}" in document["notes"]


def test_a_run_says_what_it_does_not_measure(cap, capsys, monkeypatch):
    cap(0)
    network = World()
    network.unplugged = {f"{name} is down: eth3 is down": name for name in ("lte", "the line of 10.0.3.2")}
    monkeypatch.setattr("pathcast.cli.target.target", lambda *_: Far(network, Past()))
    asked = planoptions.Asked("40MB", None, None, None, None, False, False, False, to="far")
    _, ways, _ = auto._forecast(asked, Wish(40 * MB), {}, None, {name: ["10.0.0.2"] for name in (*NAMES, "lte")}, None)
    assert {way.lines for way in ways} == {("dsl",)}
    err = capsys.readouterr().err
    assert "pathcast: cable is not measured: 0 B of its cap are left, and even --light takes up to 800 KB\n" in err
    # of what has no address the run has told already, and of what is no line it need not
    assert "pathcast: lte is down: eth3 is down\n" in err
    assert "10.0.3.2" not in err
