"""A watch of weeks, in simulated time: its allowance, its records, its alerts; and what is kept of it on the disc."""

from __future__ import annotations

import json
import os
import pickle
import random
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from pathcast.errors import PathcastError
from pathcast.history.testing import Clock
from pathcast.service.ledger import Ledger
from pathcast.service.teller import Teller, program
from pathcast.service.watching import ROUND_BYTES, SESSION_BYTES, Watch
from pathcast.watch.allowance import DAY_S
from pathcast.watch.expression import parse
from pathcast.worlds.measurement import (
    Away,
    Delay,
    Direction,
    Down,
    Loss,
    Measurement,
    PathMeasured,
    Value,
)
from pathcast.worlds.measurement import (
    Clock as Compared,
)
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

PATH_BYTES = 116_000
HOUR_S = 3600.0


class Time:
    """A clock that goes on when somebody waits."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.begun_us = self.clock().boot_us

    def now(self):
        return self.clock()

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.clock.passes(seconds + 1e-5)

    @property
    def s(self) -> float:
        return (self.clock().boot_us - self.begun_us) / 1e6


class Far:
    """A far end whose lines do what `lines` says at a time: bit/s, None: down, "gone": no address. away: from, to."""

    def __init__(self, time, name="far", lines=None, away=(0, 0), named=()):
        self.time, self.name, self.lines, self.away = time, name, named, away
        self.of = lines or {"cable": lambda _: 17e6, "dsl": lambda _: 9e6}
        self.chance = random.Random(name)
        self.sent, self.kept, self.sessions = [], [], 0
        self.before: dict = {}
        self.over = frozenset()

    @property
    def paths(self):
        return [
            SimpleNamespace(name=name, also=(f"path{n}",))
            for n, name in enumerate(self.of, 1)
            if self._at(name) != "gone"
        ]

    @property
    def lost(self):
        return {name: "eth1 is down" for name in self.of if self._at(name) == "gone"}

    def _at(self, name):
        return self.of[name](self.time.s)

    def looked(self, network, found):
        self.looks = getattr(self, "looks", 0) + 1

    @contextmanager
    def open(self):
        self._answer()
        self.sessions += 1
        yield self

    def _answer(self):
        if self.away[0] <= self.time.s < self.away[1]:
            raise PathcastError("no-answer", "the far end does not answer")

    def past(self, _):
        return self.before

    def line_ids(self, network):
        return {of.name: f"id-{of.name}" for of in self.paths}

    def keep(self, document):
        self.kept.append(document)

    def measure(self, paths, request):
        assert request.effort == "light"
        self._answer()
        began_s, gone = self.time.s, [name for name in paths if self._at(name) == "gone"]
        found = [path(name, self._at(name), self.chance) for name in paths if name not in gone]
        self.time.clock.passes(self.chance.uniform(0.5, 5))
        bytes = sum(self.chance.randint(20_000, PATH_BYTES) for _ in found)
        self.sent.append((began_s, self.time.s, bytes))
        return Measurement(
            tuple(found), bytes, 1.0, "ride", "light", away=tuple(Away(name, "eth1 is down") for name in gone)
        )


def path(name, rate, chance=random, queue_s=0.0):
    if rate is None:
        return PathMeasured(name, "10.0.0.2", "192.0.2.1", {}, down=Down(12, 3))
    level = Value(rate * chance.uniform(0.95, 1.05))
    delay = Delay(Value(0.01), Value(0.01 + queue_s), Value(0.02), None, Compared(False, None))
    way = Direction(Value(2 * rate), level, delay, Loss(0, 32), 50_000)
    return PathMeasured(name, "10.0.0.2", "192.0.2.1", {"out": way, "in": way}, Value(0.02 + queue_s))


class InMemory(Ledger):
    """For weeks, in which a disc would take most of the time."""

    def _write(self):
        self.used()


def watch(time, ends, alerts=(), most=50_000_000, every_s=300.0, file=None, **more):
    told, said = [], []
    ledger = InMemory(Path("nowhere"), most, time.now) if file is None else Ledger(file, most, time.now)
    parsed = [parse(text) for text in alerts]
    made = Watch(ends, parsed, every_s, ledger, time, PATH_BYTES, told.append, said.append, **more)
    return made, told, said


def worst_day(rounds):
    """The most bytes of any 24 hours, wherever they begin."""
    worst = total = first = 0
    for began_s, _, bytes in rounds:
        total += bytes
        while rounds[first][1] < began_s - DAY_S:
            total -= rounds[first][2]
            first += 1
        worst = max(worst, total)
    return worst


def test_two_weeks_keep_the_allowance_to_the_byte_and_memory_flat():
    time = Time()
    ends = [Far(time, "a"), Far(time, "b")]
    most = 20_000_000
    made, told, said = watch(time, ends, ["*.available < 70% for 15m"], most)
    sizes = []
    for week in (1, 2):
        while time.s < 7 * week * DAY_S:
            made.run(100)
        sizes.append(len(pickle.dumps((made.known, made.ledger.allowance, made.away))))
    rounds = sorted(ends[0].sent + ends[1].sent)
    assert 0.8 * most < worst_day(rounds) <= most
    # half of the time goes to each, all day long
    counts = [len(end.sent) for end in ends]
    assert abs(counts[0] - counts[1]) <= 2
    hours = [sum(hour * HOUR_S <= began_s < (hour + 1) * HOUR_S for began_s, *_ in rounds) for hour in range(13 * 24)]
    assert min(hours) >= 0.5 * sum(hours) / len(hours)
    assert told == []
    assert any("by 20 MB a day" in text for text in said)
    # once a week is remembered it does not grow
    assert sizes[1] < 1.05 * sizes[0] < 500_000


class Simulated(Far):
    """Real measurements of a network in the simulator."""

    def __init__(self, time, world):
        super().__init__(time)
        self.world = world

    @property
    def paths(self):
        return self.world.paths

    lost: ClassVar[dict] = {}

    def measure(self, paths, request):
        began_s = self.time.s
        found = self.world.measure(paths, request)
        self.time.clock.passes(found.elapsed_s)
        self.sent.append((began_s, self.time.s, found.probe_bytes))
        return found


def test_a_week_of_real_measurements_in_the_simulator():
    time, most = Time(), 6_000_000
    with Sim(Topology.load(Path("two-path"), [])) as world:
        pass_by, time.wait = time.wait, lambda seconds: (world.wait(seconds), pass_by(seconds))
        end = Simulated(time, world)
        made, told, _ = watch(time, [end], ["*.available < 70% for 15m", "*.down"], most)
        while time.s < 7 * DAY_S:
            made.run(10)
    assert 0.9 * most < worst_day(end.sent) <= most
    assert 150 < len(end.sent) < 300
    assert told == []
    assert all(of.median(time.now().boot_us / 1e6, "out", "available") for of in made.known["far"].values())


def test_rounds_are_as_asked_for_where_the_allowance_is_ample():
    time = Time()
    end = Far(time)
    made, *_ = watch(time, [end], most=500_000_000)
    made.run(100)
    begun = [began_s for began_s, *_ in end.sent]
    assert all(abs(began_s - begun[0] - 300.0 * number) < 1 for number, began_s in enumerate(begun))
    assert end.sessions == 1


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S, 400 * DAY_S, -400 * DAY_S])
def test_a_clock_that_is_set_neither_stops_nor_hastens_a_watch(step_s):
    time = Time()
    far = Far(time, lines={"cable": lambda s: None if s > 6 * HOUR_S else 17e6})
    made, told, _ = watch(time, [far], ["cable.down for 15m"], 500_000_000)
    wait, waited = time.wait, []

    def wait_and_be_set(seconds):
        wait(seconds)
        waited.append(seconds)
        if len(waited) == 60:
            time.clock.is_set(step_s)

    time.wait = wait_and_be_set
    made.run(86)
    begun = [began_s for began_s, *_ in far.sent]
    apart = [later - sooner for sooner, later in pairwise(begun)]
    assert all(abs(one - 300.0) < 1 for one in apart)
    [one] = told
    assert 15 * 60 <= one["lasted_s"] < 21 * 60
    lasted = datetime.fromisoformat(one["at"]) - datetime.fromisoformat(one["since"])
    assert abs(lasted.total_seconds() - one["lasted_s"]) < 1


def test_more_paths_than_a_days_bytes_have_their_turns():
    time = Time()
    end = Far(time, lines={name: lambda _: 5e6 for name in ("a", "b", "c")})
    made, told, _ = watch(time, [end], ["*.down"], most=2 * PATH_BYTES + 10_000)
    made.run(12)
    assert worst_day(end.sent) <= 2 * PATH_BYTES + 10_000
    assert set(made.known["far"]) == {"a", "b", "c"}
    assert told == []


class Looking(Far):
    """As `Host`: what comes and goes is seen when it is measured, and nothing but lost lines is a failure."""

    def open(self):
        self._look()
        return super().open()

    def _look(self):
        self._looked = (Far.paths.fget(self), Far.lost.fget(self))

    paths = property(lambda self: self._looked[0])
    lost = property(lambda self: self._looked[1])

    def measure(self, paths, request):
        self._look()
        if all(name in self.lost for name in paths):
            raise PathcastError("path-gone", "eth1 is down")
        return super().measure(paths, request)


@pytest.mark.parametrize("most", [PATH_BYTES + 14_000, 2 * PATH_BYTES + 14_000, 20 * PATH_BYTES])
@pytest.mark.parametrize("first", [17e6, "gone"])
def test_lines_that_return_at_once_get_no_more_than_the_allowance(most, first):
    time = Time()

    def line(now_s):
        return "gone" if 40 * HOUR_S < now_s < 120 * HOUR_S else 9e6

    lines = {"cable": lambda s: first if line(s) == "gone" else 17e6, "dsl": line, "lte": line}
    end = Looking(time, lines=lines, named=("cable", "dsl", "lte"))
    made, told, _ = watch(time, [end], ["dsl.down for 1h"], most, every_s=HOUR_S)
    while time.s < 10 * DAY_S:
        made.run(1)
    assert worst_day(end.sent) <= most
    assert [of["state"] for of in told] == ["firing", "over"]
    assert "eth1 is down" in told[0]["text"]
    # those that are there are measured all along
    if first == 17e6:
        begun = [began_s for began_s, *_ in end.sent if 41 * HOUR_S < began_s < 119 * HOUR_S]
        assert max(later - sooner for sooner, later in pairwise(begun)) < 1.1 * DAY_S


def test_a_round_that_is_asked_for_takes_no_ones_turn():
    time, turns = Time(), []
    end = Far(time, lines={**{name: lambda _: 5e6 for name in ("a", "b")}, "c": lambda _: "gone"})
    made, *_ = watch(time, [end], most=PATH_BYTES + 14_000)
    measure = end.measure
    end.measure = lambda paths, request: turns.append(paths) or measure(paths, request)
    made._probes = SimpleNamespace(
        next=iter(["far", None] * 9).__next__, answer=lambda *_: None, refuse=lambda *_, **__: None, close=lambda: None
    )
    made.run(4)
    assert turns[:4] == [["a"], ["b"], ["a"], ["b"]]


def evening(now_s):
    """4 of 17 Mbit/s from the 30th to the 33rd hour."""
    return 4e6 if 30 * HOUR_S <= now_s < 33 * HOUR_S else 17e6


def test_what_degrades_is_told_in_words_and_kept():
    time = Time()
    end = Far(time, lines={"cable": evening, "dsl": lambda _: 9e6})
    made, told, _ = watch(time, [end], ["*.available < 70% for 15m"], 500_000_000)
    made.run(36 * 12)
    assert [(of["state"], of["path"]) for of in told] == [("firing", "cable"), ("over", "cable")]
    assert end.kept == told
    first, last = told
    assert first["text"].startswith("cable: available 4") or first["text"].startswith("cable: available 3.")
    assert " of usually 17" in first["text"] or " of usually 16." in first["text"]
    assert first["text"].endswith("; queue none; loss none")
    assert 900 <= first["lasted_s"] < 1200
    assert 3.2 * HOUR_S < last["lasted_s"] < 3.5 * HOUR_S
    json.dumps(told, allow_nan=False)


def test_the_alerts_path_may_be_called_by_its_number_too_and_others_are_refused():
    time = Time()
    made, told, _ = watch(time, [Far(time, lines={"cable": lambda _: 1e6})], ["path1.available < 2Mbit"])
    made.run(1)
    assert [of["path"] for of in told] == ["cable"]
    made, *_ = watch(time, [Far(time, named=("dsl", "lte"))], ["lte.down", "cabel.down"])
    with pytest.raises(PathcastError, match="no path `cabel`; allowed are cable, dsl, lte, \\*") as refused:
        made.run(1)
    assert refused.value.exit == 2


@pytest.mark.parametrize("how", [None, "gone"])
def test_a_line_that_is_down_is_told_and_its_return(how):
    time = Time()
    end = Far(time, lines={"cable": lambda s: how if HOUR_S < s < 2 * HOUR_S else 17e6, "dsl": lambda _: 9e6})
    made, told, _ = watch(time, [end], ["cable.down for 10m"], 500_000_000)
    made.run(40)
    assert [of["state"] for of in told] == ["firing", "over"]
    assert ("eth1 is down" if how else "no answer to 12 probes in 3 s") in told[0]["text"]


@pytest.mark.parametrize(("only", "measured"), [(["cable"], {"cable"}), (["path2"], {"dsl"}), ([], {"cable", "dsl"})])
def test_of_some_paths_only(only, measured):
    time = Time()
    far = Far(time)
    made, _, _ = watch(time, [far], only=only)
    made.run(3)
    assert set(made.known["far"]) == measured
    made, _, _ = watch(time, [Far(time)], only=["cabel"])
    with pytest.raises(PathcastError, match="--paths: there is no path `cabel`; allowed are cable, dsl"):
        made.run(1)


def test_a_named_line_that_never_was_is_down():
    time = Time()
    end = Far(time, lines={"dsl": lambda _: 9e6}, named=("cable", "dsl"))
    made, told, _ = watch(time, [end], ["cable.down for 10m"])
    made.run(5)
    assert [of["path"] for of in told] == ["cable"]


def test_a_far_end_that_is_away_is_a_gap_with_its_reason():
    time = Time()
    end = Far(time, away=(2 * HOUR_S, 3 * HOUR_S))
    made, told, said = watch(time, [end], ["dsl.down for 30m"], 500_000_000)
    made.run(60)
    assert [of["state"] for of in told] == ["firing", "over"]
    assert [text for text in said if "away" in text or "answer" in text] == [
        "far: the far end does not answer; it is tried again every 5 min",
        "far answers again after 60 min: the far end does not answer",
    ]
    assert len(end.sent) > 45
    # away from the beginning: of the paths nothing is known
    time = Time()
    end = Far(time, away=(0, HOUR_S), named=("dsl",))
    made, told, _ = watch(time, [end], ["dsl.down for 30m"])
    made.run(12)
    assert [of["path"] for of in told] == ["dsl"]


def test_what_no_later_round_would_mend_ends_it_at_the_beginning():
    time = Time()
    end = Far(time)
    end._answer = lambda: (_ for _ in ()).throw(PathcastError("key", "wrong key", None, 4))
    made, *_ = watch(time, [end])
    with pytest.raises(PathcastError, match="wrong key"):
        made.run(1)


def test_a_far_end_that_is_full_is_tried_again():
    end = Far(Time())
    end._answer = lambda: (_ for _ in ()).throw(PathcastError("sessions", "it has its 64 sessions", None, 4))
    made, _, said = watch(Time(), [end])
    made.run(2)
    assert said.count("far: it has its 64 sessions; it is tried again every 5 min") == 1


def test_an_allowance_that_is_too_small_is_refused():
    time = Time()
    with pytest.raises(PathcastError, match="one round of one path takes up to 121 KB") as refused:
        watch(time, [Far(time)], most=100_000)
    assert (refused.value.exit, refused.value.hint) == (2, "allowed is 121 KB/day and more, for example 50MB/day")


def test_a_path_that_was_down_first_learns_what_is_usual_when_it_comes():
    """And has the alerts by its other names."""
    time, asked = Time(), []
    far = Far(time, lines={"cable": lambda _: 4e6}, named=("cable",), away=(0, 1))
    far.before = {"cable": [(300.0 * (20 - n), path("cable", 17e6)) for n in range(20)]}
    far.past = lambda network: asked.append(network) or far.before
    made, told, _ = watch(time, [far], ["cable.available < 70%", "path1.available < 5Mbit", "*.down"], 500_000_000)
    made.run(5)
    assert sorted((of["alert"], of["state"]) for of in told) == [
        ("*.down", "firing"),
        ("*.down", "over"),
        ("cable.available < 70%", "firing"),
        ("path1.available < 5Mbit", "firing"),
    ]
    assert len(asked) == 1


def test_a_round_that_waits_for_its_pace_is_said_once_and_another_allowance_has_its_own(tmp_path):
    time, file = Time(), tmp_path / "watch.json"
    far = Far(time)
    made, _, said = watch(time, [far], every_s=10.0, file=file)
    made.run(1)
    assert not any("next round" in text for text in said)
    made, _, said = watch(time, [far], every_s=10.0, file=file)
    begun_s, now_s = time.s, time.now().utc_us / 1e6
    made.run(3)
    assert far.sent[1][0] - begun_s > 60
    at = datetime.fromtimestamp(now_s + far.sent[1][0] - begun_s)
    later = [text for text in said if "next round" in text]
    assert later == [f"next round at {at:%H:%M}, by the allowance of 50 MB a day"]
    made, _, said = watch(time, [far], most=3_000_000_000, every_s=10.0, file=file)
    begun_s = time.s
    made.run(1)
    assert far.sent[-1][0] - begun_s < 10
    assert not any("next round" in text for text in said)


def test_a_round_is_on_the_disc_before_it_is_sent(tmp_path):
    time = Time()
    end = Far(time)
    file = tmp_path / "watch.json"
    made, *_ = watch(time, [end], file=file)
    measure, seen = end.measure, []

    def looked(paths, request):
        seen.append(json.loads(file.read_text())["taken"])
        return measure(paths, request)

    end.measure = looked
    made.run(1)
    assert seen == [2 * PATH_BYTES + ROUND_BYTES]
    assert json.loads(file.read_text())["taken"] == 0
    assert made.ledger.used() == SESSION_BYTES + end.sent[0][2] + ROUND_BYTES


def test_the_program_reads_the_alert(tmp_path):
    said, out = [], tmp_path / "it's out"
    teller = Teller(program(f'sh -c \'cat >"$0"; exit 3\' "{out}"'), "sh", said.append)
    teller.tell({"text": "cable: down"})
    teller.close()
    assert json.loads(out.read_text()) == {"text": "cable: down"}
    assert said == ["sh ended with status 3"]
    teller.tell({})
    os.waitid(os.P_PID, teller._running[0].process.pid, os.WEXITED | os.WNOWAIT)
    teller.look()
    assert said == ["sh ended with status 3"] * 2
    for wrong, named in (
        ("", "no such program"),
        ("nosuchprogram -x", "no such program"),
        ("sh 'x", "no closing quotation"),
    ):
        with pytest.raises(PathcastError, match=named):
            program(wrong)


def test_alerts_wait_for_the_program_and_none_is_lost(tmp_path):
    said, out = [], tmp_path / "out"
    teller = Teller(program(f"sh -c 'sleep 0.3; cat >>\"$0\"' {out}"), "sh", said.append)
    for number in range(10):
        teller.tell({"number": number})
    assert len(teller._running) < 10
    teller.close()
    assert sorted(json.loads(line)["number"] for line in out.read_text().splitlines()) == list(range(10))
    assert said == []


def test_what_is_not_taken_is_told_again_with_growing_pauses_for_an_hour(tmp_path, monkeypatch):
    now_s = [1000.0]
    monkeypatch.setattr("pathcast.service.teller._now_s", lambda: now_s[0])

    def begun(words, name, again, seconds):
        """When it was started for an alert."""
        times, teller = [], Teller(words, name, said.append, again)
        start = teller._start
        monkeypatch.setattr(teller, "_start", lambda alert, at_s: (times.append(at_s), start(alert, at_s)))
        teller.tell({"text": "cable: down"})
        for _ in range(seconds // 10):
            for one in teller._running:
                os.waitid(os.P_PID, one.process.pid, os.WEXITED | os.WNOWAIT)
            now_s[0] += 10
            teller.look()
        assert (teller._running, teller._waiting) == ([], [])
        return times

    said, out = [], tmp_path / "out"
    twice = program(f'sh -c \'cat >>"$0"; test $(wc -l <"$0") = 2\' {out}')
    assert len(begun(twice, "--alert-post", True, 600)) == 2
    assert out.read_text().splitlines() == ['{"text": "cable: down"}'] * 2
    assert said == ["--alert-post ended with status 1; it is tried again for an hour"]
    times = begun(program("false"), "false", True, 7200)
    apart = [later - sooner for sooner, later in pairwise(times)]
    assert len(times) > 8
    assert apart == sorted(apart)
    assert times[-1] - times[0] <= 3600
    assert said[-1] == "false: an alert was not taken within an hour"
    assert len(begun(program("false"), "false", False, 7200)) == 1
    assert said[-1] == "false ended with status 1"


def test_a_full_disc_is_a_gap_and_nothing_is_sent_meanwhile(tmp_path, monkeypatch):
    time = Time()
    end = Far(time)
    made, _, said = watch(time, [end], file=tmp_path / "watch.json")
    replace, full = Path.replace, [False]

    def replaced(self, to):
        if full[0] and self.name == "watch.json.new":
            raise OSError(28, "No space left on device")
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", replaced)
    made.run(2)
    sent, used = len(end.sent), made.ledger.used()
    full[0] = True
    made.run(3)
    assert (len(end.sent), made.ledger.used()) == (sent, used)
    full[0] = False
    made.run(2)
    assert len(end.sent) > sent
    assert sum("no space" in text for text in said) == 2, said
