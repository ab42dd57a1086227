"""The demo in the simulated world: the same document whatever the lanes, and nothing of the machine in it."""

from __future__ import annotations

import json
import os

import pytest

from pathcast.lab.paper.page import write
from pathcast.lab.paper.plan import Plan
from pathcast.lab.paper.run import make_world, run
from pathcast.lab.paper.test_run import Quiet, check_directory, check_document
from pathcast.results.rundir import RunDir

PLAN = Plan(seed=3, rounds=10)


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """By lanes; nobody waits for a turn on the machine, so that nothing is written where turns are kept."""
    directory = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_RUN_DIR", str(directory))
        yield {lanes: run(PLAN, make_world(PLAN, "sim"), lanes, Quiet()) for lanes in (1, 3)}
        assert os.listdir(directory) == []


def test_the_document(documents):
    document = documents[3]
    check_document(document, 10, 8)
    assert document["world"] == "sim"
    assert document["untrustworthy"] is None
    assert document["counted"]["repeated"] == 0
    for r in document["rounds"]:
        assert r["emulator"] is None
        assert sum(r["subflow_bytes"]) >= PLAN.transfer_bytes


def test_one_lane_and_three_give_the_same_but_for_the_time_that_it_took(documents):
    one, three = (json.dumps({k: v for k, v in d.items() if k != "elapsed_s"}) for d in documents.values())
    assert one == three


def test_the_files_name_the_world(documents, tmp_path):
    text = write(documents[1], RunDir(tmp_path)).read_text()
    check_directory(tmp_path)
    assert "World <code>sim</code>" in text
    assert json.loads((tmp_path / "run.json").read_text())["world"] == "sim"
