"""The directory of a run: what is written, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.machine import clock_state, machine, versions
from pathcast.results.lines import Lines
from pathcast.results.rundir import RunDir


@pytest.fixture
def directory(tmp_path):
    return RunDir(tmp_path / "a" / "b")


def names(directory):
    return sorted(p.name for p in directory.path.iterdir())


def test_run_json_says_where_it_comes_from(directory):
    document = json.loads(directory.run({"world": "emu", "seed": 7}).read_text())
    assert next(iter(document)) == "schema"
    assert document["schema"] == "pathcast.run/1"
    assert {"command", "started_unix_s", "wall_s", "versions", "host", "world", "seed"} <= set(document)
    assert document["wall_s"] >= 0
    assert {"kernel", "machine", "processors", "load", "clock"} <= set(document["host"])
    assert {"python", "pathcast", "numpy"} <= set(document["versions"]) == set(versions())


def test_what_is_no_json_leaves_the_old_file(directory):
    directory.run({"value": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        directory.run({"value": float("nan")})
    assert json.loads((directory.path / "run.json").read_text())["value"] == 1
    assert names(directory) == ["run.json"]


def test_a_table(directory):
    path = directory.table("errors", ("name", "value"), [("a,b", 1.5), ("c", None)])
    assert list(csv.reader(path.open())) == [["name", "value"], ["a,b", "1.5"], ["c", ""]]


def test_samples_keep_nested_values(directory):
    import pyarrow.parquet as pq

    rows = [{"i": 1, "probes": [1.0, 2.0], "predicted": None}, {"i": 2, "probes": [], "predicted": {"multi": 3.0}}]
    path = directory.samples("rounds", rows)
    assert pq.read_table(path).to_pylist() == rows


def test_a_figure_as_svg_and_png_the_same_every_time(directory):
    from pathcast.results.style import style

    def draw():
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots()
        ax.plot([1, 2], [3, 4])
        return directory.figure("plot", figure)

    with style():
        svg, png = draw()
        first = svg.read_bytes()
        draw()
    assert first == svg.read_bytes()
    assert first.startswith(b"<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert names(directory) == ["plot.png", "plot.svg"]


def test_a_place_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "f").touch()
    for path in (tmp_path / "f", tmp_path / "f" / "below"):
        with pytest.raises(PathcastError, match="cannot make the directory") as error:
            RunDir(path)
        assert error.value.exit == Exit.USAGE


def test_what_was_made_for_nothing_is_removed_again(tmp_path):
    with RunDir(tmp_path / "a" / "b"):
        pass
    assert list(tmp_path.iterdir()) == []
    with RunDir(tmp_path / "a" / "b") as directory:
        directory.text("x", "kept")
    with RunDir(tmp_path / "a" / "c"):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "x"]
    (tmp_path / "empty").mkdir()
    with RunDir(tmp_path / "empty"):
        pass
    assert (tmp_path / "empty").exists()


def test_an_old_directory_is_used_again(tmp_path):
    RunDir(tmp_path).text("x", "old")
    RunDir(tmp_path).text("x", "new")
    assert (tmp_path / "x").read_text() == "new"


def test_the_clock_is_only_read():
    state = clock_state()
    assert state["synchronised"] in (True, False)
    assert state["maximum_error_s"] >= 0
    assert machine()["clock"].keys() == state.keys()


def test_what_was_planted_in_the_directory_is_not_followed(tmp_path):
    """As root in a directory that somebody else may write to."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    for name in (".run.json.part", "run.json", ".t.csv.part", ".s.parquet.part", ".f.svg.part", ".f.png.part"):
        (out / name).symlink_to(mine)
    run = RunDir(out)
    run.run({})
    run.table("t", ["a"], [[1]])
    run.samples("s", [{"a": 1}])
    assert mine.read_text() == "mine"
    assert not (out / "run.json").is_symlink()
    for what in (mine, tmp_path / "not-there", Path("/dev/zero")):
        (out / "samples.jsonl").symlink_to(what)
        with pytest.raises(PathcastError) as error, Lines(out / "samples.jsonl", lambda line: True):
            pass
        assert error.value.exit == Exit.USAGE
        (out / "samples.jsonl").unlink()
    os.mkfifo(out / "samples.jsonl")
    with pytest.raises(PathcastError, match="no plain file"), Lines(out / "samples.jsonl", lambda line: True):
        pass
    assert (mine.read_text(), (tmp_path / "not-there").exists()) == ("mine", False)
