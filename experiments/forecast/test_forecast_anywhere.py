"""The networks that `anywhere` draws, and what its table says of runs."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from pathcast.lab.experiment import Experiment
from pathcast.worlds.topology import Topology

ANYWHERE = Experiment(Path(__file__).parent).module("anywhere")


def test_a_seed_is_a_network_and_a_job():
    drawn = [ANYWHERE.case(seed) for seed in range(1, 5)]
    assert [ANYWHERE.case(seed) for seed in range(1, 5)] == drawn
    assert len({one.text for one in drawn}) == len(drawn)
    assert {one.direction for one in drawn} == {"out", "in"}
    for one in drawn:
        paths = Topology.parse(one.text, base=one.base).scenario["paths"]
        assert len(paths) == len(one.kinds) or len(one.kinds) == 1
        assert 1_000_000 <= one.size <= ANYWHERE.ALL_BYTES


def test_traces_begin_anywhere():
    with_trace = [one for one in map(ANYWHERE.case, range(1, 40)) if "lte" in one.kinds]
    begins = {rate["offset"] for one in with_trace for rate in traces(tomllib.loads(one.text))}
    assert len(begins) >= len(with_trace)


def traces(document):
    for link in document["link"]:
        if isinstance(link.get("rate"), dict):
            yield from (way for way in link["rate"].values() if isinstance(way, dict) and "trace" in way)


def test_a_choice_is_judged_by_a_transfer_that_begins_on_the_same_path():
    three = next(one for one in map(ANYWHERE.case, range(1, 60)) if len(one.kinds) == 3)
    seen = ANYWHERE.look(replace(three, size=1_000_000))
    assert {len(choice.paths) for choice in seen.came} == {1, 2, 3}
    assert len(seen.came) == 3 + 6 + 6
    told = ANYWHERE.judge(seen)
    assert all(option["truth"] in seen.came.values() for option in told["options"])
    assert 0 <= told["regret"] <= 1


def test_mirrored_twice_is_the_same():
    for seed in range(1, 5):
        one = ANYWHERE.case(seed)
        there = ANYWHERE.mirrored(one.text)
        before, after = tomllib.loads(one.text), tomllib.loads(there)
        assert [path["links"][::-1] for path in after["path"]] == [path["links"] for path in before["path"]]
        assert {link["a"] for link in after["link"]} | {link["b"] for link in after["link"]} >= {"client", "server"}
        assert tomllib.loads(ANYWHERE.mirrored(there))["link"] == before["link"]
        Topology.parse(there, base=one.base)


def run(value, low, high, truth=100.0, **more):
    option = {"paths": ["p1"], "truth": truth, "value": value, "low": low, "high": high, "floor": [99, 100, 101]}
    return {
        "seed": 1,
        "kinds": ("wired",),
        "size": 2_000_000,
        "direction": "out",
        "options": [{**option, "taken": True}],
        "regret": 0.0,
        "regret_all": 0.1,
        **more,
    }


def test_the_table_counts_errors_intervals_and_those_who_said_nothing():
    refused = {"seed": 2, "kinds": ("wired",), "size": 2_000_000, "direction": "out", "refused": "untrustworthy"}
    said = [run(105, 90, 120), run(50, 40, 60)]
    whole = list(ANYWHERE.table([*said, refused]))[1].split(",")
    assert whole[:3] == ["all", "3", "1"]
    assert whole[5:8] == ["50%", "-22.5%", "50%"]
    assert whole[9:] == ["2.0%", "0.00%", "10.00%"]
    assert list(ANYWHERE.table([refused]))[1] == "all,1,1" + ",-" * 9
