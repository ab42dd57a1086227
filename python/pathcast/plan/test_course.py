"""The course of a job in a network of numbers: no time passes. What it decides is carried out by the next look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathcast.plan.course import CALM_S, DEAD_S, RETRY_S, Course, Seen
from pathcast.plan.renewed import Renewed, completed, guessed
from pathcast.plan.terms import OVERHEAD, Allowance, LineTerms, Rate, Way, Wish

MB = 10**6
EVERY_S = 2.0


def way(lines, mbit, control, background=False):
    """Lines share as their rates are: dsl 8, cable 16 Mbit/s."""
    rates = [{"dsl": 8, "cable": 16}[name] for name in lines]
    loads = tuple(OVERHEAD * rate / sum(rates) for rate in rates)
    return Way(tuple(lines), control, Rate(mbit * 1e6, mbit * 0.8e6, mbit * 1.1e6), loads, background)


WAYS = [way(["dsl"], 8, "cubic"), way(["cable"], 16, "cubic"), way(["dsl", "cable"], 24, "lia")]
QUIET = [
    replace(one, control="lp", background=True, rate=Rate(one.rate.value / 4, one.rate.low / 4, one.rate.high / 4))
    for one in WAYS
]
LINES = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", price=1.0 / MB)}


def run(course, size, until_s, rate=lambda name, at_s, step: {"dsl": 8e6, "cable": 16e6}[name]):
    """The steps by time, and what passed: rate is what a line carries then under a step."""
    job, step = dict.fromkeys(LINES, 0), course.first()
    told = [(0.0, one) for one in step.said]
    at_s = 0.0
    steps = [(0.0, step)]
    while at_s < until_s and sum(job.values()) < size and step.lines:
        at_s += EVERY_S
        for name in step.lines:
            job[name] += int(rate(name, at_s, step) / 8 * EVERY_S)
        step = course.look(at_s, Seen(dict(job), {n: int(b * OVERHEAD) for n, b in job.items()}))
        steps.append((at_s, step))
        told += [(at_s, one) for one in step.said]
    return steps, job, told, at_s


def test_all_lines_as_soon_as_possible_and_its_end_is_foretold():
    course = Course(WAYS, LINES, Wish(300 * MB))
    steps, _, told, at_s = run(course, 300 * MB, 1000)
    assert {step.lines for _, step in steps} == {("dsl", "cable")}
    assert at_s == pytest.approx(300 * MB * 8 / 24e6, abs=EVERY_S)
    assert told == []
    middle, low, high = steps[len(steps) // 2][1].end_s
    assert low <= middle <= high
    assert middle == pytest.approx(at_s, rel=0.05)
    assert steps[len(steps) // 2][1].done == pytest.approx(0.5, abs=0.03)


def test_the_dear_line_comes_when_the_deadline_needs_it_and_not_before():
    # dsl alone carries 100 MB in 100 s
    course = Course(WAYS, LINES, Wish(90 * MB, 120.0, cheap=True))
    _, job, told, _ = run(course, 90 * MB, 200)
    assert job["cable"] == 0, told
    # it turns out half as fast as was forecast
    course = Course(WAYS, LINES, Wish(90 * MB, 120.0, cheap=True))
    slow = lambda name, at_s, step: {"dsl": 4e6, "cable": 16e6}[name]  # noqa: E731
    _, job, told, at_s = run(course, 90 * MB, 200, slow)
    assert at_s <= 120
    assert 20 * MB < job["cable"] < 60 * MB
    assert any("cable is taken, too" in one for _, one in told)


def test_from_the_background_to_full_speed_only_where_that_is_allowed():
    full = lambda name, at_s, step: {"dsl": 8e6, "cable": 16e6}[name] / (4 if step.background else 1)  # noqa: E731
    wish = Wish(150 * MB, 120.0, background=True, hurry=True)
    steps, _, told, at_s = run(Course([*WAYS, *QUIET], LINES, wish), 150 * MB, 300, full)
    assert steps[0][1].background
    assert not steps[-1][1].background
    assert at_s <= 120
    assert [one for _, one in told] == ["full speed from now on (lia): the deadline needs it"]
    wish = replace(wish, hurry=False)
    steps, _, told, at_s = run(Course([*WAYS, *QUIET], LINES, wish), 150 * MB, 300, full)
    assert all(step.background for _, step in steps)
    assert at_s > 120
    assert any("deadline cannot be kept" in one for _, one in told)


@pytest.mark.parametrize(
    ("terms", "wish", "why"),
    [
        ({"allowances": (Allowance(0, 1e6, 60 * MB),)}, {}, "its cap is reached"),
        ({"most_bytes": 60 * MB}, {}, "the most that it may carry"),
        ({}, {"budget": 60.0}, "the budget is spent"),
    ],
)
def test_near_a_bound_the_line_is_dropped_and_the_bound_is_kept(terms, wish, why):
    lines = {**LINES, "cable": replace(LINES["cable"], **terms)}
    _, job, told, _ = run(Course(WAYS, lines, Wish(200 * MB, **wish)), 200 * MB, 1000)
    assert 40 * MB < job["cable"] * OVERHEAD <= 60 * MB
    assert sum(job.values()) >= 200 * MB
    assert any(one.startswith("cable is dropped: " + why) for _, one in told), told


def test_a_machine_that_is_slow_to_look_leaves_more_of_a_bound_alone():
    lines = {**LINES, "cable": replace(LINES["cable"], most_bytes=150 * MB)}
    course, job, at_s = Course(WAYS, lines, Wish(400 * MB)), 0, 0.0
    step = course.first()
    while "cable" in step.lines:
        at_s += 6.0
        job += 12 * MB
        step = course.look(at_s, Seen({"cable": job, "dsl": MB}, {"cable": int(job * OVERHEAD)}))
    assert (job + 12 * MB) * OVERHEAD <= 150 * MB  # what passes until the next look has room, too


def test_a_line_that_cannot_be_dropped_ends_the_program_before_its_bound():
    lines = {**LINES, "cable": replace(LINES["cable"], most_bytes=60 * MB)}
    course, job, at_s, said = Course(WAYS, lines, Wish(400 * MB)), 0, 0.0, []
    step = course.first()
    while step.lines and at_s < 100:
        at_s, job = at_s + 1.0, job + 2 * MB
        step = course.look(at_s, Seen({"cable": job, "dsl": int(at_s * MB)}, {"cable": int(job * OVERHEAD)}))
        said += step.said
    assert step.lines == ()
    assert 50 * MB < job * OVERHEAD <= 60 * MB
    assert said[-1] == "cable goes on carrying though it is dropped: the program has to end"


def test_a_line_that_carries_though_it_was_never_to_be_used_ends_the_program():
    lines = {**LINES, "cable": replace(LINES["cable"], most_bytes=1000)}
    course = Course(WAYS, lines, Wish(400 * MB))
    assert course.first().lines == ("dsl",)
    step = course.look(5.0, Seen({"dsl": MB}, {"dsl": MB}))
    assert step.lines == ("dsl",)
    step = course.look(6.0, Seen({"dsl": 2 * MB, "cable": MB}, {"dsl": 2 * MB, "cable": MB}))
    assert step.lines == ()
    assert step.said == ("cable goes on carrying though it is dropped: the program has to end",)


def test_what_others_send_counts_for_the_cap():
    lines = {**LINES, "cable": replace(LINES["cable"], allowances=(Allowance(0, 1e6, 60 * MB),))}
    course = Course(WAYS, lines, Wish(200 * MB))
    assert "cable" in course.first().lines
    step = course.look(10.0, Seen({"dsl": MB, "cable": MB}, {"dsl": MB, "cable": MB}, {"cable": 60 * MB}))
    assert step.lines == ("dsl",)


@pytest.mark.parametrize(("others", "begin_s", "until_s"), [(1, 0, 104), (1, 40, 144), (2, 0, 74), (0, 0, 104)])
def test_what_others_send_as_was_foreseen_is_not_taken_off_a_cap_twice(others, begin_s, until_s):
    """500 MB for 240 s, of which others are to send 1 MB a second; the job sends 2.5 MB."""
    foreseen = (Allowance(begin_s, begin_s + 240.0, 260 * MB, others_bps=8e6),)
    course, at_s = Course(WAYS, {**LINES, "cable": LineTerms("cable", allowances=foreseen)}, Wish(10**6 * MB)), 0.0
    step = course.first()
    while "cable" in step.lines and at_s < 200:
        at_s += 1.0
        job = {"dsl": int(at_s * MB), "cable": int(at_s * 2.5 * MB)}
        step = course.look(at_s, Seen(job, job, {"cable": int(at_s * (2.5 + others) * MB)}))
    assert step.said == ("cable is dropped: its cap is reached",)
    # and a few seconds before that
    assert until_s - 5 <= at_s < until_s


def test_a_cap_that_begins_anew_takes_the_line_back():
    periods = (Allowance(0, 60, 10 * MB), Allowance(60, 1e6, 500 * MB))
    lines = {**LINES, "cable": replace(LINES["cable"], allowances=periods)}
    steps, job, _, _ = run(Course(WAYS, lines, Wish(300 * MB)), 300 * MB, 1000)
    by = dict(steps)
    assert by[40.0].lines == ("dsl",)
    assert set(by[100.0].lines) == {"dsl", "cable"}
    assert job["cable"] > 50 * MB


def test_hours_end_and_where_no_line_is_left_the_program_has_to_end():
    lines = {"dsl": LineTerms("dsl", hours=((0.0, 50.0),)), "cable": LineTerms("cable", hours=((0.0, 30.0),))}
    steps, _, told, at_s = run(Course(WAYS, lines, Wish(300 * MB)), 300 * MB, 1000)
    assert steps[-1][1].lines == ()
    assert 44 <= at_s <= 50
    assert "cable is dropped: its hours are over" in [one for _, one in told]
    assert "no line may be used now" in told[-1][1]


def test_a_line_that_carries_nothing_is_gone_without_and_tried_again():
    dead = lambda name, at_s, step: 0 if name == "cable" and 20 < at_s < 60 else {"dsl": 8e6, "cable": 16e6}[name]  # noqa: E731
    steps, _, told, _ = run(Course(WAYS, LINES, Wish(400 * MB)), 400 * MB, 1000, dead)
    by = dict(steps)
    assert by[20 + DEAD_S + 2 * EVERY_S].lines == ("dsl",)
    assert set(by[20 + DEAD_S + RETRY_S + CALM_S + 4 * EVERY_S].lines) == {"dsl", "cable"}
    assert [one for _, one in told][:2] == ["cable carries nothing: it goes on without it", "cable is tried again"]


def stalls(course, size, until_s, alive, wants=lambda at_s: True):
    """As `run`, where a line that is not alive times out: a second, and twice as much each time (RFC 6298)."""
    job, timeouts, dead_s = dict.fromkeys(LINES, 0), dict.fromkeys(LINES, 0), dict.fromkeys(LINES, 0)
    step, at_s, told, steps = course.first(), 0.0, [], []
    while at_s < until_s and sum(job.values()) < size and step.lines:
        at_s += 1.0
        for name in step.lines if wants(at_s) else ():
            if alive(name, at_s):
                job[name] += MB
                dead_s[name] = 0
            elif job[name]:
                dead_s[name] += 1
                timeouts[name] += dead_s[name] & (dead_s[name] - 1) == 0
        wire = {name: int(of * OVERHEAD) for name, of in job.items()}
        step = course.look(at_s, Seen(dict(job), wire, {}, dict(timeouts)))
        steps.append((at_s, step))
        told += [(at_s, one) for one in step.said]
    return steps, job, told, at_s


def test_where_the_line_that_is_left_dies_it_says_what_it_waits_for_and_goes_on_when_that_returns():
    lines = {**LINES, "cable": replace(LINES["cable"], allowances=(Allowance(0, 1e5, 20 * MB),))}
    alive = lambda name, at_s: name == "cable" or not 30 < at_s < 130  # noqa: E731
    steps, job, told, _ = stalls(Course(WAYS, lines, Wish(150 * MB)), 150 * MB, 1000, alive)
    said = [(at, one) for at, one in told if at > 30]
    assert [at for at, _ in said] == [35.0, 130.0]
    assert "dsl does not answer, cable may not be used (its cap is reached)" in said[0][1]
    assert "it waits until dsl answers, or is started again with more of a cap, --max or --budget" in said[0][1]
    assert said[0][1].endswith("; it ends in 15 min")
    assert said[1][1] == "dsl answers again: it goes on, after 1 min 40 s"
    waited = [at for at, step in steps if step.wait is not None]
    assert (waited[0], waited[-1]) == (35.0, 129.0)
    assert all(step.lines == ("dsl",) and step.end_s == (None, None, None) for _, step in steps if step.wait)
    assert sum(job.values()) >= 150 * MB
    assert job["cable"] * OVERHEAD <= 20 * MB


@pytest.mark.parametrize(("deadline_s", "end_s"), [(None, 35.0 + 900), (400.0, 400.0), (20.0, 35.0 + 900)])
def test_a_wait_ends_at_the_deadline_or_when_tcp_gives_up(deadline_s, end_s):
    alive = lambda name, at_s: at_s <= 30  # noqa: E731
    steps, _, told, at_s = stalls(Course(WAYS, LINES, Wish(900 * MB, deadline_s)), 900 * MB, 5000, alive)
    assert at_s == end_s
    assert (steps[-1][1].lines, steps[-1][1].wait is None) == ((), False)
    assert "nothing gets through for 5 s: dsl and cable do not answer" in told[-2][1]
    assert told[-1][1].startswith("nothing got through for ")
    assert told[-1][1].endswith("the program has to end")


def test_where_the_cheap_line_dies_alone_the_dear_one_is_taken():
    alive = lambda name, at_s: name == "cable" or at_s <= 30  # noqa: E731
    course = Course(WAYS, LINES, Wish(80 * MB, 2000.0, cheap=True))
    steps, job, told, _ = stalls(course, 80 * MB, 1000, alive)
    assert job["cable"] == 0 or steps[28][1].lines == ("dsl",)
    assert sum(job.values()) >= 80 * MB
    assert (35.0, "dsl carries nothing: it goes on without it") in told


def test_what_others_may_do_later_ends_a_wait():
    lines = {**LINES, "cable": replace(LINES["cable"], hours=((200.0, 1e5),))}
    alive = lambda name, at_s: name == "cable" or at_s <= 30  # noqa: E731
    _, job, told, _ = stalls(Course(WAYS, lines, Wish(100 * MB)), 100 * MB, 1000, alive)
    assert "dsl answers, or cable may be used in 2 min 40 s" in told[0][1]
    assert "its hours are yet to come" in told[0][1]
    assert "--max" not in told[0][1]
    assert sum(job.values()) >= 100 * MB


def test_silence_without_timeouts_is_the_programs():
    idle = lambda at_s: not 30 < at_s < 400  # noqa: E731
    _, _, told, _ = stalls(Course(WAYS, LINES, Wish(200 * MB)), 200 * MB, 1000, lambda name, at_s: True, idle)
    assert told == []


def test_a_program_that_has_nothing_to_send_is_no_dead_line():
    idle = lambda name, at_s, step: 0 if 20 < at_s < 100 else {"dsl": 8e6, "cable": 16e6}[name]  # noqa: E731
    steps, _, told, _ = run(Course(WAYS, LINES, Wish(200 * MB)), 200 * MB, 1000, idle)
    assert told == []
    assert all(set(step.lines) == {"dsl", "cable"} for _, step in steps)


def test_without_a_size_all_lines_that_may_be_used_until_the_program_ends():
    ways = guessed(["dsl", "cable"], {False: "lia"}, {})
    lines = {**LINES, "cable": replace(LINES["cable"], most_bytes=20 * MB)}
    steps, job, _, _ = run(Course(ways, lines, Wish(1), sized=False), 100 * MB, 200)
    assert steps[0][1].lines == ("dsl", "cable")
    assert steps[-1][1].lines == ("dsl",)
    assert job["cable"] * OVERHEAD <= 20 * MB
    assert steps[-1][1].done is None
    cheap = Course(ways, LINES, Wish(1, cheap=True), sized=False)
    assert cheap.first().lines == ("dsl",)


def test_beliefs_move_from_the_forecast_to_what_is_seen():
    beliefs = Renewed(WAYS)
    for _ in range(200):
        beliefs.look(WAYS[2], 1.0, {"dsl": 0.5e6, "cable": 2e6})
    found = {one.lines: one.rate for one in beliefs.now()}
    assert found["dsl",].value == pytest.approx(4e6, rel=0.15)
    assert found["cable",].value == pytest.approx(16e6, rel=0.1)
    assert found["dsl", "cable"].low <= found["dsl", "cable"].value <= found["dsl", "cable"].high
    assert [one.rate.low for one in Renewed(WAYS).now()] == pytest.approx([one.rate.low for one in WAYS])


@pytest.mark.parametrize(("bounded_bps", "seconds"), [(None, 1800.0), (6e6, 1800.0), (2e6, 3600.0)])
def test_a_line_that_is_slower_than_forecast_is_believed_to_be_as_fast_as_it_is(bounded_bps, seconds):
    wish = Wish(900 * MB, max_rate_bps=bounded_bps)
    paced = lambda *_: min(4e6, bounded_bps or 4e6)  # noqa: E731
    steps, *_ = run(Course(WAYS[:1], {"dsl": LineTerms("dsl")}, wish), 900 * MB, 900, paced)
    assert steps[-1][1].end_s[0] == pytest.approx(seconds, rel=0.05)


def test_a_run_that_is_held_back_does_not_take_its_lines_for_slow():
    # all of it goes over one line, of which the bound leaves a part unused
    beliefs = Renewed(WAYS, max_rate_bps=4e6)
    for carried in ({"cable": 0.1e6}, {"cable": 0.49e6}):
        for _ in range(900):
            beliefs.look(WAYS[2], 1.0, carried)
    assert [one.rate.value for one in beliefs.now()] == pytest.approx([one.rate.value for one in WAYS], rel=0.1)


@pytest.mark.parametrize(("by_s", "dated", "background"), [(0, True, True), (3600, True, False), (3600, False, True)])
def test_a_deadline_by_the_clock_comes_sooner_where_that_is_set_forward(by_s, dated, background):
    wish = Wish(300 * MB, 3700.0, background=True, hurry=True)
    course = Course([*WAYS, *QUIET], {"dsl": LineTerms("dsl"), "cable": LineTerms("cable")}, wish)
    assert course.first().background
    course.stepped(by_s, dated)
    step = course.look(2.0, Seen({"dsl": MB // 2, "cable": MB}, {}))
    assert step.background == background


@pytest.mark.parametrize("steps_s", [(-3600,), (3600, -7200), (-3600, 3600)])
def test_a_cap_holds_and_hours_go_on_where_the_clock_is_set_back(steps_s):
    lines = {
        "dsl": LineTerms("dsl", hours=((0.0, 7200.0),)),
        "cable": LineTerms("cable", allowances=(Allowance(0.0, 1e5, 60 * MB), Allowance(1e5, 1e6, 60 * MB))),
    }
    course = Course(WAYS, lines, Wish(900 * MB))
    course.look(1.0, Seen({"dsl": MB, "cable": 2 * MB}, {"dsl": MB, "cable": 2 * MB}))
    for by_s in steps_s:
        course.stepped(by_s, True)
    steps, job, _, at_s = run(course, 900 * MB, 200)
    assert 30 * MB < job["cable"] * OVERHEAD <= 60 * MB
    assert steps[-1][1].lines == ("dsl",)
    assert at_s >= 200


def test_hours_and_periods_to_come_are_as_they_were_where_the_clock_is_set_there_and_back():
    hours = ((0.0, 50.0), (100.0, 1e5))
    lines = {"dsl": LineTerms("dsl", hours=hours), "cable": LineTerms("cable", hours=((1e6, 2e6),))}
    course = Course(WAYS, lines, Wish(900 * MB))
    for by_s in (3600.0, -3600.0):
        course.stepped(by_s, True)
    assert course.look(1.0, Seen({"dsl": MB}, {"dsl": MB})).lines == ("dsl",)
    assert course.look(60.0, Seen({"dsl": 2 * MB}, {"dsl": 2 * MB})).lines == ()


def test_a_period_that_had_begun_is_yet_to_come_where_the_clock_is_set_back():
    periods = (Allowance(0.0, 50.0, 60 * MB), Allowance(50.0, 1e6, 900 * MB))
    course = Course(WAYS, {**LINES, "cable": LineTerms("cable", allowances=periods)}, Wish(9000 * MB))
    for at_s in (10.0, 60.0):
        course.look(at_s, Seen({"cable": int(at_s) * MB // 2}, {"cable": int(at_s) * MB // 2}))
    course.stepped(-3600.0, True)
    # of the first period 10 MB are left
    assert "cable" not in course.look(65.0, Seen({"cable": 55 * MB, "dsl": MB}, {"cable": 55 * MB})).lines
    course.stepped(3600.0, True)
    assert "cable" in course.look(70.0, Seen({"cable": 55 * MB, "dsl": 9 * MB}, {"cable": 55 * MB})).lines


@pytest.mark.parametrize(
    ("terms", "wish"),
    [({"allowances": (Allowance(0, 1e6, 60 * MB),)}, {}), ({"most_bytes": 60 * MB}, {}), ({}, {"budget": 60.0})],
)
def test_what_was_dropped_at_its_bound_is_not_taken_again_for_what_trickles_in(terms, wish):
    lines = {**LINES, "cable": replace(LINES["cable"], **terms)}
    course, job, at_s = Course(WAYS, lines, Wish(400 * MB, **wish)), {"dsl": 0, "cable": 0}, 0.0
    step, dropped_s = course.first(), None
    while at_s < 300:
        late = 10.0 if dropped_s is None and at_s > 10 else 1.0  # the machine was slow to look once
        at_s += late
        job["dsl"] += MB
        # what is under way yet, a little at every look
        job["cable"] += int(2 * MB * late) if "cable" in step.lines and dropped_s is None else 1000
        step = course.look(at_s, Seen(dict(job), {name: int(of * OVERHEAD) for name, of in job.items()}))
        if dropped_s is None and step.lines == ("dsl",):
            dropped_s = at_s
        assert dropped_s is None or step.lines == ("dsl",), f"taken again at {at_s} s"
    assert dropped_s is not None


def test_hours_that_are_over_do_not_begin_again_for_their_last_seconds():
    lines = {**LINES, "cable": LineTerms("cable", hours=((0.0, 60.0),))}
    course, job, at_s, looked = Course(WAYS, lines, Wish(900 * MB)), 0, 0.0, []
    for passed_s in [*[1.0] * 26, 12.0, *[1.0] * 30]:  # the machine was slow to look once
        at_s, job = at_s + passed_s, job + int(MB * passed_s)
        looked.append((at_s, course.look(at_s, Seen({"dsl": job, "cable": job}, {})).lines))
    after = [lines for at, lines in looked if at >= 38.0]
    assert after == [("dsl",)] * len(after)


def handed_over(terms, every_s, until_s=100.0):
    """What is in use look by look, where the course is told of a MB a second."""
    lines = {"dsl": LineTerms("dsl", hours=((0.0, 60.0),)), "cable": LineTerms("cable", **terms)}
    course, at_s, job, used = Course(WAYS, lines, Wish(900 * MB)), 0.0, dict.fromkeys(LINES, 0), []
    step = course.first()
    while step.lines and at_s < until_s:
        at_s += every_s
        for name in step.lines:
            job[name] += int(MB * every_s)
        step = course.look(at_s, Seen(dict(job), {}))
        used.append((at_s, step.lines))
    return used


@pytest.mark.parametrize("every_s", [1.0, 0.7, 2.5, 7.0])
def test_hours_that_follow_each_other_hand_over_without_an_end(every_s):
    used = handed_over({"hours": ((60.0, 1e5),)}, every_s)
    assert used[-1][0] >= 100.0
    assert {lines for at, lines in used if at < 60.0 - every_s} == {("dsl",)}
    assert {lines for at, lines in used if at >= 60.0} == {("cable",)}
    # from the last look before: over each of them at most so long outside of its hours
    early = next(at for at, lines in used if "cable" in lines)
    assert 60.0 - every_s <= early < 60.0 + every_s


@pytest.mark.parametrize("terms", [{"hours": ((90.0, 1e5),)}, {"hours": ((60.0, 1e5),), "most_bytes": 1000}])
def test_hours_after_which_nothing_follows_end_as_ever(terms):
    used = handed_over(terms, 1.0)
    assert used[-1] == (58.0, ())


def test_hours_that_follow_others_are_not_begun_before_where_something_else_is_left():
    lines = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", hours=((60.0, 1e5),))}
    steps, *_ = run(Course(WAYS, lines, Wish(900 * MB)), 900 * MB, 70)
    assert {step.lines for at, step in steps if at < 60.0} == {("dsl",)}


def cap(left, end_s=1e6):
    return (Allowance(0.0, end_s, left),)


def test_a_cap_that_is_raised_meanwhile_takes_the_line_back_and_is_kept():
    lines = {**LINES, "cable": replace(LINES["cable"], allowances=cap(20 * MB))}
    course, job, at_s, said, used = Course(WAYS, lines, Wish(900 * MB)), {"dsl": 0, "cable": 0}, 0.0, [], []
    step = course.first()
    while at_s < 300:
        at_s += 1.0
        for name in step.lines:
            job[name] += {"dsl": MB, "cable": 2 * MB}[name]
        if at_s == 100.0:
            assert step.lines == ("dsl",)
            before = job["cable"]
            course.renewed({"cable": LineTerms("cable", allowances=cap(80 * MB)), "fibre": LineTerms("fibre")})
        wire = {name: int(of * OVERHEAD) for name, of in job.items()}
        step = course.look(at_s, Seen(dict(job), wire))
        used.append((at_s, set(step.lines)))
        said += step.said
    assert dict(used)[101.0] == {"dsl", "cable"}
    assert dict(used)[300.0] == {"dsl"}
    assert 60 * MB < (job["cable"] - before) * OVERHEAD <= 80 * MB
    assert [one for one in said if "new terms" in one] == ["cable has new terms: 80 MB of its cap are left"]


def test_a_cap_of_which_others_need_more_than_is_left_leaves_nothing():
    course, job = Course(WAYS, LINES, Wish(900 * MB)), {"dsl": MB, "cable": 2 * MB}
    course.renewed({"cable": LineTerms("cable", allowances=cap(-20 * MB))})
    step = course.look(1.0, Seen(job, job))
    assert step.lines == ("dsl",)
    assert "cable has new terms: 0 B of its cap are left" in step.said


def test_beyond_the_last_period_a_line_is_closed_unless_its_terms_are_told_further():
    lines = {**LINES, "cable": replace(LINES["cable"], allowances=cap(900 * MB, end_s=100.0))}
    course = Course(WAYS, lines, Wish(9000 * MB))
    steps, _, told, _ = run(course, 9000 * MB, 120)
    assert {step.lines for at_s, step in steps if 2 <= at_s < 100} == {("dsl", "cable")}
    assert {step.lines for at_s, step in steps if at_s >= 100} == {("dsl",)}
    assert told == [(100.0, "cable is dropped: its cap is known no further")]


def test_terms_that_are_told_further_are_no_news():
    lines = {**LINES, "cable": replace(LINES["cable"], allowances=cap(900 * MB, end_s=100.0))}
    course, said = Course(WAYS, lines, Wish(9000 * MB)), []
    step, carried = course.first(), {"dsl": 0, "cable": 0}
    for at_s in range(1, 200):
        if at_s == 50:
            course.further({"cable": replace(lines["cable"], allowances=cap(80 * MB)), "fibre": LineTerms("fibre")})
        carried |= {name: carried[name] + MB for name in step.lines}
        step = course.look(float(at_s), Seen(dict(carried), dict(carried)))
        said += [(at_s, one) for one in step.said]
    [(at_s, why)] = said
    assert (115 < at_s < 130, why) == (True, "cable is dropped: its cap is reached")


@pytest.mark.parametrize(("price", "used"), [(5e-6, {"dsl", "cable"}), (10.0, {"dsl"})])
def test_a_price_that_is_changed_is_not_that_of_what_was_sent_before(price, used):
    """Of 100 that may be spent 25 are, at 1 for a MB: at five times as much 15 MB are left, and not less than none."""
    lines = {**LINES, "cable": LineTerms("cable", price=1e-6)}
    course = Course(WAYS, lines, Wish(900 * MB, budget=100.0))
    for at_s in range(1, 14):
        passed = {"dsl": at_s * MB, "cable": min(at_s * 5 * MB // 2, 25 * MB)}
        step = course.look(float(at_s), Seen(passed, passed))
        if at_s == 10:
            assert set(step.lines) == {"dsl", "cable"}
            course.renewed({"cable": LineTerms("cable", price=price)})
    assert set(step.lines) == used


def test_hours_that_are_changed_count_from_then_on_and_the_most_of_the_job_stays():
    lines = {**LINES, "cable": replace(LINES["cable"], most_bytes=10 * MB)}
    course = Course(WAYS, lines, Wish(900 * MB))
    course.renewed({"dsl": LineTerms("dsl", hours=((0.0, 50.0),)), "cable": LineTerms("cable")})
    steps, job, _, at_s = run(course, 900 * MB, 300)
    assert 44 <= at_s <= 52
    assert job["cable"] * OVERHEAD <= 10 * MB
    assert steps[-1][1].lines == ()


def test_a_line_that_was_away_when_it_began_is_tried_later():
    course = Course(WAYS, LINES, Wish(400 * MB), away=["cable"])
    steps, job, told, _ = run(course, 400 * MB, 1000)
    assert steps[0][1].lines == ("dsl",)
    assert (RETRY_S, "cable is tried again") in told
    assert job["cable"] > 100 * MB


def test_a_line_that_is_full_when_it_began_is_not_tried_until_it_has_more():
    lines = {**LINES, "cable": replace(LINES["cable"], allowances=cap(1000))}
    course = Course(WAYS, lines, Wish(200 * MB), away=["cable"])
    _, job, told, _ = run(course, 200 * MB, 150)
    assert (job["cable"], told) == (0, [])
    course.renewed({"cable": LineTerms("cable", allowances=cap(100 * MB))})
    assert set(course.look(152.0, Seen({**job, "dsl": job["dsl"] + MB}, {})).lines) == {"dsl", "cable"}


def test_a_line_that_no_forecast_knows_has_ways():
    ways = completed([WAYS[0], replace(QUIET[0])], ["dsl", "cable"], {True: "gleaner", False: "lia"})
    assert ways[:2] == [WAYS[0], QUIET[0]]
    assert [(one.lines, one.control, one.background, one.rate.value) for one in ways[2:]] == [
        (("cable",), "lia", False, 8e6),
        (("dsl", "cable"), "lia", False, 16e6),
        (("cable",), "gleaner", True, 2e6),
        (("dsl", "cable"), "gleaner", True, 4e6),
    ]
    assert completed(WAYS, ["dsl", "cable"], {}) == WAYS


# --- without a forecast


BLIND = guessed(["dsl", "cable"], {False: "lia"}, {})
FREE = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", price=5e-9)}


def looked(size, deadline_s, dsl=18e6, cable=38e6, cheap=True, ways=BLIND):
    """As it is looked at each second; a line needs one to get up to speed."""
    course, began = Course(ways, FREE, Wish(size, deadline_s, cheap=cheap)), {}
    job, step, at_s, steps, told = dict.fromkeys(FREE, 0), course.first(), 0.0, [], []
    told += step.said
    while sum(job.values()) < size and at_s < 200:
        at_s += 1.0
        for name in step.lines:
            began.setdefault(name, at_s)
            job[name] += int({"dsl": dsl, "cable": cable}[name] / 8 * (0.5 if at_s == began[name] else 1.0))
        step = course.look(at_s, Seen(dict(job), {n: int(b * OVERHEAD) for n, b in job.items()}))
        steps.append((at_s, step))
        told += step.said
    return steps, job, told, at_s


@pytest.mark.parametrize("deadline_s", [30.0, 59.9, 600.0])
def test_a_free_line_that_is_enough_carries_all_though_nobody_knew_it_before(deadline_s):
    steps, job, told, at_s = looked(40 * MB, deadline_s)
    assert (job["cable"], told) == (0, [])
    assert at_s < deadline_s
    # nothing is said of the end while nothing is known, and then what comes true
    assert (steps[0][1].known, steps[0][1].end_s) == (False, (None, None, None))
    ends = [step.end_s[0] for _, step in steps if step.known]
    assert len(ends) >= len(steps) - 4
    assert ends[:-1] == pytest.approx([at_s] * (len(ends) - 1), abs=2.0)


def test_one_that_is_not_gets_the_dear_one_beside_it_in_time():
    _, job, told, at_s = looked(40 * MB, 30.0, dsl=6e6)
    assert at_s <= 30
    assert 15 * MB < job["cable"] < 36 * MB
    assert told[0] == "cable is taken, too"
    # and with all of the lines only
    _, _, told, at_s = looked(50 * MB, 10.0)
    assert at_s <= 10, told


def test_that_a_deadline_cannot_be_kept_is_said_when_that_is_known():
    steps, _, told, _ = looked(400 * MB, 30.0)
    assert [one for one in told if "cannot be kept" in one]
    assert "cannot be kept" not in " ".join(steps[0][1].said)


def test_all_lines_at_once_where_the_price_is_no_matter():
    steps, _, told, at_s = looked(40 * MB, 59.9, cheap=False)
    assert {step.lines for _, step in steps} == {("dsl", "cable")}
    assert (at_s < 8, told) == (True, [])


def test_what_is_left_of_its_own_bounds_for_another_start():
    lines = {
        "dsl": LineTerms("dsl", most_bytes=50 * MB),
        "cable": LineTerms("cable", most_bytes=200 * MB, price=1 / MB),
    }
    course = Course(WAYS, lines, Wish(1000 * MB, budget=60.0))
    _, job, _, _ = run(course, 1000 * MB, 20)
    wire = {name: int(bytes * OVERHEAD) for name, bytes in job.items()}
    left = course.left(wire)
    assert left["max_bytes"] == {name: lines[name].most_bytes - wire[name] for name in lines}
    assert left["budget"] == pytest.approx(60 - wire["cable"] / MB)
    # what nobody had looked at is counted, too
    more = course.left({**wire, "cable": wire["cable"] + 2 * MB})
    assert more["max_bytes"]["cable"] == left["max_bytes"]["cable"] - 2 * MB
    assert more["budget"] == pytest.approx(left["budget"] - 2)
    # before a kill less is told than is left: what passes until it is told again is no more
    ahead = course.left(wire, ahead=True)
    passes = {"dsl": 8e6, "cable": 16e6}
    for name, bytes in left["max_bytes"].items():
        assert 0 < ahead["max_bytes"][name] <= bytes - passes[name] / 8 * EVERY_S * OVERHEAD
    assert ahead["budget"] <= left["budget"] - 16e6 / 8 * EVERY_S * OVERHEAD / MB
    assert not course.spent


@pytest.mark.parametrize("hours", [None, ((0.0, 100.0), (1000.0, 2000.0))])
def test_spent_are_bounds_that_no_later_time_gives_anything(hours):
    lines = {"dsl": LineTerms("dsl", hours, most_bytes=50 * MB), "cable": LineTerms("cable", price=1 / MB)}
    course = Course(WAYS, lines, Wish(1000 * MB, budget=30.0))
    steps, *_ = run(course, 1000 * MB, 900)
    assert steps[-1][1].lines == ()
    left = course.left({})
    assert (left["max_bytes"], left["budget"], course.spent) == ({"dsl": 0}, 0, True)
    # a cap is no bound of the job: another period follows
    capped = {"dsl": lines["dsl"], "cable": LineTerms("cable", None, (Allowance(0.0, 1000.0, 30 * MB),))}
    course = Course(WAYS, capped, Wish(1000 * MB))
    steps, *_ = run(course, 1000 * MB, 900)
    assert (steps[-1][1].lines, course.spent) == ((), False)


def test_a_line_that_is_to_carry_nothing_breaks_no_job():
    idle = Way(("a", "b"), "lia", Rate(8e6, 7e6, 9e6), (OVERHEAD, 0.0))
    course = Course([idle], {name: LineTerms(name) for name in ("a", "b")}, Wish(10 * MB))
    course.first()
    step = course.look(1.0, Seen({"a": 10_000}, {"a": 10_000}))
    assert step.lines == ("a", "b")
    course.look(2.0, Seen({"a": MB, "b": 1_000}, {"a": MB, "b": 1_000}))
