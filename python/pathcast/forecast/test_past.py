"""What the history says enters the forecast: with its age, by what it was worth, and no longer than the lines last."""

from __future__ import annotations

import math
import random
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean, median

import pytest

from pathcast.errors import PathcastError
from pathcast.forecast import fresh, pathkeys
from pathcast.forecast.answer import chosen, option
from pathcast.forecast.ask import ask
from pathcast.forecast.belief import PathBelief
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.forecast import Job, forecast
from pathcast.forecast.learnt import learn
from pathcast.forecast.lessons import Lesson, conformal, drift, lesson
from pathcast.forecast.past import Carried, Earlier, Judged, Past, recall
from pathcast.forecast.record import Recorded, Recorder
from pathcast.forecast.test_record import TOPOLOGY
from pathcast.forecast.test_twin import direction, path, runner
from pathcast.forecast.twin import Choice
from pathcast.history import place
from pathcast.history.identity import PathKey
from pathcast.history.read import Reader
from pathcast.worlds.measurement import Down, Loss, Measurement, Queue, RateVariation, Request, Value
from pathcast.worlds.results import Transfer
from pathcast.worlds.sim import Sim
from pathcast.worlds.test_results import report, subflow

SIZE = 4_000_000
CUBIC = Controls(("cubic",), ("cubic",))
ONE = Choice(("one",), "cubic")
HOUR = 3600.0
ALL = Effort(1e9, 10**12)


def earlier(age_s, rate=20e6, left=None, effort="usual", **more):
    return Earlier(age_s, path(out=direction(rate, left, **more)), effort, f"m{age_s:g}")


def carried(took_s, age_s=HOUR, size=SIZE, control="cubic", **more):
    return Carried(age_s, frozenset({"one"}), control, size, took_s, **more)


def judged(took_s, said_s, age_s=HOUR, half=1.2, **more):
    """A transfer after a forecast whose interval was from said / half to said * half."""
    option = {"duration_s": {"value": said_s, "low": said_s / half, "high": said_s * half}, **more}
    return Judged(carried(took_s, age_s), option, SIZE)


def measured(*paths):
    return Measurement(paths, 1_000_000, 2.0, "ride")


def made(past, rate=20e6, left=None, loads=None):
    looks = {"one": loads or (0.25,) * 8}
    return forecast(
        measured(path(out=direction(rate, left or 0.75 * rate))), Job(SIZE, CUBIC), looks, 8, ALL, past=past
    )


# --- measurements


def test_a_fresh_measurement_stands_for_now_and_an_old_one_does_not():
    whole = Past({"one": (earlier(20, left=15e6), earlier(200, left=10e6), earlier(400, left=0.0))})
    found = fresh.fresh(whole, ["one"], "out", "usual")
    assert found.measured.paths[0].name == "one"
    assert fresh.loads(whole, "one", "out", 30.0) == pytest.approx((0.5, 0.25))
    # a job of an hour asks for the looks of the hour before
    assert len(fresh.loads(whole, "one", "out", HOUR)) == 3
    assert fresh.fresh(whole, ["one"], "out", "thorough") is None
    assert fresh.fresh(whole, ["one", "two"], "out", "usual") is None
    assert fresh.fresh(Past({"one": (earlier(301),)}), ["one"], "out", "usual") is None


def test_a_transfer_that_belies_the_measurement_asks_for_another_one():
    measured = {"one": (earlier(100),)}

    def found(*judged):
        return fresh.fresh(Past(measured, judged=judged), ["one"], "out", "usual")

    assert found(judged(2.1, 2.0, age_s=50)) is not None
    assert found(judged(4.0, 2.0, age_s=50)) is None
    assert found(judged(4.0, 2.0, age_s=200)) is not None


def test_an_older_measurement_that_knows_more_has_its_own_age_and_can_be_belied():
    older, look = earlier(200), earlier(20, queue=Queue())
    whole = Past({"one": (look, older)})
    found = fresh.fresh(whole, ["one"], "out", "usual")
    assert (found.measured.paths, fresh.age_s(whole, found.measured.paths)) == ((older.path,), 200)
    # a transfer between the two: what was measured before it counts no more
    since = replace(whole, judged=(judged(4.0, 2.0, age_s=100),))
    found = fresh.fresh(since, ["one"], "out", "usual")
    assert (found.measured.paths, fresh.age_s(since, found.measured.paths)) == ((look.path,), 20)


def test_what_an_older_measurement_knew_of_the_same_line_is_remembered():
    now = path(out=direction(20e6, queue=Queue(), loss=Loss(0, 1_000)))
    depth = Value(60_000, 55_000, 65_000)
    before = Past(
        {"one": (earlier(HOUR, effort="thorough", queue=Queue(depth_bytes=depth), loss=Loss(9, 9_000, Value(1e-3))),)}
    )
    found = fresh.remembered(now, before, "out").directions["out"]
    assert found.queue.depth_bytes.value == 60_000
    assert found.queue.depth_bytes.low < 55_000
    assert found.loss.packets == 10_000
    assert found.loss.random.value == pytest.approx(9e-4)
    # of a line that was another one nothing is
    other = Past({"one": (earlier(HOUR, 40e6, queue=Queue(depth_bytes=depth)),)})
    assert fresh.remembered(now, other, "out") == now


def test_what_is_not_to_be_trusted_is_neither_load_nor_capacity():
    doubtful = Value(5e6, 4e6, 6e6, "inconsistent")
    whole = Past({"one": (earlier(20, left=15e6), earlier(40, available_bps=doubtful), earlier(60, left=10e6))})
    assert fresh.loads(whole, "one", "out", 30.0) == pytest.approx((0.5, 0.25))
    now = path(out=direction(20e6, capacity_bps=doubtful))
    assert fresh.remembered(now, whole, "out").directions["out"].capacity_bps.value == 20e6
    assert fresh.remembered(now, Past(), "out") == now


def test_transfers_bound_the_random_loss():
    lossy = path(out=direction(loss=Loss(0, 100, Value(0.0))))

    def share(carried):
        belief = PathBelief.of(lossy, carried=carried)
        return sum(belief.draw(random.Random(seed)).loss > 3e-4 for seed in range(600)) / 600

    assert share((0, 0)) > 0.03
    assert share((100_000, 5)) == 0.0
    assert share((100_000, 10_000)) == pytest.approx(share((0, 0)), abs=0.02)


def test_old_transfers_say_less_of_losses_than_new_ones_and_never_all():
    of = (carried(3.0, 0, packets=1_000, resent=10), carried(3.0, 86_400, packets=1_000, resent=20))
    assert Past(carried=of).packets("one") == pytest.approx((1_500, 20))
    assert Past(carried=of).packets("one", HOUR) == pytest.approx((1_000, 10))
    much = Past(carried=(carried(3.0, 0, packets=10**8, resent=1_000),)).packets("one")
    assert (much[0], much[1] / much[0]) == pytest.approx((1e6, 1e-5))
    assert Past().packets("one") == (0, 0)


def test_what_a_line_lost_before_it_was_changed_bounds_nothing():
    """An earlier line of 40 Mbit/s carried a million packets and lost none."""
    lossy = measured(path(out=direction(20e6, loss=Loss(0, 100, Value(0.0)))))
    sent = (carried(3.0, 2 * HOUR, size=64 * SIZE, packets=10**6),)
    before = Past({"one": (earlier(HOUR, 40e6),)}, sent)

    def took(past):
        return forecast(lossy, Job(SIZE, CUBIC), {"one": (0.0,)}, 12, ALL, past=past).runners[0].durations_s()

    assert took(before) == took(Past())
    assert took(Past(carried=sent)) != took(Past())


def test_a_line_that_varies_is_no_other_line_at_every_look():
    rates = (30e6, 70e6, 45e6)
    before = Past({"one": tuple(earlier(n * HOUR, rate) for n, rate in enumerate(rates, 1))})
    steady = path(out=direction(50e6))
    radio = path(out=direction(50e6, rate_variation=RateVariation(Value(0.5))))
    assert fresh.changed_s(before, radio, "out") is None
    assert fresh.changed_s(before, steady, "out") is None, "they vary among themselves as much"
    assert fresh.changed_s(Past({"one": before.of("one")[:1]}), radio, "out") is None
    slow = path(out=direction(5e6, rate_variation=RateVariation(Value(0.5))))
    assert fresh.changed_s(before, slow, "out") is not None, "not by so much"
    held = replace(before, judged=tuple(judged(3.0, 2.0, n * HOUR) for n in range(1, 31)))
    assert drift(held, frozenset({"one"})) is not None
    held = replace(before, judged=tuple(judged(3.0 if n % 2 else 1.3, 2.0, n * HOUR) for n in range(1, 31)))
    found = forecast(measured(radio), Job(SIZE, CUBIC), {"one": (0.0,)}, 8, ALL, past=held)
    assert not any("counts no more" in note for note in found.notes)
    assert found.runners[0].told["scale"] == conformal(held, ONE, SIZE) > 1.5


def test_a_change_of_a_wired_line_is_seen_after_however_many_looks():
    def since(now, *rates):
        before = Past({"one": tuple(earlier(n * HOUR, rate) for n, rate in enumerate(rates, 1))})
        changed = fresh.changed_s(before, path(out=direction(now)), "out")
        return changed and changed[0] / HOUR

    assert since(8e6, 20e6) == 1
    assert since(8e6, 20e6, 20e6, 20.1e6) == 1
    assert since(8e6, 8e6, 8e6, 20e6, 20e6) == 3
    assert since(8e6, 8e6, 20e6, 8e6, 8e6, 8e6) == 2
    assert since(20e6, 20e6, 20.1e6, 19.9e6) is None


# --- transfers


def test_equal_recent_transfers_are_their_median_and_spread():
    past = Past(
        carried=tuple(carried(took, age) for took, age in ((3.0, 60), (3.1, 120), (2.9, 180), (30.0, 10 * 86_400)))
    )
    learnt = lesson(past, ONE, SIZE)
    assert learnt.past_s == pytest.approx(3.0, rel=0.02)
    [runner] = made(past).runners
    assert runner.told["by"] == "past"
    assert median(runner.durations_s()) == pytest.approx(3.0, rel=0.02)
    assert runner.told["ways_s"]["twin"] == pytest.approx(2.3, rel=0.2)
    # another size, another controller: nothing
    assert lesson(past, ONE, 10 * SIZE).past_s is None
    assert lesson(past, Choice(("one",), "lia"), SIZE).past_s is None


def test_the_twin_is_corrected_by_what_transfers_were_to_it_shrunk():
    def factor(*judged):
        return lesson(Past(judged=judged), ONE, SIZE).factor

    assert factor() == 1.0
    one = factor(judged(3.0, 2.0))
    many = factor(*(judged(3.0, 2.0, age_s=60 * n) for n in range(1, 20)))
    assert 1.0 < one < math.sqrt(1.5) * 1.01
    assert many == pytest.approx(1.5, rel=0.04)
    # a correction is judged by the twin's word, not by what was corrected already
    corrected = judged(3.0, 3.0, ways_s={"twin": 2.0, "corrected": 3.0})
    assert factor(corrected) == one


def test_what_was_best_on_earlier_forecasts_is_taken():
    """Equal transfers tell nothing where the load changes all the time, and the twin sees it."""
    equal = tuple(carried(took, 60 * n) for n, took in enumerate((2.0, 4.0, 2.0, 4.0, 2.0, 4.0), 1))
    ways = lambda took: {"twin": took * 1.02, "past": 3.0}  # noqa: E731
    of = tuple(judged(one.duration_s, one.duration_s * 1.02, one.age_s, ways_s=ways(one.duration_s)) for one in equal)
    learnt = lesson(Past(carried=equal, judged=of), ONE, SIZE)
    assert learnt.way != "past"
    off = tuple(
        replace(one, option={**one.option, "ways_s": {"twin": 9.0, "past": one.carried.duration_s}}) for one in of
    )
    assert lesson(Past(carried=equal, judged=off), ONE, SIZE).way == "past"


def test_intervals_are_scaled_once_enough_were_judged_and_hold_then():
    draw = random.Random(1)

    def past(number, deviation):
        return Past(judged=tuple(judged(2.0 * math.exp(draw.gauss(0, deviation)), 2.0, n) for n in range(number)))

    assert conformal(past(18, 0.5), ONE, SIZE) == 1.0
    # 90 % of a normal distribution lie within 1.645 deviations
    ideal = 1.645 * 0.3 / math.log(1.2)
    assert conformal(past(100, 0.3), ONE, SIZE) == pytest.approx(ideal, rel=0.3)
    assert conformal(past(100, 0.01), ONE, SIZE) < 0.2
    # an interval that was scaled already is judged by what it was before
    scaled = tuple(replace(one, option={**one.option, "scale": 2.0}) for one in past(40, 0.3).judged)
    plain = tuple(replace(one, option={**one.option, "scale": 1.0}) for one in scaled)
    sets = [conformal(Past(judged=of), ONE, SIZE) for of in (scaled, plain)]
    assert sets[0] == pytest.approx(2 * sets[1])


def test_where_too_few_like_it_were_judged_others_only_widen_an_interval():
    outside = Past(judged=tuple(judged(3.0 if n % 2 else 1.3, 2.0, n) for n in range(40)))
    assert lesson(outside, Choice(("one", "two"), "cubic"), SIZE).scale > 1
    assert lesson(outside, Choice(("one",), "lia"), SIZE).scale > 1
    large = judged(2.0, 2.0, 1)
    large = replace(large, carried=replace(large.carried, size_bytes=100 * SIZE), size_bytes=100 * SIZE)
    exact = Past(judged=(large, *(judged(2.0 * math.exp(n % 5 / 1e3), 2.0, n) for n in range(2, 102))))
    assert lesson(exact, ONE, 100 * SIZE).scale >= 1
    assert lesson(exact, ONE, SIZE).scale < 0.2
    assert lesson(exact, Choice(("one",), "lia"), SIZE).scale >= 1


def taught(name, durations, lesson):
    made = runner(name, *durations)
    learn(made, lesson)
    return made


def test_choices_are_compared_by_what_was_not_stretched():
    """Of a skewed distribution the mean grows with its width."""
    one = taught("a", [8, 9, 9.5, 10, 15] * 5, Lesson(scale=4.0))
    both = taught("ab", [8.4, 9.4, 9.9, 10.4, 15.4] * 5, Lesson())
    assert fmean(one.durations_s()) > fmean(both.durations_s())
    assert one.compared_s() == runner("a", *[8, 9, 9.5, 10, 15] * 5).durations_s()
    assert chosen([one, both]) is one
    assert option(one, SIZE, None)["expected_s"] == fmean(one.compared_s())


def test_what_one_transfer_taught_of_one_choice_decides_nothing():
    past = Past(judged=(replace(judged(2.4, 2.0), carried=replace(carried(2.4), paths=frozenset("ab"))),))

    def taken(past):
        runners = [
            taught(name, [2.0, 2.01, 1.99, 2.02] * 6, lesson(past, Choice(tuple(name), "cubic"), SIZE))
            for name in ("a", "b", "ab")
        ]
        return chosen(runners).choice.paths

    assert taken(past) == ("a", "b")
    [one] = past.judged
    one = replace(one, option={**one.option, "ways_s": {"twin": 2.0, "corrected": 2.4}})
    many = tuple(replace(one, carried=replace(one.carried, age_s=n)) for n in range(1, 30))
    assert taken(Past(judged=many)) == ("a",)


def test_drift_is_noticed_and_said():
    steady = Past(judged=tuple(judged(2.1, 2.0, 60 * n) for n in range(1, 8)))
    assert drift(steady, frozenset({"one"})) is None
    slow = Past(judged=tuple(judged(3.0 if n < 4 else 2.0, 2.0, 60 * n) for n in range(1, 8)))
    assert drift(slow, frozenset({"one"})) == pytest.approx(0.5)
    assert any("took 50% longer than forecast" in note for note in made(slow).notes)
    # of these only the last ones count
    assert lesson(slow, ONE, SIZE).errors["twin"] > lesson(steady, ONE, SIZE).errors["twin"]


def test_after_a_drift_only_the_last_transfers_count():
    old = tuple(60 * n for n in range(4, 24))
    judgements = tuple(judged(3.0 if n < 4 else 2.0, 2.0, 60 * n) for n in range(1, 24))
    learnt = lesson(Past(carried=tuple(carried(2.0, age) for age in old), judged=judgements), ONE, SIZE)
    assert learnt.factor > 1.25
    assert learnt.past_s is None
    assert learnt.scale == 1.0, "three are too few"


def test_what_managed_queues_would_change_is_told_of_the_draws_themselves():
    """Earlier transfers took half of what was forecast, which says nothing of the queue."""
    of = tuple(judged(1.0, 2.0, 60 * n) for n in range(1, 20))
    past = Past(judged=tuple(replace(one, carried=replace(one.carried, size_bytes=2 * SIZE)) for one in of))
    unknown = path(out=direction(queue=Queue(depth_bytes=Value(60_000, 55_000, 65_000))))
    found = forecast(measured(unknown), Job(SIZE, CUBIC), {"one": (0.0,)}, 8, ALL, past=past)
    assert found.runners[0].told["by"] == "corrected"
    assert not any("managed" in note for note in found.notes)


def test_what_was_sent_over_a_line_that_is_another_one_now_counts_no_more():
    before = Past({"one": (earlier(2 * HOUR, 20e6), earlier(3 * HOUR, 20e6))}, (carried(2.2, 2.5 * HOUR),) * 3)
    cut = made(before, rate=8e6)
    assert any("one has 8 Mbit/s, and had 20 Mbit/s until 2 h ago" in note for note in cut.notes)
    [runner] = cut.runners
    assert runner.told["by"] == "twin"
    assert median(runner.durations_s()) > 4
    assert made(before).runners[0].told["by"] == "past"


# --- with a store


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(place.parse(str(tmp_path / "history.db")), "test", "small", say=lambda text: None)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    monkeypatch.setattr("pathcast.forecast.forecast.DRAWS", 8)


@contextmanager
def world(recorder):
    with Sim(TOPOLOGY) as sim:
        yield Recorded(sim, recorder, pathkeys.of_network("sim", "small", TOPOLOGY.text))


def told(recorder, network, **more):
    past = recorder.past(network.keys)
    answer = ask(network, Job(SIZE, CUBIC), Request(), past=past, **more)
    recorder.measured += answer.made_from
    document = {**answer.document(), "world": "sim"}
    recorder.forecast("sim", document, network.keys)
    return answer, document


def test_a_second_forecast_measures_nothing_and_a_transfer_teaches_the_third(recorder):
    with world(recorder) as network:
        first, document = told(recorder, network)
        assert first.probe_bytes > 0
        assert first.age_s is None
        second, held = told(recorder, network)
        assert second.probe_bytes == 0
        assert second.age_s < 60
        assert "by the history; --fresh measures again" in held["notes"][0]
        assert held["options"][0]["duration_s"]["value"] == pytest.approx(
            document["options"][0]["duration_s"]["value"], rel=0.05
        )
        sent = network.transfer(["path1", "path2"], SIZE, "cubic")
        past = recall(Reader(recorder.journal.store), network.keys, "out")
        [one] = past.judged
        assert one.carried.paths == {"path1", "path2"}
        assert one.carried.duration_s == pytest.approx(sent.elapsed_s)
        assert one.option["ways_s"]["twin"] > 0
        third, _ = told(recorder, network)
        ways = {frozenset(of.choice.paths): set(of.told["ways_s"]) for of in third.forecast.runners}
        assert ways[frozenset({"path1", "path2"})] == {"twin", "corrected", "past"}
        assert ways[frozenset({"path1"})] == {"twin"}
        anew, _ = told(recorder, network, anew=True)
        assert anew.probe_bytes > 0


def test_what_a_learnt_model_foretold_judges_no_twin(recorder):
    """Its documents (`pathcast.predict/1`) name a duration as one number, and a transfer follows them, too."""
    with world(recorder) as network:
        told(recorder, network)
        option = {"paths": ["path1"], "predicted_bps": 1e9, "duration_s": 8 * SIZE / 1e9}
        recorder.forecast("sim", {"size_bytes": SIZE, "options": [option], "chosen": ["path1"]}, network.keys)
        network.tcp_probe("path1", SIZE, "cubic")
        [of] = Reader(recorder.journal.store).forecasts([*network.keys.values()], limit=1)
        assert of.came[0].option == option
        assert told(recorder, network)[0].probe_bytes == 0
        past = recorder.past(network.keys)
        assert ([one.paths for one in past.carried], past.judged) == ([{"path1"}], ())


def test_a_line_that_died_since_it_was_measured_is_measured_again(recorder):
    with world(recorder) as network:
        told(recorder, network)
        network._of.silent = lambda paths: {"path1": "no answer"}
        assert told(recorder, network)[0].probe_bytes > 0


def test_names_are_labels_and_addresses_may_change(recorder):
    with world(recorder) as network:
        network.measure(["path1"], Request(effort="light", seed=1))
        network.tcp_probe("path1", 50_000)
        [key] = [key for name, key in network.keys.items() if name == "path1"]
    reader = Reader(recorder.journal.store)
    renumbered = PathKey(key.line_id, key.remote_id, "10.9.9.9", key.remote)
    for keys in ({"fibre": key}, {"fibre": renumbered}):
        past = recall(reader, keys, "out")
        assert [one.path.name for one in past.of("fibre")] == ["fibre"]
        if keys["fibre"] is key:
            assert [one.paths for one in past.carried] == [{"fibre"}]
    other = PathKey("another line", key.remote_id, key.local, key.remote)
    assert recall(reader, {"fibre": other}, "out") == Past({"fibre": ()})
    assert recall(reader, {"fibre": key}, "in").carried == ()


def test_a_path_that_is_asked_for_has_nothing_of_another_one_of_its_line(recorder):
    """Two addresses of a far end over one line: what went over the other one, or over both, is not this one's."""
    one = PathKey("cable", "key:far", "10.0.0.2", "192.0.2.1")
    keys = {"cable": one, "cable-2": replace(one, remote="192.0.2.2")}
    option = {"paths": [*keys], "control": "cubic", "duration_s": {"value": 2.0, "low": 1.9, "high": 2.1}}
    told = {"size_bytes": SIZE, "options": [option, {**option, "paths": ["cable"]}], "chosen": [*keys]}
    recorder.forecast("host", told, keys)
    for over in (("cable", "cable-2"), ("cable-2",), ("cable",)):
        act = recorder.act("host")
        done = report(*(subflow(name, SIZE // len(over)) for name in over), bytes=SIZE, elapsed_s=9.0, control="cubic")
        carried = [(keys[name], name, SIZE // len(over), 0) for name in over]
        act.transfer(Transfer.read(list(over), done).document(), carried)
        recorder.keep(act)
    act = recorder.act("host")
    act.measurement(measured(path("cable-2")).document(), keys, ("out", "in"))
    recorder.keep(act)
    past = recorder.past(keys, "out", ["cable"])
    assert (past.of("cable"), list(past.measured)) == ((), ["cable"])
    assert [of.paths for of in past.carried] == [of.carried.paths for of in past.judged] == [{"cable"}]
    every = recorder.past(keys)
    assert ([len(of) for of in every.measured.values()], len(every.carried), len(every.judged)) == ([0, 1], 3, 2)


def test_what_was_lately_measured_is_of_all_of_the_time(recorder, monkeypatch):
    monkeypatch.setattr("pathcast.forecast.past._MOST_LATELY", 50)
    key, acts = PathKey("cable", "key:far", "10.0.0.2", "192.0.2.1"), []
    for number in range(300):
        act = recorder.act("sim", ago_s=600.0 * (300 - number))
        found = path("path1", out=direction(1e6 * (number + 1)), down=Down(9, 5) if number > 200 else None)
        act.measurement(measured(found).document(), {"path1": key}, ("out", "in"))
        acts.append(act.rows)
    recorder.journal._add_all(acts)
    found = recorder.lately({"cable": key}, 7 * 86_400.0, 150.0)["cable"]
    assert [one.path.directions["out"].capacity_bps.value / 1e6 for one in found] == list(range(201, 0, -5))
    assert {one.path.name for one in found} == {"cable"}


def test_a_history_that_cannot_be_read_is_said_and_is_none(recorder, monkeypatch):
    said = []
    recorder.say = said.append

    def broken(*_):
        raise PathcastError("history-away", "the history is away")

    monkeypatch.setattr("pathcast.forecast.past.recall", broken)
    assert recorder.past({}) == Past()
    assert said == ["not read: the history is away"]
