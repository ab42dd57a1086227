"""`pathcast lab` as a process: Ctrl-C, sudden ends, what is continued, and the shipped experiment."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import PATIENCE_S, ROOT

PLAN = """
schema = "pathcast.plan/1"
title = "Slow things"
paper = "A paper"
worlds = ["sim"]
[[grid]]
name = "main"
[grid.over]
seed = "1..40"
[[claim]]
id = "core-sum"
kind = "paper"
text = "the sum is that of 1 to 40"
paper = "820"
statistic = "the sum"
threshold = 820
"""
SAMPLES = """
import os, pathlib, time

def scenario(point, setup, world):
    return point["seed"]

def sample(scenario, world):
    if scenario > 10:  # until the test lets it
        while not pathlib.Path(__file__).with_name("go").exists():
            time.sleep(0.02)
    return {"value": scenario}
"""
CLAIMS = """
from pathcast.lab.experiment import Finding

def total(results, claim):
    found = int(results.frame["value"].sum())
    return Finding(str(found), found == claim.threshold, "another sum")

CLAIMS = {"core-sum": total}
"""


@pytest.fixture
def slow(tmp_path):
    """The folder of an experiment of which a quarter ends by itself."""
    folder = tmp_path / "experiments" / "slow"
    folder.mkdir(parents=True)
    for name, text in (("plan.toml", PLAN), ("samples.py", SAMPLES), ("claims.py", CLAIMS)):
        (folder / name).write_text(text)
    return folder


def _until(process, lines, count):
    deadline = time.monotonic() + PATIENCE_S
    while not lines.exists() or len(lines.read_bytes().splitlines()) < count:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _children(pid):
    found = []
    for file in Path("/proc").glob("[0-9]*/status"):
        try:
            if f"\nPPid:\t{pid}\n" in file.read_text():
                found.append(int(file.parent.name))
        except OSError:  # it has just ended
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_a_run_that_was_ended_is_continued(start, pathcast, slow, tmp_path, number):
    out = tmp_path / "out"
    arguments = ("lab", "run", "slow", "--experiments", slow.parent, "--jobs", "2", "--out", out)
    process = start(*arguments)
    _until(process, out / "samples.jsonl", 5)
    workers = _children(process.pid)
    process.send_signal(number)
    if number == signal.SIGKILL:  # the workers are idle for some minutes before they end, with our pipes
        process.wait(timeout=PATIENCE_S)
        for worker in workers:
            with suppress(ProcessLookupError):  # it may have seen that nobody asks any more
                os.kill(worker, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    (slow / "go").touch()
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "of 40 samples are left; the same command continues" in err
        assert "Traceback" not in err
    before = len((out / "samples.jsonl").read_bytes().splitlines())
    assert 5 <= before < 40

    done = pathcast(*arguments, "--resume", "--json")
    assert done.returncode == 0
    assert (done.json["samples"], done.json["computed"], done.json["failed"]) == (40, 40 - before, 0)
    assert [(claim["ours"], claim["holds"]) for claim in done.json["claims"]] == [("820", True)]


def test_two_runs_do_not_share_a_directory(start, pathcast, slow, tmp_path):
    out = tmp_path / "out"
    arguments = ("lab", "run", "slow", "--experiments", slow.parent, "--jobs", "1", "--out", out)
    process = start(*arguments)
    _until(process, out / "samples.jsonl", 1)
    done = pathcast(*arguments, "--json")
    assert (done.returncode, done.error["code"]) == (1, "busy")
    (slow / "go").touch()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_outside_of_a_checkout_the_source_trees_experiments_are_found(pathcast, tmp_path):
    done = pathcast("lab", "list", "--json", cwd=tmp_path)
    assert done.returncode == 0
    names = {one["name"] for one in done.json["experiments"]}
    assert names == {path.parent.name for path in (ROOT / "experiments").glob("*/plan.toml")}


@pytest.mark.parametrize("plan", sorted((ROOT / "experiments").glob("*/plan.toml")), ids=lambda plan: plan.parent.name)
def test_an_experiments_readme_has_the_verdicts_of_its_plan(plan):
    """Made by `report --readme`: a claim that was added or reworded since needs another run."""
    import csv
    import tomllib

    folder = plan.parent
    readme, of = (folder / "README.md").read_text(), tomllib.loads((folder / "plan.toml").read_text())
    blocks = re.finditer(r"<!-- lab: (\w+) claims(?: brief|( counted))? -->(.*?)<!-- end -->", readme, re.DOTALL)
    made, elsewhere = {}, set()
    for world, counted, block in (block.groups() for block in blocks):
        if block.strip():
            made[world] = block
        if counted:  # the others stand in the file that the page names
            assert f"](data/{world}-claims.csv)" in readme
            with (folder / f"data/{world}-claims.csv").open(newline="") as file:
                elsewhere |= {(world, one["id"], one["text"]) for one in csv.DictReader(file) if one["uncounted"]}
    assert made or "There is no whole run yet." in readme
    # a run that takes hours may come later, and the page says so
    later = set(re.findall(r"no whole run yet in `(\w+)`", readme))
    for claim in of["claim"]:
        worlds = set(made) & set(claim.get("worlds", of["worlds"]))
        if worlds - later:
            worlds -= later
        if not worlds:
            continue  # no whole run of its worlds yet
        worlds -= {world for world in worlds if (world, claim["id"], claim["text"]) in elsewhere}
        if not worlds:
            continue
        assert all(f"| {claim['id']} |" in made[world] for world in worlds)
        # in between is whose it is; a brief table leaves the statement to another one
        assert re.search(rf"\| {re.escape(claim['id'])} \| (\w+ \| )?{re.escape(claim['text'])} \|", readme)
    heads = re.findall(r"^\| claim \| whose \| (?:statement \| )?verdict \| (.*) \|$", readme, re.MULTILINE)
    known = ", ".join(of.get("reconstruction", ()))
    assert heads == [f"here (reconstruction: {known})" if known else "here"] * len(made)
    for plot in folder.glob("plots/*"):
        assert f"(plots/{plot.name})" in readme
