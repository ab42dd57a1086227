"""The parts of a watch, in simulated time."""

from __future__ import annotations

import itertools
import random
from datetime import datetime

import pytest

from pathcast.errors import PathcastError
from pathcast.watch.alarm import Alarm
from pathcast.watch.allowance import DAY_S, Allowance
from pathcast.watch.expression import parse
from pathcast.watch.schedule import Schedule
from pathcast.watch.seen import UNKNOWN, Level, Seen
from pathcast.watch.usual import FEWEST, WEEK_S, Usual
from pathcast.watch.words import said


def spending(most, most_a_round, every_s, seed, days=3.0):
    """Rounds as a watch has them: when each began and ended, and its bytes."""
    chance, now_s, rounds = random.Random(seed), 0.0, []
    allowance = Allowance(most)
    while now_s < days * DAY_S:
        now_s = allowance.free_s(now_s, most_a_round)
        allowance.take(now_s, most_a_round)
        spent, took_s = chance.randint(0, most_a_round), chance.uniform(0, 20)
        allowance.settle(now_s + took_s, spent)
        rounds.append((now_s, now_s + took_s, spent))
        now_s += max(took_s, chance.choice((every_s, 0.1 * every_s)))
    return rounds, allowance


@pytest.mark.parametrize(("most", "a_round", "every_s"), [(3_000_000, 116_000, 300.0), (50_000_000, 232_000, 60.0)])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_day_has_more_bytes_wherever_it_begins(most, a_round, every_s, seed):
    rounds, _ = spending(most, a_round, every_s, seed)
    # a day holds most where it begins with the end of a round: what of it went at its very end counts whole
    first = total = 0
    for began_s, _, bytes in rounds:
        total += bytes
        while rounds[first][1] < began_s - DAY_S:
            total -= rounds[first][2]
            first += 1
        assert total <= most
    # and it is used, and over the whole day
    a_day = sum(bytes for began_s, _, bytes in rounds if DAY_S <= began_s < 2 * DAY_S)
    assert a_day > 0.8 * most - a_round
    for quarter in range(4, 8):
        there = [bytes for began_s, _, bytes in rounds if quarter / 4 <= began_s / DAY_S < (quarter + 1) / 4]
        assert 0.5 < sum(there) / (a_day / 4) < 1.5


def test_what_was_taken_and_never_settled_counts():
    allowance = Allowance(1000)
    allowance.take(0.0, 600)
    assert (allowance.used(10.0), allowance.taken) == (600, 600)
    with pytest.raises(ValueError, match="100"):
        allowance.take(10.0, 100)
    again = Allowance(1000, [*allowance.entries, (10.0, allowance.taken)])
    assert again.free_s(10.0, 400) == 10.0
    assert 10.0 + DAY_S < again.free_s(10.0, 401) < 10.1 + DAY_S
    assert again.free_s(10.0, 1001) == float("inf")


def test_the_allowance_remembers_no_more_than_a_day_and_minutes():
    _, allowance = spending(10_000_000_000, 116_000, 1.0, 3, days=1.5)
    assert len(allowance.entries) <= 24 * 60 + 2


def test_turns_are_even_and_late_ones_move_nothing():
    schedule = Schedule(["a", "b"], 300.0, 1000.0)
    begun, now_s = [], 1000.0
    for late_s in (0, 0, 0, 0, 700, 0, 0, 0):
        name, due_s = schedule.next()
        now_s = max(now_s, due_s) + late_s
        schedule.done(name, now_s)
        begun.append((name, now_s))
    assert begun[:4] == [("a", 1000.0), ("b", 1150.0), ("a", 1300.0), ("b", 1450.0)]
    assert begun[4] == ("a", 2300.0)
    # b had waited since 1750; then both at their old times
    assert begun[5:] == [("b", 2300.0), ("b", 2350.0), ("a", 2500.0)]


def test_what_is_usual_is_the_median_of_a_week():
    usual = Usual()
    for number in range(FEWEST - 1):
        usual.add(300.0 * number, 10.0)
    assert usual.median(300.0 * FEWEST) is None
    usual.add(300.0 * FEWEST, 1.0)
    assert (usual.median(300.0 * FEWEST), usual.least(300.0 * FEWEST)) == (10.0, 1.0)
    for number in range(3 * 7 * 24 * 360):
        usual.add(10_000.0 + 10 * number, 20.0)
    assert len(usual._values) == len(usual._ordered) <= WEEK_S / 150 + 1
    assert usual.median(WEEK_S * 3) == 20.0
    assert (usual.median(WEEK_S * 5), usual.least(WEEK_S * 5)) == (None, None)


def level(mbit):
    return Seen(available=Level(mbit * 1e6))


def told(alarm, values, every_s=300.0, usual=20e6, begin_s=0.0):
    """What is told at which round."""
    found = []
    for number, seen in enumerate(values):
        seen = seen if isinstance(seen, Seen) else level(seen)
        if state := alarm.step(begin_s + number * every_s, seen, usual, 3 * every_s):
            found.append((number, state))
    return found


def alarm(text="cable.available < 70% for 15m"):
    return Alarm(parse(text))


def test_an_alert_is_told_once_after_it_has_lasted():
    assert told(alarm(), [20, 4, 4, 4, 4, 4, 20, 20, 20, 20, 20]) == [(4, "firing"), (9, "over")]
    assert told(alarm(), [4, 4, 4, 20, 4, 4, 4, 20]) == []
    assert told(alarm("cable.available < 70%"), [20, 4, 4, 20]) == [(1, "firing"), (3, "over")]
    assert told(alarm("*.down for 5m"), [Seen(), Seen(down="no answer"), Seen(down="no answer"), Seen(), Seen()]) == [
        (2, "firing"),
        (4, "over"),
    ]


def test_what_swings_about_the_threshold_is_told_once():
    swinging = list(itertools.chain([13] * 5, *[[14.5, 13.5]] * 50))
    assert told(alarm(), swinging) == [(3, "firing")]
    assert told(alarm(), [13] * 4 + [15.5, 15.5, 15.5, 13] * 10) == [(3, "firing")]
    loss = alarm("cable.loss > 2% for 10m")
    lossy = [Seen(loss=Level(share)) for share in (0.03, 0.03, 0.03, 0.019, 0.019, 0.019, 0.017, 0.017, 0.017)]
    assert told(loss, lossy) == [(2, "firing"), (8, "over")]


def test_unknown_is_neither_good_nor_bad_and_a_gap_begins_anew():
    assert told(alarm(), [4, UNSEEN, UNSEEN, 4]) == [(3, "firing")]
    assert told(alarm(), [4, *[UNSEEN] * 8, 4, 4, 4]) == []
    assert told(alarm(), [4] * 10, usual=None) == []
    # bounds that tell
    least = Seen(available=Level(None, 14.1e6, None))
    assert told(alarm(), [4, 4, least, 4, 4]) == []
    assert told(alarm(), [Seen(available=Level(None, None, 13e6))] * 4) == [(3, "firing")]


UNSEEN = Seen()


def stepped(alarm, rounds, gap_s=900.0):
    """Rounds by when they were [s]: when something was told."""
    return [(at_s, state) for at_s, seen in rounds if (state := alarm.step(at_s, seen, 20e6, gap_s))]


def test_a_time_in_which_nobody_measured_counts_for_nothing():
    hour_s, down = 3600.0, Seen(down="no answer")
    one = alarm("*.down for 15m")
    assert stepped(one, [(300.0 * n, down) for n in range(4)]) == [(900.0, "firing")]
    # the host slept
    back_s = 1200.0 + 8 * hour_s
    assert stepped(one, [(1200.0, Seen()), (back_s, Seen()), (back_s + 600, Seen())]) == []
    assert stepped(one, [(back_s + 900, Seen())]) == [(back_s + 900, "over")]
    rare = [(0.0, down), (5.9 * hour_s, down), (6 * hour_s, down)]
    assert stepped(alarm("*.down for 6h"), rare) == []
    # rounds that tell nothing of it are measured all the same, both ways
    bad, good = level(4), level(20)
    for seen, other, state in ((bad, good, "firing"), (good, bad, "over")):
        one = alarm("cable.available < 70% for 6h")
        if state == "over":
            stepped(one, [(300.0 * n - 10 * hour_s, bad) for n in range(73)])
            assert one.firing
        between = [(300.0 * n, UNSEEN) for n in range(1, 70)]
        assert stepped(one, [(0.0, seen), *between, (21_000.0, seen), (21_600.0, seen)]) == [(21_600.0, state)]
        assert stepped(one, [(22_000.0, other)]) == []


def test_what_is_usual_stays_while_an_alert_lasts_but_no_longer_than_a_week():
    one = alarm()
    assert told(one, [4] * 4, usual=20e6) == [(3, "firing")]
    # the median has sunk to 4 by now
    assert told(one, [4] * 10, usual=4e6, begin_s=1200.0) == []
    assert one.usual == 20e6
    assert told(one, [4] * 10, usual=4e6, begin_s=1200.0 + WEEK_S) == [(3, "over")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cable.available < 70 % for 15 min", ("cable", "out", "available", True, 0.7, True, 900.0)),
        ("cable.available<70%for 15m", ("cable", "out", "available", True, 0.7, True, 900.0)),
        ("*.rtt > 200 ms for 1 h", ("*", "out", "rtt", False, 0.2, False, 3600.0)),
        ("cable.available < 70% for 15m", ("cable", "out", "available", True, 0.7, True, 900.0)),
        ("cable.in.available<5Mbit", ("cable", "in", "available", True, 5e6, False, 0.0)),
        ("10.77.2.2.rtt > 200ms for 1h30m", ("10.77.2.2", "out", "rtt", False, 0.2, False, 5400.0)),
        ("*.queue > 300ms", ("*", "out", "queue", False, 0.3, False, 0.0)),
        ("*.rtt > 150%", ("*", "out", "rtt", False, 1.5, True, 0.0)),
        ("dsl.loss > 2% for 30m", ("dsl", "out", "loss", False, 0.02, False, 1800.0)),
        ("dsl.down for 5m", ("dsl", "out", "down", False, 0.0, False, 300.0)),
    ],
)
def test_expressions_that_are_read(text, expected):
    of = parse(text)
    assert (of.name, of.direction, of.what, of.below, of.threshold, of.of_usual, of.for_s) == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "write it as"),
        ("cable", "write it as"),
        ("cable.available <= 70%", "write it as"),
        ("cable.speed < 70%", "allowed are available, capacity, rtt, queue, loss, down"),
        ("cable.available", "needs < or >"),
        ("cable.available < 70MB", "bits"),
        ("cable.available < 0%", "`0%` is no value"),
        ("cable.available < 120%", "less than 100%"),
        ("cable.available > 70%", "more than 100%"),
        ("cable.available < 70% for 15x", "`15x`"),
        ("cable.queue > 50%", "`50%` is no value"),
        ("cable.loss > 5Mbit", "no share of packets"),
        ("cable.loss > 100%", "`100%` is no value"),
        ("cable.down > 5", "no value"),
    ],
)
def test_expressions_that_are_refused_say_what_is_allowed(text, named):
    with pytest.raises(PathcastError) as refused:
        parse(text)
    assert refused.value.exit == 2
    assert named in refused.value.message
    assert "allowed are" in refused.value.hint


def test_an_alert_in_words():
    since, now = datetime(2026, 11, 23, 19, 40), datetime(2026, 11, 23, 19, 55)
    seen = Seen(Level(4e6), Level(40e6), Level(0.33), Level(0.3), Level(0.0))
    of = parse("cable.available < 70% for 15m")
    text = said(of, "cable", "firing", seen, 17e6, since, now, 900.0)
    assert text == "cable: available 4 of usually 17 Mbit/s since 19:40; queue 300 ms; loss none"
    late = datetime(2026, 11, 24, 1, 0)
    text = said(parse("cable.in.loss > 1%"), "cable", "firing", Seen(loss=Level(0.031)), None, since, late, 19_200.0)
    assert text == "cable in: loss 3.1 % since 2026-11-23 19:40; available unknown; queue unknown"
    poor = Seen(Level(None, 400e3), queue=Level(0.0), loss=Level(0.01))
    text = said(of, "cable", "over", poor, 17e6, since, now, 5400.0)
    assert text == "cable: available at least 400 kbit/s of usually 17 Mbit/s again after 90 min; queue none; loss 1 %"
    down = Seen(down="no answer to 12 probes in 3 s")
    text = said(parse("*.down"), "dsl", "firing", down, None, since, now, 900.0)
    assert text == "dsl: down since 19:40 (no answer to 12 probes in 3 s)"
    assert said(parse("*.down"), "dsl", "over", Seen(), None, since, now, 900.0).startswith(
        "dsl: up again after 15 min"
    )


def test_bounds_tell_what_they_can():
    assert Level(None, 5.0, None).below(4.0) is False
    assert Level(None, None, 3.0).below(4.0) is True
    assert Level(None, 3.0, 5.0).below(4.0) is None
    assert Level(None, 5.0, None).above(4.0) is True
    assert Level(None, None, 4.0).above(4.0) is False
    assert UNKNOWN.above(1.0) is None
    assert (Level(2.0).sure, Level(None, 1.0).sure) == (2.0, 1.0)
