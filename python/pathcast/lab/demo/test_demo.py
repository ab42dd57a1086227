"""The demo from plan to page, in the simulator and where the emulator is late."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.demo.page import write
from pathcast.lab.demo.plan import Plan
from pathcast.lab.demo.run import make_world, run
from pathcast.lab.paper.test_run import check_page
from pathcast.results.rundir import RunDir
from pathcast.worlds.results import Verdict
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

PLAN = Plan(seed=2, size_bytes=4_000_000)
BOTH = [["cable"], ["cable", "dsl"], ["dsl"]]


class Heard:
    def __init__(self):
        self.words = []

    def phase(self, text):
        self.words.append(("phase", text))

    def forecast(self, round):
        self.words.append(("forecast", [one["sent"] for one in round["options"]]))

    def sent(self, round, option):
        self.words.append(("sent", option["paths"]))


@pytest.fixture(autouse=True, scope="module")
def _few_draws():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pathcast.forecast.forecast.DRAWS", 8)
        # all of them, however busy the machine is
        patch.setattr("pathcast.forecast.forecast.clock", lambda: lambda: 0.0)
        yield


@pytest.fixture(scope="module")
def made():
    heard = Heard()
    return run(PLAN, make_world(PLAN, "sim"), heard), heard


def check_document(document):
    """The whole schema of the demo's document."""
    assert {"world", "plan", "untrustworthy", "rounds", "elapsed_s"} <= set(document)
    change = document["plan"]["change"]
    assert [round["told"] for round in document["rounds"]] == [
        "as the lines are",
        *([change["told"]] if change else []),
    ]
    for round in document["rounds"]:
        assert sorted(one["paths"] for one in round["options"]) == BOTH
        expected = [one["expected_s"] for one in round["options"] if one["expected_s"] is not None]
        assert expected == sorted(expected)
        chosen = [one for one in round["options"] if one["paths"] == round["chosen"]]
        assert [one["control"] for one in chosen] == [round["chosen_control"]]
        assert chosen[0]["sent"]["duration_s"] > 0
        for one in round["options"]:
            assert one["duration_s"]["low"] <= one["duration_s"]["value"]
            if one["sent"]:
                size, took = document["plan"]["size_bytes"], one["sent"]["duration_s"]
                assert one["sent"]["throughput_bps"] == pytest.approx(size * 8 / took, rel=0.01)
                assert sum(one["sent"]["bytes_by_path"]) >= size
                inside = one["duration_s"]["low"] <= took <= (one["duration_s"]["high"] or took)
                assert one["sent"]["inside"] is inside
        sent = [one["sent"]["duration_s"] for one in round["options"] if one["sent"]]
        if len(sent) > 1:
            assert round["regret"] == pytest.approx(chosen[0]["sent"]["duration_s"] / min(sent) - 1)


def check_directory(path, rounds=2):
    """Every file of a run, and a page that needs nothing but itself."""
    pictures = {"forecast.svg", "forecast.png"}
    assert {p.name for p in path.iterdir()} == {"run.json", "options.parquet", "options.csv", "index.html", *pictures}
    assert json.loads((path / "run.json").read_text())["schema"] == "pathcast.run/1"
    check_page((path / "index.html").read_text(), images=1, tables=rounds)


def test_nothing_is_sent_before_it_was_forecast_and_the_chosen_one_is_first(made):
    document, heard = made
    check_document(document)
    assert (document["world"], document["untrustworthy"]) == ("sim", None)
    spoken = [word for word in heard.words if word[0] != "phase"]
    starts = [at for at, word in enumerate(spoken) if word[0] == "forecast"]
    assert len(starts) == 2
    for at, round in zip(starts, document["rounds"], strict=True):
        assert spoken[at + 1] == ("sent", round["chosen"])
    json.dumps(document, allow_nan=False)


def test_the_change_takes_what_the_second_line_was_worth(made):
    """10 Mbit/s are worth having, 1 Mbit/s are not, and cost nothing either."""
    took = [{tuple(one["paths"]): one["sent"] for one in round["options"]} for round in made[0]["rounds"]]
    gains = [one["cable",]["duration_s"] / one["cable", "dsl"]["duration_s"] for one in took]
    # others' bursts are in both
    assert gains[0] > 1.05
    assert gains[1] > 0.85
    assert made[0]["rounds"][0]["chosen"] == ["cable", "dsl"]
    after = made[0]["rounds"][1]
    capacity = [{one["path"]: one["capacity_bps"] for one in round["measured"]} for round in made[0]["rounds"]]
    assert capacity[0]["dsl"] == pytest.approx(10e6, rel=0.1)
    assert capacity[1]["dsl"] == pytest.approx(1e6, rel=0.1)
    dsl = next(one for one in after["options"] if one["paths"] == ["dsl"])
    assert dsl["sent"] is None, "it would take longer than anybody watches"


def test_everything_that_a_run_owes_is_written(made, tmp_path):
    document, _ = made
    text = write(document, RunDir(tmp_path)).read_text()
    check_directory(tmp_path)
    assert "Use cable and dsl" in text
    first, second = document["rounds"]
    alone = next(one for one in second["options"] if one["paths"] == ["cable"])
    turned = {**second, "chosen": ["cable"], "chosen_control": alone["control"]}
    assert "Use cable alone" in write({**document, "rounds": [first, turned]}, RunDir(tmp_path)).read_text()
    hostile = {**document, "world": "<script>alert(1)</script>", "untrustworthy": "<b>late</b>"}
    text = write(hostile, RunDir(tmp_path)).read_text()
    assert "&lt;script&gt;" in text
    assert "Not to be trusted: &lt;b&gt;late" in text
    check_page(text, images=1, tables=2)


class Late(Sim):
    """Emulators may be late in all that they do."""

    @contextmanager
    def judged(self):
        verdict = Verdict()
        yield verdict
        verdict.release_error = {"p99_s": 0.002}


def test_a_late_emulator_is_not_to_be_trusted():
    document = run(PLAN, lambda: Late(Topology.parse(PLAN.topology())), Heard())
    check_document(document)
    assert "the emulator was late: p99 2.00 ms" in document["untrustworthy"]


def test_a_seed_that_is_none_and_a_controller_that_nobody_has():
    with pytest.raises(PathcastError, match="--seed -1: allowed are 0 to"):
        Plan(seed=-1)
    with pytest.raises(PathcastError, match="`nosuch`: allowed are"):
        Plan(control="nosuch")
