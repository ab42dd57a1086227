"""What is measured where caps have no room for it: lightly, or the history does, or not at all; and this is said."""

from __future__ import annotations

import pytest

from pathcast.errors import Exit
from pathcast.forecast import fresh
from pathcast.forecast.ask import _with_earlier as with_earlier
from pathcast.forecast.ask import ask
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.forecast import Job
from pathcast.forecast.means import Bound, held, joined, means
from pathcast.forecast.past import Carried, Earlier, Judged, Past
from pathcast.forecast.test_twin import direction, path
from pathcast.forecast.testing import refused
from pathcast.forecast.watch import Watched
from pathcast.worlds.measurement import Measurement, RateVariation, Request, Value
from pathcast.worlds.results import Path
from pathcast.worlds.verbs import Verbs

JOB = Job(1_000_000, Controls(("cubic",), ("lia",)))
NAMES = ("dsl", "cable")
TIGHT = {"cable": Bound("79 MB of its cap are left, and measuring takes up to 80 MB", True)}
FULL = {"cable": Bound("9 KB of its cap are left, and even --light takes up to 116 KB", False)}


class World(Verbs):
    """Two lines of 20 Mbit/s. asked: which were measured, and how thoroughly."""

    world = "host"

    def __init__(self, *dead):
        self.paths, self.dead, self.asked = tuple(Path(name, ("10.0.0.2",), "10.0.0.1") for name in NAMES), dead, []
        self.unplugged = {}

    @property
    def idle(self):
        return self.unplugged

    def silent(self, paths=None):
        return {name: "no answer" for name in self.dead if name in paths}

    def measure(self, paths=None, request=None, progress=None):
        paths = NAMES if paths is None else paths
        self.asked.append((*paths, request.effort))
        found = tuple(path(name, out=direction(20e6)) for name in paths)
        return Measurement(found, 100_000, 1.0, "ride", request.effort)


def earlier(name, age_s, effort="usual"):
    return Earlier(age_s, path(name, out=direction(20e6)), effort, f"{name}{age_s}")


def past(**of):
    return Past({name: (one,) for name, one in of.items()})


def by(world, bounds, past=None, anew=False):
    return means(world, NAMES, JOB, Request(), past, anew, bounds)


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    monkeypatch.setattr("pathcast.forecast.forecast.effort", lambda *_: Effort(1e9, 10**6))
    monkeypatch.setattr("pathcast.forecast.forecast.DRAWS", 8)


def test_what_the_history_holds_is_no_matter_of_caps():
    whole = past(dsl=earlier("dsl", 60), cable=earlier("cable", 170))
    found = by(World(), FULL, whole)
    assert (found.sends, found.notes) == (False, ())
    assert [one.name for one in found.known.measured.paths] == ["dsl", "cable"]


def looked(*rates):
    """At dsl, the newest first, half a minute apart."""
    of = [Earlier(30.0 * n, path("dsl", out=direction(rate)), "usual", f"m{n}") for n, rate in enumerate(rates, 1)]
    return held(Past({"dsl": tuple(of)}), ["dsl"], JOB, Request())


@pytest.mark.parametrize("rates", [(52e6, 70e6, 30e6, 50e6), (50e6, 52e6, 30e6, 70e6), (50e6, 30e6)])
def test_a_line_that_varied_a_moment_ago_still_does(rates):
    found = looked(*rates)
    rate = found.measured.paths[0].directions["out"].capacity_bps
    assert rate.high > 2 * rate.low
    assert found.measured.paths[0].directions["out"].rate_variation.cv.value > 0.2
    assert found.loads == {"dsl": (0.0,) * len(rates)}
    assert found.age_s == 30


def test_what_was_changed_a_moment_ago_does_not_vary():
    for rates in ((8e6, 8e6, 8e6, 20e6, 20e6), (8e6, 8.01e6, 20e6, 20e6), (8e6,)):
        rate = looked(*rates).measured.paths[0].directions["out"].capacity_bps
        assert rate.high < 1.1 * rate.low


@pytest.mark.parametrize(
    ("variation", "loads"),
    [
        (RateVariation(Value(0.4)), (0.0, 0.0, 0.0)),  # only looks tell: what others take is in its capacity
        (RateVariation(Value(0.4, 0.3, 0.5), Value(5.0)), (0.5, 0.0, 0.0, 0.0)),
        (RateVariation(), (0.5, 0.0, 0.0, 0.0)),
    ],
)
def test_what_others_took_of_a_line_that_varies_is_not_taken_off_twice(variation, loads):
    now = path("dsl", out=direction(20e6, rate_variation=variation))
    seen = Watched(Measurement((now,), 100_000, 1.0, "ride", "usual"), {"dsl": (0.0, 0.0, 0.0)})
    before = Earlier(30.0, path("dsl", out=direction(20e6, 10e6)), "usual", "m1")
    assert with_earlier(seen, past(dsl=before), JOB)["dsl"] == pytest.approx(loads)


def test_losses_of_a_line_that_varied_count_once():
    of = [Earlier(30.0 * n, path("dsl", out=direction(rate)), "usual") for n, rate in enumerate((52e6, 30e6, 70e6), 1)]
    past = Past({"dsl": tuple(of)})
    found = held(past, ["dsl"], JOB, Request()).measured.paths[0]
    assert fresh.remembered(found, past, "out").directions["out"].loss.packets == 3 * 10_000


def test_a_line_without_room_is_measured_lightly_beside_the_others():
    world = World()
    found = by(world, TIGHT)
    answer = ask(world, JOB, Request(), by=found)
    assert world.asked[0] == ("dsl", "usual")
    assert {one for one in world.asked if "cable" in one} == {("cable", "light")}
    assert [one.name for one in answer.seen.measured.paths] == ["dsl", "cable"]
    told = answer.document()
    assert f"cable is measured lightly: {TIGHT['cable'].why}" in told["notes"]
    assert {tuple(one["paths"]) for one in told["options"]} >= {("dsl",), ("cable",)}
    # a light one is then as good, and so is one of a line that has no room for that either
    lately = past(dsl=earlier("dsl", 60), cable=earlier("cable", 170, "light"))
    assert not by(World(), TIGHT, lately).sends
    again = ask(World(), JOB, Request(), past=lately, by=by(World(), FULL, lately)).document()
    assert again["measured_age_s"] == 170
    assert f"cable is as it was measured 2 min 50 s ago: {FULL['cable'].why}" in again["notes"]


def test_where_others_are_measured_the_history_knows_a_line_without_room():
    world, lately = World(), past(dsl=earlier("dsl", 400), cable=earlier("cable", 170))
    answer = ask(world, JOB, Request(), past=lately, by=by(world, TIGHT, lately))
    assert {one[:-1] for one in world.asked} == {("dsl",)}
    assert [one.name for one in answer.seen.measured.paths] == ["dsl", "cable"]
    assert (answer.age_s, answer.made_from) == (None, ("cable170",))
    # not where a measurement is asked for, and there is room for one; nor after a transfer that belies it
    assert by(World(), TIGHT, lately, anew=True).light == ("cable",)
    assert by(World(), FULL, lately, anew=True).known is not None
    slow = Carried(50, frozenset(NAMES), "lia", 1_000_000, 9.0)
    belied = Past(lately.measured, judged=(Judged(slow, {"duration_s": {"low": 1.0, "high": 2.0}}, 1_000_000),))
    assert by(World(), TIGHT, belied).light == ("cable",)


def test_what_stands_by_itself_is_kept_by_itself():
    """A transfer over dsl alone, which was measured again since, says nothing of cable."""
    slow = Carried(60, frozenset({"dsl"}), "lia", 1_000_000, 9.0)
    belied = (Judged(slow, {"duration_s": {"low": 1.0, "high": 2.0}}, 1_000_000),)
    lately = Past({"dsl": (earlier("dsl", 40), earlier("dsl", 100)), "cable": (earlier("cable", 100),)}, judged=belied)
    found = by(World(), FULL, lately)
    assert (found.sends, found.known.age_s) == (False, 100)
    answer = ask(World(), JOB, Request(), past=lately, by=found)
    assert [one.name for one in answer.seen.measured.paths] == ["dsl", "cable"]
    assert (answer.age_s, set(answer.seen.loads)) == (100, set(NAMES))
    # nor is it forgotten where a third one is measured
    full = dict.fromkeys(NAMES, FULL["cable"])
    found = means(World(), (*NAMES, "lte"), JOB, Request(), lately, bounds=full)
    assert (found.measured, [one.name for one in found.known.measured.paths]) == (("lte",), ["dsl", "cable"])
    assert len(found.notes) == 2


def test_what_neither_is_known_nor_has_room_is_left_out_and_named():
    found = by(World(), FULL)
    assert (found.measured, found.light, found.known) == (("dsl",), (), None)
    assert found.notes == (f"cable is not measured: {FULL['cable'].why}",)
    nothing = dict.fromkeys(NAMES, FULL["cable"])
    assert "no line has room in its cap" in refused(lambda: by(World(), nothing), "no line", Exit.REFUSED).message


def test_a_line_that_is_silent_is_down_whoever_is_measured_apart():
    lately = past(dsl=earlier("dsl", 60), cable=earlier("cable", 170))
    found = by(World("cable"), TIGHT, lately)
    assert (found.measured, found.light) == ((), ())
    assert [one.path for one in found.away] == ["cable"]
    refused(lambda: by(World(*NAMES), TIGHT), "answers over no path", Exit.RUNTIME)


def test_a_path_that_comes_while_it_is_measured_is_taken():
    came = joined([Watched(Measurement((path("new"), path("dsl")), 1, 1.0, "ride"), {})], NAMES, ())
    assert [one.name for one in came.measured.paths] == ["dsl", "new"]


def test_lines_without_a_path_are_down_whether_anything_is_measured_or_not():
    world, lately = World("cable"), past(dsl=earlier("dsl", 60), cable=earlier("cable", 170))
    world.unplugged = {"lte is down: wwan0 is down": "lte", "the line of 10.0.3.2 is down: eth3 is down": None}
    told = ask(world, JOB, Request(), past=lately, by=by(world, TIGHT, lately)).document()
    assert told["down"] == ["cable", "lte"]
    assert {"cable is down: no answer", *world.unplugged} <= set(told["notes"])
    world.dead = ()
    for before in (lately, None):
        told = ask(world, JOB, Request(), past=before).document()
        assert (told["measured_age_s"] is None, told["down"]) == (before is None, ["lte"])
        assert set(world.unplugged) <= set(told["notes"])
