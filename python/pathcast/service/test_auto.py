"""What the hands do of what a course decides, with a run of numbers."""

from __future__ import annotations

import errno
import subprocess

import pytest

from pathcast.errors import PathcastError
from pathcast.plan.course import Course
from pathcast.plan.renewed import guessed
from pathcast.plan.terms import Allowance, LineTerms, Wish
from pathcast.service.auto import Auto, carried_sentence

ADDRESSES = {"dsl": ["192.0.2.1"], "cable": ["192.0.2.2", "2001:db8::2"]}
MB = 10**6
QUIET = {"remote": "198.51.100.1", "bytes_sent": 0, "bytes_received": 0, "bytes_retransmitted": 0, "timeouts": 0}


class Running:
    """Notes what it is told."""

    def __init__(self):
        self.sent = {"192.0.2.1": 0, "192.0.2.2": 0, "203.0.113.9": 0}
        self.open, self.told, self.foreign, self.shared = 2, [], [], []
        # timeouts of who never answers, by local address
        self.vain = {}
        # what the program gets from others on this host, over the address of each
        self.inner = {}

    def seen(self):
        paths = [
            {**QUIET, "local": local, "bytes_sent": sent, "bytes_received": 10} for local, sent in self.sent.items()
        ]
        paths += [{**QUIET, "local": local, "remote": "198.51.100.7", "timeouts": n} for local, n in self.vain.items()]
        paths += [{**QUIET, "local": at, "remote": at, "bytes_received": n} for at, n in self.inner.items()]
        # of 127.0.0.1: what it has open there
        return {"paths": paths, "open": {"192.0.2.1": self.open, "127.0.0.1": len(self.inner) * 40}}

    def renew(self, addresses):
        self.told.append(("renew", list(addresses)))

    def allow(self, addresses):
        self.told.append(("allow", list(addresses)))
        return self.foreign, self.shared

    def order(self, control, pace):
        self.told.append(("order", control, pace))

    def tell(self, progress):
        self.shown = progress

    def end(self):
        self.told.append(("end",))

    def kill(self):
        self.told.append(("kill",))


def auto(terms, max_rate_bps=None, counted=dict, wall=None):
    """wall: how far the clock was set, by what is in it."""
    said, off = [], wall or [0.0]
    course = Course(guessed(["dsl", "cable"], {False: "lia"}, {}), terms, Wish(1), sized=False)
    made = Auto(course, ADDRESSES, ("lia",), max_rate_bps, said.append, 1e9, counted, lambda: 0.0, True, lambda: off[0])
    return made, said


def test_a_line_that_is_dropped_goes_with_all_of_its_addresses():
    made, said = auto({"dsl": LineTerms("dsl"), "cable": LineTerms("cable", most_bytes=10 * MB)})
    assert set(made.first) == {"192.0.2.1", "192.0.2.2", "2001:db8::2"}
    running = Running()
    made.look(running, 1.0)
    assert running.told == []
    running.sent["192.0.2.2"] = 9 * MB
    running.foreign, running.shared = ["192.0.2.2"], ["2001:db8::2"]
    made.look(running, 2.0)
    assert running.told == [("allow", ["192.0.2.1"])]
    assert said[-2:] == [
        "cable's MPTCP endpoint is not pathcast's: it is a backup meanwhile",
        "another run uses cable's MPTCP endpoint: until it ends this one may go over cable too",
    ]
    assert "cable is dropped" in made.document(running.seen()["paths"])["steps"][-1]["why"][0]
    assert made.progress().startswith("dsl ")


def test_the_rate_is_shared_by_the_connections():
    made, _ = auto({name: LineTerms(name) for name in ADDRESSES}, max_rate_bps=8e6)
    assert made.pace == 8e6 / 8 // 3  # of three addresses each may have a subflow
    fast, _ = auto({name: LineTerms(name) for name in ADDRESSES}, max_rate_bps=103e9)
    assert fast.pace == 103_000_000_000 // 8 // 3 < 2**32 - 1
    fast.look(running := Running(), 1.0)
    assert running.told == [("order", "lia", None)]  # of two connections each more than the kernel can be told
    running = Running()
    running.inner = {"127.0.0.1": MB}  # what is open to this host itself has no part of it
    for at_s, connections in ((1.0, 2), (2.0, 2), (3.0, 5), (4.0, 0)):
        running.open = connections
        made.look(running, at_s)
    assert running.told == [("order", "lia", pace) for pace in (500_000, 200_000, 1_000_000)]


def test_where_no_line_is_left_the_program_is_told_to_end_and_is_killed_if_it_does_not():
    made, _ = auto({name: LineTerms(name, most_bytes=MB) for name in ADDRESSES})
    running = Running()
    running.sent = dict.fromkeys(running.sent, 5 * MB)
    for at_s in (1.0, 2.0, 5.9):
        made.look(running, at_s)
    assert running.told == [("end",), ("order", "lia", 1000)]  # what it sends until then is next to nothing
    made.look(running, 6.0)
    assert running.told[2:] == [("kill",)]
    assert made.document(running.seen()["paths"])["ended"]
    report = {"paths": running.seen()["paths"]}
    assert carried_sentence(report, ADDRESSES) == "dsl 5 MB, cable 5 MB"


def test_what_others_send_over_a_device_counts_for_its_cap():
    counted = {"cable": 0}
    cap = (Allowance(0.0, 1e9, 10 * MB),)
    made, said = auto(
        {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", allowances=cap)}, counted=lambda: dict(counted)
    )
    running = Running()
    made.look(running, 1.0)
    counted["cable"] = 10 * MB
    made.look(running, 2.0)
    assert running.told == [("allow", ["192.0.2.1"])]
    assert said[-1] == "cable is dropped: its cap is reached"


def test_hours_are_by_the_clock_as_it_is_now():
    off = [0.0]
    made, said = auto({"dsl": LineTerms("dsl"), "cable": LineTerms("cable", hours=((0.0, 1800.0),))}, wall=off)
    running = Running()
    off[0] = 1.0
    made.look(running, 1.0)
    off[0] = 3602.0
    made.look(running, 2.0)
    assert running.told == [("allow", ["192.0.2.1"])]
    assert said[-2:] == ["the clock was set forward by 60 min", "cable is dropped: its hours are over"]
    off[0] = 3.0
    made.look(running, 3.0)
    made.look(running, 4.0)
    assert set(running.told[-1][1]) == {"192.0.2.1", "192.0.2.2", "2001:db8::2"}


def test_terms_that_would_end_are_told_further_without_a_word():
    told = []

    def further(carried):
        told.append(carried)
        return {"cable": LineTerms("cable", allowances=(Allowance(0.0, 1e9, 90 * MB),))} if len(told) == 2 else {}

    terms = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", allowances=(Allowance(0.0, 3.0, 90 * MB),))}
    course = Course(guessed(["dsl", "cable"], {False: "lia"}, {}), terms, Wish(1), sized=False)
    said, now = [], [0.0]
    clock = lambda: now[0]  # noqa: E731
    made = Auto(course, ADDRESSES, ("lia",), None, said.append, 1e9, dict, clock, wall=clock, further=further)
    running = Running()
    for now[0] in (1.0, 2.0, 3.0, 4.0):
        running.sent["192.0.2.2"] += MB
        made.look(running, now[0])
    assert told[0]["cable"] > MB
    assert (said, set(made.step.lines)) == ([], {"dsl", "cable"})


def test_terms_are_asked_for_anew_where_the_clock_was_set():
    asked, off = [], [0.0]
    known = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", hours=((0.0, 1800.0),))}
    # it is before the first of its hours now
    anew = {"cable": LineTerms("cable", hours=((3000.0, 5400.0),))}
    course = Course(guessed(["dsl", "cable"], {False: "lia"}, {}), known, Wish(1), sized=False)
    made = Auto(
        course,
        ADDRESSES,
        ("lia",),
        None,
        print,
        1e9,
        clock=lambda: 0.0,
        wall=lambda: off[0],
        changed=lambda _: anew if asked else {},
        stepped=lambda: asked.append(off[0]),
    )
    running = Running()
    off[0] = 1.0
    made.look(running, 1.0)
    assert set(made.step.lines) == {"dsl", "cable"}
    off[0] = -3598.0
    made.look(running, 2.0)
    assert (asked, made.step.lines) == ([-3598.0], ("dsl",))


def test_how_far_it_is_is_told_soon():
    said, now = [], [100.0]
    course = Course(guessed(["dsl"], {False: "cubic"}, {}), {"dsl": LineTerms("dsl")}, Wish(8 * MB))
    made = Auto(course, ADDRESSES, ("cubic",), None, said.append, 600.0, dict, lambda: now[0], True, lambda: now[0])
    running = Running()
    running.seen = lambda: None  # only by hand
    with made.beside(running):
        pass
    running = Running()
    for now[0] in (101.0, 102.5, 104.0):
        running.sent["192.0.2.1"] += MB
        made.look(running, now[0])
    assert [one.split(";")[0] for one in said] == ["25 %"]
    # and others may read it
    shown = running.shown
    assert (shown["done"], shown["bytes"], list(shown["rates_bps"])) == (3 / 8, 3 * MB, ["dsl"])
    assert shown["rates_bps"]["dsl"] == 8 * MB / 1.5
    assert shown["at_s"] <= shown["end_s"]["low"] <= shown["end_s"]["value"] <= shown["end_s"]["high"]


def test_at_the_end_all_that_passed_since_the_last_look_is_done():
    course = Course(guessed(["dsl"], {False: "cubic"}, {}), {"dsl": LineTerms("dsl")}, Wish(8 * MB))
    now = [0.0]
    made = Auto(course, {"dsl": ["192.0.2.1"]}, ("cubic",), None, lambda _: None, 600.0, dict, lambda: now[0])
    running = Running()
    running.sent["192.0.2.1"], now[0] = 6 * MB, 1.0
    made.look(running, now[0])
    assert made.document([])["done"] == 6 / 8  # nothing was counted at the end
    running.sent["192.0.2.1"] = 7 * MB
    running.sent["203.0.113.9"] = MB  # over no line
    assert made.document(running.seen()["paths"])["done"] == 7 / 8
    running.sent["192.0.2.1"] = 9 * MB
    assert made.document(running.seen()["paths"])["done"] == 1
    received = [{**QUIET, "local": "192.0.2.1", "bytes_sent": 100, "bytes_received": 8 * MB}]
    assert made.document(received)["done"] == 1
    assert auto({name: LineTerms(name) for name in ADDRESSES})[0].document(received)["done"] is None


def test_what_it_waits_for_is_said_reported_and_shown():
    off = [0.0]
    capped = LineTerms("cable", most_bytes=1000)
    made, said = auto({"dsl": LineTerms("dsl"), "cable": capped}, wall=off)
    running = Running()
    running.timeouts = {}
    seen = running.seen
    paths = lambda: [{**one, "timeouts": running.timeouts.get(one["local"], 0)} for one in seen()["paths"]]  # noqa: E731
    running.seen = lambda: {"paths": paths(), "open": {"192.0.2.1": 1}}
    for at_s in range(1, 41):
        if at_s <= 10 or at_s > 30:
            running.sent["192.0.2.1"] += MB
        else:
            running.timeouts["192.0.2.1"] = min(at_s - 10, 4)
        off[0] = float(at_s)
        made.look(running, off[0])
        if at_s == 20:
            assert "it waits for dsl" in made.progress()
    assert "dsl does not answer, cable may not be used (the most that it may carry" in said[-2]
    assert said[-1] == "dsl answers again: it goes on, after 21 s"
    [wait] = made.document(running.seen()["paths"])["waits"]
    assert (wait["since_s"], wait["until_s"], wait["lines"], list(wait["barred"])) == (10.0, 31.0, ["dsl"], ["cable"])
    assert not [one for one in running.told if one[0] == "end"]


def test_terms_that_change_meanwhile_hold_at_once_and_what_is_wrong_with_them_is_said_once():
    told = []

    def changed(carried):
        told.append(carried)
        if len(told) == 3:
            raise PathcastError("config", "pathcast.toml:3: cap = 5", None)
        return {"cable": LineTerms("cable", allowances=(Allowance(0.0, 1e9, 1000),))} if len(told) == 2 else {}

    course = Course(
        guessed(["dsl", "cable"], {False: "lia"}, {}), {n: LineTerms(n) for n in ADDRESSES}, Wish(1), sized=False
    )
    said = []
    now = [0.0]
    clock = lambda: now[0]  # noqa: E731
    made = Auto(course, ADDRESSES, ("lia",), None, said.append, 1e9, dict, clock, wall=clock, changed=changed)
    running = Running()
    running.sent["192.0.2.2"] = MB
    for now[0] in (1.0, 2.0, 3.0):
        made.look(running, now[0])
    assert told[0]["cable"] > MB
    assert said == [
        "cable has new terms: 1 KB of its cap are left",
        "cable is dropped: its cap is reached",
        "pathcast.toml:3: cap = 5: the lines' terms stay as they were",
    ]
    assert running.told == [("allow", ["192.0.2.1"])]


def test_whom_a_program_tries_in_vain_beside_its_far_end_is_no_dead_line():
    off = [0.0]
    made, said = auto({name: LineTerms(name) for name in ADDRESSES}, wall=off)
    running = Running()
    for at_s in range(1, 60):
        running.vain = {"192.0.2.1": at_s // 3}
        off[0] = float(at_s)
        made.look(running, off[0])
    assert (made.step.wait, said, running.told) == (None, [], [])


def test_where_nobody_has_answered_yet_it_says_who_does_not():
    off = [0.0]
    made, said = auto({name: LineTerms(name) for name in ADDRESSES}, wall=off)
    running = Running()
    running.sent = {}
    for at_s in range(1, 10):
        running.vain = {"192.0.2.1": at_s // 2, "192.0.2.2": at_s // 2}
        off[0] = float(at_s)
        made.look(running, off[0])
    assert "nothing gets through to 198.51.100.7 for 5 s: no answer over dsl and cable" in said[0]
    # now its far end answers, and the other one does not count any more
    running.sent = {"192.0.2.1": MB}
    for at_s in range(10, 60):
        off[0] = float(at_s)
        made.look(running, off[0])
    assert (made.step.wait, len(said)) == (None, 2), said


INNER = pytest.mark.parametrize("inner", ["127.0.0.1", "192.0.2.1"])  # a line's own is no way to elsewhere, either


@INNER
def test_what_a_program_gets_from_this_host_is_none_of_its_job(inner):
    now = [0.0]
    clock = lambda: now[0]  # noqa: E731
    course = Course(guessed(["dsl"], {False: "cubic"}, {}), {"dsl": LineTerms("dsl", most_bytes=99 * MB)}, Wish(8 * MB))
    made = Auto(course, ADDRESSES, ("cubic",), None, lambda _: None, 1e9, dict, clock, wall=clock)
    running = Running()
    for now[0] in (1.0, 2.0, 3.0):
        running.sent["192.0.2.1"] += MB
        running.inner = {inner: int(100 * MB * now[0])}
        made.look(running, now[0])
    assert (made.step.done, made.step.rates_bps["dsl"], made.ended) == (3 / 8, 8 * MB, False)
    paths = running.seen()["paths"]
    assert made.document(paths)["done"] == 3 / 8
    assert carried_sentence({"paths": paths}, {"dsl": ["192.0.2.1"]}) == "dsl 3 MB"


@INNER
def test_nor_does_it_tell_that_the_lines_answer(inner):
    off = [0.0]
    made, said = auto({name: LineTerms(name) for name in ADDRESSES}, wall=off)
    running = Running()
    running.sent = {}
    for at_s in range(1, 10):
        running.inner = {inner: at_s * MB}
        running.vain = {"192.0.2.1": at_s // 2, "192.0.2.2": at_s // 2, "127.0.0.1": at_s}
        off[0] = float(at_s)
        made.look(running, off[0])
    assert "nothing gets through to 198.51.100.7 for 5 s: no answer over dsl and cable" in said[0]


def test_a_line_may_get_another_address_meanwhile():
    now, said, found = [0.0], [], {name: list(of) for name, of in ADDRESSES.items()}
    clock = lambda: now[0]  # noqa: E731
    terms = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", most_bytes=40 * MB)}
    course = Course(guessed(["dsl", "cable"], {False: "lia"}, {}), terms, Wish(1), sized=False)
    made = Auto(course, ADDRESSES, ("lia",), None, said.append, 1e9, clock=clock, wall=clock, found=lambda: dict(found))
    running = Running()
    for now[0] in (1.0, 2.0):
        made.look(running, now[0])
    assert running.told == []
    # it is dialled again; a program's connection tells
    found["cable"] = ["192.0.2.77", "2001:db8::2"]
    running.foreign = ["192.0.2.2"]  # whose endpoint is the user's
    for now[0] in (3.0, 4.0):
        running.sent["192.0.2.77"] = int(now[0]) * MB
        made.look(running, now[0])
    both = ["192.0.2.1", "192.0.2.77", "2001:db8::2"]
    assert running.told == [("renew", both), ("allow", both)]
    assert said == ["cable has another address: 192.0.2.77"]
    paths = running.seen()["paths"]
    assert 40 * MB - made.left(paths)["max_bytes"]["cable"] > 4 * MB
    assert carried_sentence({"paths": paths}, made.lines) == "dsl 10 B, cable 4 MB"
    assert ADDRESSES["cable"] == ["192.0.2.2", "2001:db8::2"]
    # bounds hold for it too, and while no connection can tell, addresses are looked for
    running.foreign = []
    running.sent["192.0.2.77"] = 39 * MB
    now[0] = 5.0
    made.look(running, now[0])
    assert running.told[2:] == [("allow", ["192.0.2.1"])]
    found |= {"dsl": ["192.0.2.111"], "cable": []}  # that one is down: its last ones stay barred
    for now[0] in (6.0, 7.0, 8.0, 9.0, 10.0, 11.0):
        made.look(running, now[0])
    assert running.told[3:] == [("renew", ["192.0.2.111", *both[1:]]), ("allow", ["192.0.2.111"])]


def test_where_addresses_cannot_be_had_it_goes_by_those_it_knows():
    def found():
        raise PathcastError("ip", "`ip -j addr show` has not answered within 10 s")

    terms = {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", most_bytes=10 * MB)}
    course = Course(guessed(["dsl", "cable"], {False: "lia"}, {}), terms, Wish(1), sized=False)
    clock = lambda: 0.0  # noqa: E731
    made = Auto(course, ADDRESSES, ("lia",), None, print, 1e9, clock=clock, wall=clock, found=found)
    running = Running()
    for at_s in (1.0, 2.0):
        running.sent["192.0.2.2"] = 9 * MB
        made.look(running, at_s)
    assert running.told == [("allow", ["192.0.2.1"])]


def test_what_is_left_of_its_bounds_is_told_while_it_runs():
    made, _ = auto({"dsl": LineTerms("dsl"), "cable": LineTerms("cable", most_bytes=100 * MB)})
    running, told = Running(), []
    made.keep = told.append
    for at_s in (1.0, 2.0, 3.0, 4.0):
        running.sent["192.0.2.2"] += 5 * MB
        made.look(running, at_s)
    assert len(told) == 2  # as often as how far it is
    assert 0 < told[1]["max_bytes"]["cable"] < told[0]["max_bytes"]["cable"] < 95 * MB
    paths = running.seen()["paths"]
    assert made.document(paths)["left"] == made.left(paths)
    left = made.left(paths)["max_bytes"]["cable"]
    assert 79 * MB > left > made.left(paths, ahead=True)["max_bytes"]["cable"]


class Looks:
    """The event that ends a watch: after so many looks."""

    def __init__(self, most):
        self.left = most

    def wait(self, seconds):
        self.left -= 1
        return self.left < 0


def watched(made, running, now, sent):
    """Looks every second, each with what the lines' addresses have sent by then."""
    seen, looks = running.seen, iter(sent)

    def next_seen():
        now[0] += 1.0
        running.sent |= dict.fromkeys(("192.0.2.1", "192.0.2.2"), next(looks))
        return seen()

    running.seen = next_seen
    made._watch(running, Looks(len(sent)))


def steered(terms, say, counted=dict):
    now = [0.0]
    course = Course(guessed(["dsl", "cable"], {False: "lia"}, {}), terms, Wish(1), sized=False)
    clock = lambda: now[0]  # noqa: E731
    return Auto(course, ADDRESSES, ("lia",), None, say, 1e9, counted, clock, wall=clock), now


@pytest.mark.parametrize(
    ("bounded", "done"), [(["cable"], ("allow", ["192.0.2.1"])), (["dsl", "cable"], ("end",))], ids=["drop", "end"]
)
def test_words_that_cannot_be_written_keep_no_bound_from_being_kept(bounded, done):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    terms = {name: LineTerms(name, most_bytes=10 * MB if name in bounded else None) for name in ADDRESSES}
    made, now = steered(terms, full)
    running = Running()
    watched(made, running, now, [0, 9 * MB, 9 * MB])
    assert running.told[0] == done


def test_a_look_that_fails_is_said_once_and_the_next_one_finds_what_is_to_be_done():
    said, looks = [], []

    def counted():
        looks.append(None)
        if len(looks) < 3:
            raise subprocess.TimeoutExpired(["ip"], 10)
        return {}

    made, now = steered(
        {"dsl": LineTerms("dsl"), "cable": LineTerms("cable", most_bytes=10 * MB)}, said.append, counted
    )
    running = Running()
    watched(made, running, now, [0, 5 * MB, 9 * MB, 10 * MB])
    assert running.told == [("allow", ["192.0.2.1"])]
    assert "a look at the run failed: TimeoutExpired: " in said[0]
    assert [one.split(":")[0] for one in said[1:]] == ["cable is dropped"]


def test_what_the_kernel_refuses_is_tried_again():
    said, failures = [], [PathcastError("netlink", "no endpoint can be removed now")]
    made, now = steered({"dsl": LineTerms("dsl"), "cable": LineTerms("cable", most_bytes=10 * MB)}, said.append)
    running = Running()
    allow = running.allow

    def refused(addresses):
        if failures:
            raise failures.pop()
        return allow(addresses)

    running.allow = refused
    watched(made, running, now, [0, 9 * MB, 9 * MB])
    assert running.told == [("allow", ["192.0.2.1"])]
    assert "cable is dropped" in said[0]
    assert said[1:] == ["no endpoint can be removed now"]
    assert "cable is dropped" in made.steps[-1]["why"][0]
