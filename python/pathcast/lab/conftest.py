"""A toy experiment: its files, and its folder."""

from __future__ import annotations

import pytest

PLAN = """
schema = "pathcast.plan/1"
title = "Toys"
paper = "A paper"
worlds = ["sim", "emu"]
[setup]
factor = 10
[[grid]]
name = "main"
[grid.over]
control = ["quick", "slow"]
seed = "1..3"
[grid.quick]
seed = 1
[[claim]]
id = "core-slow"
kind = "paper"
text = "slow is slower"
paper = "it is"
statistic = "difference of means"
threshold = 0
"""
SAMPLES = """
import os
from pathcast.errors import PathcastError
from .more import value

def scenario(point, setup, world):
    return {"about": [point["control"], point["seed"]], "factor": setup["factor"]}

def sample(scenario, world):
    control, seed = scenario["about"]
    with open(__file__ + ".log", "a") as log:
        log.write(f"{control} {seed} {world}\\n")
    return {"time_s": value(control, seed) * scenario["factor"], "pid": os.getpid()}
"""
CLAIMS = """
from pathcast.lab.experiment import Finding, Undecided

def slow(results, claim):
    means = results.frame.groupby("control")["time_s"].mean() if len(results.frame) else {}
    if len(means) < 2:
        raise Undecided("one of them has no result")
    more = means["slow"] - means["quick"]
    return Finding(f"{more:g}", bool(more > claim.threshold), f"it is {more:g}")

CLAIMS = {"core-slow": slow}
"""
MORE = """
def value(control, seed):
    return seed * (2 if control == "slow" else 1)
"""


@pytest.fixture
def toy(tmp_path):
    """The folder of an experiment."""
    folder = tmp_path / "experiments" / "toy-one"
    folder.mkdir(parents=True)
    for name, text in (("plan.toml", PLAN), ("samples.py", SAMPLES), ("claims.py", CLAIMS), ("more.py", MORE)):
        (folder / name).write_text(text)
    return folder
