"""The forecast as a whole: what is watched, which controllers, what is cut, and the sentence."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import count

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.forecast.belief import PathBelief
from pathcast.forecast.controls import BACKGROUND, Controls, controls
from pathcast.forecast.effort import Effort, effort
from pathcast.forecast.forecast import Job, forecast
from pathcast.forecast.test_twin import SIZE, direction, path, runner
from pathcast.forecast.testing import refused
from pathcast.forecast.twin import Choice, shared_by, simulate
from pathcast.forecast.watch import deepest, varying, watch
from pathcast.forecast.why import why
from pathcast.worlds.measurement import Down, Loss, Measurement, Policer, Queue, Shared, Value

ALL = Effort(1e9, 10**12)
CUBIC = Controls(("cubic",), ("cubic",))
UNKNOWN = Value(None, why="too-few")


def measured(*paths, effort="usual", probe_bytes=1_000_000):
    return Measurement(paths, probe_bytes, 2.0, "ride", effort)


class Watching:
    """A world whose looks find these available bandwidths, one after the other, until the far end gives up; or over no
    path of `dead` it answers any more."""

    def __init__(self, *left, dead=()):
        self.left, self.asked, self.dead = list(left), [], dead

    def silent(self, paths):
        return {name: "refused" for name in self.dead if name in paths}

    def measure(self, paths, request):
        self.asked.append((list(paths), request))
        if not self.left:
            raise PathcastError("gone", "the far end gave up")
        out = direction(20e6, self.left.pop(0))
        return measured(*(path(name, out=out) for name in paths), probe_bytes=100_000)


# --- looks at the load


def test_where_time_is_short_it_is_looked_for_no_longer():
    seen = watch(Watching(*[15e6] * 99), measured(path("one")), "out", 10**9, time_s=3.0)
    assert seen.elapsed_s == 4.0  # of two seconds each
    lacking = measured(path("one", out=replace(direction(20e6, 15e6), capacity_bps=UNKNOWN)), effort="light")
    assert watch(Watching(*[15e6] * 99), lacking, "out", 10**9, time_s=3.0).elapsed_s <= 4.0


def test_whoever_waits_in_the_far_ends_queue_for_a_look_is_told():
    class Busy(Watching):
        def measure(self, paths, request, progress):
            progress("queue", 1, 1)
            progress("ride", 3, 4)
            return super().measure(paths, request)

    told = []
    watch(Busy(15e6), measured(path("one")), "out", 10**9, progress=lambda *phase: told.append(phase))
    assert told[:3] == [("queue", 1, 1), ("looking how the load varies", 0, 0), ("queue", 1, 1)]


def test_a_far_end_that_goes_meanwhile_is_an_error_and_a_line_that_dies_is_down():
    of = measured(path("one"), path("two"))
    gone = Watching(15e6, dead=("one", "two"))
    assert "answers over no path" in refused(lambda: watch(gone, of, "out", 10**9), "gone", Exit.RUNTIME).message
    seen = watch(Watching(15e6, dead=("two",)), of, "out", 10**9)
    assert [one.down is not None for one in seen.measured.paths] == [False, True]
    assert list(seen.loads) == ["one"]
    told = forecast(seen.measured, Job(SIZE, CUBIC), seen.loads, draws=8, limits=ALL)
    assert (told.chosen.choice.paths, told.down) == (("one",), ("two",))
    assert told.notes[0] == "two is down: no answer to 1 probe in 5 s"


def test_looks_follow_the_measurement_all_paths_at_once():
    world = Watching(10e6, 5e6, 0.0, 20e6, 20e6)
    down = path("gone", down=Down(12, 3))
    seen = watch(world, measured(path("one", out=direction(20e6, 15e6)), path("two"), down), "out", 10**9, seed=7)
    assert [asked[0] for asked in world.asked] == [["one", "two"]] * 5
    assert [asked[1].seed for asked in world.asked] == [8, 9, 10, 11, 12]
    assert all(request.at_once and request.directions == ("out",) for _, request in world.asked)
    # of two seconds each
    assert (seen.elapsed_s, seen.probe_bytes) == (10.0, 500_000)
    assert seen.loads["one"] == (0.25, 0.5, 0.75, 1.0, 0.0, 0.0)
    assert seen.loads["two"][0] == 0.0
    assert set(seen.loads) == {"one", "two"}


def test_looks_end_with_the_time_the_bytes_and_the_far_end():
    def looks(of, size=10**9, *left):
        return watch(Watching(*(left or [15e6] * 99)), of, "out", size).loads["one"]

    assert len(looks(measured(path(), effort="light"), 11_000_000)) == 1, "116 kB a path, or 2 % of the job"
    assert len(looks(measured(path(), effort="light", probe_bytes=104_000), 16_000_000)) == 1 + 2
    assert len(looks(measured(path(), effort="thorough"))) == 1 + 10
    assert len(looks(measured(path(), probe_bytes=250_000))) == 1 + 3
    assert len(looks(measured(path()), 1_000_000)) == 1 + 1, "no longer than the job takes"
    assert len(looks(measured(path()), 10**9, 15e6, 15e6)) == 1 + 2


def test_a_path_of_which_nothing_was_found_is_measured_once_more_with_more_time():
    out = replace(direction(), capacity_bps=UNKNOWN, available_bps=UNKNOWN)
    lacking = replace(path("one"), rtt_s=UNKNOWN, directions={"out": out, "in": direction()})
    world = Watching(15e6, 10e6)
    seen = watch(world, measured(lacking, path("two")), "out", 10**9)
    assert [asked[0] for asked in world.asked] == [["one"], ["one", "two"], ["one", "two"]]
    assert (world.asked[0][1].effort, world.asked[0][1].time_s) == ("thorough", 30.0)
    assert PathBelief.of(lacking) is None
    assert PathBelief.of(seen.measured.paths[0]).capacity_bps == 20e6
    assert seen.loads["one"] == (0.25, 0.5)
    light = Watching(15e6)
    few = measured(lacking, path("two"), effort="light", probe_bytes=208_000)
    assert watch(light, few, "out", 14_000_000).loads["one"] == (0.25,)
    [(names, request)] = light.asked
    assert (names, request.effort) == (["one"], "light"), (
        "of the bytes that are left the path that lacks gets them first"
    )


class Radio(Watching):
    """The same, of a line that has nothing but what is available."""

    def measure(self, paths, request):
        looked = super().measure(paths, request)
        left = looked.paths[0].directions["out"].available_bps.value
        out = direction(left)
        return replace(looked, paths=tuple(path(name, out=out) for name in paths))


def test_a_line_whose_rate_varies_has_what_it_gave_look_by_look():
    first = direction(20e6, 20e6)
    seen = watch(Radio(5e6, 10e6, 15e6), measured(path("one", out=first)), "out", 10**9)
    found = seen.measured.paths[0].directions["out"]
    # of a job of minutes the last look says little more than the others
    assert found.capacity_bps.value == found.available_bps.value == pytest.approx(12.5e6, rel=0.01)
    assert found.capacity_bps.low < 10e6 < 15e6 < found.capacity_bps.high
    assert found.rate_variation.cv.value == pytest.approx(0.516, abs=0.001)
    assert seen.loads["one"] == (0.0,) * 4
    soon = watch(Radio(5e6, 10e6, 15e6), measured(path("one", out=first)), "out", 10**7)
    soon = soon.measured.paths[0].directions["out"].capacity_bps
    assert soon.value < 0.9 * 12.5e6, "the looks end with a low one"
    assert soon.high / soon.low < found.capacity_bps.high / found.capacity_bps.low
    steady = watch(Radio(19.9e6, 20.1e6, 20e6), measured(path("one", out=first)), "out", 10**9)
    assert steady.measured.paths[0].directions["out"].capacity_bps == first.capacity_bps
    assert max(steady.loads["one"]) < 0.01
    # a bucket's burst and its rate are no variation
    bucket = direction(20e6, 20e6, policer=Policer(Value(0.99), Value(5e6, 4.9e6, 5.1e6), Value(1e5)))
    policed = watch(Radio(5e6, 5e6), measured(path("one", out=bucket)), "out", 10**9)
    assert policed.measured.paths[0].directions["out"].capacity_bps == bucket.capacity_bps


def test_a_radio_line_that_was_nearly_gone_by_the_first_look_takes_acknowledgements_later():
    gone = direction(1e6)
    before = replace(path("one", out=gone), directions={"out": gone, "in": direction(0.1e6)})
    [later] = watch(Radio(19e6, 21e6), measured(before), "out", 10**8).measured.paths
    assert later.directions["in"].capacity_bps.value == pytest.approx(later.directions["out"].capacity_bps.value / 10)
    [steady] = watch(Radio(1e6, 1e6), measured(before), "out", 10**8).measured.paths
    assert steady.directions["in"] == before.directions["in"]


class Unsure(Radio):
    """The same, of which every look is as unsure as a tenth."""

    def measure(self, paths, request):
        looked = super().measure(paths, request)
        return replace(looked, elapsed_s=1.0, paths=tuple(unsure(one) for one in looked.paths))


def unsure(of):
    out = of.directions["out"]
    capacity = replace(out.capacity_bps, low=0.9 * out.capacity_bps.value, high=1.1 * out.capacity_bps.value)
    return replace(of, directions={"out": replace(out, capacity_bps=capacity)})


def test_a_line_of_which_few_looks_agree_only_about_may_vary_nevertheless():
    def lines(world, first):
        seen = watch(world, measured(unsure(path("one", out=direction(first)))), "out", 125_000_000)
        [of] = seen.measured.paths
        belief = replace(PathBelief.of(of, loads=seen.loads["one"]), horizon_s=20.0)
        return sorted(belief.draw(random.Random(seed)).mean_bps(0.0, 20.0) for seed in range(400))

    found = lines(Unsure(52e6), 50e6)
    assert found[379] / found[20] > 1.5
    assert found[200] == pytest.approx(51e6, rel=0.1)
    wired = lines(Unsure(50.05e6), 50e6)
    assert wired[379] / wired[20] == pytest.approx(1.21, rel=0.03), "no wider than it was measured"


def test_a_line_of_which_looks_see_different_rates_varies():
    def look(capacity, left, why=None):
        return direction(capacity, left, capacity_bps=Value(capacity, why=why))

    assert varying([look(3e6, 2e6, "ambiguous"), look(5e6, 3e6)]) == [2e6, 3e6]
    nothing = replace(look(3e6, 8e6), capacity_bps=Value(None, why="inconsistent"))
    assert varying([look(3e6, 3e6), nothing]) == [3e6, 8e6]
    assert varying([look(3e6, 1e6), look(3.1e6, 3e6)]) == [], "others come and go"
    assert varying([look(3e6, 1e6), look(5e6, 3e6)]) == pytest.approx([3e12**0.5, 15e12**0.5]), "before and after"

    def sure(low, high):
        return direction(3e6, 2e6, capacity_bps=Value((low + high) / 2, low, high))

    assert varying([sure(2.98e6, 3.01e6), sure(2.99e6, 3.02e6)]) == []
    assert varying([sure(2.98e6, 3.01e6), sure(3.05e6, 3.07e6)]) == [2e6, 2e6], "they are sure of what they contradict"


def test_looks_together_tell_how_deep_a_queue_is():
    def of(*depths):
        return deepest([Queue(depth_bytes=depth) for depth in depths])

    held = [Value(None, 30_000.0, None, "not-seen"), Value(None, 50_000.0, None, "not-seen")]
    assert of(*held) == Value(None, 50_000, None, "not-seen")
    full = Value(60_000, 54_000, 69_000)
    assert of(held[0], full) == full
    assert of(full, Value(80_000, 72_000, 92_000), held[1]) == Value(70_000, 54_000, 92_000)
    assert of(full, Value(None, 100_000.0, None, "not-seen")) == Value(60_000, 54_000, 100_000), (
        "so much was in it, too"
    )
    filled = Queue(depth_bytes=Value(75_000, 74_000, 76_000), managed=Value(0.1))
    assert deepest([filled, Queue(depth_bytes=full)]) == filled.depth_bytes, "by who filled it"


def test_a_look_that_is_shorter_than_a_policers_burst_is_not_believed():
    through = Value(5e6, 0.0, 5.5e6, "inconsistent")
    doubtful = Value(None, why="inconsistent")

    def capacity(lost):
        out = direction(capacity_bps=doubtful, available_bps=through, loss=Loss(lost, 1000))
        seen = watch(Watching(20e6, 20e6), measured(path("one", out=out)), "out", 10**9)
        return seen.measured.paths[0].directions["out"].capacity_bps

    assert capacity(700).value == 5e6
    assert capacity(700).trusted
    assert capacity(20).value == 20e6


def test_looks_that_are_not_to_be_trusted_are_no_loads_and_better_ones_replace_them():
    doubtful = direction(20e6, 15e6, available_bps=Value(2e6, 0.0, 2.2e6, "inconsistent"))
    seen = watch(Watching(15e6, 10e6), measured(path("one", out=doubtful)), "out", 10**9)
    assert seen.loads["one"] == (0.25, 0.5)
    assert seen.measured.paths[0].directions["out"].available_bps.value == 15e6


def test_of_values_that_are_not_to_be_trusted_a_forecast_takes_a_range():
    doubtful = direction(20e6, available_bps=Value(2e6, 0.0, 2.2e6, "inconsistent"))
    bounds = direction(20e6, available_bps=Value(None, 0.0, 2.2e6, "too-few"))
    of_one, of_other = (PathBelief.of(path(out=one)) for one in (doubtful, bounds))
    assert of_one.available_bps == of_other.available_bps == pytest.approx(1.1e6)
    assert all(of_one.draw(random.Random(seed)) == of_other.draw(random.Random(seed)) for seed in range(20))
    unsure = replace(doubtful, capacity_bps=Value(20e6, 19.9e6, 20.1e6, "inconsistent"))
    rates = [PathBelief.of(path(out=unsure)).draw(random.Random(seed)).rate_bps for seed in range(200)]
    assert min(rates) < 10e6
    assert max(rates) > 40e6


# --- controllers


def test_controllers_of_auto_are_here_and_no_harder_than_cubic():
    found = controls(["auto"], ["reno", "bbr3", "lia"])
    assert found == Controls(("reno",), ("reno", "lia"), careful=True)
    assert found.of(["a", "b"], [frozenset("bc")]) == ("reno", "lia")
    assert found.of(["a", "b"], [frozenset("ab")]) == ("lia",), "two of reno are two shares of one bottleneck"
    assert controls(["auto"], ["cubic", "bbr3"], aggressive=True).single == ("cubic", "bbr3")
    assert controls(["auto"], ["lp", "cubic"], background=True) == Controls(("lp",), ("lp",))
    assert controls(["lia", "bbr3"], []).several == ("lia", "bbr3")
    refused(lambda: controls(["auto"], ["cubic"], background=True), f"none of {', '.join(BACKGROUND)}", Exit.MISSING)
    refused(lambda: controls(["bbr"], []), "--control `bbr`: allowed are auto, reno, cubic")


# --- what is cut


def test_a_part_of_a_long_transfer_stands_for_the_whole():
    """Within 2 %: two lines with others' traffic, 40 and 20 MB of 80."""
    busy = direction(20e6, 15e6)
    beliefs = [PathBelief.of(path("one", out=busy)), PathBelief.of(path("two", rtt=0.06, out=busy))]
    choices = [Choice(("one",), "cubic"), Choice(("one", "two"), "lia")]
    seeds = range(24)  # one transfer varies by 3 %
    whole = simulate(beliefs, seeds, choices, 80_000_000)
    for most in (40_000_000, 20_000_000):
        part = simulate(beliefs, seeds, choices, 80_000_000, lambda _, most=most: most)
        for n in range(len(choices)):
            ratio = sum(each[n].duration_s for each in part) / sum(each[n].duration_s for each in whole)
            assert ratio == pytest.approx(1, abs=0.02)
            assert all(each[n].simulated_bytes == most and each[n].error < 0.1 for each in part)
            shares = [sum(each[n].bytes_by_path) for each in part]
            assert shares == pytest.approx([80e6] * 24, rel=0.02)


def test_a_part_that_ends_before_a_transfer_has_settled_says_how_little_it_tells():
    """A gigabit and 150 ms: 14 MB are slow start and hardly more; nobody's traffic."""
    far = [
        PathBelief.of(
            path("one", rtt=0.15, out=direction(1e9, queue=Queue(depth_bytes=Value(3e6, 3e6, 3e6), managed=Value(0.0))))
        )
    ]
    choices, seeds = [Choice(("one",), "cubic")], range(12)
    [whole, part] = (
        sorted(one.duration_s for [one] in simulate(far, seeds, choices, 3_000_000_000, lambda _, most=most: most))
        for most in (1_000_000_000, 14_000_000)
    )
    assert part[0] < whole[0] < whole[-1] < part[-1]
    assert part[-1] > 2 * part[0]


def test_so_much_is_simulated_as_the_time_allows():
    beliefs = [PathBelief.of(path("one")), PathBelief.of(path("two", out=direction(20e6, 2e6)))]
    few = [Choice(("one",), "lia"), Choice(("one", "two"), "lia")]
    small, large = effort(beliefs, few, 256_000_000), effort(beliefs, few, 300_000_000_000)
    assert (small.time_s, large.time_s) == (3.0, 10.0)
    assert small.most_bytes < large.most_bytes < 300_000_000_000
    assert effort(beliefs, few * 10, 1_000_000).time_s == 10.0
    # with little time a transfer is not told by its beginning
    assert effort(beliefs, few, 300_000_000_000, 0.6).time_s == 0.6
    fast = [PathBelief.of(path("one", rtt=0.15, out=direction(10e9)))]
    assert effort(fast, [Choice(("one",), "cubic")], 300_000_000_000, 0.6).time_s == 10.0
    # others' traffic is work, too
    assert effort(beliefs, [Choice(("two",), "lia")], 10**9).most_bytes < large.most_bytes


def test_what_was_cut_is_said(monkeypatch):
    monkeypatch.setattr("pathcast.forecast.forecast.clock", lambda: count(0, 10).__next__)
    found = forecast(measured(path()), Job(10 * SIZE, CUBIC), limits=Effort(3.0, SIZE))
    assert any(
        note.startswith("of every transfer the first 4 MB were tried out: that the rest goes on like them ")
        for note in found.notes
    )
    rough = "there was too little time to compute more, so that the interval is rough: "
    assert any(note.startswith(rough) for note in found.notes)
    assert not any(word in note for note in found.notes for word in ("draw", " ms", "batch"))
    assert found.runners[0].outcomes[0].simulated_bytes == SIZE


# --- what can be said


def test_paths_that_are_not_known_are_named_and_the_rest_is_answered():
    unknown = path("two", out=replace(direction(), capacity_bps=Value(None, why="inconsistent")))
    found = forecast(
        measured(path("one"), unknown, path("three", down=Down(9, 3))), Job(SIZE, CUBIC), draws=4, limits=ALL
    )
    assert {tuple(sorted(one.choice.paths)) for one in found.runners} == {("one",), ("two",), ("one", "two")}
    assert found.chosen.choice.paths == ("one", "two"), "nothing speaks for leaving it out, nor for beginning with it"
    assert found.down == ("three",)
    guess = "two is taken for a line like the others, which is a guess: no capacity of path `two` out: the samples"
    assert found.notes[0].startswith(guess)
    wide = {one.choice.paths: one.durations_s() for one in found.runners}
    assert max(wide["two",]) / min(wide["two",]) > 2 * max(wide["one",]) / min(wide["one",])
    assert found.notes[1] == "three is down: no answer to 9 probes in 3 s"
    refused(
        lambda: forecast(measured(unknown), Job(SIZE, CUBIC), limits=ALL),
        "nothing can be forecast: two is left out",
        Exit.UNTRUSTWORTHY,
    )
    refused(lambda: Job(0, CUBIC), "at least one byte")


def test_what_queues_that_nobody_looked_at_would_change_is_said():
    """LIA grows slowly over two lines together, which a long queue bridges and a managed one does not."""

    def notes(managed, limits=ALL):
        queue = Queue(depth_bytes=Value(1e6, 0.9e6, 1.1e6), managed=managed)
        out = direction(40e6, 40e6, queue=queue, loss=Loss(3, 50_000, Value(6e-5, 3e-5, 1e-4)))
        two = measured(path("one", rtt=0.03, out=out), path("two", rtt=0.045, out=out))
        told = forecast(two, Job(30_000_000, Controls(("cubic",), ("lia",))), draws=16, limits=limits)
        assert len(told.chosen.choice.paths) == 2 or managed.value == 1.0
        return [note for note in told.notes if "managed" in note]

    [note] = notes(Value(None))
    before, after = (
        "nobody looked whether queues are managed (fq_codel, PIE): then it takes ",
        " times as long; a thorough",
    )
    assert note.startswith(before)
    assert 1.3 <= float(note.removeprefix(before).partition(after)[0]) < 3
    assert notes(Value(0.0)) == notes(Value(1.0)) == []
    assert notes(Value(None), replace(ALL, time_s=0.0)) == [], "there was no time for all draws"


def test_many_paths_are_answered_and_it_is_said():
    six = [path(f"p{n}", out=direction(20e6, (10 + n) * 1e6)) for n in range(6)]
    found = forecast(measured(*six), Job(200_000, CUBIC), draws=2, limits=ALL)
    assert len(found.runners) == 15 + 2 + 2
    assert any(note.startswith("of 6 paths not every combination was tried: all of the 4") for note in found.notes)
    assert ("p5", "p4", "p3", "p2", "p1") in {one.choice.paths for one in found.runners}


def test_of_more_paths_than_a_network_has_those_with_most_room_are_tried():
    nine = [path(f"p{n}", out=direction(20e6, (10 + n) * 1e6)) for n in range(9)]
    unknown = path("far", out=replace(direction(), capacity_bps=Value(None, why="inconsistent")))
    found = forecast(measured(*nine, unknown), Job(200_000, CUBIC), draws=2, limits=ALL)
    assert {name for one in found.runners for name in one.choice.paths} == {f"p{n}" for n in range(1, 9)}
    assert found.notes[0] == "p0 and far are left out: at most 8 paths are simulated, those with most room"
    assert not any("is taken for a line" in note for note in found.notes)
    assert any(note.startswith("of 8 paths not every combination was tried") for note in found.notes)


def test_several_paths_begin_over_the_one_that_they_are_fastest_by():
    """Two lines of about the same room; a short transfer is half over when the far one has answered once."""
    paths = path("far", rtt=0.15, out=direction(21e6, 21e6)), path("near", rtt=0.02)
    found = forecast(measured(*paths), Job(SIZE, CUBIC), draws=8, limits=ALL)
    [both] = [one for one in found.runners if len(one.choice.paths) == 2]
    assert both.choice.paths == ("near", "far")
    usual = simulate([*map(PathBelief.of, paths)], range(1, 9), [Choice(("far", "near"), "cubic")], SIZE)
    assert sum(both.durations_s()) < 0.95 * sum(one.duration_s for [one] in usual)


def together(probability, *paths):
    """Each shares its bottleneck with all others, with that probability."""
    return [
        replace(of, shared_with=tuple(Shared(one.name, "out", Value(probability)) for one in paths if one is not of))
        for of in paths
    ]


def test_paths_over_one_bottleneck_have_its_rate_together():
    pair = together(0.999, path("one"), path("two", rtt=0.06))
    both = Controls(("lia",), ("lia",))
    found = forecast(measured(*pair), Job(SIZE, both), draws=4, limits=ALL)
    rates = {frozenset(one.choice.paths): SIZE * 8 / min(one.durations_s()) for one in found.runners}
    assert max(rates.values()) < 20e6
    assert "one and two end in one and the same line (100% sure)" in found.notes
    apart = forecast(measured(*together(0.001, *pair)), Job(SIZE, both), draws=4, limits=ALL)
    assert min(apart.runners[0].durations_s()) < 0.7 * min(found.runners[0].durations_s())
    assert not apart.notes


def test_who_shares_with_whom_is_drawn():
    three = [PathBelief.of(one) for one in together(0.5, *(path(name) for name in "abc"))]
    drawn = [shared_by(three, random.Random(seed)) for seed in range(800)]
    assert set(drawn) == {(0, 1, 2), (0, 0, 2), (0, 1, 0), (0, 1, 1), (0, 0, 0)}
    # none of three pairs
    assert 60 < drawn.count((0, 1, 2)) < 140
    assert shared_by([replace(one, shared=()) for one in three], random.Random(1)) == (0, 1, 2)


# --- the sentence


def test_why_in_one_sentence():
    a, both = runner("a", 9, 9.2, 9.1), runner("ab", 10.1, 10.3, 10.2)
    told = why([a, both], a, SIZE, None)
    assert (
        told
        == "a alone with lia: over b too it would take 12% longer, since b would carry 50% of it and hold up the rest"
    )
    told = why([runner("ab", 5, 5, 5), runner("a", 9, 9, 9)], runner("ab", 5, 5, 5), SIZE, None)
    assert told == "a and b with lia: a alone would take 80% longer"
    a = runner("a", *[9, 9.1, 9.2] * 4)
    fits = why([a], a, SIZE, 60.0)
    assert fits == "fits: all of it in 9.1 s (9 to 9.2 s), and there are 60 s; a with lia is the only choice"
    missed = why([a], a, SIZE, 4.55)
    assert missed.startswith("does not fit: 2 MB by then; all of it in 9.1 s (9 to 9.2 s)")
    late = "too late: the deadline passed while it was measured; all of it in 9.1 s"
    assert why([a], a, SIZE, -1.0).startswith(late)
    open_end = runner("a", 9, None, 9.1)
    assert "(9 s to no end)" in why([open_end], open_end, SIZE, 60.0)
    assert math.isinf(open_end.durations_s()[1])
