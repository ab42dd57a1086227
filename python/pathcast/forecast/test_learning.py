"""Learning: what is stored, what goes on later, what is refused."""

from __future__ import annotations

import fcntl
from dataclasses import replace

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.forecast.learn import Learning, LearnOptions
from pathcast.forecast.model import Model
from pathcast.forecast.rounds import Task, measure
from pathcast.forecast.testing import PATHS, SIZE, Emulated, Quiet, World, foretell, go, refused
from pathcast.runtime.state import run_dir
from pathcast.worlds.results import Path

# of a stored round; `set` is of networks from files
KEYS = {
    *("at_unix_s", "bytes", "probe_bytes", "control", "probes_bps", "mptcp_probe_bps", "actual_bps", "tcp_bps"),
    *("subset_bps", "subflow_bytes", "notes", "fallback", "emulator", "attempts", "sent_bytes", "left_out", "error"),
}


def test_the_document_of_a_run(learnt):
    file, world, done = learnt
    document = done.document()
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
    assert done.untrustworthy() is None
    assert set(document["rounds"][0]) == KEYS


def test_too_few_rounds_are_stored_and_go_on_later(file):
    document = go(file, World(seed=1), rounds=3).document()
    [size] = document["model"]["sizes"]
    assert (size["rounds"], size["needed"], size["choices"]) == (3, 5, [])
    first = Model.load(file)
    document = go(file, World(seed=2), rounds=5).document()
    assert document["model"]["sizes"][0]["needed"] == 0
    second = Model.load(file)
    assert second.rounds[:3] == first.rounds
    assert len(second.rounds) == 8


def test_every_round_is_stored_as_soon_as_it_is_measured(file):
    stored = []

    class Looks(Quiet):
        def round(self, number, round):
            stored.append((number, len(Model.load(file).rounds)))

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
        assert len(Model.load(file).rounds) == kept
    else:
        assert "no round is kept" in error.message
        assert not file.exists()
    assert len(go(file, World(seed=2), rounds=8).model.rounds) == kept + 8


def test_an_interruption_between_measuring_and_storing_loses_nothing(file, monkeypatch):
    save, calls = Model.save, []

    def interrupted_once(self, path):
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt
        save(self, path)

    monkeypatch.setattr(Model, "save", interrupted_once)
    refused(lambda: go(file, World()), "2 rounds are kept", Exit.INTERRUPTED)
    assert len(Model.load(file).rounds) == 2


def test_one_failed_round_of_ten_is_left_out_and_counted(file):
    world = World()
    world.fail = {7: PathcastError("broken", "the transfer broke")}
    done = go(file, world, rounds=10)
    assert done.document()["counted"] == {"measured": 9, "left_out": 1, "repeated": 0}
    assert done.untrustworthy() is None
    model = Model.load(file)
    assert [r.left_out for r in model.rounds[:3]] == [None, "the transfer broke", None]
    assert model.sizes() == {SIZE: 9}


def test_two_of_ten_end_with_an_error_after_the_result(file):
    world = World()
    world.fallback = 3  # the probe and the transfer of one round, the probe of the next
    done = go(file, world, rounds=10)
    assert done.document()["counted"]["left_out"] == 2
    error = done.untrustworthy()
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
    assert len(Model.load(file).rounds) == 1


def test_several_sizes_in_one_model(file):
    world = World()
    go(file, world)
    document = go(file, world, bytes=2 * SIZE, rounds=3).document()
    assert [(s["bytes"], s["rounds"], s["needed"]) for s in document["model"]["sizes"]] == [
        (SIZE, 8, 0),
        (2 * SIZE, 3, 5),
    ]


def test_further_choices_stay_with_the_model(file):
    three = (*PATHS, Path("path3", ("10.0.3.2",), "10.0.3.1"))
    world = World(paths=three)
    go(file, world, rounds=1, choices=(("path1", "path3"),))
    go(file, world, rounds=8)
    assert Model.load(file).choices == (("path1", "path3"),)
    paths = [o["paths"] for o in foretell(file, world)["options"]]
    assert sorted(paths) == sorted([["path1"], ["path2"], ["path3"], ["path1", "path3"], ["path1", "path2", "path3"]])
    paths = [o["paths"] for o in foretell(file, world, only=("path1", "path3"))["options"]]
    assert sorted(paths) == sorted([["path1"], ["path3"], ["path1", "path3"]])


def test_paths_have_their_own_names_in_a_model_whatever_they_are_called(file):
    called = [("cable", "path1"), ("dsl", "path2"), ("lte", "path3")]
    three = (*PATHS, Path("path3", ("10.0.3.2",), "10.0.3.1"))
    named = tuple(
        replace(path, name=name, also=(also, *path.local)) for path, (name, also) in zip(three, called, strict=True)
    )
    for _ in range(2):  # the same command again
        asked = {"paths": ("path1", "10.0.2.2", "lte"), "choices": (("path1", "10.0.3.2"),)}
        model = go(file, World(paths=named), rounds=1, **asked).model
        assert (model.names, model.choices) == (("cable", "dsl", "lte"), (("cable", "lte"),))
    refused(lambda: go(file, World(paths=named), choices=(("path1", "cable"),)), "each once")
    other = file.with_name("other.model")
    refused(lambda: go(other, World(paths=named), paths=("path1", "cable")), "name each path once")


def test_a_path_that_carries_nothing_is_said(file):
    world = World()
    world.uneven = True
    assert "path2 carried next to nothing in 8 of 8 transfers over all paths" in go(file, world).document()["warnings"]


def test_a_pause_is_between_rounds(file, monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
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
        def round(self, number, round):
            refused(lambda: go(file, World()), "another `pathcast learn`", Exit.RUNTIME)

    go(file, World(), rounds=1, listener=Second())
    assert not list(run_dir().glob("learn.*"))


def test_who_comes_while_a_lock_is_removed_takes_a_new_one(file, monkeypatch):
    flock, calls = fcntl.flock, []

    def late(fd, how):
        if not calls:  # another run ends between open and lock
            [lock] = run_dir().glob("learn.*")
            lock.unlink()
        calls.append(fd)
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert len(go(file, World(), rounds=1).rounds) == 1
    assert len(calls) > 1


class Breaks(World):
    """Its large transfers break in the middle."""

    def _send(self, paths, bytes, control, progress, protocol):
        sent = super()._send(paths, bytes, control, progress, protocol)
        if bytes == SIZE:
            raise PathcastError("transfer", "connection reset")
        return sent


def test_what_went_before_a_transfer_broke_counts_as_sent(file):
    error = refused(lambda: go(file, Breaks(), rounds=3), "no round is kept", Exit.RUNTIME)
    assert error.hint is None
    with Breaks()() as world:
        names = {path.name: path.name for path in PATHS}
        broken = measure(world, names, Task(tuple(names), SIZE, 64_000))
    assert broken.error == "transfer"
    assert broken.sent_bytes == 4 * 64_000 + SIZE // 2


def test_a_model_that_is_not_there_is_not_named(file, capsys):
    from pathcast.cli.learn import _summary

    options = LearnOptions(SIZE, rounds=3)
    run = Learning(file, Model("host", "far", (), 64_000), options, [])
    run.rounds.append(Task((), SIZE, 64_000).round())
    _summary(run.document(), "")
    out = capsys.readouterr().out
    assert "no round is kept" in out
    assert str(file) not in out
