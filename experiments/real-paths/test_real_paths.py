"""Profiles that are read and refused, their networks, a sample, and every claim true and false."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

FOLDER = Path(__file__).parent
EXPERIMENT = Experiment(FOLDER)
PROFILES, SAMPLES, CLAIMS, SHOW = (EXPERIMENT.module(n) for n in ("profiles", "samples", "claims", "show"))
REAL = FOLDER.parents[1] / EXPERIMENT.plan.setup["profiles"]


def about(n=0, **more):
    """A line of a file; every second one is slow, and two are of one source."""
    rate = 500 if n % 2 else 4000
    found = {"id": f"p{n}", "source": f"s{n // 4}-{n % 2}", "rate_kbps": rate, "queue_packets": 40, "one_way_ms": 30}
    return {**found, "cross_kbps": [0.2 * rate] * 5, **more}


def written(tmp_path, *lines, name="profiles.jsonl"):
    file = tmp_path / name
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return file


def profile(**more):
    return PROFILES.parse(json.dumps(about(**more)))


# --- files


def test_a_file_is_read_gzipped_or_not_and_other_keys_do_no_harm(tmp_path):
    plain = written(tmp_path, about(1, from_="x"), "", about(2))
    packed = tmp_path / "profiles.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    found = PROFILES.load(str(plain))
    assert list(found) == ["p1", "p2"]
    assert PROFILES.load(str(packed)) == found
    assert found["p2"].load == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("id,rate_kbps", "line 2: no JSON .*'id,rate_kbps'"),
        ("[1]", "line 2: a JSON object is wanted"),
        ({"id": "x"}, "line 2: source, rate_kbps, .* not there; a profile has id, source"),
        (about(2, rate_kbps=-3), "line 2: rate_kbps is -3; a number of kbit/s of 0.1 to"),
        (about(2, rate_kbps="4000"), "line 2: rate_kbps is '4000'"),
        (about(2, rate_kbps=True), "line 2: rate_kbps is True"),
        (about(2, rate_kbps=float("nan")), "line 2: rate_kbps is nan"),
        (about(2, queue_packets=2.5), "line 2: queue_packets is 2.5; a whole number of packets"),
        (about(2, queue_packets=0), "line 2: queue_packets is 0"),
        (about(2, one_way_ms=None), "line 2: one_way_ms is None"),
        (about(2, cross_kbps=[]), "line 2: cross_kbps is "),
        (about(2, cross_kbps=7), "line 2: cross_kbps is 7; a list of 1 to"),
        (about(2, cross_kbps=[1, -1]), "line 2: cross_kbps.1. is -1; a number"),
        (about(2, id=""), "line 2: id is ''; text is wanted"),
        (about(2, source=4), "line 2: source is 4"),
        (about(1), "line 2: id is 'p1', which an earlier line has too"),
    ],
)
def test_what_is_no_profile_is_refused_by_line_and_value(tmp_path, line, words):
    file = written(tmp_path, about(1), line)
    with pytest.raises(PathcastError, match=words) as error:
        PROFILES.load(str(file))
    assert (error.value.exit, str(file) in error.value.message) == (2, True)


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"x" * 999)[:-9])
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "empty").touch()
    for name, words in (
        ("nosuch", "cannot read the profiles"),
        ("", "cannot read the profiles"),
        ("cut.gz", "cannot be unpacked"),
        ("bytes", "is not text"),
        ("empty", "has no profile"),
    ):
        with pytest.raises(PathcastError, match=words) as error:
            PROFILES.load(str(tmp_path / name))
        assert (error.value.exit, str(tmp_path / name) in error.value.message) == (2, True)


def test_what_is_drawn_is_of_other_sources_judged_and_the_same_each_time():
    every = [profile(n=n) for n in range(24)] + [profile(n=99, source="full", cross_kbps=[3600])]
    assert not every[-1].judged
    found = PROFILES.drawn(every, 5)
    assert found == PROFILES.drawn(list(reversed(every))[::-1], 5)
    assert len({one.source for one in found}) == 5
    assert len(PROFILES.drawn(every, 30)) == len({one.source for one in every}) - 1
    assert {one.half for one in every} == {"a", "b"}
    assert len({(one.source, one.half) for one in every}) == len({one.source for one in every})


@pytest.mark.skipif(not REAL.exists(), reason=f"{EXPERIMENT.plan.setup['profiles']} is not there")
def test_the_real_paths():
    found = PROFILES.load(str(REAL))
    assert len(found) == 212
    assert len({one.source for one in found.values()}) == 77
    counts = {world: Counter(point["profile"] for point in EXPERIMENT.plan.points(world)) for world in ("sim", "emu")}
    assert {world: len(count) for world, count in counts.items()} == {"sim": 212, "emu": 30}
    assert counts["emu"].total() == 30
    for one in found.values():
        Topology.parse(SAMPLES.text(one, 17.3, 1))


# --- networks and samples


def test_cross_traffic_goes_round_from_the_start_at_each_seconds_rate():
    one = profile(rate_kbps=10_000, cross_kbps=[0, 8000, 2000])
    with Sim(Topology.parse(SAMPLES.text(one, 1.25, 3))) as network:
        entered = []
        for wait_s in (0.75, *[1.0] * 60):
            network.wait(wait_s)
            (link,) = (
                x for group in network.ledger()["groups"] for x in group["links"] if x["name"] == "bottleneck/ab"
            )
            entered.append(link["counters"]["cross"]["entered"]["bytes"] * 8)
    seconds = [after - before for before, after in itertools.pairwise(entered)]
    # the rest of the second second comes first, then the third and the first
    assert entered[0] == pytest.approx(0.75 * 8e6, rel=0.1)
    for place, rate in ((0, 2e6), (1, 0), (2, 8e6)):
        assert sum(seconds[place::3]) / 20 == pytest.approx(rate, rel=0.05)
    assert set(seconds[1::3]) == {0}


def scenario(directions="both", seed=1, **more):
    point = {"grid": "paths", "directions": directions, "profile": "p0", "seed": seed}
    return point, {"profiles": more}


def test_a_sample_has_what_was_found_and_what_was_true(tmp_path):
    file = written(tmp_path, about(0))
    point = {"grid": "paths", "profile": "p0", "seed": 1}
    both, out = (
        SAMPLES.scenario({**point, "directions": directions}, {"profiles": str(file)}, "sim")
        for directions in ("both", "out")
    )
    assert both["start_s"] == out["start_s"]
    json.dumps(both)
    found = SAMPLES.sample(both, "sim")
    assert found["truth_bps"] == pytest.approx(3.2e6, rel=0.1)
    assert found["value_bps"] == pytest.approx(found["truth_bps"], rel=0.15)
    # nothing is in the way back
    assert found["in_truth_bps"] == 4e6
    assert found["in_value_bps"] == pytest.approx(4e6, rel=0.02)
    assert (found["judged"], found["load"], found["rate_bps"]) == (True, pytest.approx(0.2), 4e6)
    alone = SAMPLES.sample(out, "sim")
    assert "in_value_bps" not in alone
    assert alone["bytes"] < 0.7 * found["bytes"]
    with pytest.raises(PathcastError, match="no profile `p7`"):
        SAMPLES.scenario({**point, "profile": "p7", "directions": "out"}, {"profiles": str(file)}, "sim")


def test_where_nothing_answers_the_cost_is_told_and_the_path_is_not_judged(tmp_path):
    file = written(tmp_path, about(1, cross_kbps=[50_000], queue_packets=400))
    point = {"grid": "paths", "profile": "p1", "seed": 1, "directions": "out"}
    found = SAMPLES.sample(SAMPLES.scenario(point, {"profiles": str(file)}, "sim"), "sim")
    assert (found["refused"], found["judged"]) == ("no-answer", False)
    assert found["seconds"] > 0
    assert 0 < found["bytes"] < 10_000


def test_a_run_beyond_the_known_traffic_fails(tmp_path, monkeypatch):
    file = written(tmp_path, about(0))
    point = {"grid": "paths", "profile": "p0", "seed": 1, "directions": "out"}
    about_ = SAMPLES.scenario(point, {"profiles": str(file)}, "sim")
    monkeypatch.setattr(SAMPLES, "HORIZON_S", 6)
    with pytest.raises(PathcastError, match="the cross traffic of 6 s is known") as error:
        SAMPLES.sample(about_, "sim")
    assert error.value.code == "horizon"


# --- claims


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """Judges good runs of 96 paths, changed by a function."""
    file = written(tmp_path_factory.mktemp("real"), *(about(n) for n in range(96)))
    experiment = Experiment(FOLDER, [("profiles", str(file))])
    profiles = PROFILES.load(str(file))

    def results(change=lambda row: {}, world="sim"):
        rows = [good(point, profiles[point["profile"]]) for point in experiment.plan.points(world)]
        return Results([{**row, **change(row)} for row in rows], experiment.plan, world, False)

    def verdicts(change=lambda row: {}, world="sim", swap=False):
        of = results(change, world)
        return Verdicts(experiment, of.swapped("directions", "both", "out") if swap else of)

    verdicts.results = results
    return verdicts


def good(point, of):
    """As it should be, one of eleven beyond its interval."""
    n = 10 * int(of.id[1:]) + point["seed"]
    beyond = random.Random(str(n)).random() < 1 / 11
    rate = of.rate_kbps * 1e3
    found = {"error": None, "key": "k", "tries": 1, **point, "refused": None, "truth_bps": 0.8 * rate}
    off = 0.04 if beyond else 0.01 * (n % 3)
    found |= {"value_bps": 0.8 * rate * (1 + off), "low_bps": 0.77 * rate * (1 + off), "high_bps": 0.83 * rate}
    found |= {"low_bps": 0.81 * rate} if beyond else {}
    found |= {"seconds": 4 + 0.01 * (n % 50), "bytes": 900_000 + 100 * (n % 50), "capacity_truth_bps": rate}
    found |= {"source": of.source, "half": of.half, "rate_bps": rate, "queue": 40, "one_way_s": 0.03}
    return found | {"load": of.load, "judged": of.judged}


def test_every_claim_holds_on_good_runs(judge):
    for world in ("sim", "emu"):
        assert {name: one["ours"] for name, one in judge(world=world).items() if one["holds"] is not True} == {}


WORSE = {
    "within": lambda row: {"value_bps": 1.06 * row["truth_bps"]} if row["seed"] < 5 else {},
    "time": lambda row: {"seconds": row["seconds"] + 2},
    "bytes": lambda row: {"bytes": row["bytes"] + 200_000},
    "inside": lambda row: {"low_bps": 1.01 * row["truth_bps"]} if row["seed"] < 5 else {},
}


@pytest.mark.parametrize("claim", [c for c in EXPERIMENT.plan.claims if "sim" in c.worlds], ids=lambda claim: claim.id)
def test_every_claim_is_false_on_worse_runs_of_one_class_and_with_the_directions_swapped(judge, claim):
    worse, directions = WORSE[claim.id.removesuffix("-out")], claim.threshold["directions"]
    other = {"both": "out", "out": "both"}[directions]
    for slow in (True, False):

        def change(row, of=directions, slow=slow):
            return worse(row) if row["directions"] == of and (row["rate_bps"] < 1e6) == slow else {}

        found = judge(change)[claim.id]
        assert found["holds"] is False
        assert [line.partition(":")[0] for line in found["details"][:2]] == list(CLAIMS.CLASSES)
        elsewhere = {"of": other, "slow": slow}
        assert judge(lambda row, more=elsewhere: change(row, **more))[claim.id]["holds"] is True
        assert judge(lambda row, more=elsewhere: change(row, **more), swap=True)[claim.id]["holds"] is False


def test_runs_without_a_value_miss_and_paths_that_are_full_do_not_count(judge):
    nothing = {"value_bps": None, "low_bps": None, "high_bps": None, "refused": "too-few"}
    found = judge(lambda row: nothing if row["seed"] < 5 else {})
    assert [found[name]["holds"] for name in ("within", "inside", "time")] == [False, False, True]
    found = judge(lambda row: {**nothing, "judged": False} if row["seed"] < 5 else {})
    assert found["within"]["holds"] is True
    found = judge(lambda row: {"judged": False})["within"]
    assert (found["holds"], found["reason"]) == (None, "none of its runs is of a path that is judged")


def test_a_source_counts_once(judge):
    # a source of many runs that are wrong is one of 25
    wrong = {"value_bps": 1.0, "source": "one"}
    found = judge(lambda row: wrong if row["source"] in ("s0-0", "s0-1", "s1-0", "s1-1") else {})["within"]
    assert [line.split()[3] for line in found["details"][:2]] == ["95.7", "95.7"]


def test_few_runs_are_judged_together(judge):
    assert judge(world="emu")["within-emu"]["ours"].startswith("all 100.0 (88.4 to 100.0) %")
    found = judge(lambda row: {"value_bps": 1.0} if row["rate_bps"] < 1e6 else {}, world="emu")["within-emu"]
    assert found["holds"] is False
    one = judge.results(world="emu").rows[0]["profile"]
    found = judge(lambda row: {"value_bps": 1.0} if row["profile"] == one else {}, world="emu")["within-emu"]
    assert (found["holds"], found["ours"]) == (True, "all 96.7 (82.8 to 99.9) %")


def test_a_class_without_sources_leaves_it_open(judge):
    found = judge(lambda row: {"rate_bps": 2e6})["time"]
    assert (found["holds"], found["reason"]) == (None, "not run: paths of two sources below 1 Mbit/s")


def test_tables_and_figures(judge):
    import matplotlib.pyplot as plt

    empty = Results([], EXPERIMENT.plan, "sim", False)
    for of in (judge.results(), judge.results(lambda row: {"judged": False, "value_bps": None}), empty):
        for name, make in SHOW.TABLES.items():
            header, rows = make(of)
            assert {len(row) for row in rows} <= {len(header)}, name
        for draw in SHOW.FIGURES.values():
            plt.close(draw(of))
    header, rows = SHOW.classes(judge.results())
    assert dict(zip(header, rows[0], strict=True)) == {
        "measured": "both", "rate": "below 1 Mbit/s", "paths that have": "all judged", "sources": "24", "paths": "48",
        "no value": "0", "within 5 %": "100 %", "error p50": "1.0 %", "p90": "2.0 %", "bias": "+1.0 %",
        "inside": "91 %", "half-width": "3.3 %", "time": "4.2 s", "kB": "902",
    }  # fmt: skip
