"""Plans against arithmetic by hand, and what holds of each of them: caps, hours, the budget, more time is no less."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import PathcastError
from pathcast.plan.hours import allowances
from pathcast.plan.plan import plan
from pathcast.plan.program import schedule
from pathcast.plan.terms import OVERHEAD, Allowance, LineTerms, Rate, Way, Wish, ways_of

HOUR, GB = 3600.0, 10**9


def way(lines, mbit, *loads, control="cubic", background=False, spread=0.0):
    rate = Rate(mbit * 1e6, mbit * 1e6 * (1 - spread), mbit * 1e6 * (1 + spread))
    return Way(tuple(lines), control, rate, loads, background)


DSL, CABLE = way(["dsl"], 8, 1.0), way(["cable"], 16, 1.0)
BOTH = way(["dsl", "cable"], 24, 1 / 3, 2 / 3, control="lia")
WAYS = [DSL, CABLE, BOTH]


def terms(**more):
    made = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", price=0.5 / GB)}
    return {**made, **{name: replace(made[name], **of) for name, of in more.items()}}


def test_as_soon_as_possible_is_over_all_lines():
    made = plan(WAYS, terms(), Wish(27 * GB))
    assert made.duration_s.value == pytest.approx(27e9 * 8 / 24e6, rel=1e-6)
    assert [stage.lines for stage in made.stages] == [["dsl", "cable"]]
    assert made.money == pytest.approx(18 * 0.5, rel=1e-6)
    assert (made.fits, made.changes) == ("yes", ())


def test_the_cheap_line_first_and_the_dear_one_only_as_far_as_the_deadline_needs_it():
    # dsl alone carries 28.8 GB in 8 h
    assert plan(WAYS, terms(), Wish(28 * GB, 8 * HOUR, cheap=True)).money == 0
    made = plan(WAYS, terms(), Wish(40 * GB, 8 * HOUR, cheap=True))
    assert made.money == pytest.approx((40 - 28.8) * 0.5, rel=1e-4)
    assert [stage.lines for stage in made.stages] == [["dsl"], ["dsl", "cable"]]
    assert made.stages[1].begin_s == pytest.approx(8 * HOUR - 11.2e9 * 8 / 16e6, rel=1e-4)
    assert plan(WAYS, terms(), Wish(40 * GB, 8 * HOUR)).money > made.money


def test_lines_of_one_price_go_by_their_rank():
    lines = {"dsl": LineTerms("dsl", rank=2), "cable": LineTerms("cable", rank=1)}
    assert plan(WAYS, lines, Wish(20 * GB, 8 * HOUR, cheap=True)).stages[0].lines == ["cable"]
    lines = {"dsl": LineTerms("dsl", rank=1), "cable": LineTerms("cable")}
    assert plan(WAYS, lines, Wish(20 * GB, 8 * HOUR, cheap=True)).stages[0].lines == ["dsl"]


@pytest.mark.parametrize("of", [{}, {"price": 0.5 / GB}, {"rank": 1}], ids=["free", "price", "rank"])
def test_of_lines_that_are_as_cheap_all_are_used_though_one_resends_a_little_less(of):
    lines = {name: LineTerms(name, **of) for name in ("dsl", "cable")}
    resends = way(["dsl", "cable"], 24, 1.001 / 3, 2.002 / 3)
    made = plan([DSL, CABLE, resends], lines, Wish(20 * GB, 8 * HOUR, cheap=True))
    assert [stage.lines for stage in made.stages] == [["dsl", "cable"]]
    assert made.duration_s.value == pytest.approx(20e9 * 8 / 24e6, rel=1e-6)
    assert made.money == pytest.approx(20.02 * GB * lines["dsl"].price, rel=1e-6)


def test_what_is_resent_over_dear_lines_is_money():
    lines = {name: LineTerms(name, price=0.5 / GB) for name in ("dsl", "cable")}
    resends = way(["dsl", "cable"], 24, 1.05 / 3, 2.1 / 3)
    assert plan([DSL, resends], lines, Wish(20 * GB, 8 * HOUR, cheap=True)).stages[0].lines == ["dsl"]


def test_hours_are_kept_and_waited_for():
    made = plan([CABLE], terms(cable={"hours": ((2 * HOUR, 3 * HOUR), (26 * HOUR, 30 * HOUR))}), Wish(10 * GB))
    assert [(s.begin_s / HOUR, round(s.bytes / GB, 3)) for s in made.stages] == [(2, 7.2), (26, 2.8)]
    assert made.duration_s.value == pytest.approx(26 * HOUR + 2.8e9 * 8 / 16e6)
    never = plan([CABLE], terms(cable={"hours": ()}), Wish(GB, 8 * HOUR))
    assert (never.fits, never.carried_bytes, never.probability) == ("no", 0, 0.0)
    assert [(c.what, c.line) for c in never.changes] == [("hours", "cable")]


def test_a_cap_gives_again_after_its_reset():
    periods = (Allowance(0, 10 * HOUR, 2 * GB), Allowance(10 * HOUR, 40 * HOUR, 10 * GB))
    made = plan([CABLE], terms(cable={"allowances": periods}), Wish(5 * GB))
    assert sum(s.bytes for s in made.stages if s.begin_s < 10 * HOUR) == pytest.approx(2 * GB, rel=1e-6)
    assert made.duration_s.value == pytest.approx(10 * HOUR + 3e9 * 8 / 16e6, rel=1e-5)


def test_beyond_the_last_period_that_is_known_nothing_is_allowed():
    periods = (Allowance(0, 10 * HOUR, 2 * GB), Allowance(10 * HOUR, 20 * HOUR, 3 * GB))
    made = plan([CABLE], terms(cable={"allowances": periods}), Wish(20 * GB, 40 * HOUR))
    assert (made.fits, made.carried_bytes) == ("no", pytest.approx(5 * GB, rel=1e-6))
    # another line goes on
    made = plan(WAYS, terms(cable={"allowances": periods}), Wish(20 * GB, 40 * HOUR))
    assert made.fits == "yes"
    assert {tuple(stage.lines) for stage in made.stages if stage.end_s > 20 * HOUR} <= {("dsl",)}


def test_what_is_left_of_a_cap_where_the_plan_goes_on_over_its_reset():
    """7.2 GB in the first hour, and what is left of the job after it, in one stage."""
    periods = (Allowance(0, HOUR, 8 * GB), Allowance(HOUR, 1e9, 100 * GB))
    made = plan([CABLE], terms(cable={"allowances": periods}), Wish(20 * GB))
    assert [stage.bytes for stage in made.stages] == [pytest.approx(20 * GB, rel=1e-6)]
    assert made.parts[0].left_bytes == pytest.approx(0.8 * GB, rel=1e-4)
    periods = (Allowance(0, HOUR, 8 * GB), Allowance(HOUR, 1e9, 13 * GB))
    made = plan([CABLE], terms(cable={"allowances": periods}), Wish(20 * GB))
    assert made.parts[0].left_bytes == pytest.approx(0.2 * GB, rel=1e-4)


def test_what_would_have_to_change():
    lines = terms(cable={"most_bytes": GB}, dsl={"allowances": (Allowance(0, 1e9, 30 * GB),)})
    made = plan(WAYS, lines, Wish(50 * GB, 8 * HOUR, budget=0.4))
    told = {(c.what, c.line): c.to for c in made.changes}
    assert made.fits == "no"
    # the budget and the most of cable are in each other's way, and both lines are too slow for dsl's cap alone
    assert set(told) == {("all", None), ("size", None)}
    assert told["size", None] == pytest.approx(28.8 * GB + 0.8 * GB, rel=1e-4)
    made = plan(WAYS, replace_all(lines, cable={"most_bytes": None}), Wish(50 * GB, 8 * HOUR, budget=5.0))
    told = {(c.what, c.line): c.to for c in made.changes}
    assert told["budget", None] == pytest.approx((50 - 28.8) * 0.5 * 1.01, rel=1e-2)
    made = plan(WAYS, lines, Wish(50 * GB, 8 * HOUR))
    told = {(c.what, c.line): c.to for c in made.changes}
    assert told["most", "cable"] == pytest.approx((50 - 28.8) * GB * 1.01, rel=1e-3)
    assert made.parts[1].left_bytes == 0
    late = plan([DSL], terms(), Wish(36 * GB, 8 * HOUR))
    assert {c.what: c.to for c in late.changes}["deadline"] == pytest.approx(10 * HOUR, rel=1e-6)


def replace_all(lines, **more):
    return {**lines, **{name: replace(lines[name], **of) for name, of in more.items()}}


@pytest.mark.parametrize("price", [1e-9, 2e-4, 0.004, 0.5, 97.123, 54_321.0, 7.77e7])
def test_a_budget_that_is_told_is_enough_and_little_more(price):
    lines, wish = terms(cable={"price": price / GB}), Wish(50 * GB, 8 * HOUR, budget=0.0)
    [told] = [change for change in plan(WAYS, lines, wish).changes if change.what == "budget"]
    words = told.sentence.removeprefix("a budget of ")
    # as it is typed
    assert re.fullmatch(r"\d+(\.\d+)?", words)
    assert float(words) == told.to
    needed = (50 - 28.8) * price
    assert needed * 1.009 < told.to < needed * 1.01 * 1.1
    assert plan(WAYS, lines, replace(wish, budget=float(words))).fits == "yes"


def test_every_change_that_is_told_makes_it_fit():
    lines = terms(cable={"allowances": (Allowance(0, 1e9, 3 * GB),), "hours": ((0.0, HOUR),)})
    wish = Wish(30 * GB, 8 * HOUR, max_rate_bps=20e6)
    for change in plan(WAYS, lines, wish).changes:
        other, asked = dict(lines), wish
        if change.what == "cap":
            whole = lines["cable"].allowances[0].bytes + int(change.to)
            other = replace_all(lines, cable={"allowances": (Allowance(0, 1e9, whole),)})
        elif change.what == "deadline":
            asked = replace(wish, deadline_s=change.to * 1.0001)
        elif change.what == "size":
            asked = replace(wish, size_bytes=int(change.to * 0.9999))
        elif change.what == "hours":
            other = replace_all(lines, cable={"hours": None})
        assert plan(WAYS, other, asked).fits == "yes", change


@pytest.mark.parametrize(("reset", "more"), [(20 * HOUR, 19.28), (4 * HOUR, 4.645)])
def test_more_of_a_cap_is_more_than_it_allows_until_the_deadline(reset, more):
    """28 GB by then; 9 GB are left, and 10 GB come with each period, of which the later ones are no help. One percent
    more than would do."""
    periods = [Allowance(0, reset, 9 * GB), Allowance(reset, 720 * HOUR, 10 * GB), Allowance(720 * HOUR, 1e9, 900 * GB)]
    made = plan([CABLE], terms(cable={"allowances": tuple(periods)}), Wish(28 * GB, 8 * HOUR))
    told = {change.what: change for change in made.changes}
    assert told["cap"].to == pytest.approx(more * GB, rel=1e-6)
    assert told["cap"].sentence.endswith("more of cable's cap")


@pytest.mark.parametrize(
    ("left", "cap", "others", "reset_h", "size", "by_h", "more"),
    [
        # others are to send 20 GB more than is left
        (10, 100, 1.5, 20, 100, 8, 120),
        # 1 GB until the reset, though 16 may pass, and after it 96 of 100
        (1, 100, 0, 1, 110, 7, 13),
        # more than the job in all, but most of it when there is no time
        (1, 130, 0, 6, 110, 7, 93),
        # 1 GB too little until the reset, and after it 52
        (1, 100, 2, 1, 60, 5, 4.5),
        # until the reset nothing, also with more; after it 50
        (1, 530, 20, 1, 55, 5, 5),
        (-5, 0, 0, 1, 40, 7, 24),
    ],
)
def test_so_much_more_of_a_cap_is_enough_and_little_more(left, cap, others, reset_h, size, by_h, more):
    """GB, and 16 of them an hour; a cap of a day, raised for this day and the next. others: what they send an hour."""
    now = datetime(2026, 11, 30, tzinfo=UTC) + timedelta(hours=24 - reset_h)
    fast, wish = way(["cable"], 16e3 * 8 / 3600, 1.0), Wish(size * GB, by_h * HOUR)

    def with_cap(by):
        days = [date(2026, 12, 1), date(2026, 12, 2)]
        of = allowances(int(left * GB + by), int(cap * GB + by), days, now, 40 * HOUR, others * 8e9 / HOUR)
        return terms(cable={"allowances": of})

    made = plan([fast], with_cap(0), wish)
    assert made.parts[0].left_bytes >= 0
    [told] = [change for change in made.changes if change.what == "cap"]
    assert more < told.to / GB < more + 0.0101 * size
    assert plan([fast], with_cap(told.to), wish).fits == "yes"
    assert plan([fast], with_cap((more - 0.01) * GB), wish).fits == "no"


def test_in_the_background_full_speed_only_as_far_as_it_is_needed_and_allowed():
    quiet = way(["dsl"], 4, 1.0, control="lp", background=True)
    wish = Wish(20 * GB, 8 * HOUR, background=True)
    made = plan([quiet, DSL], terms(), wish)
    assert (made.fits, made.carried_bytes) == ("no", pytest.approx(14.4 * GB, rel=1e-6))
    assert "background" in [change.what for change in made.changes]
    made = plan([quiet, DSL], terms(), replace(wish, hurry=True))
    assert [(s.control, s.background) for s in made.stages] == [("lp", True), ("cubic", False)]
    full_s = made.stages[1].end_s - made.stages[1].begin_s
    assert full_s == pytest.approx((20 - 14.4) * 8e9 / 4e6, rel=1e-4)
    assert plan([quiet, DSL], terms(), replace(wish, hurry=True, size_bytes=14 * GB)).stages[-1].background


def test_probability_is_where_the_rates_just_do():
    unsure = way(["dsl"], 8, 1.0, spread=0.5)
    assert plan([unsure], terms(), Wish(int(28.8 * GB), 8 * HOUR)).probability == pytest.approx(0.5, abs=0.03)
    assert plan([unsure], terms(), Wish(14 * GB, 8 * HOUR)).probability == 0.95
    made = plan([unsure], terms(), Wish(50 * GB, 8 * HOUR))
    assert made.probability == pytest.approx(0.05)
    assert made.duration_s.low < made.duration_s.value < made.duration_s.high


def test_a_rate_may_be_bounded():
    made = plan(WAYS, terms(), Wish(9 * GB, max_rate_bps=5e6))
    assert made.duration_s.value == pytest.approx(9e9 * 8 / 5e6, rel=1e-6)
    tight = plan(WAYS, terms(), Wish(27 * GB, 5 * HOUR, max_rate_bps=5e6))
    assert {c.what: c.to for c in tight.changes}["max-rate"] == pytest.approx(12e6, rel=0.02)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"size_bytes": 0}, "0B"),
        ({"budget": -1.0}, "-1"),
        ({"budget": math.nan}, "nan"),
        ({"max_rate_bps": 0}, "0 bit"),
        ({"deadline_s": -5.0}, "5 s ago"),
    ],
)
def test_wishes_that_make_no_sense(wrong, names):
    with pytest.raises(PathcastError, match=names) as caught:
        Wish(**{"size_bytes": 1, **wrong})
    assert caught.value.exit == 2


def test_ways_are_the_fastest_options_of_each_set_of_lines():
    def option(paths, control, rate, shares):
        throughput = {"value": rate, "low": rate / 2, "high": None}
        carried = [share * 1000 for share in shares]
        about = {"paths": paths, "control": control, "resent_bytes": 10}
        return {**about, "throughput_bps": throughput, "bytes_by_path": carried}

    options = [
        option(["path2", "path1"], "lia", 9e6, (0.6, 0.4)),
        option(["path1", "path2"], "olia", 8e6, (0.5, 0.5)),
        option(["path1", "path2"], "lp", 7e6, (0.5, 0.5)),
        option(["path1", "path3"], "lia", 4e6, (0.5, 0.5)),
    ]
    found = ways_of(options, {"path1": "dsl", "path3": "dsl", "path2": "cable"}, ("lp",))
    assert [(w.lines, w.control, w.background) for w in found] == [
        (("cable", "dsl"), "lia", False),
        (("dsl", "cable"), "lp", True),
        (("dsl",), "lia", False),
    ]
    assert found[0].loads == pytest.approx((0.6 * OVERHEAD * 1.01, 0.4 * OVERHEAD * 1.01))
    assert found[2].loads == pytest.approx((OVERHEAD * 1.01,))
    assert found[0].rate == Rate(9e6, 4.5e6, 9e6)


@st.composite
def situations(draw):
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    lines = {}
    for name in names:
        times = sorted(draw(st.lists(st.floats(0, 20), min_size=2, max_size=4, unique=True)))
        hours = tuple((x * HOUR, y * HOUR) for x, y in zip(times[::2], times[1::2], strict=False))
        reset = draw(st.floats(0.1, 20)) * HOUR
        caps = st.integers(0, 40 * GB)
        lines[name] = LineTerms(
            name,
            draw(st.sampled_from([None, hours])),
            draw(st.sampled_from([(), (Allowance(0, reset, draw(caps)), Allowance(reset, 1e9, draw(caps)))])),
            draw(st.none() | caps),
            draw(st.sampled_from([0.0, 1e-9, 3e-9])),
            draw(st.none() | st.integers(1, 3)),
        )
    rates = {name: draw(st.floats(0.1, 50)) for name in names}
    sets = [[n] for n in names] + [names[:i] for i in range(2, len(names) + 1)]
    ways = []
    for of in sets:
        whole = sum(rates[n] for n in of)
        for quiet in (False, True):
            loads = [1.1 * rates[n] / whole for n in of]
            ways.append(way(of, whole * (0.6 if quiet else 1), *loads, background=quiet, control=f"c{quiet}"))
    wish = Wish(
        draw(st.integers(1, 100 * GB)),
        draw(st.floats(0.01, 20)) * HOUR,
        draw(st.none() | st.floats(0, 50)),
        draw(st.none() | st.floats(1e5, 1e8)),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )
    return ways, lines, wish


@settings(max_examples=15, deadline=None, derandomize=True)
@given(situations())
def test_no_plan_breaks_a_bound_and_more_time_is_no_less(situation):
    ways, lines, wish = situation
    made = schedule(ways, lines, wish, 0.5)
    for line in lines.values():
        mine = [(p, b) for p in made.phases for n, b in zip(p.lines, p.line_bytes, strict=True) if n == line.name]
        assert line.most_bytes is None or sum(b for _, b in mine) <= line.most_bytes
        for period in line.allowances:
            assert sum(b for p, b in mine if period.begin_s <= p.begin_s < period.end_s) <= period.bytes
        assert all(line.open(p.begin_s, p.end_s) for p, _ in mine)
    assert wish.budget is None or made.money <= wish.budget * (1 + 1e-12)
    assert sum(p.bytes for p in made.phases) <= wish.size_bytes + len(made.phases)
    assert all(p.background for p in made.phases) or not wish.background or wish.hurry
    ends = [0.0, *(at for p in made.phases for at in (p.begin_s, p.end_s)), wish.deadline_s]
    assert ends == sorted(ends)
    for phase in made.phases:
        rate = next(w.rate.value for w in ways if (w.lines, w.control) == (phase.lines, phase.control))
        rate = min(rate, wish.max_rate_bps or rate)
        assert phase.bytes * 8 <= rate * (phase.end_s - phase.begin_s) * (1 + 1e-6) + 16
    more = schedule(ways, lines, replace(wish, deadline_s=wish.deadline_s * 1.5), 0.5)
    assert more.carried >= made.carried - 1e-6
    if made.fits and wish.cheap and not wish.background:
        assert more.money <= made.money * (1 + 1e-5) + 1e-5
