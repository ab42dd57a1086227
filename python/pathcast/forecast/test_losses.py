"""What is concluded from lost probes."""

from __future__ import annotations

import random
from statistics import median

import pytest

from pathcast.forecast.losses import Counted, drawn, pooled
from pathcast.worlds.measurement import Loss, Value


def share_of(packets, lost, row=1.0, unsure=False):
    return Counted(packets, lost, unsure, row=row).share()


@pytest.mark.parametrize("row", [1.0, 4.0])
@pytest.mark.parametrize("lost", [0, 1, 3, 40])
def test_a_share_and_its_interval_say_how_much_was_counted(lost, row):
    found = Counted.of(Loss(lost, 100_000, share_of(2_000, lost, row), row if lost else None))
    assert found.packets == pytest.approx(2_000, rel=0.02)
    assert found.lost == pytest.approx(lost, rel=0.02)
    assert not found.unsure


@pytest.mark.parametrize("row", [1.0, 4.0])
def test_where_nobody_tells_rows_the_interval_does(row):
    found = Counted.of(Loss(round(40 * row), 20_000, share_of(20_000, 40, row)))
    assert found.row == pytest.approx(row, rel=0.05)
    assert found.lost == pytest.approx(40, rel=0.05)


def test_looks_together_say_more_than_one():
    one = Loss(3, 1_000, share_of(1_000, 3), 1.0)
    both = pooled([one, one])
    assert (both.lost, both.packets) == (6, 2_000)
    assert both.random.value == pytest.approx(3e-3, rel=0.02)
    assert one.random.low < both.random.low
    assert both.random.high < one.random.high
    nobody = Loss(500, 1_000, Value(None, 0.0, 0.6, "ambiguous"))
    assert pooled([one, nobody]) == pooled([one]), "whose losses those are nobody knows"
    assert pooled([nobody]).random.value is None
    nothing = Loss(0, 9_000, Value(None, 0.0, 0.6, "ambiguous"))
    assert pooled([one, nothing]).packets == 10_000
    assert pooled([one, nothing, nobody]) == pooled([one]), "had it lost something nobody would know whose that was"
    unsure = pooled([one, Loss(3, 1_000, share_of(1_000, 3, unsure=True))])
    assert unsure.random.low == 0.0
    hardly = pooled([one, one, Loss(1, 1_000, share_of(1_000, 1, unsure=True))])
    assert hardly.random.low > one.random.low, "one loss more that may be a queue's makes others no less sure"


def shares(counted, varies=False, carried=(0, 0)):
    return [drawn(counted, carried, varies, random.Random(seed)) for seed in range(600)]


def test_what_was_lost_is_believed_and_what_was_not_is_not_ruled_out():
    some = shares(Counted(3_000, 15))
    assert median(some) == pytest.approx(5e-3, rel=0.15)
    assert sum(one < 1e-4 for one in some) == 0
    none = shares(Counted(3_000, 0))
    assert 0.3 < sum(one == 0 for one in none) / 600 < 0.8
    assert max(none) < 4e-3
    assert sum(one > 1e-4 for one in none) > 15, "one of ten thousand is what 3000 do not show"


def test_a_loss_that_no_queue_can_have_dropped_is_more_probably_the_wires_than_a_mistake():
    assert sum(one == 0 for one in shares(Counted(10_000, 1))) < 300
    assert sum(one == 0 for one in shares(Counted(10_000, 2))) < 100
    assert median(shares(Counted(8_000, 1))) > 3e-5
    assert sum(one == 0 for one in shares(Counted(10_000, 1))) < 220
    assert sum(one == 0 for one in shares(Counted(10_000, 1, unsure=True))) > 270


def test_what_a_queue_may_have_dropped_is_perhaps_none_of_the_wires():
    unsure = shares(Counted(3_000, 15, unsure=True))
    assert 0.1 < sum(one < 5e-4 for one in unsure) / 600 < 0.4
    assert sum(one < 5e-4 for one in shares(Counted(3_000, 15, bound=True))) > 300


def test_what_is_counted_now_is_not_overruled_by_transfers_that_contradict_it():
    counted = Counted(5_000, 50)
    assert median(shares(counted, carried=(1_000_000, 100))) > 5e-3
    assert shares(counted, carried=(1_000_000, 100)) == shares(counted)
    assert median(shares(Counted(5_000, 0), carried=(1_000_000, 100))) < 2e-4


def test_an_older_record_says_no_more_than_it_counted():
    assert Counted.of(Loss(7, 1_000)).bound
    assert Counted.of(Loss(0, 1_000)) == Counted(1_000, 0)
    assert Counted.of(Loss(9, 9_000, Value(1e-3))).lost == pytest.approx(9)
