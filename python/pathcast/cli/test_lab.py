"""`pathcast lab` in this process, with an experiment of a few samples: what is printed, written and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pathcast.cli import runner

PLAN = """
schema = "pathcast.plan/1"
title = "Small things"
paper = "A paper"
worlds = ["sim", "emu"]
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
[[claim]]
id = "odd"
kind = "ours"
uncounted = "it is odd"
text = "a < b & c"
paper = "-"
statistic = "-"
threshold = 0
worlds = ["sim"]
"""
SAMPLES = """
from pathcast.errors import PathcastError

def scenario(point, setup, world):
    return dict(point)

def sample(scenario, world):
    if scenario["seed"] == BAD:
        raise PathcastError("odd", "a bad seed")
    return {"time_s": scenario["seed"] * (2.0 if scenario["control"] == "slow" else 1.0)}
"""
CLAIMS = """
from pathcast.lab.experiment import Finding, Undecided

def slow(results, claim):
    means = results.frame.groupby("control")["time_s"].mean()
    return Finding(f"{means['slow']:g} and {means['quick']:g} s", bool(means["slow"] > means["quick"]), "so it came")

def odd(results, claim):
    raise Undecided("nobody | knows")

CLAIMS = {"core-slow": slow, "odd": odd}
"""
SHOW = """
def times(results):
    rows = [(row["control"], str(row["seed"]), f"{row['time_s']:g}") for row in results.rows]
    return ("controller", "seed", "time"), rows

def figure(results):
    import matplotlib.pyplot as plt
    drawn, ax = plt.subplots()
    ax.plot(results.frame["seed"], results.frame["time_s"], "o")
    return drawn

TABLES = {"times": times}
FIGURES = {"scatter": figure, "not-in-the-readme": figure}
"""
README = """# Small things

Text before, in [the plan](plan.toml).

<!-- lab: sim claims -->
<!-- end -->

<!-- lab: sim table times -->
stale words
<!-- end -->

<!-- lab: emu table times -->
kept
<!-- end -->

<!-- lab: sim figure scatter -->
<!-- end -->

<!-- lab: sim run -->
<!-- end -->

Text after.
"""


@pytest.fixture
def lab(tmp_path, monkeypatch, capfd):
    """Runs the command in a checkout with one experiment; returns status, output, errors."""
    folder = tmp_path / "experiments" / "small"
    folder.mkdir(parents=True)
    files = {"plan.toml": PLAN, "samples.py": SAMPLES.replace("BAD", "99"), "claims.py": CLAIMS, "show.py": SHOW}
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = runner.run(["lab", *map(str, arguments)])
        out, err = capfd.readouterr()
        return status, out, err

    run.folder = folder
    return run


def test_list(lab):
    status, out, _ = lab("list")
    assert status == 0
    for word in ("small", "Small things", "sim", "emu", "6", "2"):
        assert word in out
    document = json.loads(lab("list", "--json")[1])
    assert document["schema"] == "pathcast.lab-list/1"
    (one,) = document["experiments"]
    assert (one["name"], one["claims"]) == ("small", 2)
    assert one["worlds"]["emu"] == {"samples": 6, "quick": 2, "claims": 1}


def test_a_limit_of_events_fails_the_samples_that_meet_it(lab, tmp_path):
    file = tmp_path / "experiments" / "small" / "samples.py"
    file.write_text(
        """
LINE = 'link = [{ name = "l", a = "client", b = "server", rate = "9Mbit", delay = "5ms" }]'
PATH = 'path = [{ name = "p", links = ["l"] }]'

def scenario(point, setup, world):
    return dict(point)

def sample(scenario, world):
    from pathcast.worlds.sim import Sim
    from pathcast.worlds.topology import Topology
    with Sim(Topology.parse(f"{LINE}\\n{PATH}")) as network:
        large = scenario["seed"] == 3
        return {"time_s": network.tcp_probe("p", 500_000 if large else 5_000).elapsed_s}
"""
    )
    status, out, _ = lab("run", "small", "--jobs", 1, "--limit-events", 300, "--json")
    assert status == 1
    found = json.loads(out)
    assert found["failed"] == 2
    assert all("after 300 events of the simulator, the limit" in str(error) for error in found["errors"])
    status, out, _ = lab("run", "small", "--jobs", 1, "--limit-events", 100_000, "--json")
    assert (status, json.loads(out)["failed"]) == (0, 0)


def test_points_of_one_scenario_are_one_sample_and_not_done_before(lab):
    alike = SAMPLES.replace("BAD", "99").replace("return dict(point)", "return {**point, 'grid': ''}")
    (lab.folder / "samples.py").write_text(alike)
    again = '[[grid]]\nname = "again"\n[grid.over]\ncontrol = "slow"\nseed = 1\n[[claim]]'
    (lab.folder / "plan.toml").write_text(PLAN.replace("[[claim]]", again, 1))
    assert "2 samples, 0 done before" in lab("run", "small", "--quick", "--jobs", 1)[2]


def test_run_ends_with_verdicts_and_resumes(lab, tmp_path):
    status, out, err = lab("run", "small", "--quick", "--jobs", 1)
    assert status == 0
    assert "2 samples, 0 done before" in err
    for word in (
        "core-slow",
        "slow is slower",
        "2 and 1 s",
        "holds",
        "undecided",
        "nobody | knows",
        "not counted: it is",
        "The paper's: 1 of 1 hold; not counted: 1",
        "lab report small",
    ):
        assert word in out
    status, out, err = lab("run", "small", "--resume", "--jobs", 1, "--json")
    document = json.loads(out)
    assert status == 0
    assert err == ""
    assert {"schema", "experiment", "world", "samples", "failed", "claims"} <= set(document)
    assert document["schema"] == "pathcast.lab/1"
    assert (document["experiment"], document["world"], document["quick"]) == ("small", "sim", False)
    assert (document["samples"], document["computed"], document["failed"]) == (6, 4, 0)
    keys = {"id", "kind", "text", "paper", "statistic", "ours", "holds", "reason", "details", "uncounted"}
    assert [set(claim) for claim in document["claims"]] == [keys] * 2
    assert document["tally"] == {"paper": {"claims": 1, "holds": 1, "fails": 0, "undecided": 0}}
    assert [claim["holds"] for claim in document["claims"]] == [True, None]
    out = tmp_path / "out" / "lab" / "small-sim"
    assert {path.name for path in out.iterdir()} == {"samples.jsonl", "quick.parquet", "results.parquet", "run.json"}


def test_a_quick_run_leaves_the_whole_runs_results_and_report_takes_the_last(lab, tmp_path):
    (lab.folder / "README.md").write_text(README)
    out = tmp_path / "out" / "lab" / "small-sim"
    page = out / "index.html"
    assert lab("run", "small", "--jobs", 1)[0] == 0
    whole = (out / "results.parquet").read_bytes()
    assert lab("report", "small")[0] == 0
    assert "A quick run" not in page.read_text()
    status, told, _ = lab("run", "small", "--quick", "--jobs", 1)
    assert (status, "small-sim/quick.parquet" in told) == (0, True)
    assert (out / "results.parquet").read_bytes() == whole
    status, told, _ = lab("report", "small")
    assert (status, "(a part of the plan)" in told) == (0, True)
    assert '<body>\n<p class="warning"><strong>A quick run: ' in page.read_text()
    assert "2 of 6 samples" in page.read_text()
    # what the README says is of the whole
    status, told, _ = lab("report", "small", "--readme")
    assert (status, "renewed" in told) == (0, True)
    assert "6 samples in world" in (lab.folder / "README.md").read_text()
    assert lab("run", "small", "--jobs", 1)[0] == 0
    assert lab("report", "small")[0] == 0
    assert "A quick run" not in page.read_text()


def test_what_only_was_chosen_is_told_as_a_part_of_the_plan(lab):
    (lab.folder / "plan.toml").write_text(PLAN.replace("seed =", "case =", 1).replace("seed = 1", ""))
    (lab.folder / "samples.py").write_text(SAMPLES.replace("BAD", "99").replace('"seed"', '"case"'))
    notice = "this judges a part of the plan only"
    status, told, _ = lab("run", "small", "--only", "case=1", "--only", "case=2", "--jobs", 1)
    assert (status, notice in told, "lab run small --world sim\n" in told) == (0, True, True)
    chosen = ("run", "small", "--only", "case=1", "--only", "case=2", "--jobs", 1, "--json")
    assert json.loads(lab(*chosen)[1])["claims"][0]["ours"] == "3 and 1.5 s; 4 of 6 samples"
    status, told, _ = lab("run", "small", "--jobs", 1)
    assert (status, notice in told, "of 6 samples" in told) == (0, False, False)


def test_set_is_for_a_key_of_the_setup_and_its_results_are_not_the_plans(lab):
    (lab.folder / "README.md").write_text(README)
    (lab.folder / "plan.toml").write_text(PLAN.replace("[[grid]]", "[setup]\nfactor = 2\n[[grid]]", 1))
    for given, words in (("factor", "--set `factor` is not KEY=VALUE"), ("fact=1", "there are: factor")):
        status, out, err = lab("run", "small", "--set", given, "--json")
        assert (status, json.loads(out)["error"]["exit"]) == (2, 2)
        assert words in err
    status, told, _ = lab("run", "small", "--set", "factor=3", "--quick", "--jobs", 1)
    assert (status, "lab run small --world sim --set factor=3" in told) == (0, True)
    assert lab("run", "small", "--set", "factor=3", "--jobs", 1)[0] == 0
    assert lab("report", "small")[0] == 0
    status, _, err = lab("report", "small", "--readme")
    assert (status, "of a run with --set factor=3" in err) == (2, True)


def test_list_tells_a_plan_whose_samples_are_of_a_file_that_is_not_there(lab):
    (lab.folder / "plan.toml").write_text(PLAN.replace('["quick", "slow"]', '{ from = "controls" }'))
    status, out, _ = lab("list", "--json")
    assert status == 0
    (one,) = json.loads(out)["experiments"]
    assert one["worlds"]["sim"] == {"samples": None, "quick": None, "claims": 2}
    assert lab("list")[0] == 0


def test_hints_keep_the_directories_that_were_given(lab, tmp_path):
    where = ("--out", "my results", "--experiments", lab.folder.parent)
    following = f"small --world sim --out 'my results' --experiments {lab.folder.parent}"
    _, _, err = lab("report", "small", *where)
    assert f"hint: pathcast lab run {following}\n" in err
    _, told, _ = lab("run", "small", "--quick", "--jobs", 1, *where)
    assert told.endswith(f"results: my results/quick.parquet; the page: pathcast lab report {following}\n")
    assert lab("report", "small", *where)[0] == 0
    assert (tmp_path / "my results" / "index.html").exists()
    _, told, _ = lab("run", "small", "--quick", "--jobs", 1)
    assert told.endswith("the page: pathcast lab report small --world sim\n")


def test_what_is_refused_leaves_no_directory(lab, tmp_path, monkeypatch):
    from pathcast.lab import cluster

    monkeypatch.setattr(cluster, "PATIENCE_S", 0.3)
    for arguments, status in ((("--resume",), 2), (("--cluster", "tcp://127.0.0.1:1"), 1)):
        assert lab("run", "small", *arguments)[0] == status
        assert not (tmp_path / "out").exists()
    # what was there stays
    (tmp_path / "out").mkdir()
    assert lab("run", "small", "--resume")[0] == 2
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("file", "text", "where"),
    [
        ("claims.py", CLAIMS.replace('means["slow"] >', 'means["slw"] >'), "claims.py, line 6: KeyError: 'slw'"),
        ("claims.py", "import nosuch\n", "claims.py, line 1: ModuleNotFoundError: No module named 'nosuch'"),
        ("show.py", SHOW.replace("row['time_s']", "row['times']"), "show.py, line 3: KeyError: 'times'"),
        ("show.py", SHOW.replace('frame["time_s"]', "frme"), "show.py, line 9: AttributeError"),
        ("samples.py", SAMPLES.replace("dict(point)", "1 / 0").replace("BAD", "9"), "samples.py, line 5: ZeroDivision"),
    ],
)
def test_a_fault_of_an_experiment_names_its_file(lab, monkeypatch, file, text, where):
    monkeypatch.delenv("PATHCAST_DEBUG", raising=False)
    (lab.folder / file).write_text(text)
    command = ("report" if file == "show.py" else "run", "small", "--json")
    if file == "show.py":
        assert lab("run", "small", "--jobs", 1)[0] == 0
    status, out, err = lab(*command)
    assert (status, json.loads(out)["error"]["code"]) == (1, "experiment")
    assert f"pathcast: small: {where}" in err
    assert "fault of the experiment" in err
    monkeypatch.setenv("PATHCAST_DEBUG", "1")
    with pytest.raises((KeyError, ModuleNotFoundError, AttributeError, ZeroDivisionError)):
        lab(*command)


def test_a_failed_sample_is_1_with_all_results(lab):
    (lab.folder / "samples.py").write_text(SAMPLES.replace("BAD", "2"))
    status, out, err = lab("run", "small", "--jobs", 1, "--json")
    document = json.loads(out)
    assert status == 1
    assert (document["failed"], document["errors"]) == (2, ["odd: a bad seed"])
    assert document["claims"][0]["holds"] is None  # by what is there alone it would hold
    assert "2 of 6 samples failed; the first: odd: a bad seed" in err


def test_report_is_one_page_of_the_readme_with_its_blocks(lab, tmp_path):
    (lab.folder / "README.md").write_text(README)
    assert lab("run", "small", "--jobs", 1)[0] == 0
    status, out, _ = lab("report", "small", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["schema"] == "pathcast.lab-report/1"
    page = (tmp_path / document["page"]).read_text()
    for word in (
        "Text before, in the plan.",
        "Text after.",
        "<td>slow is slower</td>",
        "a &lt; b &amp; c",
        "nobody | knows",
        "kept",
        # what the README has no block for comes last
        'Other tables and plots</h2>\n<h3 id="not-in-the-readme">',
    ):
        assert word in page
    assert 'src="data:image/svg+xml;base64,' in page
    assert "stale words" not in page
    assert not [word for word in ("http://", "https://", "<script", ".svg") if word in page]
    out = tmp_path / "out" / "lab" / "small-sim"
    assert {"times.csv", "claims.csv", "scatter.svg", "index.html"} < {path.name for path in out.iterdir()}
    assert (
        "core-slow,paper,slow is slower,it is,difference of means,4 and 2 s,holds" in (out / "claims.csv").read_text()
    )
    # every claim in full, beside the table
    assert page.count("difference of means") == 1
    # the README itself is as it was
    assert (lab.folder / "README.md").read_text() == README


def test_report_renews_the_readme_and_its_plots(lab):
    (lab.folder / "README.md").write_text(README)
    assert lab("run", "small", "--jobs", 1)[0] == 0
    status, out, _ = lab("report", "small", "--readme")
    assert status == 0
    assert "renewed" in out
    text = (lab.folder / "README.md").read_text()
    for word in (
        "| core-slow | paper | slow is slower |",
        "| slow | 3 | 6 |",
        "(plots/sim-scatter.svg)",
        "6 samples",
        "kept",
    ):
        assert word in text
    assert "stale words" not in text
    assert [path.name for path in (lab.folder / "plots").iterdir()] == ["sim-scatter.svg"]
    assert lab("report", "small", "--readme")[0] == 0
    assert (lab.folder / "README.md").read_text() == text


def test_a_long_table_is_a_file_beside_the_readme_and_stands_in_the_page(lab, tmp_path):
    blocks = "".join(f"<!-- lab: sim data {name} -->\n<!-- end -->\n\n" for name in ("times", "claims"))
    (lab.folder / "README.md").write_text("# Small\n\n" + blocks)
    assert lab("run", "small", "--jobs", 1)[0] == 0
    status, out, _ = lab("report", "small", "--readme", "--json")
    assert status == 0
    data = lab.folder / "data"
    assert {str(data / f"sim-{name}.csv") for name in ("times", "claims")} < set(json.loads(out)["readme"])
    text = (lab.folder / "README.md").read_text()
    assert "[data/sim-times.csv](data/sim-times.csv): 6 rows.\n" in text
    assert "[data/sim-claims.csv](data/sim-claims.csv): 2 rows.\n" in text
    assert "|" not in text
    assert (data / "sim-times.csv").read_text().splitlines()[::6] == ["controller,seed,time", "slow,3,6"]
    assert "core-slow,paper,slow is slower," in (data / "sim-claims.csv").read_text()
    page = (tmp_path / "out" / "lab" / "small-sim" / "index.html").read_text()
    assert page.count("<th>controller</th>") == 1
    assert page.count("difference of means") == 1
    assert "rows." not in page


def test_a_page_has_the_tables_that_the_readme_leaves_out_and_says_what_is_a_reconstruction(lab, tmp_path):
    (lab.folder / "README.md").write_text("# Small\n\n<!-- lab: sim claims -->\n<!-- end -->\n")
    (lab.folder / "plan.toml").write_text(PLAN.replace("[[grid]]", 'reconstruction = ["GSAM"]\n[[grid]]', 1))
    (lab.folder / "show.py").write_text(
        SHOW.replace("def times(results):", 'def times(results):\n    """Times each."""')
    )
    assert lab("run", "small", "--jobs", 1)[0] == 0
    assert lab("report", "small", "--readme")[0] == 0
    page = (tmp_path / "out" / "lab" / "small-sim" / "index.html").read_text()
    for word in ("Other tables and plots", "<p>Times each.</p>", "<th>controller</th>", "here (reconstruction: GSAM)"):
        assert word in page
    text = (lab.folder / "README.md").read_text()
    assert "here (reconstruction: GSAM)" in text
    assert "controller" not in text


def test_a_brief_table_of_verdicts_leaves_out_what_is_claimed(lab, tmp_path):
    (lab.folder / "README.md").write_text("# Small\n\n<!-- lab: sim claims brief -->\n<!-- end -->\n")
    assert lab("run", "small", "--jobs", 1)[0] == 0
    assert lab("report", "small", "--readme")[0] == 0
    text = (lab.folder / "README.md").read_text()
    assert "| claim | whose | verdict | here |" in text
    assert "| statement |" not in text
    page = (tmp_path / "out" / "lab" / "small-sim" / "index.html").read_text()
    assert page.count("<th>verdict</th>") == 1


def test_report_says_how_far_it_is_and_makes_each_table_once(lab):
    counted = SHOW.replace("def times(results):", 'def times(results):\n    open("made", "a").write("x")')
    (lab.folder / "show.py").write_text(counted)
    lab("run", "small", "--jobs", 1)
    status, _, err = lab("report", "small", "--readme", "--table", "times")
    assert status == 0
    assert Path("made").read_text() == "x"
    for told in ("judging the claims …", "table times …", "figure scatter …"):
        assert told in err


def test_report_prints_the_tables_that_are_asked_for(lab):
    assert lab("run", "small", "--jobs", 1)[0] == 0
    for name in ("times", "all"):
        status, out, _ = lab("report", "small", "--table", name)
        assert (status, "times\n\n| controller | seed | time |\n" in out) == (0, True)
    document = json.loads(lab("report", "small", "--table", "times", "--json")[1])
    assert document["tables"]["times"][0] == ["controller", "seed", "time"]
    status, _, err = lab("report", "small", "--table", "tims")
    assert (status, "--table tims: there is no such table; allowed: all, times" in err) == (2, True)


def test_report_without_a_readme_has_everything_and_names_a_changed_plan(lab, tmp_path):
    assert lab("run", "small", "--quick", "--jobs", 1)[0] == 0
    (lab.folder / "plan.toml").write_text(PLAN.replace("slow is slower", "slow is much slower"))
    status, _, err = lab("report", "small")
    assert status == 0
    assert "the plan has changed" in err
    page = (tmp_path / "out" / "lab" / "small-sim" / "index.html").read_text()
    for word in ("Small things", "slow is much slower", "A quick run", "<th>controller</th>", "data:image/svg"):
        assert word in page
    status, _, err = lab("report", "small", "--readme")
    assert (status, "no results of a whole run" in err) == (2, True)
    # as quick runs wrote them before they had a file of their own
    (tmp_path / "out/lab/small-sim/quick.parquet").rename(tmp_path / "out/lab/small-sim/results.parquet")
    status, _, err = lab("report", "small", "--readme")
    assert (status, "are of a quick run" in err) == (2, True)


def test_report_of_results_that_stand_in_the_experiments_folder(lab, tmp_path):
    assert lab("run", "small", "--jobs", 1)[0] == 0
    (lab.folder / "data").mkdir()
    (tmp_path / "out" / "lab" / "small-sim" / "results.parquet").rename(lab.folder / "data" / "sim.parquet")
    assert lab("report", "small")[0] == 0


def test_what_is_of_another_world_only_is_not_made(lab, tmp_path):
    both = SHOW.replace('"times": times', '"times": times, "never": lambda results: 1 / 0')
    (lab.folder / "show.py").write_text(both + 'ONLY = {"times": "sim", "never": "emu", "scatter": "emu"}\n')
    assert lab("run", "small", "--jobs", 1)[0] == 0
    assert lab("report", "small")[0] == 0
    made = {path.name for path in (tmp_path / "out" / "lab" / "small-sim").iterdir()}
    assert "times.csv" in made
    assert not made & {"never.csv", "scatter.svg"}


def test_a_block_that_nothing_fills_is_refused(lab):
    (lab.folder / "README.md").write_text(README.replace("sim table times", "sim table tims"))
    assert lab("run", "small", "--jobs", 1)[0] == 0
    status, _, err = lab("report", "small")
    assert (status, "table tims" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["run", "nosuch"], 2, "known: small"),
        (["run", "small", "--world", "host"], 2, "sim, emu"),
        (["run", "small", "--only", "seed"], 2, "--only `seed` is not KEY=VALUE"),
        (["run", "small", "--only", "sed=1"], 2, "no key `sed`; allowed: grid, "),
        (["run", "small", "--world", "emu", "--cluster", "tcp://a:1"], 2, "--cluster"),
        (["run", "small", "--world", "emu", "--limit-events", "9"], 2, "--limit-events 9: it goes with --world sim"),
        (["run", "small", "--jobs", "2", "--cluster", "tcp://a:1"], 2, "--jobs"),
        (["run", "small", "--cluster", "scheduler"], 2, "tcp://scheduler:8786"),
        (["run", "small", "--jobs", "0"], 2, "--jobs"),
        (["run", "small", "--resume"], 2, "nothing is there"),
        (["run", "small", "--experiments", "elsewhere"], 2, "no experiments in `elsewhere`"),
        (["run", "small", "--out", "experiments/small/plan.toml"], 2, "--out"),
        (["run", "small", "--out", ""], 2, "'--out': `` is no directory"),
        (["report", "small", "--out", ""], 2, "'--out': `` is no directory"),
        (["list", "--experiments", ""], 2, "'--experiments': `` is no directory"),
        (["list", "--experiments", "elsewhere"], 2, "--experiments DIR"),
        (["report", "small"], 2, "pathcast lab run small --world sim"),
        (["report", "nosuch"], 2, "known: small"),
        (["run"], 2, "Missing argument"),
    ],
)
def test_what_is_wrong_is_said_with_and_without_json(lab, arguments, status, words):
    found, out, err = lab(*arguments)
    assert (found, out) == (status, "")
    assert words in err
    found, out, _ = lab(*arguments, "--json")
    assert (found, json.loads(out)["error"]["exit"]) == (status, status)


def test_without_the_packages_it_is_5(lab, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else real(name))
    status, _, err = lab("run", "small", "--cluster", "tcp://a:1")
    assert (status, "pip install distributed\n" in err) == (5, True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else real(name))
    status, _, err = lab("run", "small")
    assert (status, "pandas" in err) == (5, True)


def test_the_emulator_without_privileges_is_5(lab, monkeypatch):
    from types import SimpleNamespace

    from pathcast.service import doctor

    lacking = [SimpleNamespace(name="privilege", detail="not root")]
    monkeypatch.setattr(doctor, "missing", lambda *_: lacking)
    status, _, err = lab("run", "small", "--world", "emu")
    assert (status, "not root" in err) == (5, True)


def test_an_experiment_whose_samples_python_does_not_understand_is_2(lab):
    (lab.folder / "samples.py").write_text("def sample(:\n")
    status, _, err = lab("run", "small", "--jobs", 1)
    assert (status, "samples.py" in err) == (2, True)
    (lab.folder / "samples.py").unlink()
    assert lab("run", "small", "--jobs", 1)[0] == 2
