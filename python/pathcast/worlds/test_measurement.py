"""What `measure` asks for, refuses and returns, over a made-up client."""

from __future__ import annotations

import json

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.measurement import Down, Measurement, Request
from pathcast.worlds.results import Path
from pathcast.worlds.verbs import Verbs


def direction(value=4e6, why=None):
    rate = {"value": value, "low": 3.9e6, "high": 4.1e6, "why": why}
    clock = {"synchronised": True, "offset_s": 0.0, "skew_ppm": 0.0}
    delays = {name: {"value": at, "low": at, "high": at, "why": None} for name, at in DELAYS.items()}
    delay = {**delays, "error": 0.0, "clock": clock, "packet_bytes": 120}
    loss = {"lost": 1, "packets": 200, "random": {"value": None, "low": None, "high": None, "why": "not-looked-for"}}
    return {"capacity_bps": rate, "available_bps": rate, "delay_s": delay, "loss": loss, "bytes": 1000}


DELAYS = {"minimum": 0.01, "median": 0.011, "p95": 0.02}
NONE = {"value": None, "low": None, "high": None, "why": "no-answer"}


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
        ({"effort": "some"}, "light, usual, thorough"),
        ({"effort": "thorough", "method": "slops"}, "ride"),
        ({"queue_s": 11}, "10s"),
    ],
    ids=str,
)
def test_wrong_requests(values, words):
    with pytest.raises(PathcastError, match=words) as caught:
        Request(**values)
    assert caught.value.exit == Exit.USAGE


def read(*paths, **of_first):
    pairs = [{"name": f"p{n}", "local": f"10.0.{n}.2", "remote": "10.0.1.1"} for n in range(1, len(paths) + 1)]
    found = document(*paths)
    found["paths"][0] |= of_first
    return Measurement.read(pairs, found)


def silent():
    nothing = direction()
    nothing |= {"capacity_bps": NONE, "available_bps": NONE, "loss": {**nothing["loss"], "lost": 0, "packets": 0}}
    nothing["delay_s"] |= dict.fromkeys(DELAYS, NONE)
    return nothing


def test_answers_that_come_too_late_are_told_from_none():
    silent = direction(why="no-answer") | {"capacity_bps": NONE, "available_bps": NONE}
    late = {"value": 6.2, "low": None, "high": None, "why": None}
    [told, _] = read({"out": silent}, rtt_s=late).missing
    assert told == "no capacity of path `p1` out: answers take 6.2 s, and those of more than 5 s are too late"
    assert "no probe was answered" in read({"out": silent}, rtt_s={**late, "value": 0.2}).missing[0]


def test_a_rate_that_is_missing_or_doubtful_is_named_and_the_rest_stands():
    bad = direction()
    bad["available_bps"] = {"value": None, "low": 0.0, "high": 249e6, "why": "host-too-slow"}
    bad["capacity_bps"] = {"value": 25.5e6, "low": 20e6, "high": 26e6, "why": "inconsistent"}
    found = read({"out": direction(), "in": bad})
    assert found.untrustworthy is None
    doubtful, missing = found.missing
    assert (doubtful[:8], "contradict" in doubtful) == ("doubtful", True)
    assert "no available bandwidth of path `p1` in" in missing
    assert "host" in missing
    assert not found.paths[0].directions["in"].trustworthy
    written = found.document()["paths"][0]["directions"]["out"]
    assert written["available_bps"] == {"value": 4e6, "low": 3.9e6, "high": 4.1e6, "why": None}
    assert written["delay_s"]["clock"] == {"synchronised": True, "offset_s": 0.0, "skew_ppm": 0.0}
    assert (written["loss"]["lost"], found.paths[0].directions["out"].loss.share) == (1, 0.005)


def test_a_record_of_before_has_reasons_for_what_it_does_not_know():
    of = read({"out": direction()}).document()["paths"][0]["directions"]["out"]
    unknown = {"value": None, "low": None, "high": None, "why": "not-looked-for"}
    for name in ("rate_variation", "queue", "policer", "cross"):
        values = [value for key, value in of[name].items() if key != "discipline"]
        assert values
        assert all(value == unknown for value in values), name
    assert of["aggregation_s"] == unknown


def test_a_path_that_is_down_is_said_and_the_others_count():
    found = read({"out": silent()}, {"out": direction()}, down={"probes": 12, "seconds": 3})
    assert found.untrustworthy is None
    assert found.missing == ["p1 is down: no answer to 12 probes in 3 s"]
    assert Down(8, 0.3).said == "no answer to 8 probes in 300 ms"


@pytest.mark.parametrize(
    ("down", "said"),
    [(Down(8, 0), "8 probes in less than 1 s"), (Down(1, 5), "1 probe in 5 s")],
)
def test_a_time_in_which_there_was_no_answer_is_never_none(down, said):
    assert down.said == f"no answer to {said}"


def test_only_where_nothing_can_be_trusted_it_is_3_and_more_time_is_advised_where_it_helps():
    for down, why, words in [
        ({"probes": 12, "seconds": 3}, "no-answer", "p1 is down"),
        (None, "no-answer", "no probe was answered"),
        (None, "too-few", "too few"),
    ]:
        nothing = silent()
        nothing["available_bps"] = {**NONE, "why": why}
        error = read({"out": nothing}, down=down).untrustworthy
        assert error.exit == Exit.UNTRUSTWORTHY
        assert words in error.message
        assert ("--time" in error.hint) == (why == "too-few")


def test_paths_that_share_are_called_by_their_names():
    probability = {"value": 0.97, "low": None, "high": None, "why": None}
    shared = [{"path": 1, "direction": "out", "probability": probability}]
    found = read({"out": direction()}, {"out": direction()}, shared_with=shared)
    assert found.document()["paths"][0]["shared_with"] == (
        {"path": "p2", "direction": "out", "probability": probability},
    )
