"""What `measure` asks for, refuses and returns, over a made-up client."""

from __future__ import annotations

import json

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.results import Path
from pathcast.worlds.verbs import Verbs


def direction(value=4e6, why=None):
    rate = {"value": value, "low": 3.9e6, "high": 4.1e6, "why": why, "discipline": None}
    clock = {"synchronised": True, "offset_s": 0.0, "skew_ppm": 0.0}
    delay = {"minimum": 0.01, "median": 0.011, "p95": 0.02, "error": 0.0, "clock": clock, "packet_bytes": 120}
    return {"capacity_bps": rate, "available_bps": rate, "delay_s": delay, "loss": 0.0, "bytes": 1000}


def document(*paths):
    directions = [{"directions": of} for of in paths]
    return {"paths": directions, "probe_bytes": 2000, "elapsed_s": 1.5, "method": "ride"}


class Client:
    def __init__(self, *paths):
        self.asked, self.answer = [], document(*paths)

    def measure(self, job, request):
        self.asked.append(json.loads(request))
        return json.dumps(self.answer)


class World(Verbs):
    paths = (Path("p1", ("10.0.1.2",), "10.0.1.1"), Path("p2", ("10.0.2.2",), "10.0.2.1"))


def test_all_paths_are_asked_for_unless_some_are_named():
    world = World()
    world._client = Client({"out": direction()}, {"out": direction()})
    found = world.measure(request=Request(directions=("out",), seed=7))
    assert [p["name"] for p in world._client.asked[0]["paths"]] == ["p1", "p2"]
    assert world._client.asked[0]["seed"] == 7
    assert found.path("p2").remote == "10.0.2.1"
    assert found.untrustworthy is None
    world._client = Client({"out": direction()})
    world.measure(["p2"])
    world.measure(["p2"])
    first, second = world._client.asked
    assert [p["name"] for p in first["paths"]] == ["p2"]
    assert first["directions"] == ["out", "in"]
    assert first["seed"] != second["seed"]


@pytest.mark.parametrize(
    ("paths", "words"), [(["p3"], "p1, p2"), (["p1", "p1"], "each once"), ([], "no path")], ids=str
)
def test_wrong_paths(paths, words):
    with pytest.raises(PathcastError, match=words) as caught:
        World().measure(paths)
    assert caught.value.exit == Exit.USAGE


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"directions": ("up",)}, "out, in, both"),
        ({"directions": ()}, "out, in, both"),
        ({"method": "guess"}, "ride, replay"),
        ({"method": "pathtester-old-21"}, "ride, replay"),
        ({"bytes": 9_999}, "10kB"),
        ({"time_s": 601}, "600s"),
        ({"time_s": float("nan")}, "600s"),
        ({"dscp": 64}, "0 to 63"),
    ],
    ids=str,
)
def test_wrong_requests(values, words):
    with pytest.raises(PathcastError, match=words) as caught:
        Request(**values)
    assert caught.value.exit == Exit.USAGE


def test_a_direction_without_a_value_is_not_to_be_trusted():
    pair = {"name": "p1", "local": "10.0.1.2", "remote": "10.0.1.1"}
    bad = {**direction(), "available_bps": {"value": None, "low": None, "high": None, "why": "host-too-slow"}}
    found = Measurement.read([pair], document({"out": direction(), "in": bad}))
    error = found.untrustworthy
    assert error.exit == Exit.UNTRUSTWORTHY
    assert "`p1` in" in error.message
    assert "host" in error.message
    assert not found.paths[0].directions["in"].trustworthy
    written = found.document()["paths"][0]["directions"]["out"]
    assert written["available_bps"]["value"] == 4e6
    assert written["delay_s"]["clock"] == {"synchronised": True, "offset_s": 0.0, "skew_ppm": 0.0}
