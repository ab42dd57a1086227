"""Campaigns of a toy experiment: keys, resuming, failures, verdicts, Parquet, a real cluster."""

from __future__ import annotations

import errno
import gc
import json
import os
import sys
import time

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.lab import version, worker
from pathcast.lab.campaign import Campaign, document, last, load, status
from pathcast.lab.cluster import connected
from pathcast.lab.conftest import CLAIMS, MORE, PLAN, SAMPLES
from pathcast.lab.experiment import Experiment, Finding, Results
from pathcast.results.lines import Lines
from pathcast.results.rundir import RunDir


@pytest.fixture(scope="module", autouse=True)
def _no_worker_outlives_its_tests():
    yield
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


@pytest.fixture
def run(toy, tmp_path, monkeypatch):
    """Runs the toy; returns its document and results."""
    # the turns of emulated samples are its own: nothing here is an emulator
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path / "turns"))

    def go(world="sim", quick=False, jobs=1, cluster=None, out="out", only=(), sets=()):
        worker._experiment.cache_clear()
        experiment = Experiment(toy, sets)
        for name in ("samples", "claims", "more"):
            monkeypatch.delitem(sys.modules, f"{experiment._package}.{name}", raising=False)
        with Campaign(experiment, world, quick, RunDir(tmp_path / out), only) as campaign:
            computed = campaign.run(jobs, cluster)
            results = campaign.results()
            found = document(experiment, results, computed, tmp_path / out)
            campaign.write(results, found)
        return found, results

    return go


def computed(toy):
    log = toy / "samples.py.log"
    return sorted(log.read_text().splitlines()) if log.exists() else []


def test_everything_is_computed_once_and_judged(toy, run):
    found, results = run(jobs=2)
    assert (found["samples"], found["computed"], found["failed"]) == (6, 6, 0)
    assert [(row["control"], row["seed"], row["time_s"]) for row in results.rows][3:] == [
        ("slow", 1, 20),
        ("slow", 2, 40),
        ("slow", 3, 60),
    ]
    assert found["claims"] == [
        {
            "id": "core-slow",
            "kind": "paper",
            "text": "slow is slower",
            "paper": "it is",
            "statistic": "difference of means",
            "ours": "20",
            "holds": True,
            "reason": "it is 20",
            "details": [],
            "uncounted": None,
        }
    ]
    assert found["tally"] == {"paper": {"claims": 1, "holds": 1, "fails": 0, "undecided": 0}}
    assert len(computed(toy)) == 6
    again, _ = run()
    assert again["computed"] == 0
    assert again["claims"] == found["claims"]
    assert len(computed(toy)) == 6


def test_the_quick_subset_is_part_of_the_whole(run):
    quick, results = run(quick=True)
    assert (quick["samples"], quick["computed"], quick["quick"]) == (2, 2, True)
    assert [row["seed"] for row in results.rows] == [1, 1]
    assert run()[0]["computed"] == 4


def test_keys_hold_scenario_world_and_code_but_no_claims(toy, run):
    run()
    (toy / "claims.py").write_text(CLAIMS + "\n# other words\n")
    (toy / "show.py").write_text("# nothing that samples.py imports\n")
    (toy / "plan.toml").write_text(PLAN.replace("it is", "it was").replace("1..3", "1..4"))
    assert run()[0]["computed"] == 2
    (toy / "plan.toml").write_text(PLAN.replace("factor = 10", "factor = 20"))
    assert run()[0]["computed"] == 6
    (toy / "more.py").write_text(MORE.replace("seed *", "1 + seed *"))
    found, results = run()
    assert found["computed"] == 6
    assert results.rows[0]["time_s"] == 40


def test_what_is_changed_within_a_second_and_is_as_long_is_run_as_it_is_now(toy, run, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    found = []
    for value in "34":
        (toy / "more.py").write_text(MORE.replace("2 if", f"{value} if"))
        os.utime(toy / "more.py", (1, 1))
        found.append(max(row["time_s"] for row in run()[1].rows))
    assert found == [90, 120]


def test_a_run_that_was_broken_off_goes_on(toy, run, tmp_path):
    experiment = Experiment(toy)

    class Stop(Exception):
        pass

    done = []

    def stop():
        done.append(1)
        if len(done) == 4:
            raise Stop

    with Campaign(experiment, "sim", False, RunDir(tmp_path / "out")) as campaign:
        with pytest.raises(Stop):
            campaign.run(1, done=stop)
        assert len(campaign.todo()) == 2
    # seed by seed: what is there is comparable
    assert computed(toy)[:4] == ["quick 1 sim", "quick 2 sim", "slow 1 sim", "slow 2 sim"]
    before = len(computed(toy))
    assert run()[0]["computed"] == 2
    assert len(computed(toy)) == before + 2


def test_samples_that_cannot_be_kept_end_the_run_without_a_word_of_joblib(toy, run, monkeypatch, recwarn):
    def full(lines, line):
        raise OSError(errno.ENOSPC, "no space")

    (toy / "plan.toml").write_text(PLAN.replace("1..3", "1..100"))
    monkeypatch.setattr(Lines, "add", full)
    with pytest.raises(OSError, match="no space"):
        run(jobs=2)
    gc.collect()  # what is left of the workers' results ends with the run
    assert [str(one.message) for one in recwarn] == []


def test_resume_wants_something_to_continue(toy, run, tmp_path):
    def needed():
        with Campaign(Experiment(toy), "sim", False, RunDir(tmp_path / "out")) as campaign:
            campaign.needed()

    with pytest.raises(PathcastError, match="nothing is there"):
        needed()
    run(quick=True)
    needed()
    (toy / "more.py").write_text(MORE + "\n# changed\n")
    with pytest.raises(PathcastError, match="another version") as error:
        needed()
    assert error.value.exit == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("raise PathcastError('odd', 'no way')", "odd: no way"),
        ("raise MemoryError('no more')", "internal: MemoryError: no more"),
        ("return {'time_s': float('nan')}", "internal: ValueError"),
        ("return {'time_s': object()}", "internal: TypeError"),
    ],
)
def test_a_failed_sample_is_kept_the_rest_goes_on_and_the_next_run_tries_it_again(toy, run, line, words):
    broken = SAMPLES.replace(
        "    with open", f"    if scenario['about'] == ['slow', 2]:\n        {line}\n    with open"
    )
    (toy / "samples.py").write_text(broken)
    found, results = run(jobs=2)
    assert (found["samples"], found["failed"]) == (6, 1)
    assert found["errors"][0].startswith(words)
    assert [row["error"] is None for row in results.rows] == [True] * 4 + [False, True]
    assert len(results.frame) == 5
    assert status(found, results) == Exit.RUNTIME
    assert run()[0]["computed"] == 1


def test_scenarios_that_are_refused_are_failed_samples_and_all_of_them_a_refusal(toy, run):
    refusal = "    if point['seed'] > {}:\n        raise PathcastError('odd', 'no such seed')\n    return {{\"about\""
    (toy / "samples.py").write_text(SAMPLES.replace('    return {"about"', refusal.format(2)))
    found, _ = run()
    assert (found["failed"], found["errors"]) == (2, ["odd: no such seed"])
    (toy / "samples.py").write_text(SAMPLES.replace('    return {"about"', refusal.format(0)))
    with pytest.raises(PathcastError, match="no such seed") as error:
        run()
    assert error.value.exit == 2


def test_columns_that_a_point_has_are_refused(toy, run):
    (toy / "samples.py").write_text(SAMPLES.replace('"pid"', '"seed"'))
    with pytest.raises(PathcastError, match="seed"):
        run()


def test_a_claim_without_the_samples_that_it_needs_is_undecided(toy, run):
    (toy / "plan.toml").write_text(PLAN.replace('["quick", "slow"]', '["quick"]'))
    (claim,) = run()[0]["claims"]
    assert (claim["holds"], claim["reason"]) == (None, "one of them has no result")


def test_plan_and_functions_have_the_same_claims(toy, run):
    (toy / "claims.py").write_text(CLAIMS.replace('{"core-slow"', '{"core-fast"'))
    with pytest.raises(PathcastError, match="core-fast, core-slow"):
        run()


def test_a_verdict_other_than_true_needs_its_reason():
    assert Finding("2 s", True).reason is None
    for holds in (False, None):
        with pytest.raises(ValueError, match="reason"):
            Finding("2 s", holds)


def test_swapped_labels_make_the_claim_false(toy, run):
    results = run()[1]
    (claim,) = Experiment(toy).findings(results.swapped("control", "quick", "slow"))
    assert claim["holds"] is False
    assert [row["control"] for row in results.rows].count("slow") == 3


def test_a_quick_run_has_results_of_its_own(run, tmp_path):
    run()
    assert last(tmp_path / "out", whole=False) == tmp_path / "out" / "results.parquet"
    run(quick=True)
    assert last(tmp_path / "out", whole=False) == tmp_path / "out" / "quick.parquet"
    assert last(tmp_path / "out", whole=True) == tmp_path / "out" / "results.parquet"
    assert last(tmp_path, whole=False) is None


def test_parquet_has_the_results_and_all_metadata(toy, run, tmp_path):
    found, results = run()
    loaded, about = load(tmp_path / "out" / "results.parquet", Experiment(toy).plan)
    assert loaded.rows == [dict(row) for row in results.rows]
    assert (loaded.world, loaded.quick) == ("sim", False)
    assert (about["plan"], about["code"], about["experiment"]) == (PLAN, Experiment(toy).code, "toy-one")
    assert {"command", "versions", "host", "started_unix_s"} <= set(about)
    assert json.loads((tmp_path / "out" / "run.json").read_text())["result"] == json.loads(json.dumps(found))


def test_mappings_are_the_same_when_they_are_read_again(toy, run, tmp_path):
    more = """{"by": {"ab"[seed % 2]: [seed, {}]}, "none": {}, "each": [{"x": 1}, {"y": 2}][: seed - 1],
        "numbers": {1: (2, 3)}, "time"""
    (toy / "samples.py").write_text(SAMPLES.replace('{"time', more))
    rows = run(jobs=1)[1].rows
    assert [row["by"] for row in rows[:2]] == [{"b": [1, {}]}, {"a": [2, {}]}]
    assert [rows[0][name] for name in ("none", "each", "numbers")] == [{}, [], {"1": [2, 3]}]
    (toy / "plan.toml").write_text(PLAN.replace("it is", "it was"))
    loaded, _ = load(tmp_path / "out" / "results.parquet", Experiment(toy).plan)
    assert loaded.rows == [dict(row) for row in rows]


def test_nested_columns_of_earlier_files_are_read_as_they_were(toy, run, tmp_path):
    import pyarrow.parquet as pq

    run()
    path = tmp_path / "out" / "results.parquet"
    table = pq.read_table(path)
    nested = [{"a": 1, "b": None}] * table.num_rows
    pq.write_table(table.append_column("by", [nested]), path)
    assert [row["by"] for row in load(path, Experiment(toy).plan)[0].rows] == nested


LISTED = """
LISTS = {"controls": lambda setup: ["quick", "slow"] if setup["factor"] == 10 else ["slow"]}
"""


@pytest.fixture
def listed(toy):
    """The toy with controllers that its samples.py lists, by the setup."""
    (toy / "plan.toml").write_text(PLAN.replace('["quick", "slow"]', '{ from = "controls" }'))
    (toy / "samples.py").write_text(SAMPLES + LISTED)
    return toy


def test_lists_and_sets_are_kept_with_the_results(listed, run, tmp_path):
    assert [row["control"] for row in run()[1].rows] == ["quick"] * 3 + ["slow"] * 3
    _, results = run(out="other", sets=[("factor", "20")])
    assert [(row["control"], row["time_s"]) for row in results.rows] == [("slow", 20 * 2 * n) for n in (1, 2, 3)]
    (listed / "samples.py").write_text(SAMPLES + LISTED.replace("lambda setup:", "lambda setup: 1 / 0 and"))
    for name in [name for name in sys.modules if name.endswith("toy_one.samples")]:
        del sys.modules[name]
    plan = Experiment(listed).plan
    loaded, about = load(tmp_path / "other" / "results.parquet", plan)
    assert (about["set"], about["lists"]) == ({"factor": "20"}, {"controls": ["slow"]})
    # nothing is asked of samples.py any more
    assert [point["control"] for point in loaded.plan.points("sim")] == ["slow"] * 3
    assert loaded.plan.setup["factor"] == 20
    with pytest.raises(PathcastError, match="ZeroDivisionError"):
        next(plan.points("sim"))


def test_a_list_that_samples_py_does_not_have_is_refused(listed, run):
    (listed / "samples.py").write_text(SAMPLES)
    with pytest.raises(PathcastError, match=r"samples\.py has no list `controls`; LISTS has: none"):
        run()


LATE = """
    tries = len(open(__file__ + ".log").readlines())
    if seed == 2 and tries % {} != 0:
        raise PathcastError("late", "late by 2 ms")
    return"""


def test_a_folder_beside_the_experiments_own_is_part_of_it(toy, run):
    other = toy.parent / "other"
    other.mkdir()
    (other / "values.py").write_text("from . import units\n\ndef double(x):\n    return 2 * x * units.ONE\n")
    (other / "units.py").write_text("ONE = 1\n")
    (toy / "more.py").write_text("from ..other.values import double\n" + MORE.replace("seed *", "double(seed) *"))
    assert [row["time_s"] for row in run()[1].rows[:3]] == [20, 40, 60]
    for name in [name for name in sys.modules if name.endswith((".other", ".values", ".units"))]:
        del sys.modules[name]
    (other / "units.py").write_text("ONE = 10\n")
    found, results = run()
    assert (found["computed"], results.rows[0]["time_s"]) == (6, 200)


def test_only_some_of_the_samples_are_a_part_of_the_plan(run, tmp_path):
    found, results = run(only=[("control", "slow"), ("seed", "1"), ("seed", "3")])
    assert [(row["control"], row["seed"]) for row in results.rows] == [("slow", 1), ("slow", 3)]
    assert (found["samples"], found["quick"], found["claims"][0]["holds"]) == (2, True, None)
    assert [path.name for path in (tmp_path / "out").glob("*.parquet")] == ["quick.parquet"]
    assert run()[0]["computed"] == 4
    for only, words in (
        (("contrl", "slow"), "--only contrl=slow: there is no key `contrl`; allowed: grid, control, seed"),
        (("seed", "4"), "--only seed=4: no sample has this `seed`; there are: 1, 2, 3"),
    ):
        with pytest.raises(PathcastError, match=words) as error:
            run(only=[only])
        assert error.value.exit == 2


def test_in_the_emulator_samples_run_one_by_one_and_late_ones_are_repeated(toy, run):
    (toy / "plan.toml").write_text(PLAN.replace('["quick", "slow"]', '"slow"').replace("1..3", "2..2"))
    (toy / "samples.py").write_text(SAMPLES.replace('\n    return {"time', LATE.format(3) + ' {"time'))
    found, results = run("emu", jobs=None)
    assert (found["failed"], results.rows[0]["tries"]) == (0, 3)
    assert computed(toy) == ["slow 2 emu"] * 3


def test_in_the_emulator_results_say_which_kernels_they_are_of(toy, run, tmp_path, monkeypatch):
    (toy / "samples.py").write_text(SAMPLES)
    for release, seed in (("6.1.0", "1"), ("6.12.0", "2")):
        monkeypatch.setattr("platform.release", lambda release=release: release)
        run("emu", only=[("control", "slow"), ("seed", seed)])
    found, _ = run("emu", only=[("control", "slow"), ("seed", "1"), ("seed", "2")])
    about = load(tmp_path / "out" / "quick.parquet", Experiment(toy).plan)[1]
    assert (found["computed"], about["kernels"]) == (0, ["6.1.0", "6.12.0"])
    # what was computed before lines had it
    lines = tmp_path / "out" / "samples.jsonl"
    lines.write_text(lines.read_text().replace('"kernel":"6.1.0",', ""))
    run("emu", only=[("control", "slow"), ("seed", "1"), ("seed", "2")])
    assert load(tmp_path / "out" / "quick.parquet", Experiment(toy).plan)[1]["kernels"] == ["6.12.0", "unknown"]
    run("sim", out="sim")
    assert "kernels" not in load(tmp_path / "sim" / "results.parquet", Experiment(toy).plan)[1]


def test_a_sample_that_takes_turns_itself_is_given_none(toy, run):
    """A turn inside a turn would wait for itself, where it is to be alone on the machine."""
    alone = '    from pathcast.worlds.turns import turn\n    with turn(alone=True):\n        pass\n    return {"time'
    own = SAMPLES.replace('    return {"time', alone) + "OWN_TURNS = True\n"
    (toy / "samples.py").write_text(own)
    found, _ = run("emu", jobs=2)
    assert (found["computed"], found["failed"]) == (6, 0)


def test_packages_that_samples_name_are_part_of_their_version(toy):
    before = Experiment(toy).code
    (toy / "samples.py").write_text(SAMPLES + 'PACKAGES = ("pathcast.predict",)\n')
    with_packages = version.packages(("pathcast.predict",))
    assert {"search.py", "__init__.py"} <= {path.name for path in with_packages}
    assert not [path for path in with_packages if path.name.startswith("test_")]
    for name in [name for name in sys.modules if name.startswith(Experiment(toy)._package)]:
        del sys.modules[name]
    assert Experiment(toy).code != before


def test_in_the_emulator_as_many_samples_as_jobs_run_at_once(toy, run):
    (toy / "plan.toml").write_text(PLAN.replace("1..3", "1..10"))
    apart = "    print('no answer')\n    __import__('time').sleep(0.05)\n    return {\"time"
    (toy / "samples.py").write_text(SAMPLES.replace('    return {"time', apart))
    for jobs, control in ((1, "quick"), (2, "slow")):
        found, results = run("emu", jobs=jobs, only=[("control", control)])
        assert (found["computed"], found["failed"]) == (10, 0)
        assert len({row["pid"] for row in results.rows} - {os.getpid()}) == jobs


def test_emulated_samples_of_a_run_that_ends_early_remove_what_they_made(toy, run):
    made = "    made = __file__ + f'.made-{seed}'\n    open(made, 'x').close()\n    try:\n"
    made += "        __import__('time').sleep(60 if seed > 1 else 0.5)\n    finally:\n        os.remove(made)\n"
    (toy / "samples.py").write_text(SAMPLES.replace('    return {"time', made + '    return {"time'))
    there = lambda: sorted(path.name for path in toy.glob("*.made-*"))  # noqa: E731
    (toy / "plan.toml").write_text(PLAN.replace('["quick", "slow"]', '"slow"'))
    with Campaign(Experiment(toy), "emu", False, RunDir(toy / "out")) as campaign:

        def stop():
            deadline = time.monotonic() + 60
            while len(there()) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(there()) == 2
            raise KeyboardInterrupt

        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            campaign.run(3, done=stop)
        assert time.monotonic() - began < 60
    assert there() == []


def test_a_lane_that_is_gone_is_an_error(toy, run):
    (toy / "samples.py").write_text(SAMPLES.replace('    return {"time', '    os._exit(1)\n    return {"time'))
    with pytest.raises(PathcastError, match="ended from outside"):
        run("emu", jobs=2)


def test_late_samples_are_left_out_and_more_than_a_tenth_are_not_trustworthy(toy, run):
    (toy / "plan.toml").write_text(PLAN.replace("1..3", "1..10"))
    (toy / "samples.py").write_text(SAMPLES.replace('\n    return {"time', LATE.format(1000) + ' {"time'))
    found, results = run("emu", jobs=None)
    assert (found["samples"], found["failed"]) == (20, 2)
    assert status(found, results) == Exit.OK
    (toy / "plan.toml").write_text(PLAN.replace("1..3", "1..9"))
    found, results = run("emu", jobs=None)
    assert status(found, results) == Exit.UNTRUSTWORTHY


def test_a_real_cluster_of_two_workers(toy, run):
    from distributed import LocalCluster

    (toy / "plan.toml").write_text(PLAN.replace("1..3", "1..20"))
    (toy / "samples.py").write_text(
        SAMPLES.replace('    return {"time', "    __import__('time').sleep(0.05)\n    return {\"time")
    )
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**options, silence_logs=50) as cluster:
        other = Experiment(toy)
        other.__dict__["code"] = "another"
        with pytest.raises(PathcastError, match="another version"), connected(cluster.scheduler_address, other):
            pass
        found, results = run(jobs=None, cluster=cluster.scheduler_address)
    assert (found["samples"], found["computed"], found["failed"]) == (40, 40, 0)
    pids = {row["pid"] for row in results.rows}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert run()[0]["computed"] == 0


def test_a_cluster_that_is_not_there_is_an_error(run, monkeypatch):
    from pathcast.lab import cluster

    monkeypatch.setattr(cluster, "PATIENCE_S", 0.3)
    with pytest.raises(PathcastError, match=r"127.0.0.1:1\b") as error:
        run(jobs=None, cluster="tcp://127.0.0.1:1")
    assert (error.value.code, error.value.exit) == ("cluster", 1)


def test_a_worker_with_other_code_computes_nothing(toy):
    key, outcome = worker.compute(str(toy), "another", "sim", "k", {"about": ["slow", 1], "factor": 1})
    assert (key, outcome["error"]["code"]) == ("k", "code")
    assert computed(toy) == []


def test_a_worker_that_stays_up_says_which_code_it_has_imported(toy):
    before = worker.code(str(toy))
    (toy / "samples.py").write_text(SAMPLES.replace("2 if", "3 if") + "# changed\n")
    assert worker.code(str(toy)) == before  # what it would compute with is the old one
    assert Experiment(toy).code != before


def test_results_remember_what_was_asked_of_them_once():
    calls = []
    results = Results([], None, "sim", False)
    for _ in range(2):
        results.once(lambda _: calls.append(1) or 7, "seven")
    assert calls == [1]
