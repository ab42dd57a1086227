"""`pathcast sim` in this process: what is printed, written and refused."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
import typer

from pathcast import _native
from pathcast.cli import runner
from pathcast.cli.sim import _stopped
from pathcast.simulation.run import Limits

SHARED = Path(__file__).parents[3] / "topologies" / "shared-bottleneck.toml"

MIXED = """
end = "3s"
[[link]]
name = "wire"
a = "client"
b = "server"
rate = "10Mbit"
delay = "5ms"
queue = "40 packets"
[[path]]
name = "p1"
links = ["wire"]
[[flow]]
name = "bulk"
paths = ["p1"]
subflows = 2
control = "lia"
[[flow]]
name = "late"
paths = ["p1"]
bytes = "300KB"
start = "1s"
[[flow]]
name = "surf"
paths = ["p1"]
web = { think = "100ms" }
[[traffic]]
name = "readers"
kind = "web"
path = "p1"
to = "client"
think = "100ms"
[[traffic]]
kind = "poisson"
link = "wire"
direction = "ab"
rate = "1Mbit"
"""


@pytest.fixture
def mixed(tmp_path):
    """A file with every kind of flow and traffic."""
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED)
    return file


@pytest.fixture
def sim(capfd, monkeypatch):
    """Runs the command: exit status, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        status = runner.run(["sim", *map(str, arguments)])
        caught = capfd.readouterr()
        return status, caught.out, caught.err

    return run


def test_tables_have_everything_that_ran(sim, mixed):
    status, out, err = sim(mixed)
    assert (status, err) == (0, "")
    for word in ("mixed, seed 1", "bulk", "late", "surf", "readers", "p1", "wire", "Mbit/s", "packets", "pages"):
        assert word in out
    assert "virtual packets" in out
    assert "not complete" not in out


def test_only_a_flow_with_a_size_is_not_complete(sim, mixed):
    status, out, _ = sim(mixed, "--set", "flow.late.bytes=300MB", "--set", "flow.bulk.stop=2s")
    assert status == 0
    assert out.count("not complete") == 1
    [late] = [line for line in out.splitlines() if "late" in line and "not complete" in line]
    assert "cubic" in late


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_the_run_does_not_come_to_is_noted(sim, mixed, more):
    changes = '[[change]]\nat = "AT"\nlink = "wire"\nrate = "1Mbit"\n'
    mixed.write_text(MIXED + changes.replace("AT", "1s") + changes.replace("AT", "40s"))
    status, _, err = sim(mixed, *more)
    assert (status, err) == (0, "note: the change of link `wire` at 40s has no effect: the run ended at 3 s\n")
    late = ("--set", "flow.late.start=3s", "--set", "traffic.readers.start=1h", "--set", "change.1.at=5s")
    assert sim(mixed, *late, *more)[2].splitlines() == [
        "note: 2 changes from 5s on have no effect: the run ended at 3 s",
        "note: flow `late` starts at 3s: the run ended at 3 s",
        "note: traffic `readers` starts at 3600s: the run ended at 3 s",
    ]
    # of a run that a limit ended nobody knows
    assert "note" not in sim(mixed, "--limit-time", "500ms")[2]


def test_a_quiet_run_has_no_empty_tables(sim):
    status, out, _ = sim(SHARED)
    assert status == 0
    assert "traffic" not in out
    assert "pages" not in out
    assert "virtual" not in out


def test_json_is_the_report_and_the_same_every_time(sim, mixed):
    documents = [json.loads(sim(mixed, "--json")[1]) for _ in range(2)]
    for document in documents:
        assert next(iter(document)) == "schema"
        assert document["schema"] == "pathcast.sim/1"
        assert document["stopped"] is None
        assert document.pop("wall_s") >= 0
        assert document.pop("cpu_s") >= 0
    assert documents[0] == documents[1]
    assert documents[0] != json.loads(sim(mixed, "--set", "seed=2", "--json")[1])


@pytest.mark.parametrize(
    ("arguments", "stopped", "words"),
    [
        (["--limit-events", "200"], "event-limit", ("200 events", "--limit-events 2000")),
        (["--limit-time", "500ms"], "time-limit", ("0.5 s", "--limit-time 5s")),
        (["--limit-time", "1010ms"], "time-limit", ("1.01 s", "--limit-time 11s")),
    ],
)
def test_a_limit_gives_results_and_3(sim, arguments, stopped, words):
    status, out, err = sim(SHARED, *arguments, "--json")
    assert status == 3
    assert json.loads(out)["stopped"] == stopped
    assert all(word in err for word in words)
    status, out, err = sim(SHARED, *arguments)
    assert status == 3
    assert "bulk" in out
    assert all(word in err for word in words)


def test_the_limit_that_is_named_can_be_given(capsys):
    most = 2**64 - 1
    for limits in (Limits(), Limits(most, most)):
        for stopped in ("time-limit", "event-limit"):
            with pytest.raises(typer.Exit):
                _stopped("the run was stopped", stopped, limits)
        said = capsys.readouterr().err
        option, value = re.findall(r"(--limit-time) (\S+)", said)[0]
        assert (option, _native.parse_duration(value) >= limits.time_ns - 10**9) == ("--limit-time", True)
        assert int(re.findall(r"--limit-events (\d+)", said)[0]) == min(10 * limits.events, most)
        assert "e+" not in said


def test_a_limit_beyond_the_end_is_none(sim):
    assert sim(SHARED, "--limit-time", "1000h", "--limit-events", 10**9)[0] == 0


def test_traces_have_names_for_indices(sim, mixed, tmp_path):
    import pyarrow.parquet as pq

    status, out, _ = sim(mixed, "--trace", tmp_path / "t")
    assert status == 0
    assert f"trace: {tmp_path / 't'}" in out
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == [
        "drops.parquet",
        "queues.parquet",
        "run.json",
        "windows.parquet",
    ]
    table = pq.read_table(tmp_path / "t" / "windows.parquet")
    # but for the word, which is bits: differences may be negative
    assert {name for name, kind in zip(table.column_names, table.schema.types, strict=True) if kind == "uint64"} == {
        "control_word"
    }
    windows = table.to_pylist()
    assert {(row["flow"], row["subflow"], row["path"]) for row in windows} >= {
        ("bulk", 1, "p1"),
        ("bulk", 2, "p1"),
        ("late", 1, "p1"),
    }
    assert windows[0]["ssthresh_packets"] is None
    bulk = [row["time_s"] for row in windows if (row["flow"], row["subflow"]) == ("bulk", 1)]
    assert all(later - earlier >= 0.01 - 1e-9 for earlier, later in itertools.pairwise(bulk))
    queues = pq.read_table(tmp_path / "t" / "queues.parquet").to_pylist()
    assert {(row["link"], row["direction"]) for row in queues} == {("wire", "ab"), ("wire", "ba")}
    drops = pq.read_table(tmp_path / "t" / "drops.parquet").to_pylist()
    run = json.loads((tmp_path / "t" / "run.json").read_text())
    lost = sum(sub["drops"] for sub in run["result"]["flows"][0]["subflows"])
    assert len([row for row in drops if row["flow"] == "bulk"]) == lost > 0
    assert (run["world"], run["scenario"]) == ("sim", str(mixed))


def test_trace_every_ack(sim, tmp_path):
    import pyarrow.parquet as pq

    rows = []
    for every in ("0s", "100ms"):
        assert sim(SHARED, "--trace", tmp_path / every, "--trace-every", every)[0] == 0
        rows.append(pq.read_table(tmp_path / every / "windows.parquet").num_rows)
    assert rows[0] > 200 > 30 > rows[1] > 5


def test_plots_and_traces_share_a_directory(sim, mixed, tmp_path):
    assert sim(mixed, "--plot", tmp_path / "p", "--trace", tmp_path / "p", "--json")[0] == 0
    names = {p.name for p in (tmp_path / "p").iterdir()}
    figures = {f"{name}.{end}" for name in ("windows", "rtt", "throughput", "queues") for end in ("svg", "png")}
    assert names == figures | {"windows.parquet", "queues.parquet", "drops.parquet", "run.json"}


def test_thin_lines_keep_their_peaks():
    import numpy as np

    from pathcast.simulation.plots import thin

    x = np.arange(100_000)
    y = np.zeros(100_000)
    y[54_321], y[77_777] = 9, -9
    few_x, few_y = thin(x, y)
    assert len(few_x) <= 4000
    assert (few_y.max(), few_y.min()) == (9, -9)
    assert (few_x[0], few_x[-1]) == (0, 99_999)
    assert thin(x[:10], y[:10])[0] is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "x"], "--sweep"),
        (["--jobs", "2"], "--sweep"),
        (["--seeds", "1..3"], "--out"),
        (["--seeds", "1..3", "--out", ""], "'--out': `` is no directory"),
        (["--trace", ""], "'--trace': `` is no directory"),
        (["--plot", ""], "'--plot': `` is no directory"),
        (["--sweep", "subflows=1,2"], "--out"),
        (["--sweep", "subflows=1,2", "--out", "x", "--trace", "y"], "--trace"),
        (["--limit-time", "0s"], "--limit-time"),
        (["--limit-time", "10"], "unit"),
        (["--limit-time", "99999999h"], "--limit-time"),
        (["--limit-events", "0"], "--limit-events"),
        (["--limit-events", str(2**64)], "--limit-events"),
        (["--trace-every", "soon"], "--trace-every"),
        (["--set", "control"], "KEY=VALUE"),
    ],
)
def test_options_that_are_wrong_or_do_not_go_together(sim, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    status, out, err = sim(SHARED, *arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert list(tmp_path.iterdir()) == []
    status, out, _ = sim(SHARED, *arguments, "--json")
    assert (status, json.loads(out)["error"]["exit"]) == (2, 2)


def test_a_scenario_is_a_file(sim):
    status, out, told = sim("-")
    assert (status, out) == (2, "")
    assert "a scenario is a file, not the standard input" in told
