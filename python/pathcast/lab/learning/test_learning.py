"""Learning and predicting over a made-up world: what is stored, what goes on later, what is refused."""

from __future__ import annotations

import random
from contextlib import contextmanager, nullcontext

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.lab.learning.learn import Wish, learn, untrustworthy
from pathcast.lab.learning.model import Learnt, default_file, present, written
from pathcast.lab.learning.predict import predict
from pathcast.lab.learning.predict import untrustworthy as outcome
from pathcast.lab.learning.rounds import Task, measure
from pathcast.predict.errors import ModelFileError
from pathcast.worlds.results import Path, Transfer, Verdict
from pathcast.worlds.test_results import report, subflow
from pathcast.worlds.verbs import Verbs

PATHS = (Path("path1", ("10.0.1.2",), "10.0.1.1"), Path("path2", ("10.0.2.2",), "10.0.2.1"))
SIZE = 16_000_000


class World(Verbs):
    """Disjoint 100 Mbit/s paths; a transfer takes its bytes over the rates and ten round trips.

    The round trip times are drawn anew whenever a session is opened. `fail` holds what the next transfers raise.
    """

    def __init__(self, world="host", paths=PATHS, seed=1, rtts=(0.02, 0.18)):
        self.world, self.paths, self.rtts, self.cancelled = world, paths, rtts, False
        self.random, self.sent, self.fail = random.Random(seed), [], {}
        self.fallback, self.idle, self.sessions = 0, False, 0

    def __call__(self):
        self.sessions += 1
        self.rtt = {p.name: self.random.uniform(*self.rtts) for p in self.paths}
        return nullcontext(self)

    def _send(self, paths, bytes, control, progress, protocol):
        for name in paths:
            self.path(name)
        self.sent.append((tuple(paths), bytes))
        error = self.fail.pop(len(self.sent), None)
        if error is not None:
            raise error
        elapsed = bytes * 8 / (100e6 * len(paths)) + 10 * max(self.rtt[p] for p in paths)
        if progress is not None:
            progress(bytes // 2)
        fallback = protocol == "mptcp" and self.fallback > 0
        self.fallback -= fallback
        shares = [bytes if self.idle and not i else 0 if self.idle else bytes // len(paths) for i in range(len(paths))]
        return Transfer.read(
            list(paths),
            report(
                *(subflow(p, n) for p, n in zip(paths, shares, strict=True)),
                bytes=bytes,
                elapsed_s=elapsed,
                throughput_bps=bytes * 8 / elapsed,
                control=control or "cubic",
                protocol=protocol,
                fallback=fallback,
                notes=[],
            ),
        )

    def tcp_probe(self, path, bytes, control=None, progress=None):
        return self._send([path], bytes, control, progress, "tcp")

    def transfer(self, paths, bytes, control=None, progress=None):
        return self._send(paths, bytes, control, progress, "mptcp")


class Emulated(World):
    """One that judges its time keeping; `late` holds the verdicts to come."""

    def __init__(self, **more):
        super().__init__("emu", **more)
        self.late = []

    @contextmanager
    def judged(self):
        verdict = Verdict()
        yield verdict
        verdict.release_error = {"p50_s": 1e-5, "p99_s": self.late.pop(0) if self.late else 1e-4, "max_s": 1e-3}


class Quiet:
    def __init__(self):
        self.heard_bytes, self.rounds = [], []

    def begin(self, task, rounds):
        self.task = task

    def heard(self, bytes):
        self.heard_bytes.append(bytes)

    def round(self, number, document):
        self.rounds.append((number, document["left_out"]))


@pytest.fixture(autouse=True)
def _own_run_directory(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "models" / "far.model"  # the directory is made


def go(file, world, target="far", listener=None, **wish):
    wish = {"bytes": SIZE, "rounds": 8, **wish}
    return learn(file, world.world, target, world, Wish(**wish), listener or Quiet())


def foretell(file, world, bytes=SIZE, target="far", **more):
    return predict(file, world.world, target, lambda: nullcontext(world), bytes, **more)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A model of 24 rounds, and the world that it was learnt in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))
        file, world = tmp_path_factory.mktemp("model") / "far.model", World()
        document = go(file, world, rounds=24)
    return file, world, document


def refused(call, words, exit=Exit.USAGE):
    with pytest.raises(PathcastError, match=words) as caught:
        call()
    assert caught.value.exit == exit
    return caught.value


# --- rounds ------------------------------------------------------------------------------------------------------


def test_what_a_round_sends_and_in_which_order():
    world, heard = World(), []
    task = Task(("path1", "path2"), SIZE, 64_000, "reno", (("path2", "path1"),), {"set": {"a": "b"}})
    with world() as open:
        found = measure(open, {"path1": "path1", "path2": "path2"}, task, heard.append)
    both, one, two = ("path1", "path2"), ("path1",), ("path2",)
    small = [(one, 64_000), (two, 64_000), (both, 128_000)]
    assert world.sent == [*small, (both, SIZE), (one, SIZE), (two, SIZE), (("path2", "path1"), SIZE)]
    assert found["sent_bytes"] == task.sent_bytes == heard[-1] == sum(n for _, n in world.sent)
    assert heard == sorted(heard)
    assert found["control"] == "reno"
    assert found["set"] == {"a": "b"}
    assert len(found["probes_bps"]) == len(found["tcp_bps"]) == len(found["subflow_bytes"]) == 2
    assert found["subset_bps"][0]["paths"] == ["path2", "path1"]


def test_a_single_path_needs_no_multipath_tcp():
    world = World()
    task = Task(("path1",), SIZE, 64_000)
    with world() as open:
        found = measure(open, {"path1": "path1"}, task)
    assert world.sent == [(("path1",), 64_000), (("path1",), SIZE)]
    assert found["sent_bytes"] == task.sent_bytes
    assert found["actual_bps"] is found["mptcp_probe_bps"] is None


def test_a_late_round_is_measured_again_and_then_left_out():
    task = Task(("path1",), SIZE, 64_000)
    for late, attempts, counts in (([0.002], 2, True), ([0.002] * 3, 3, False)):
        world = Emulated()
        world.late = late
        with world() as open:
            found = measure(open, {"path1": "path1"}, task)
        assert found["attempts"] == attempts
        assert (found["left_out"] is None) == counts
        assert found["sent_bytes"] == attempts * task.sent_bytes


# --- learning ----------------------------------------------------------------------------------------------------


def test_the_document_of_a_run(learnt):
    file, world, document = learnt
    model = document["model"]
    assert model["file"] == str(file)
    assert model["paths"][1] == {"name": "path2", "local": "10.0.2.2", "remote": "10.0.2.1"}
    assert (model["control"], model["probe_bytes"], model["rounds"]) == ("cubic", 64_000, 24)
    [size] = model["sizes"]
    assert (size["bytes"], size["rounds"], size["needed"]) == (SIZE, 24, 0)
    assert [c["paths"] for c in size["choices"]] == [["path1"], ["path2"], ["path1", "path2"]]
    assert all(c["rmse_bps"] > 0 for c in size["choices"])
    assert document["counted"] == {"measured": 24, "left_out": 0, "repeated": 0}
    assert document["warnings"] == []
    assert document["sent_bytes"] == sum(n for _, n in world.sent)
    assert world.sessions == 25  # one to see the paths, one a round
    assert untrustworthy(document["rounds"], 24, document["kept"]) is None


def test_too_few_rounds_are_stored_and_go_on_later(file):
    document = go(file, World(seed=1), rounds=3)
    [size] = document["model"]["sizes"]
    assert (size["rounds"], size["needed"], size["choices"]) == (3, 5, [])
    first = Learnt.load(file)
    assert first.predictors == {}
    document = go(file, World(seed=2), rounds=5)
    assert document["model"]["sizes"][0]["needed"] == 0
    second = Learnt.load(file)
    assert second.rounds[:3] == first.rounds
    assert len(second.rounds) == 8
    assert set(second.predictors) == {SIZE}


def test_every_round_is_stored_as_soon_as_it_is_measured(file):
    stored = []

    class Looks(Quiet):
        def round(self, number, document):
            stored.append((number, len(Learnt.load(file).rounds)))

    go(file, World(), rounds=3, listener=Looks())
    assert stored == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("at", [1, 8, 17])  # six transfers a round
def test_an_interruption_loses_nothing_that_was_measured(file, at):
    world = World()
    world.fail = {at: KeyboardInterrupt()}
    error = refused(lambda: go(file, world), "interrupted", Exit.INTERRUPTED)
    kept = (at - 1) // 6
    if kept:
        assert f"{kept} round{'s are' if kept > 1 else ' is'} kept in {file}" in error.message
        assert len(Learnt.load(file).rounds) == kept
    else:
        assert "no round is kept" in error.message
        assert not file.exists()
    assert go(file, World(seed=2), rounds=8)["model"]["rounds"] == kept + 8


def test_an_interruption_between_measuring_and_storing_loses_nothing(file, monkeypatch):
    save, calls = Learnt.save, []

    def interrupted_once(self, path):
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt
        save(self, path)

    monkeypatch.setattr(Learnt, "save", interrupted_once)
    refused(lambda: go(file, World()), "2 rounds are kept", Exit.INTERRUPTED)
    assert len(Learnt.load(file).rounds) == 2


def test_one_failed_round_of_ten_is_left_out_and_counted(file):
    world = World()
    world.fail = {7: PathcastError("broken", "the transfer broke")}
    document = go(file, world, rounds=10)
    assert document["counted"] == {"measured": 9, "left_out": 1, "repeated": 0}
    assert untrustworthy(document["rounds"], 10, document["kept"]) is None
    model = Learnt.load(file)
    assert [r["left_out"] for r in model.rounds[:3]] == [None, "the transfer broke", None]
    assert model.sizes() == {SIZE: 9}


def test_two_of_ten_end_with_an_error_after_the_result(file):
    world = World()
    world.fallback = 3  # the probe and the transfer of one round, the probe of the next
    document = go(file, world, rounds=10)
    assert document["counted"]["left_out"] == 2
    error = untrustworthy(document["rounds"], 10, document["kept"])
    assert (error.code, error.exit) == ("untrustworthy", Exit.UNTRUSTWORTHY)
    assert "fell back to TCP" in error.message
    assert f"10 rounds are kept in {file}" in error.message


def test_what_fails_again_and_again_stops_early(file):
    world = World()
    world.fail = {n: PathcastError("broken", "it broke", None) for n in range(1, 100)}
    error = refused(lambda: go(file, world), "3 of 3 rounds failed, the last: it broke; no round is kept", Exit.RUNTIME)
    assert error.code == "broken"
    world = World()
    world.fallback = 100
    refused(lambda: go(file, world), "3 of 3 rounds had to be left out", Exit.UNTRUSTWORTHY)
    assert not file.exists()


def test_an_error_that_is_no_failure_of_a_transfer_ends_the_run_and_keeps_the_rounds(file):
    world = World()
    world.fail = {8: PathcastError("missing", "no MPTCP", "a kernel", Exit.MISSING)}
    refused(lambda: go(file, world), "no MPTCP; 1 round is kept", Exit.MISSING)
    assert len(Learnt.load(file).rounds) == 1


def test_several_sizes_in_one_model(file):
    world = World()
    go(file, world)
    document = go(file, world, bytes=2 * SIZE, rounds=3)
    assert [(s["bytes"], s["rounds"], s["needed"]) for s in document["model"]["sizes"]] == [
        (SIZE, 8, 0),
        (2 * SIZE, 3, 5),
    ]


def test_further_choices_stay_with_the_model(file):
    three = (*PATHS, Path("path3", ("10.0.3.2",), "10.0.3.1"))
    world = World(paths=three)
    go(file, world, rounds=1, choices=(("path1", "path3"),))
    go(file, world, rounds=8)
    assert Learnt.load(file).choices == (("path1", "path3"),)
    paths = [o["paths"] for o in foretell(file, world)["options"]]
    assert sorted(paths) == sorted([["path1"], ["path2"], ["path3"], ["path1", "path3"], ["path1", "path2", "path3"]])
    paths = [o["paths"] for o in foretell(file, world, only=("path1", "path3"))["options"]]
    assert sorted(paths) == sorted([["path1"], ["path3"], ["path1", "path3"]])


def test_a_path_that_carries_nothing_is_said(file):
    world = World()
    world.idle = True
    assert "path2 carried next to nothing in 8 of 8 transfers over all paths" in go(file, world)["warnings"]


def test_a_pause_is_between_rounds(file, monkeypatch):
    from pathcast.lab.learning import learn as module

    slept = []
    monkeypatch.setattr(module.time, "sleep", slept.append)
    go(file, World(), rounds=3, pause_s=5.0)
    assert slept == [5.0, 5.0]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"paths": ("path2", "path1")}, "is of the paths path1,path2, asked for are path2,path1"),
        ({"paths": ("path1",)}, "is of the paths path1,path2"),
        ({"probe_bytes": 32_000}, "learnt with --probe 64KB, asked for is 32KB"),
        ({"control": "reno"}, "learnt with --control cubic, asked for is reno"),
        ({"bytes": 64_000}, "--size 64KB is not larger than a probe of 64KB"),
        ({"choices": (("path1", "path9"),)}, "no path `path9`; allowed: path1, path2"),
        ({"choices": (("path1",),)}, "two at least"),
        ({"choices": (("path1", "path2"),)}, "two at least"),
        ({"choices": (("path1", "path1"),)}, "two at least"),
        ({"rounds": 0}, "--rounds 0: allowed are 1 to 10000"),
        ({"probe_bytes": 0}, "--probe"),
    ],
)
def test_rounds_of_something_else_are_refused(learnt, wish, words):
    file, world, _ = learnt
    before = file.read_bytes()
    refused(lambda: go(file, world, **wish), words)
    assert file.read_bytes() == before


def test_a_new_model_refuses_paths_that_are_not_there(file):
    refused(lambda: go(file, World(), paths=("path9",)), "no path `path9`")
    refused(lambda: go(file, World(), paths=("path1", "path1")), "each path once")
    refused(lambda: go(file, World(paths=())), "no usable path", Exit.RUNTIME)
    assert not file.exists()


def test_another_world_topology_or_address(learnt):
    file, world, _ = learnt
    for call in (go, foretell):
        refused(lambda call=call: call(file, Emulated()), "learnt of far in world host, asked for is far in world emu")
    assert foretell(file, world, target="another name of it")["target"] == "another name of it"
    moved = World(paths=(PATHS[0], Path("path2", ("10.0.9.2",), "10.0.2.1")))
    for call in (go, foretell):
        error = refused(lambda call=call: call(file, moved), r"knows path2 \(10.0.2.2 to 10.0.2.1\), not there now")
        assert "--paths path1" in error.hint


def test_another_topology(file):
    go(file, Emulated(), target="small", rounds=1)
    refused(lambda: go(file, Emulated(), target="large"), "learnt of small in world emu")


def test_only_one_learns_at_a_time(file):
    class Second(Quiet):
        def round(self, number, document):
            refused(lambda: go(file, World()), "another `pathcast learn`", Exit.RUNTIME)

    go(file, World(), rounds=1, listener=Second())


# --- predicting --------------------------------------------------------------------------------------------------


def test_the_document_of_a_prediction(learnt):
    file, world, _ = learnt
    document = foretell(file, world)
    assert set(document) == {
        *("world", "target", "size_bytes", "paths", "probes_bps", "options"),
        *("chosen", "probe_bytes", "model", "notes"),
    }
    assert world.sent[-2:] == [(("path1",), 64_000), (("path2",), 64_000)]
    assert document["probe_bytes"] == 128_000
    assert [p["name"] for p in document["paths"]] == ["path1", "path2"]
    assert len(document["probes_bps"]) == 2
    options = document["options"]
    assert [o["predicted_bps"] for o in options] == sorted((o["predicted_bps"] for o in options), reverse=True)
    assert sorted(o["paths"] for o in options) == [["path1"], ["path1", "path2"], ["path2"]]
    assert set(options[0]) == {"paths", "predicted_bps", "duration_s", "rmse_bps", "within_training_range"}
    for o in options:
        assert o["duration_s"] == pytest.approx(8 * SIZE / o["predicted_bps"])
    trusted = [o["paths"] for o in options if o["within_training_range"]]
    assert document["chosen"] == trusted[0]
    model = document["model"]
    assert (model["file"], model["rounds"], model["size_bytes"]) == (str(file), 24, SIZE)
    assert (model["control"], model["warnings"]) == ("cubic", [])
    assert len(model["training_range_bps"]) == 2


def test_predictions_are_near_what_is_then_measured(learnt):
    file, _, _ = learnt
    world = World(seed=9, rtts=(0.04, 0.16))
    for _ in range(5):
        document = foretell(file, world)
        for option in document["options"]:
            sent = world.tcp_probe if len(option["paths"]) == 1 else world.transfer
            over = option["paths"][0] if len(option["paths"]) == 1 else option["paths"]
            assert option["predicted_bps"] == pytest.approx(sent(over, SIZE).throughput_bps, rel=0.1)


def test_predicting_does_not_write(learnt):
    file, world, _ = learnt
    before = file.read_bytes()
    foretell(file, world)
    assert file.read_bytes() == before


def test_a_model_that_was_interrupted_before_it_was_fitted_is_fitted_by_predict(file):
    world = World()
    world.fail = {6 * 9 + 1: KeyboardInterrupt()}
    refused(lambda: go(file, world, rounds=20), "9 rounds are kept", Exit.INTERRUPTED)
    assert Learnt.load(file).predictors == {}
    assert foretell(file, world)["model"]["rounds"] == 9


@pytest.mark.parametrize(("bytes", "fits"), [(8e6, True), (16e6, True), (32e6, True), (7.9e6, False), (32.1e6, False)])
def test_a_size_within_a_factor_of_two_is_predicted_with_a_note(learnt, bytes, fits):
    file, world, _ = learnt
    bytes = int(bytes)
    if not fits:
        error = refused(lambda: foretell(file, world, bytes), r"learnt are: 16MB \(24 rounds\); 8 rounds are needed")
        assert f"--size {written(bytes)}" in error.hint
        return
    notes = foretell(file, world, bytes)["notes"]
    assert any("learnt with transfers of 16MB" in n for n in notes) == (bytes != SIZE)


def test_too_few_rounds_are_refused(file):
    go(file, World(), rounds=7)
    refused(lambda: foretell(file, World()), r"16MB \(7 rounds\); 8 rounds are needed")


def test_outside_of_the_training_range_nothing_is_chosen(learnt):
    file, _, _ = learnt
    far = World(rtts=(0.9, 1.0))
    document = foretell(file, far)
    assert document["chosen"] is None
    assert outcome(document).exit == Exit.UNTRUSTWORTHY
    assert not any(o["within_training_range"] for o in document["options"])
    assert sum("lies outside of what was trained on" in n for n in document["notes"]) == 2


def test_a_choice_with_a_probe_outside_is_not_chosen(learnt):
    file, _, _ = learnt

    class Half(World):
        def __call__(self):
            self.rtt = {"path1": 0.001, "path2": 0.1}
            return nullcontext(self)

    document = foretell(file, Half())
    assert document["chosen"] == ["path2"]
    assert {tuple(o["paths"]): o["within_training_range"] for o in document["options"]} == {
        ("path1",): False,
        ("path2",): True,
        ("path1", "path2"): False,
    }


def test_late_probes_are_sent_again_and_then_not_trusted(file):
    world = Emulated(rtts=(0.05, 0.05))
    go(file, world, target="small")
    sent = len(world.sent)
    world.late = [0.002]
    assert foretell(file, world, target="small")["chosen"] is not None
    assert len(world.sent) == sent + 4
    world.late = [0.002] * 3
    document = foretell(file, world, target="small")
    assert document["chosen"] is None
    assert len(world.sent) == sent + 10
    assert "the probes are not to be trusted: the emulator was late (p99 2.00 ms)" in document["notes"][0]
    assert "the emulator was late" in outcome(document).message


def test_the_range_is_widened_by_the_distance_of_neighbours(learnt):
    file, _, _ = learnt
    model = Learnt.load(file)
    for i, (low, high) in enumerate(model.trained_on(SIZE)):
        probes = [r["probes_bps"][i] for r in model.rounds]
        assert 0.7 * min(probes) < low < 0.96 * min(probes)
        assert 1.04 * max(probes) < high < 1.4 * max(probes)


def test_paths_are_known_by_their_addresses_not_by_their_names(learnt):
    file, _, _ = learnt
    (one, two) = PATHS
    swapped = World(paths=(Path("path1", two.local, two.remote), Path("path2", one.local, one.remote)))
    names, notes = present(Learnt.load(file), swapped)
    assert names == {"path1": "path2", "path2": "path1"}
    assert notes == ["path1 of the model is called path2 now", "path2 of the model is called path1 now"]
    assert foretell(file, swapped, only=("path1",))["paths"] == [
        {"name": "path1", "local": "10.0.2.2", "remote": "10.0.2.1"}
    ]
    assert swapped.sent == [(("path1",), 64_000)]


def test_a_path_that_is_down_can_be_left_out(learnt):
    file, _, _ = learnt
    document = foretell(file, World(paths=PATHS[:1]), only=("path1",))
    assert [o["paths"] for o in document["options"]] == [["path1"]]


def test_what_the_model_does_not_know_is_refused(learnt):
    file, world, _ = learnt
    refused(lambda: foretell(file, world, only=("path9",)), "no path `path9`")
    more = World(paths=(*PATHS, Path("path3", ("10.0.3.2",), "10.0.3.1")))
    refused(lambda: foretell(file, more, only=("path3",)), "path `path3` is not in the model")
    refused(lambda: foretell(file, world, control="reno"), "learnt with --control cubic, asked for is reno")
    refused(lambda: foretell(file, world, 0), "at least one byte")


# --- the file ----------------------------------------------------------------------------------------------------


def test_the_file_is_a_plain_archive(learnt):
    import json
    import zipfile

    with zipfile.ZipFile(learnt[0]) as archive:
        assert archive.namelist() == ["model.json", "rounds.jsonl", f"predictor-{SIZE}.model"]
        assert json.loads(archive.read("model.json"))["schema"] == "pathcast.learnt/1"
        assert len(archive.read("rounds.jsonl").splitlines()) == 24


def test_every_damage_is_found(learnt, tmp_path):
    data, file = learnt[0].read_bytes(), tmp_path / "damaged.model"
    for offset in range(0, len(data), 499):
        changed = bytearray(data)
        changed[offset] ^= 0x10
        file.write_bytes(changed)
        with pytest.raises(ModelFileError, match=r"damaged|no pathcast model"):
            Learnt.load(file)
    for length in (0, 100, len(data) - 1):
        file.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match="cut off"):
            Learnt.load(file)
    assert refused(lambda: go(file, World()), "cut off").exit == Exit.USAGE


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "no readable model.json"),
        ({"model.json": b"[]"}, "no readable model.json"),
        ({"model.json": b'{"schema": "pathcast.learnt/2"}'}, "has schema 'pathcast.learnt/2'"),
        ({"model.json": b'{"schema": "pathcast.learnt/1"}'}, "lacks a part"),
        ({"rounds.jsonl": b"{}\n"}, "lacks a part"),
        ({"rounds.jsonl": b"{\n"}, "lacks a part"),
        ({"holiday.txt": b"sun"}, "lacks a part"),
    ],
)
def test_members_that_do_not_fit_are_refused(learnt, tmp_path, members, words):
    from pathcast.predict.sealed import seal, unseal

    whole = unseal(learnt[0], learnt[0].read_bytes(), "learnt")
    file = tmp_path / "m"
    file.write_bytes(seal({**(whole if members else {}), **members}, "learnt"))
    with pytest.raises(ModelFileError, match=words):
        Learnt.load(file)


def test_a_predictor_of_other_rounds_is_fitted_again(learnt):
    model = Learnt.load(learnt[0])
    before = model.predictors[SIZE]
    model.fit(SIZE)
    assert model.predictors[SIZE] is before
    model.rounds.pop()
    model.fit(SIZE)
    assert model.predictors[SIZE] != before


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "models").write_text("a file")
    refused(lambda: go(tmp_path / "models" / "m", World(), rounds=1), "cannot write the model", Exit.RUNTIME)


def test_where_models_are_by_default(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert str(default_file("host", "example.org")) == "/data/pathcast/models/example.org.model"
    assert str(default_file("host", "example.org:99")) == "/data/pathcast/models/example.org_99.model"
    assert str(default_file("host", "::1")) == "/data/pathcast/models/__1.model"
    assert str(default_file("host", "../../x")) == "/data/pathcast/models/_.._x.model"
    assert str(default_file("emu", "two path")) == "/data/pathcast/models/emu-two_path.model"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert str(default_file("host", "h")) == "/home/me/.local/share/pathcast/models/h.model"


@pytest.mark.parametrize(
    ("bytes", "text"), [(64_000_000, "64MB"), (1_500_000, "1500KB"), (999, "999B"), (10**9, "1GB")]
)
def test_sizes_are_written_as_they_are_read(bytes, text):
    from pathcast import _native

    assert written(bytes) == text
    assert _native.parse_bytes(text) == bytes
