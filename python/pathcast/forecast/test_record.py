"""A recorded world is that world, and what its verbs return is in the history."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from pathcast import codec
from pathcast.errors import Exit, PathcastError
from pathcast.forecast import pathkeys
from pathcast.forecast.record import Recorded, Recorder
from pathcast.forecast.rounds import Task, measure
from pathcast.history import place
from pathcast.history.read import Reader
from pathcast.worlds.measurement import Away, Measurement, PathMeasured, Request
from pathcast.worlds.results import Path, Transfer, Verdict
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

TOPOLOGY = Topology.parse("""
name = "small"
[[link]]
name = "wan1"
a = "client"
b = "server"
rate = "20Mbit"
delay = "5ms"
[[link]]
name = "wan2"
a = "client"
b = "server"
rate = "10Mbit"
delay = "9ms"
[[path]]
name = "path1"
links = ["wan1"]
[[path]]
name = "path2"
links = ["wan2"]
""")


@pytest.fixture
def said():
    return []


@pytest.fixture
def recorder(tmp_path, said):
    made = Recorder(place.parse(str(tmp_path / "history.db")), "test", "small", {"set": {"seed": "1"}}, said.append)
    yield made
    made.close()


@pytest.fixture
def world(recorder):
    with Sim(TOPOLOGY) as sim:
        yield Recorded(sim, recorder, pathkeys.of_network("sim", "small", TOPOLOGY.text))


@pytest.fixture
def reader(recorder):
    return lambda: Reader(recorder.journal.store)


def test_a_measurement_is_read_as_it_was_measured(world, reader):
    found = world.measure(["path2"], Request(effort="light", seed=1))
    [read] = reader().measurements(world.keys["path2"])
    assert codec.read(PathMeasured, read.path) == found.paths[0]
    assert (read.world, read.target, read.method, read.effort) == ("sim", "small", "ride", "light")
    assert read.circumstances["request"]["effort"] == "light"
    assert read.circumstances["set"] == {"seed": "1"}
    assert read.age_s < 60


def test_transfers_of_every_kind_are_read_as_they_were(world, reader):
    keys = [world.keys["path1"], world.keys["path2"]]
    sent = [world.tcp_probe("path2", 50_000), world.mptcp_probe(["path1", "path2"], 300_000, "lia")]
    read = reader().transfers(keys)[::-1]
    assert [codec.read(Transfer, of.report) for of in read] == sent
    assert [of.keys for of in read] == [(keys[1],), tuple(keys)]
    assert list(read[1].bytes_by_path) == sent[1].bytes_by_path(sent[1].paths)
    assert [of.control for of in read] == ["cubic", "lia"]
    assert sum(of.bytes_out for of in reader().usage()) >= 350_000


def test_a_round_of_learning_is_recorded_whole(world, reader):
    done = measure(world, {"path1": "path1", "path2": "path2"}, Task(("path1", "path2"), 200_000, 20_000))
    assert done.left_out is None
    found = reader().transfers([*world.keys.values()])
    assert sorted(of.bytes for of in found) == [20_000, 20_000, 40_000, 200_000, 200_000, 200_000]
    assert {of.valid for of in found} == {True}


def test_what_a_late_emulator_measured_is_marked(world, reader):
    inner = world._of

    class Late:
        def __getattr__(self, name):
            return getattr(inner, name)

        @contextmanager
        def judged(self):
            verdict = Verdict()
            yield verdict
            verdict.release_error = {"p99_s": 0.2}

    world._of = Late()
    with world.judged() as verdict:
        world.tcp_probe("path1", 50_000)
        assert reader().transfers([world.keys["path1"]]) == []  # not before it is judged
    assert not verdict.valid
    assert [of.valid for of in reader().transfers([world.keys["path1"]])] == [False]


def test_what_failed_is_an_event_and_raised(world, reader):
    there = tuple(replace(path, also=(path.local[0],)) for path in world.paths)

    class Down:
        paths, world = there, "sim"

        def tcp_probe(self, *_):
            raise PathcastError("timeout", "nothing came back")

        def transfer(self, *_):
            raise PathcastError("usage", "no such controller", None, Exit.USAGE)

    world._of = Down()
    for name in ("path1", there[0].local[0]):
        with pytest.raises(PathcastError, match="nothing came back"):
            world.tcp_probe(name, 1000)
    with pytest.raises(PathcastError, match="no such"):
        world.transfer(["path1"], 1000, "x")
    line = world.keys["path1"].line_id
    assert [(of.kind, of.text, of.line_id) for of in reader().events()] == 2 * [("failed", "nothing came back", line)]
    assert [of.about for of in reader().events()] == 2 * [{"code": "timeout", "paths": ["path1"]}]


def test_a_line_that_is_away_is_an_event_of_its_own_told_once(world, reader):
    keys, there, away = world.keys, world.paths, []

    class Cut:
        paths, world = there, "sim"

        def measure(self, *_):
            return Measurement((), 0, 1.0, "ride", "light", away=tuple(away))

    world._of = Cut()
    for reasons in ((), ("eth1 is down",), ("eth1 is down",), ("eth1 has no address",), (), ("eth1 is down",)):
        away[:] = [Away("path1", why) for why in reasons]
        world.measure(["path2"])
    events = reader().events()
    assert [of.text for of in events] == ["eth1 is down", "eth1 has no address", "eth1 is down"]
    assert {(of.kind, of.line_id) for of in events} == {("failed", keys["path1"].line_id)}
    assert events[0].about == {"code": "away", "paths": ["path1"]}
    away[:] = [Away("path9", "no key")]  # of no line that is known
    world.measure(["path2"])
    assert len(reader().events()) == 3


@pytest.mark.parametrize("before", [True, False])
def test_what_was_measured_when_a_signal_comes_is_recorded_once(world, recorder, reader, monkeypatch, before):
    add, signals = recorder.journal.add, [KeyboardInterrupt]

    def interrupted(act):
        if signals and before:
            raise signals.pop()
        kept = add(act)
        if signals:
            raise signals.pop()
        return kept

    monkeypatch.setattr(recorder.journal, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.measure(["path1"], Request(effort="light"))
    [found] = reader().measurements(world.keys["path1"])
    assert found.path["directions"]["out"]["bytes"] > 0
    [hour] = reader().usage()
    assert hour.bytes_out == found.path["directions"]["out"]["bytes"]


def test_a_history_that_cannot_be_kept_is_said_once_and_does_no_harm(tmp_path, said):
    (tmp_path / "file").write_text("no directory")
    recorder = Recorder(place.parse(str(tmp_path / "file/history.db")), "test", None, {}, said.append)
    with Sim(TOPOLOGY) as sim:
        world = Recorded(sim, recorder, pathkeys.of_network("sim", "small", TOPOLOGY.text))
        assert world.tcp_probe("path1", 50_000).bytes == 50_000
        world.tcp_probe("path1", 50_000)
    [line] = said
    assert line.startswith("not recorded: cannot keep a history in")


def test_each_time_that_a_history_is_away_is_said(recorder, said, monkeypatch):
    add = recorder.journal.add

    def away(act):
        recorder.journal.trouble = PathcastError("history-away", "it is away")
        recorder.journal.put_by(act)
        return False

    def nowhere(act):
        raise PathcastError("history-full", "no space is left")

    for outage, words in ((away, "it is away; "), (nowhere, "not recorded: no space is left"), (away, "it is away; ")):
        said.clear()
        for doing in (outage, outage, add, add):
            monkeypatch.setattr(recorder.journal, "add", doing)
            act = recorder.act("sim")
            act.event("test", "once")
            recorder.keep(act)
        assert len(said) == 2
        assert said[0].startswith(words)
        assert said[1] == f"recorded again in {recorder.place.shown}"


def test_what_no_history_takes_is_said_once_whatever_is_stored_meanwhile(recorder, said):
    for about in (float("nan"), 1, float("nan"), 1):
        act = recorder.act("sim")
        act.event("test", "once", about=about)
        recorder.keep(act)
    [line] = said
    assert "cannot hold this" in line


def test_who_measures_for_ever_does_not_grow(recorder):
    class Quick:
        paths, world = (), "sim"

        def measure(self, *_):
            return Measurement((), 0, 1.0, "ride", "light")

    kept = []
    recorder.keep = kept.append
    world = Recorded(Quick(), recorder, lambda of: {})
    for _ in range(200):
        world.measure()
    assert recorder.measured == [act.id for act in kept[-100:]]


def test_a_path_with_another_address_is_known_by_that(recorder):
    host = _Host(("dsl", "10.0.0.2", "192.0.2.1", "wan0"))
    world = Recorded(host, recorder, pathkeys.of_host(None))
    assert world.keys["dsl"].local == "10.0.0.2"
    host.__init__(("dsl", "10.0.0.9", "192.0.2.1", "wan0"))
    assert world.keys["dsl"].local == recorder.keys["dsl"].local == "10.0.0.9"


def test_other_numbers_make_another_network():
    with Sim(TOPOLOGY) as sim:
        first = pathkeys.of_network("sim", "small", "a")(sim)
        second = pathkeys.of_network("sim", "small", "b")(sim)
    assert set(first) == {"path1", "path2"}
    assert first["path1"] != second["path1"]
    assert first["path1"] == pathkeys.of_network("sim", "small", "a")(sim)["path1"]


class _Host:
    address = "192.0.2.1"

    def __init__(self, *pairs):
        names = ("name", "local", "remote", "interface")
        self.candidates = [dict(zip(names, pair, strict=True)) for pair in pairs]
        self.paths, self.ways = tuple(Path(pair[0], (pair[1],), pair[2]) for pair in pairs), {}

    def way(self, name):
        return self.ways.get(name)


def test_a_line_is_its_device_and_a_far_end_its_key(tmp_path):
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text("site " + "ab" * 32)
    before = pathkeys.of_host(file)(_Host(("path1", "10.0.0.2", "192.0.2.1", "wan0")))["path1"]
    after = pathkeys.of_host(file)(_Host(("path9", "10.0.0.3", "192.0.2.1", "wan0")))["path9"]
    assert after == replace(before, local="10.0.0.3")
    assert "abab" not in before.remote_id
    assert before.remote_id.startswith("key:")


def test_a_key_that_everybody_has_or_that_passes_says_nothing_of_a_far_end(tmp_path):
    host = _Host(("path1", "10.0.0.2", "192.0.2.7", "wan0"))
    assert pathkeys.of_host(None)(host)["path1"].remote_id == "address:192.0.2.1"
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text("site " + "ab" * 32)
    assert pathkeys.of_host(file, passing=True)(host)["path1"].remote_id == "address:192.0.2.1"


def test_paths_of_one_address_pair_are_told_apart_by_the_way_that_switches_give_them():
    ends = ("10.0.0.2", "10.0.1.1")
    host = _Host(("path1", *ends, "lan0"))
    plain = pathkeys.of_host(None)(host)["path1"]
    host.paths = tuple(Path(name, ends[:1], ends[1]) for name in ("path1", "path2"))
    host.ways = {"path1": "s1:2,s2:3", "path2": "s1:4,s3:3"}
    first = pathkeys.of_host(None)(host)
    assert (len({plain, *first.values()}), first["path1"].line_id, plain.way) == (3, plain.line_id, "")
    # one comes and the others are called something else
    host.paths = (Path("path1", ends[:1], ends[1]), *(Path(f"path{k}", ends[:1], ends[1]) for k in (2, 3)))
    host.ways = {"path1": "s1:9", "path2": "s1:2,s2:3", "path3": "s1:4,s3:3"}
    then = pathkeys.of_host(None)(host)
    assert [then["path2"], then["path3"]] == [first["path1"], first["path2"]]


def test_what_was_seen_of_one_steered_path_is_none_of_anothers(recorder, reader):
    openflow = Topology.load("openflow")
    with Sim(openflow) as sim:
        assert len({(path.local, path.remote) for path in sim.paths}) == 1 < len(sim.paths)
        world = Recorded(sim, recorder, pathkeys.of_network("sim", "openflow", openflow.text))
        one, two = (path.name for path in sim.paths[:2])
        found = world.measure([one], Request(effort="light", seed=1)).paths[0]
        world.tcp_probe(one, 50_000)
        assert [codec.read(PathMeasured, of.path) for of in reader().measurements(world.keys[one])] == [found]
        assert reader().measurements(world.keys[two]) == []
        past = recorder.past(world.keys)
        assert ([of.path for of in past.of(one)], past.of(two)) == ([found], ())
        assert [of.paths for of in past.carried] == [{one}]
        # a program's bytes are of the pair, nobody knows over which way
        pair = replace(world.keys[one], remote_id="address:" + sim.paths[0].remote)
        assert not reader().measurements(pair)


def test_two_addresses_of_one_device_are_two_lines():
    lines = pathkeys.line_ids([("10.0.0.2", "eth0"), ("10.1.0.2", "eth0"), ("2001:db8::2", "eth0"), ("10.9.0.1", None)])
    assert len(set(lines.values())) == 4
    assert pathkeys.line_ids([("10.0.0.2", "eth0"), ("2001:db8::2", "eth0")])["10.0.0.2"].endswith("eth0")


def test_a_forecast_knows_what_it_was_made_from_and_is_found_by_what_comes(world, recorder, reader):
    found = world.measure(["path1"], Request(effort="light", seed=1))
    option = {"paths": ["path1"], "control": "lia", "throughput_bps": {"value": 19e6, "low": 18e6, "high": 20e6}}
    document = {"size_bytes": 300_000, "options": [option], "chosen": ["path1"], "chosen_control": "lia"}
    keys = {"path1": world.keys["path1"]}
    id = recorder.forecast("sim", {**document, "measured": found.document()}, keys)
    world.tcp_probe("path1", 310_000, "lia")
    [read] = reader().forecasts([*keys.values()])
    assert (read.id, read.chosen, read.chosen_control) == (id, ["path1"], "lia")
    assert read.made_from == (reader().measurements(keys["path1"])[0].id,)
    assert "measured" not in read.answer
    assert read.came[0].option == option
    assert read.came[0].sent.bytes == 310_000
