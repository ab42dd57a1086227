"""`pathcast demo`: refusals, and short runs end to end."""

from __future__ import annotations

import pytest
from conftest import calm

from pathcast.cli.demo import Told
from pathcast.errors import Exit, PathcastError
from pathcast.lab.demo.page import write
from pathcast.lab.demo.plan import Plan
from pathcast.lab.demo.run import make_world, run
from pathcast.lab.demo.test_demo import check_directory, check_document
from pathcast.lab.paper.test_run import check_directory as check_paper_directory
from pathcast.lab.paper.test_run import check_document as check_paper_document
from pathcast.results.rundir import RunDir


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--paper", "--rounds", "9"], "allowed are 10 to 1000"),
        (["--rounds", "x"], "--rounds"),
        (["--rounds", "10"], "--rounds goes with --paper"),
        (["--vary-rate"], "--vary-rate goes with --paper"),
        (["--steer", "openflow"], "--steer goes with --paper"),
        (["--paper", "--steer", "ryu"], "`ryu`: allowed are none, openflow"),
        (["--lanes", "2"], "--lanes goes with --paper"),
        (["--seed", "-1"], "--seed"),
        (["--paper", "--lanes", "0"], "allowed are 1 to 8"),
        (["--paper", "--lanes", "9"], "allowed are 1 to 8"),
        (["--control", "nosuch"], "`nosuch`: allowed are auto, "),
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
    done = pathcast("demo", "--paper", "--control", "nosuch", "--out", tmp_path / "out", "--json")
    assert done.returncode == 2
    assert done.error["code"] == "unknown-control"
    assert "cubic" in done.error["message"]
    assert site.empty()


@pytest.mark.privileged
def test_a_small_demo_over_the_real_kernel(site, tmp_path):
    """As the command's, of less bytes, without the change."""
    plan = Plan(seed=7, size_bytes=1_000_000, change=None)

    def demo():
        try:
            return run(plan, make_world(plan, "emu"), Told(True))
        except PathcastError as error:
            if error.exit != Exit.UNTRUSTWORTHY:
                raise
            return error
        finally:
            assert site.empty()

    document = calm(demo, lambda found: isinstance(found, PathcastError))
    assert not isinstance(document, PathcastError), document  # the machine was too busy all the time
    check_document(document)
    assert document["world"] == "emu"
    both = [one["sent"] for one in document["rounds"][0]["options"] if len(one["paths"]) == 2]
    assert both[0] is not None
    write(document, RunDir(tmp_path))
    check_directory(tmp_path, 1)


def test_a_user_without_rights_is_pointed_to_the_simulator(pathcast, open_site, nobody):
    done = pathcast("demo", "--out", open_site.path / "out", "--json", prefix=nobody)
    assert done.returncode == 5
    assert "--world sim" in done.error["hint"]
    assert open_site.empty()


def test_a_short_demo_in_the_simulator_by_a_user_without_rights(pathcast, open_site, nobody):
    out = open_site.path / "out"
    done = pathcast("demo", "--world", "sim", "--seed", "7", "--json", "--out", out, prefix=nobody)
    assert done.returncode == 0, done.stderr
    assert (done.json["schema"], done.json["world"], done.json["plan"]["seed"]) == ("pathcast.demo/2", "sim", 7)
    assert next(iter(done.json)) == "schema"
    assert done.json["directory"] == str(out)
    check_document(done.json)
    check_directory(out)
    assert [p.name for p in open_site.path.iterdir()] == ["out"]  # no turns were taken, nothing was recorded


def test_the_papers_experiment_in_the_simulator(pathcast, open_site, nobody):
    out = open_site.path / "out"
    rounds = ["--paper", "--rounds", "10", "--seed", "7"]
    done = pathcast("demo", "--world", "sim", *rounds, "--json", "--out", out, prefix=nobody)
    assert done.returncode == 0, done.stderr
    assert (done.json["schema"], done.json["world"], done.json["plan"]["seed"]) == ("pathcast.demo/1", "sim", 7)
    check_paper_document(done.json, 10, 8)
    check_paper_directory(out)
    assert [p.name for p in open_site.path.iterdir()] == ["out"]  # no turns were taken, nothing was recorded


def test_learn_and_predict_in_the_simulator_by_a_user_without_rights(pathcast, open_site, nobody, small):
    file = open_site.path / "small.toml"
    file.write_text(small.read_text())
    file.chmod(0o644)
    model = open_site.path / "m.model"
    # of 1 MB the rule gives the second path nothing
    common = ["--world", "sim", "--topology", file, "--size", "8MB", "--model", model, "--json"]
    done = pathcast("learn", *common, "--rounds", "8", prefix=nobody)
    assert (done.returncode, done.json["world"]) == (0, "sim"), done.stderr
    done = pathcast("predict", *common, prefix=nobody)
    assert done.returncode == 0, done.stderr
    assert done.json["chosen"] == ["path1", "path2"]
    assert open_site.empty()
