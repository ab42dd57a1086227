"""Predicting: what is chosen, what is only told, what is refused."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.forecast.model import Model, present, written
from pathcast.forecast.predict import untrustworthy as outcome
from pathcast.forecast.testing import PATHS, SIZE, Emulated, World, foretell, go, refused
from pathcast.worlds.results import Path


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


def test_what_was_measured_before_an_interruption_predicts(file):
    world = World()
    world.fail = {6 * 9 + 1: KeyboardInterrupt()}
    refused(lambda: go(file, world, rounds=20), "9 rounds are kept", Exit.INTERRUPTED)
    assert foretell(file, world)["model"]["rounds"] == 9


@pytest.mark.parametrize(("bytes", "fits"), [(8e6, True), (16e6, True), (32e6, True), (7.9e6, False), (32.1e6, False)])
def test_a_size_within_a_factor_of_two_is_predicted_with_a_note(learnt, bytes, fits):
    file, world, _ = learnt
    bytes = int(bytes)
    if not fits:
        error = refused(
            lambda: foretell(file, world, bytes), r"8 rounds of one size are needed; the model has: 16MB \(24 rounds\)"
        )
        assert f"--size {written(bytes)}" in error.hint
        return
    notes = foretell(file, world, bytes)["notes"]
    assert any("learnt with transfers of 16MB" in n for n in notes) == (bytes != SIZE)


def test_too_few_rounds_are_refused(file):
    go(file, World(), rounds=7)
    refused(lambda: foretell(file, World()), r"8 rounds of one size are needed; the model has: 16MB \(7 rounds\)")


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
    assert "the probes are not to be trusted: the emulator was late: p99 2.00 ms, 0 packets" in document["notes"][0]
    assert "the emulator was late" in outcome(document).message


def test_the_range_is_widened_by_the_distance_of_neighbours(learnt):
    file, _, _ = learnt
    model = Model.load(file)
    choice = model.fit(SIZE)
    for i, path in enumerate(model.names):
        low, high = choice.range_bps(path)
        probes = [r.probes_bps[i] for r in model.rounds]
        assert 0.7 * min(probes) < low < 0.96 * min(probes)
        assert 1.04 * max(probes) < high < 1.4 * max(probes)


def test_paths_are_known_by_their_addresses_not_by_their_names(learnt):
    file, _, _ = learnt
    (one, two) = PATHS
    swapped = World(paths=(Path("path1", two.local, two.remote), Path("path2", one.local, one.remote)))
    names, notes = present(Model.load(file), swapped)
    assert names == {"path1": "path2", "path2": "path1"}
    assert notes == ["path1 of the model is called path2 now", "path2 of the model is called path1 now"]
    assert foretell(file, swapped, only=("path1",))["paths"] == [
        {"name": "path1", "local": "10.0.2.2", "remote": "10.0.2.1"}
    ]
    assert swapped.sent == [(("path1",), 64_000)]


def test_a_path_is_asked_for_by_any_of_its_names(learnt):
    """That of its line, its number, its address."""
    file, _, _ = learnt
    (one, two) = PATHS
    called = World(paths=(replace(one, name="cable", also=("path1", *one.local)), replace(two, name="dsl")))
    for only in (("cable",), ("path1",), one.local):
        assert [o["paths"] for o in foretell(file, called, only=only)["options"]] == [["cable"]]


def test_a_path_that_is_down_can_be_left_out(learnt):
    file, _, _ = learnt
    document = foretell(file, World(paths=PATHS[:1]), only=("path1",))
    assert [o["paths"] for o in document["options"]] == [["path1"]]


class Dead(World):
    """Over these paths nobody answers, and a probe breaks."""

    def __init__(self, *dead):
        super().__init__()
        self.dead = dead

    def silent(self, paths=None):
        return {name: "no answer" for name in self.dead if paths is None or name in paths}

    def tcp_probe(self, path, *more, **named):
        if path in self.dead:
            raise PathcastError("timeout", f"{path}: timed out")
        return super().tcp_probe(path, *more, **named)


def test_a_line_that_is_silent_is_no_hindrance_to_the_others(learnt):
    file, _, _ = learnt
    world = Dead("path2")
    document = foretell(file, world)
    assert (document["chosen"], [o["paths"] for o in document["options"]]) == (["path1"], [["path1"]])
    assert "path2 is down: no answer" in document["notes"]
    assert ([p["name"] for p in document["paths"]], world.sent) == (["path1"], [(("path1",), 64_000)])
    refused(lambda: foretell(file, Dead("path1", "path2")), "it answers over no path", Exit.RUNTIME)
    refused(lambda: foretell(file, world, only=("path2",)), "path2: no answer", Exit.RUNTIME)


def test_what_the_model_does_not_know_is_refused(learnt):
    file, world, _ = learnt
    refused(lambda: foretell(file, world, only=("path9",)), "no path `path9`")
    more = World(paths=(*PATHS, Path("path3", ("10.0.3.2",), "10.0.3.1")))
    refused(lambda: foretell(file, more, only=("path3",)), "path `path3` is not in the model")
    refused(lambda: foretell(file, world, control="reno"), "learnt with --control cubic, asked for is reno")
    refused(lambda: foretell(file, world, 0), "at least one byte")
