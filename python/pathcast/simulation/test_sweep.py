"""Sweeps: grids, one worker or many, what is stored and what is computed again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.results.rundir import RunDir
from pathcast.scenario import Scenario
from pathcast.simulation import sweep
from pathcast.simulation.run import Limits
from pathcast.simulation.sweep import Grid, Sweep

SHARED = Path(__file__).parents[3] / "topologies" / "shared-bottleneck.toml"


@pytest.fixture(scope="module", autouse=True)
def _no_worker_outlives_its_tests():
    yield
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def run(out, sweeps=(), seeds=None, jobs=1, limits=None, sets=("bytes=100KB",)):
    scenario = Scenario.load(SHARED, sets)
    with Sweep(scenario, Grid.parse(sweeps, seeds), limits or Limits(), RunDir(out)) as one:
        return one.run(jobs)


def lines(out):
    return [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]


def rows(out):
    import pyarrow.parquet as pq

    return pq.read_table(out / "samples.parquet").to_pylist()


def test_a_grid_is_the_product_and_the_last_key_is_the_fastest():
    grid = Grid.parse(["control=lia,olia", "subflows=1, 2"], "3..4,9")
    assert grid.keys == ("control", "subflows", "seed")
    settings = list(grid.settings())
    assert len(settings) == 12
    assert settings[0] == (("control", "lia"), ("subflows", "1"), ("seed", "3"))
    assert settings[1] == (("control", "lia"), ("subflows", "1"), ("seed", "4"))
    assert settings[-1] == (("control", "olia"), ("subflows", "2"), ("seed", "9"))


def test_commas_inside_of_values():
    grid = Grid.parse(['link.x.rate={ ab = "1Mbit", ba = "2Mbit" },3Mbit', 'flow.x.paths=["a","b"],["c"]'])
    assert grid.values == (('{ ab = "1Mbit", ba = "2Mbit" }', "3Mbit"), ('["a","b"]', '["c"]'))


@pytest.mark.parametrize(
    ("sweeps", "seeds", "words"),
    [
        (["control"], None, "KEY=VALUE"),
        (["control="], None, "missing"),
        (["control=a,,b"], None, "missing"),
        (["control=a,b,a"], None, "twice"),
        (["control=a", "control=b"], None, "twice"),
        (["seed=1,2"], "1..2", "twice"),
        ([], "x", "--seeds"),
        ([], "5..1", "--seeds"),
        ([], "-1..1", "--seeds"),
        ([], "1,1", "twice"),
        ([], "1..100000000000", "--seeds"),
        ([], "1,9223372036854775808", "seeds are at most 9223372036854775807"),
        (["subflows=1,2"], "1..999999", "1999998 samples"),
    ],
)
def test_grids_that_are_refused(sweeps, seeds, words):
    with pytest.raises(PathcastError, match=words) as error:
        Grid.parse(sweeps, seeds)
    assert error.value.exit == 2


def test_one_worker_or_many_give_the_same_bytes(tmp_path):
    grid = (["control=lia,gsam", "subflows=1,2"], "1..2")
    documents = [run(tmp_path / str(jobs), *grid, jobs=jobs) for jobs in (1, 3)]
    assert [d.pop("directory") for d in documents] == [str(tmp_path / "1"), str(tmp_path / "3")]
    assert documents[0] == documents[1]
    one, three = (tmp_path / "1", tmp_path / "3")
    assert (one / "samples.parquet").read_bytes() == (three / "samples.parquet").read_bytes()
    stored = [sorted((out / "samples.jsonl").read_bytes().splitlines()) for out in (one, three)]
    assert stored[0] == stored[1]
    assert len(stored[0]) == 8
    assert not {"cpu_s", "wall_s"} & set(lines(one)[0]["report"])


def test_the_table_has_a_row_a_flow_with_what_was_set(tmp_path):
    document = run(tmp_path, ["subflows=1,2", "control=lia,reno"])
    found = rows(tmp_path)
    assert [(row["set.subflows"], row["set.control"]) for row in found] == [
        (1, "lia"),
        (1, "reno"),
        (2, "lia"),
        (2, "reno"),
    ]
    assert [row["flow"] if "flow" in row else row["name"] for row in found] == ["bulk"] * 4
    assert [len(row["subflows"]) for row in found] == [1, 1, 2, 2]
    assert all(row["bytes"] == 100_000 and row["error"] is None for row in found)
    assert document["keys"] == ["subflows", "control"]
    assert [row["completion_s"] for row in document["summary"]] == [row["completion_s"] for row in found]
    assert json.loads((tmp_path / "run.json").read_text())["sweep"] == {
        "subflows": ["1", "2"],
        "control": ["lia", "reno"],
    }


def test_finished_samples_are_never_computed_again(tmp_path, monkeypatch):
    assert run(tmp_path, ["subflows=1,2"])["computed"] == 2
    before = (tmp_path / "samples.jsonl").read_bytes()
    monkeypatch.setattr(sweep, "simulate", lambda *_: pytest.fail("it was computed again"))
    assert run(tmp_path, ["subflows=1,2"])["computed"] == 0
    assert run(tmp_path, ["subflows=2"])["computed"] == 0
    assert (tmp_path / "samples.jsonl").read_bytes() == before
    monkeypatch.undo()
    assert run(tmp_path, ["subflows=1,2,3"])["computed"] == 1
    # the same thing said in another way is the same sample
    assert run(tmp_path, ["flow.bulk.bytes=100KB,100000B"], sets=())["computed"] == 0
    # another version of the code may give something else
    monkeypatch.setattr(sweep, "code", lambda: "other")
    assert run(tmp_path, ["subflows=1"])["computed"] == 1


def test_a_line_that_was_not_written_to_its_end_is_computed_again(tmp_path):
    run(tmp_path, ["subflows=1,2"])
    file = tmp_path / "samples.jsonl"
    whole = rows(tmp_path)
    file.write_bytes(file.read_bytes()[:-40])
    assert run(tmp_path, ["subflows=1,2"])["computed"] == 1
    assert rows(tmp_path) == whole
    assert run(tmp_path, ["subflows=1,2"])["computed"] == 0


def test_a_failed_sample_is_kept_and_the_rest_goes_on(tmp_path):
    document = run(tmp_path, ["control=lia,nosuch,olia"], jobs=2)
    assert [(one["sample"], one["set"]) for one in document["failed"]] == [(1, {"control": "nosuch"})]
    assert "no controller `nosuch`" in document["failed"][0]["error"]["message"]
    assert [row["set"]["control"] for row in document["summary"]] == ["lia", "olia"]
    found = rows(tmp_path)
    assert [row["error"] is None for row in found] == [True, False, True]
    assert "nosuch" in found[1]["error"]
    again = run(tmp_path, ["control=lia,nosuch,olia"])
    assert (again["computed"], len(again["failed"])) == (1, 1)
    assert [line["error"] is None for line in lines(tmp_path)].count(False) == 2


def test_a_number_that_no_column_holds_loses_nothing(tmp_path):
    document = run(tmp_path, ["seed=1,99999999999999999999"])
    assert [one["set"] for one in document["failed"]] == [{"seed": "99999999999999999999"}]
    assert [(row["set.seed"], row["error"] is None) for row in rows(tmp_path)] == [(1, True), (1e20, False)]
    run(tmp_path, [], "0,9223372036854775807")
    assert [row["set.seed"] for row in rows(tmp_path)] == [0, 9223372036854775807]


def test_a_sample_that_breaks_is_kept_too_and_tried_again(tmp_path, monkeypatch):
    real = sweep.simulate

    def broken(scenario, limits):
        if ("subflows", "2") in scenario.sets:
            raise MemoryError("no more")
        return real(scenario, limits)

    monkeypatch.setattr(sweep, "simulate", broken)
    document = run(tmp_path, ["subflows=1,2,3"])
    assert [one["error"]["message"] for one in document["failed"]] == ["MemoryError: no more"]
    monkeypatch.undo()
    document = run(tmp_path, ["subflows=1,2,3"])
    assert (document["computed"], document["failed"]) == (1, [])


def test_a_grid_of_which_nothing_can_run_is_refused(tmp_path):
    with pytest.raises(PathcastError, match="nosuch") as error:
        run(tmp_path, ["control=nosuch,neither"])
    assert error.value.exit == 2
    assert not (tmp_path / "samples.jsonl").exists()


def test_a_sample_that_met_its_limit_goes_on_with_another(tmp_path):
    few = Limits(events=300)
    document = run(tmp_path, ["subflows=1,2"], limits=few)
    assert [one["stopped"] for one in document["stopped"]] == ["event-limit"] * 2
    assert run(tmp_path, ["subflows=1,2"], limits=few)["computed"] == 0
    document = run(tmp_path, ["subflows=1,2"])
    assert (document["computed"], document["stopped"]) == (2, [])
    assert run(tmp_path, ["subflows=1,2"], limits=few)["computed"] == 0


def test_two_sweeps_do_not_share_a_directory(tmp_path):
    scenario, grid = Scenario.load(SHARED), Grid.parse(["subflows=1"])
    with (
        Sweep(scenario, grid, Limits(), RunDir(tmp_path)),
        pytest.raises(PathcastError, match="another run writes to"),
        Sweep(scenario, grid, Limits(), RunDir(tmp_path)),
    ):
        pass
