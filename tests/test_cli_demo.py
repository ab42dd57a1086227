"""`pathcast demo`: refusals, and one short run end to end."""

from __future__ import annotations

import json
import subprocess
import warnings

import pytest
from conftest import COMMAND

from pathcast.lab.demo.test_run import check_directory, check_document


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rounds", "9"], "allowed are 10 to 1000"),
        (["--rounds", "x"], "--rounds"),
        (["--seed", "-1"], "--seed"),
        (["--lanes", "0"], "allowed are 1 to 8"),
        (["--lanes", "9"], "allowed are 1 to 8"),
        (["--world", "mars"], "`mars`: allowed are emu, sim"),
        (["--vary-rat"], "--vary-rat"),
    ],
)
def test_options_that_cannot_be_meant_are_2(pathcast, site, tmp_path, arguments, words):
    done = pathcast("demo", *arguments, "--out", tmp_path / "out", "--json")
    assert done.returncode == 2
    assert words in done.error["message"]
    assert site.empty()
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_2_before_anything_runs(pathcast, site, tmp_path):
    (tmp_path / "file").touch()
    done = pathcast("demo", "--out", tmp_path / "file", "--json")
    assert done.returncode == 2
    assert "--out" in done.error["message"]
    assert site.empty()


@pytest.mark.privileged
def test_an_unknown_controller_is_2_names_the_known_and_leaves_nothing(pathcast, site, tmp_path):
    done = pathcast("demo", "--rounds", "10", "--control", "nosuch", "--out", tmp_path / "out", "--json")
    assert done.returncode == 2
    assert done.error["code"] == "unknown-control"
    assert "cubic" in done.error["message"]
    assert site.empty()


@pytest.mark.privileged
def test_a_short_demo_end_to_end(site, tmp_path):
    """On a machine that is busy the demo says so by its exit status; what was in time is judged, and something was."""
    out = tmp_path / "out"
    command = [COMMAND, "demo", "--rounds", "10", "--seed", "7", "--json", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    document = json.loads(done.stdout)
    assert "error" not in document, done.stderr
    assert done.returncode == (3 if document["untrustworthy"] else 0), done.stderr
    if document["untrustworthy"]:
        assert document["untrustworthy"] in done.stderr
        warnings.warn(f"the demo found the machine too busy: {document['untrustworthy']}", stacklevel=1)
    else:
        assert done.stderr == ""
    assert next(iter(document)) == "schema"
    assert document["schema"] == "pathcast.demo/1"
    assert document["world"] == "emu"
    assert document["plan"]["seed"] == 7
    assert document["directory"] == str(out)
    check_document(document, 10, 8)
    counted = [r for r in document["rounds"] if r["left_out"] is None]
    assert counted
    for r in counted:
        assert r["emulator"]["p99_s"] <= 1e-3
        assert min(r["subflow_bytes"]) > 0
        assert sum(r["subflow_bytes"]) >= document["plan"]["transfer_bytes"]
    check_directory(out)
    assert json.loads((out / "run.json").read_text())["result"]["errors"] == document["errors"]
    assert site.empty()


def test_a_user_without_rights_is_pointed_to_the_simulator(pathcast, open_site, nobody):
    done = pathcast("demo", "--out", open_site.path / "out", "--json", prefix=nobody)
    assert done.returncode == 5
    assert "--world sim" in done.error["hint"]
    assert open_site.empty()


def test_a_short_demo_in_the_simulator_by_a_user_without_rights(pathcast, open_site, nobody):
    out = open_site.path / "out"
    done = pathcast("demo", "--world", "sim", "--rounds", "10", "--seed", "7", "--json", "--out", out, prefix=nobody)
    assert done.returncode == 0, done.stderr
    assert (done.json["schema"], done.json["world"], done.json["plan"]["seed"]) == ("pathcast.demo/1", "sim", 7)
    check_document(done.json, 10, 8)
    check_directory(out)
    assert [p.name for p in open_site.path.iterdir()] == ["out"]  # no turns were taken, nothing was recorded


def test_learn_and_predict_in_the_simulator_by_a_user_without_rights(pathcast, open_site, nobody, small):
    file = open_site.path / "small.toml"
    file.write_text(small.read_text())
    file.chmod(0o644)
    model = open_site.path / "m.model"
    common = ["--world", "sim", "--topology", file, "--size", "1MB", "--model", model, "--json"]
    done = pathcast("learn", *common, "--rounds", "8", prefix=nobody)
    assert (done.returncode, done.json["world"]) == (0, "sim"), done.stderr
    done = pathcast("predict", *common, prefix=nobody)
    assert done.returncode == 0, done.stderr
    assert done.json["chosen"] == ["path1", "path2"]
    assert open_site.empty()
