"""The twin: what is drawn, what is simulated, which choice is taken."""

from __future__ import annotations

import math
import random
import threading
import tomllib
from dataclasses import replace
from itertools import count
from statistics import fmean, median, stdev

import pytest

from pathcast import _native
from pathcast.forecast.answer import chosen, option, quantile
from pathcast.forecast.belief import PathBelief, perhaps
from pathcast.forecast.controls import Controls
from pathcast.forecast.field import field_of
from pathcast.forecast.outcome import outcome
from pathcast.forecast.race import Runner, race
from pathcast.forecast.twin import WARM_UP_S, Choice, simulate, text
from pathcast.worlds.measurement import (
    Clock,
    Cross,
    Delay,
    Direction,
    Down,
    Loss,
    PathMeasured,
    Policer,
    Queue,
    RateVariation,
    Value,
)
from pathcast.worlds.results import Transfer
from pathcast.worlds.test_results import report, subflow

SIZE = 4_000_000


def direction(capacity=20e6, available=None, **more):
    left = capacity if available is None else available
    of = {
        "capacity_bps": Value(capacity, capacity * 0.99, capacity * 1.01),
        "available_bps": Value(left, left * 0.99, left * 1.01),
        "delay_s": Delay(*(Value(0.01, 0.01, 0.01) for _ in range(3)), 0.0, Clock(True, 0.0)),
        "loss": Loss(0, 10_000, Value(0.0, 0.0, 3e-4)),
        "bytes": 1,
        "queue": Queue(depth_bytes=Value(60_000, 55_000, 65_000), managed=Value(0.0)),
        "cross": Cross(mean_bps=Value(capacity - left, capacity - left, capacity - left)),
    }
    return Direction(**{**of, **more})


def path(name="one", rtt=0.02, out=None, **more):
    both = {"out": out or direction(), "in": direction()}
    return PathMeasured(name, "192.0.2.2", "192.0.2.1", both, rtt_s=Value(rtt, rtt, rtt), **more)


def drawn(path, number=400, loads=(), **more):
    belief = replace(PathBelief.of(path, loads=loads), **more)
    return [belief.draw(random.Random(seed)) for seed in range(number)]


def loads_of(lines):
    return sorted(line.cross_bps / line.rate_bps for line in lines)


def test_a_measured_line_is_drawn_as_it_was_measured():
    lines = drawn(path(out=direction(20e6, 15e6)))
    assert median(line.rate_bps for line in lines) == pytest.approx(20e6, rel=0.002)
    assert median(line.cross_bps for line in lines) == pytest.approx(5e6, rel=0.05)
    assert median(line.queue_bytes for line in lines) == pytest.approx(60e3, rel=0.02)
    inside = sum(55e3 <= line.queue_bytes <= 65e3 for line in lines)
    assert 0.85 < inside / len(lines) < 0.95
    assert {line.queue_kind for line in lines} == {"fifo"}
    assert {line.rtt_s for line in lines} == {0.02}


def test_what_was_not_measured_is_drawn_widely():
    unknown = path(out=direction(20e6, 15e6, queue=Queue(), cross=Cross()))
    depths = sorted(line.queue_bytes for line in drawn(unknown))
    # a quarter of a second of the line, most of them; a few quite other
    assert depths[len(depths) // 2] == pytest.approx(0.235 * 20e6 / 8, rel=0.1)
    assert depths[len(depths) // 20] < 0.6 * depths[len(depths) // 2]
    assert depths[3] < 150e3
    assert depths[-3] > 1.5e6
    bounded = path(out=direction(queue=Queue(depth_bytes=Value(None, 400_000, None, "beyond-limit"))))
    deep = sorted(line.queue_bytes for line in drawn(bounded))
    assert deep[0] >= 400_000
    # what is left of the prior above the bound, nothing heaped upon it
    assert deep[20] > 410_000
    assert deep[len(deep) // 2] > depths[len(depths) // 2]


def test_a_queue_that_nobody_looked_at_may_be_managed_the_more_so_where_it_drops():
    def of(loss, **queue):
        return drawn(path(out=direction(20e6, queue=Queue(**queue), loss=loss)))

    held, dropped = of(Loss(0, 10_000, Value(0.0, 0.0, 3e-4))), of(Loss(1_500, 10_000, Value(0.0, 0.0, 3e-4)))
    managed = [sum("codel" in line.queue_kind for line in lines) / len(lines) for lines in (held, dropped)]
    assert 0.02 < managed[0] < 0.1 < managed[1] < 0.3
    told = of(Loss(1_500, 10_000, Value(0.0, 0.0, 3e-4)), fair=Value(0.0), managed=Value(0.0))
    assert {line.queue_kind for line in told} == {"fifo"}


def test_a_round_trip_that_never_is_short_tells_of_a_deep_queue():
    unknown = {"queue": Queue(), "cross": Cross()}
    slow = path(out=direction(1e6, 0.9e6, **unknown))
    [short, long] = (
        median(line.queue_bytes for line in drawn(replace(slow, rtt_s=Value(rtt_s)))) for rtt_s in (0.2, 1.2)
    )
    assert short == pytest.approx(0.235 * 1e6 / 8, rel=0.1)
    assert long > 20 * short


def test_a_policer_limits_a_transfer_as_the_line_behind_it_would_not():
    nothing = Value(None, why="inconsistent")
    bucket = Policer(Value(0.99), Value(20e6, 19.8e6, 20.2e6), Value(300e3, 290e3, 310e3))
    policed = path(out=direction(capacity_bps=nothing, available_bps=nothing, policer=bucket))
    lines = drawn(policed, 50)
    assert median(line.policer[0] for line in lines) == pytest.approx(20e6, rel=0.01)
    assert all(line.rate_bps > 3 * line.policer[0] for line in lines)
    [[one]] = simulate([PathBelief.of(policed)], [1], [Choice(("one",), "cubic")], SIZE)
    assert 12e6 < SIZE * 8 / one.duration_s < 20.5e6
    assert one.resent_bytes > 0
    # a look may be shorter than the burst, and see the line in front of it
    before = PathBelief.of(path(out=direction(100e6, policer=bucket)))
    assert before.capacity_bps == 20e6
    there = replace(bucket, probability=Value(0.1))
    assert PathBelief.of(path(out=direction(capacity_bps=nothing, available_bps=nothing, policer=there))) is None


def test_a_rate_that_varies_is_the_less_certain_the_shorter_the_job():
    def spread(cv, horizon_s):
        varied = path(out=direction(rate_variation=RateVariation(Value(cv), Value(5.0))))
        lines = drawn(varied, 400, horizon_s=horizon_s)
        rates = sorted(fmean(bps for at, bps in line.rates if at <= horizon_s) for line in lines if line.rates)
        return rates[-20] / rates[20] if rates else 1.0

    assert spread(0.0, 10.0) < 1.05
    assert spread(0.3, 10.0) > 1.5
    assert 1.1 < spread(0.3, 500.0) < 1.25


def test_a_capacity_is_drawn_as_widely_as_it_is_known_and_a_queue_no_wider_than_queues_are():
    wide = math.exp(1.645 * 1.3)
    far = Value(10e6, 10e6 / wide, 10e6 * wide)
    lines = drawn(path(out=direction(10e6, capacity_bps=far)), 2000)
    assert sum(line.rate_bps < far.low for line in lines) / 2000 == pytest.approx(0.05, abs=0.015)
    depth = Value(60_000, 60_000 / wide, 60_000 * wide)
    lines = drawn(path(out=direction(10e6, queue=Queue(depth_bytes=depth, managed=Value(0.0)))), 2000)
    assert sum(line.queue_bytes < depth.low for line in lines) / 2000 < 0.03


def test_a_rate_that_perhaps_varies_does_so_in_as_many_draws():
    def of(probability, loads=(0.0, 0.0)):
        varies = RateVariation(perhaps(probability))
        return drawn(path(out=direction(rate_variation=varies)), 1000, loads, horizon_s=20.0)

    for probability in (0.1, 0.5, 0.9, 1.0):
        lines = of(probability)
        assert sum(bool(line.rates) for line in lines) / 1000 == pytest.approx(probability, abs=0.05)
        assert all(abs(line.rate_bps / 20e6 - 1) < 0.05 for line in lines if not line.rates)
    assert not any(line.rates for line in of(0.02))
    few, many = (sorted(line.mean_bps(0.0, 20.0) for line in of(1.0, (0.0,) * looks)) for looks in (2, 5))
    assert few[950] / few[50] > 1.2 * many[950] / many[50] > 2


def test_a_rate_that_only_looks_tell_of_keeps_to_what_is_expected_however_long_it_takes():
    for horizon_s in (3.0, 300.0, 32_000.0):
        lines = drawn(path(out=direction(rate_variation=RateVariation(Value(0.7)))), 20, horizon_s=horizon_s)
        for line in lines:
            assert line.mean_bps(0.0, horizon_s) == pytest.approx(20e6, rel=0.02)
            assert len(line.rates) <= 152
            # of what is simulated of a long job there are many
            assert sum(at < 100.0 for at, _ in line.rates) >= min(50, horizon_s / 2)


def test_the_rest_of_a_long_job_is_as_fast_as_its_line_and_not_as_its_beginning():
    """What the line gives is what arrives: 1 of 200 GB."""
    size, part, mean_bps = 200e9, 1e9, 50e6
    out = direction(mean_bps, rate_variation=RateVariation(Value(0.7)))

    def took_s(line):
        def arrived(at_s):
            return line.mean_bps(0.0, at_s) * at_s / 8

        low, high = 0.0, 10 * part * 8 / mean_bps
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if arrived(middle) < part else (low, middle)
        samples = [
            {"at_s": at, "bytes": round(arrived(at)), "subflows": [{"bytes_acked": 0, "cwnd_packets": 1, "srtt_s": 0}]}
            for at in (high * k / 60 for k in range(1, 60))
        ]
        flow = subflow("one", round(part))
        made = report(flow, bytes=round(part), elapsed_s=high, throughput_bps=part * 8 / high, samples=samples)
        return outcome(Transfer.read(["one"], made), ["one"], round(size), line.mean_bps)

    found = [took_s(line) for line in drawn(path(out=out), 200, horizon_s=size * 8 / mean_bps)]
    assert median(one.duration_s for one in found) == pytest.approx(size * 8 / mean_bps, rel=0.03)
    assert all(one.rest_s == 0.0 for one in found), "whose halves differ as the line does has settled"


def test_a_part_over_a_line_that_varies_tells_how_long_the_whole_takes():
    slow = PathBelief.of(path(out=direction(2e6, rate_variation=RateVariation(Value(0.7)))))
    beliefs, choices = [replace(slow, horizon_s=32.0)], [Choice(("one",), "cubic")]
    [whole, part] = (
        [one.duration_s for [one] in simulate(beliefs, range(12), choices, 8_000_000, lambda _, most=most: most)]
        for most in (8_000_000, 3_000_000)
    )
    off = [abs(math.log(one / other)) for one, other in zip(part, whole, strict=True)]
    assert median(off) < 0.1


def test_losses_of_a_line_whose_rate_falls_by_itself_are_not_taken_for_the_wires():
    lost = Loss(180, 10_000, Value(0.018))
    none = Loss(180, 10_000, Value(0.018, 0.0, 0.9))
    assert median(line.loss for line in drawn(path(out=direction(loss=none)))) < 1e-5
    steady, varied = (RateVariation(Value(cv), Value(None)) for cv in (0.02, 0.3))
    assert min(line.loss for line in drawn(path(out=direction(loss=lost, rate_variation=steady)))) > 0.01
    queues = replace(lost, lost=1_400)
    assert median(line.loss for line in drawn(path(out=direction(loss=queues, rate_variation=varied)))) < 1e-5
    # nothing else was lost: a satellite's wire
    assert min(line.loss for line in drawn(path(out=direction(loss=lost, rate_variation=varied)))) > 0.01


def test_a_rate_that_varies_does_so_while_the_job_goes_on():
    varied = path(out=direction(rate_variation=RateVariation(Value(0.5))))
    [[steady]] = simulate([PathBelief.of(path())], [1], [Choice(("one",), "cubic")], SIZE)
    found = [one.duration_s for [one] in simulate([PathBelief.of(varied)], range(8), [Choice(("one",), "cubic")], SIZE)]
    assert min(found) < steady.duration_s < max(found)
    assert max(found) > 1.3 * min(found)


def test_a_rate_that_varies_quickly_does_so_in_a_short_job_too():
    quick = path(out=direction(rate_variation=RateVariation(Value(0.5), Value(0.02))))
    belief = replace(PathBelief.of(quick), horizon_s=0.4)
    rates = [belief.draw(random.Random(seed)).rates for seed in range(20)]
    for of in rates:
        changes = tomllib.loads(text(["one"], [0], [0], [of]))["change"]
        within = [at for one in changes if WARM_UP_S < (at := int(one["at"][:-2]) / 1e9) < WARM_UP_S + 0.4]
        assert len(within) > 10
    found = simulate([belief], range(100), [Choice(("one",), "cubic")], 1_000_000)
    spread = stdev(math.log(one.duration_s) for [one] in found if one)
    assert spread < 0.6 * math.sqrt(math.log1p(0.5**2)), "as wide as one rate that stays"


def test_the_rest_of_a_job_goes_over_the_shared_line_whichever_path_is_taken(monkeypatch):
    varied, part, given = RateVariation(Value(0.7)), 200_000, []
    slow, fast = (path(name, out=direction(rate, rate_variation=varied)) for name, rate in (("a", 2e6), ("b", 20e6)))

    def seen(transfer, paths, size_bytes, mean_bps):
        given.append(mean_bps)
        return outcome(transfer, paths, size_bytes, mean_bps)

    monkeypatch.setattr("pathcast.forecast.twin.outcome", seen)
    choices = [Choice(("a",), "cubic"), Choice(("b",), "cubic"), Choice(("b", "a"), "lia")]
    for probability in (0.0, 1.0):
        shared = (("b", probability),)
        beliefs = [replace(PathBelief.of(slow), shared=shared), PathBelief.of(fast)]
        a, b = (belief.draw(random.Random(f"{belief.name} 1")).mean_bps for belief in beliefs)
        given.clear()
        simulate(beliefs, [1], choices, 10 * part, lambda _: part)
        for times in ((0.0, 1.0), (2.0, 40.0)):
            own, other = a(*times), b(*times)
            wanted = [own, own, own] if probability else [own, other, own + other]
            assert [mean_bps(*times) for mean_bps in given] == pytest.approx(wanted)


def test_where_much_was_lost_a_transfer_has_most_of_what_came_through():
    unknown, passed = Value(None, why="inconsistent"), Value(2e6, 0.0, 2.4e6, "inconsistent")
    policed = direction(capacity_bps=unknown, available_bps=passed, loss=Loss(400, 1_300, Value(0.0, 0.0, 3e-3)))
    lines = drawn(path(out=policed))
    assert median(line.rate_bps for line in lines) == pytest.approx(1.7e6, rel=0.05)
    assert max(line.rate_bps for line in lines) < 10e6
    assert PathBelief.of(path(out=replace(policed, loss=Loss(4, 1_300)))) is None, "a line of which too little is known"


def test_who_drops_much_though_no_queue_overflows_polices():
    unknown, passed = Value(None, why="inconsistent"), Value(2e6, 0.0, 2.2e6, "inconsistent")
    bound = Value(None, 0.0, 0.3, "ambiguous")
    dropped = {"capacity_bps": unknown, "available_bps": passed, "loss": Loss(400, 1_300, bound)}
    lines = drawn(path(out=direction(**dropped, queue=Queue())))
    assert median(line.policer[0] for line in lines) == pytest.approx(2e6, rel=0.01)
    assert all(line.rate_bps > 1.9 * line.policer[0] for line in lines)
    assert {line.cross_bps > 0 for line in lines} == {True, False}, "others may take tokens"
    bursts = sorted(line.policer[1] for line in lines)
    assert bursts[0] >= 15_000
    assert median(line.loss for line in lines) < 1e-3, "what it drops is not the wire's"
    assert bursts[-1] > 100_000


def test_a_wire_that_loses_much_is_no_policer_and_loses_of_every_transfer():
    for share in (0.12, 0.3):
        loss = Loss(round(share * 2_000), 2_000, Value(share, 0.9 * share, 1.1 * share))
        lines = drawn(path(out=direction(loss=loss, queue=Queue())))
        assert median(line.loss for line in lines) == pytest.approx(share, rel=0.1)
        unknown, passed = Value(None, why="inconsistent"), Value(2e6, 0.0, 2.2e6, "inconsistent")
        hidden = drawn(path(out=direction(capacity_bps=unknown, available_bps=passed, loss=loss, queue=Queue())))
        assert all(line.policer is None for line in hidden)
        assert median(line.loss for line in hidden) == pytest.approx(share, rel=0.1)


def test_who_gives_way_is_told_by_how_long_packets_wait():
    def elastic(load, waits_s):
        of = direction(12e6, 12e6 * (1 - load))
        delay = replace(of.delay_s, median=Value(0.01 + waits_s))
        lines = drawn(path(out=replace(of, delay_s=delay)), 400)
        return sum(line.elastic_flows > 0 for line in lines) / 400

    assert elastic(0.6, 0.03) > 0.5, "30 packets: others that send on whatever comes leave no such queue"
    assert elastic(0.6, 0.002) < 0.1
    assert elastic(0.02, 0.03) == 0.0


def test_an_idle_line_that_lets_packets_gather_takes_longer_than_its_least():
    of = direction()
    late = replace(of, delay_s=replace(of.delay_s, median=Value(0.013)))
    assert PathBelief.of(path(out=late)).rtt_s == pytest.approx(0.023)
    busy = replace(late, available_bps=Value(5e6))
    assert PathBelief.of(path(out=busy)).rtt_s == 0.02


def test_losses_in_rows_are_drawn_in_rows():
    lost = Loss(40, 10_000, Value(0.004, 0.002, 0.0075), 4.0)
    lines = drawn(path(out=direction(loss=lost)))
    assert {line.row for line in lines} == {4.0}
    assert median(line.loss for line in lines) == pytest.approx(0.004, rel=0.3)
    [[rows]] = simulate([PathBelief.of(path(out=direction(loss=lost)))], [1], [Choice(("one",), "cubic")], SIZE)
    alone = replace(lost, row=None)
    [[each]] = simulate([PathBelief.of(path(out=direction(loss=alone)))], [1], [Choice(("one",), "cubic")], SIZE)
    assert rows.duration_s < each.duration_s


def test_the_load_ahead_is_the_surer_the_more_looks_agree():
    def width(*looks, **more):
        found = loads_of(drawn(path(), 1000, looks, **more))
        assert found[500] == pytest.approx(sum(looks) / len(looks), abs=0.02)
        return found[950] - found[50]

    once, agreed, wild = width(0.25), width(*[0.25] * 8), width(0.05, 0.45, 0.1, 0.4)
    assert agreed < 0.12 < once
    assert agreed < 0.4 * wild
    # of a short job it is another than of a long one, and nobody knows the load of tonight
    assert width(*[0.25] * 8, horizon_s=1.0) > 1.2 * agreed
    assert width(*[0.25] * 8, horizon_s=50_000.0) > 2 * agreed
    assert max(loads_of(drawn(path(), 400, (0.9, 0.95)))) <= 0.97


def test_kinds_are_as_probable_as_they_were_found_and_surer():
    half = Value(0.5)
    of = direction(queue=Queue(fair=half, managed=half))
    kinds = [line.queue_kind for line in drawn(path(out=of), 1000)]
    assert all(200 < kinds.count(kind) < 300 for kind in ("fifo", "fair", "codel", "fq_codel"))
    unlikely = direction(queue=Queue(fair=Value(0.0), managed=Value(0.1)))
    assert sum(line.queue_kind == "codel" for line in drawn(path(out=unlikely), 1000)) < 30


def test_greedy_traffic_is_as_probable_as_it_was_found_where_the_line_is_busy():
    cross = Cross(elastic=Value(0.3))
    lines = drawn(path(out=direction(20e6, 5e6, cross=cross)), 1000)
    assert 240 < sum(line.elastic_flows > 0 for line in lines) < 360
    assert {line.elastic_flows for line in lines} == set(range(5)), "nobody knows of how many"
    assert all(line.cross_bps == 0 for line in lines if line.elastic_flows)
    idle = drawn(path(out=direction(20e6, 19e6, cross=Cross(elastic=Value(0.9)))))
    assert not any(line.elastic_flows for line in idle), "a greedy connection leaves less"


def test_losses_that_nobody_saw_are_the_rarer_the_more_was_counted():
    def losses(packets, seen=0.0):
        found = drawn(path(out=direction(loss=Loss(0, packets, Value(seen)))), 2000)
        return [line.loss for line in found]

    few, many = ([one for one in losses(packets) if one] for packets in (100, 100_000))
    assert max(many) < 2e-4 < max(few)
    assert len(many) < len(few) < 1200
    assert median(losses(10_000, 5e-3)) == pytest.approx(5e-3, rel=0.05)
    assert 0 < sum(one == 0 for one in losses(600, 2 / 600)) < 1990, "two of 600 may be none of the wire"


def test_a_line_that_is_faster_than_its_host_carries_what_the_host_sent_at_least():
    least = Value(None, low=2e9, why="host-too-slow")
    belief = PathBelief.of(path(out=direction(capacity_bps=least, available_bps=least)))
    drawn = [belief.draw(random.Random(seed)) for seed in range(400)]
    rates = sorted(line.rate_bps for line in drawn)
    assert belief.capacity_bps == belief.available_bps == 4e9
    assert rates[20] == pytest.approx(2e9, rel=0.3)
    assert rates[380] == pytest.approx(8e9, rel=0.3)
    assert PathBelief.of(path(out=direction(capacity_bps=replace(least, low=None)))) is None


def test_nothing_is_believed_of_a_path_that_is_down_or_without_a_capacity():
    assert PathBelief.of(path(down=Down(12, 3))) is None
    assert PathBelief.of(path(out=direction(capacity_bps=Value(None, why="too-few")))) is None
    # the other direction may be unknown
    alone = replace(path(), directions={"out": direction()})
    assert {line.back_bps for line in drawn(alone, 1)} == {line.rate_bps for line in drawn(alone, 1)}


def test_the_twin_of_idle_lines_is_as_fast_as_they_are():
    beliefs = [PathBelief.of(path("one")), PathBelief.of(path("two", rtt=0.06))]
    alone, both = Choice(("one",), "cubic"), Choice(("one", "two"), "lia")
    found = simulate(beliefs, range(4), [alone, both], SIZE)
    assert [len(each) for each in found] == [2] * 4
    for one, two in found:
        # IP and TCP headers, slow start
        assert 17e6 < SIZE * 8 / one.duration_s < 19.5e6 < SIZE * 8 / two.duration_s < 38e6
        assert sum(two.bytes_by_path) >= SIZE
    again = simulate(beliefs, [2], [both], SIZE)
    assert again[0][0].duration_s == found[2][1].duration_s


def test_greedy_traffic_and_fair_queues_are_simulated_too():
    shared = direction(20e6, 6e6, cross=Cross(elastic=Value(1.0)))
    fair = replace(shared, queue=Queue(depth_bytes=Value(60_000), fair=Value(1.0)))
    alone = Choice(("one",), "cubic")
    for of in (shared, fair):
        rates = [
            SIZE * 8 / each[0].duration_s for each in simulate([PathBelief.of(path(out=of))], range(3), [alone], SIZE)
        ]
        assert all(2.5e6 < rate < 15e6 for rate in rates), rates


def ended(seconds, paths=("one",)):
    flows = [subflow(name, SIZE // len(paths)) for name in paths]
    made = report(*flows, bytes=SIZE, elapsed_s=seconds, throughput_bps=SIZE * 8 / seconds)
    return outcome(Transfer.read(list(paths), made), paths, SIZE)


def runner(name, *seconds):
    paths = tuple(name)
    return Runner(Choice(paths, "lia"), [ended(one, paths) if one else None for one in seconds])


def test_all_paths_are_taken_unless_fewer_are_clearly_faster():
    def taken(*runners):
        return "".join(chosen(runners).choice.paths)

    assert taken(runner("a", 9, 9.2, 9.1), runner("ab", 10, 10.2, 10.1)) == "a"
    assert taken(runner("a", 9, 11, 9.9), runner("ab", 10, 10, 10)) == "ab", "by chance"
    assert taken(runner("a", 9.95, 9.95, 9.95), runner("ab", 10, 10, 10)) == "ab", "half a per cent"
    assert taken(runner("a", 12, 12), runner("ab", 10, None)) == "a", "one that does not end"
    assert chosen([runner("a", None, None)]) is None
    lucky = runner("b", 7, 7)
    lucky.running = False
    assert taken(lucky, runner("a", 9, 9, 8.9), runner("ab", 8, 8.1, 8)) == "ab", "given up after few draws"


def test_an_option_tells_its_distribution():
    told = option(runner("ab", *range(1, 20)), SIZE, 15.0)
    assert told["duration_s"] == {"value": 10, "low": 1, "high": 19}
    assert told["expected_s"] == 10
    assert told["throughput_bps"]["value"] == SIZE * 8 / 10
    assert told["throughput_bps"]["low"] == SIZE * 8 / 19
    assert told["deadline_probability"] == 15.5 / 20
    assert told["bytes_by_path"] == [SIZE // 2] * 2
    lost = option(runner("a", 1, None), SIZE, None)
    assert lost["duration_s"]["high"] is None
    assert lost["expected_s"] is None
    assert lost["throughput_bps"]["low"] == 0


def test_quantiles_of_a_few_draws_are_not_nearer_than_they_can_be():
    assert quantile([1, 2, 3], 0.05) == 1
    assert quantile([1, 2, 3], 0.95) == 3
    assert quantile([1, 2, 3], 0.5) == 2
    many = list(range(1, 100))
    assert (quantile(many, 0.05), quantile(many, 0.95)) == (5, 95)
    assert quantile([1, math.inf], 0.5) == math.inf


def test_what_is_slower_for_certain_gets_no_further_draws():
    asked = []

    def run(seeds, choices):
        asked.append((list(seeds), [choice.paths[0] for choice in choices]))
        speeds = {"a": 10, "b": 10.5, "c": 20}
        return [[ended(speeds[c.paths[0]] + random.Random(f"{s} {c}").random()) for c in choices] for s in seeds]

    runners = race([Choice((name,), "lia") for name in "abc"], run, draws=10, batch=4)
    assert asked[0] == ([1, 2, 3, 4], ["a", "b", "c"])
    assert asked[1][0] == [5, 6, 7, 8]
    assert "c" not in asked[1][1]
    assert asked[2][0] == [9, 10]
    assert len(runners[0].outcomes) == 10
    assert len(runners[2].outcomes) == 4
    clock = count()
    late = race([Choice(("a",), "lia")], run, draws=100, batch=4, time_s=0.5, clock=lambda: next(clock))
    assert len(late[0].outcomes) == 4, "the first batch is always made"


def test_one_draw_that_does_not_end_decides_nothing():
    def raced(*durations):
        def run(seeds, choices):
            of = {str(n): each for n, each in enumerate(durations)}
            return [
                [ended(took) if (took := of[c.paths[0]][seed - 1]) < math.inf else None for c in choices]
                for seed in seeds
            ]

        return race([Choice((str(n),), "lia") for n in range(len(durations))], run, len(durations[0]), 24, 24)

    a, both = [10.0] * 23 + [math.inf], [math.inf] + [5.0] * 23
    for order in ((a, both), (both, a)):
        [first, other] = raced(*order)
        assert (first if order[0] is both else other).running
    assert chosen([runner("a", *[10] * 23, None), runner("ab", None, *[5] * 23)]).choice.paths == ("a", "b")
    assert all(one.running for one in raced([10.0] * 24, [math.inf] + [5.0] * 23)), "by chance"
    ends, fails = raced([10.0] * 24, [math.inf, 5.0] * 12)
    assert (ends.running, fails.running) == (True, False)


def test_draws_of_lines_that_vary_run_side_by_side(monkeypatch):
    """Each of them is a network of its own."""
    varied = [PathBelief.of(path(out=direction(rate_variation=RateVariation(Value(0.5)))))]
    choices, found = [Choice(("one",), "cubic")], {}
    native, together = _native.draws, threading.Barrier(2)

    def drawn(*arguments):
        together.wait(60)
        return native(*arguments)

    for processors in (1, 2):
        monkeypatch.setattr("pathcast.worlds.many._processors", lambda processors=processors: processors)
        monkeypatch.setattr(_native, "draws", drawn if processors > 1 else native)
        found[processors] = simulate(varied, range(1, 5), choices, 200_000)
    assert found[1] == found[2]
    assert len({one.duration_s for [one] in found[1]}) == 4


def test_a_job_of_months_over_a_line_that_varies_is_forecast():
    varied = path(out=direction(rate_variation=RateVariation(Value(0.5))))
    belief = replace(PathBelief.of(varied), horizon_s=3e6)
    [[one]] = simulate([belief], [1], [Choice(("one",), "cubic")], 10**13, lambda _: 1_000_000)
    assert one.duration_s > 1e6


def test_choices_are_all_subsets_the_best_path_first():
    controls = Controls(("cubic",), ("lia", "cubic"))
    found = field_of(["b", "a", "c"], controls)
    assert len(found) == 3 + 4 * 2
    assert found[0] == Choice(("b",), "cubic")
    assert found[-1] == Choice(("b", "a", "c"), "cubic")


def test_beyond_four_paths_the_others_are_added_one_by_one():
    found = [choice.paths for choice in field_of(list("abcdef"), Controls(("lia",), ("lia",)))]
    assert len(found) == len(set(found)) == 15 + 2 + 2
    assert {("e",), ("f",), tuple("abcde"), tuple("abcdef"), ("b", "d")} <= set(found)
    assert ("a", "e") not in found
