"""The simulator against stored runs of ns-3, and the comparison itself on documents that are made up."""

from __future__ import annotations

import math

import compare
import networks
import pytest

from pathcast.worlds.emu import Topology

BULK = compare.cells(compare.stored("dumbbell"))
SHORT = compare.cells(compare.stored("short"))
CELLS = [pytest.param(cell, id=compare.label(cell[0])) for cell in (*BULK, *SHORT)]


@pytest.mark.parametrize("cell", CELLS)
def test_ours_agrees_with_ns3(cell):
    verdict = compare.verdict(cell)
    assert not verdict.broken, str(verdict)


def test_the_command_says_what_the_comparison_reads(pathcast):
    file, sets = networks.sets(SHORT[0][0])
    done = pathcast("sim", networks.SCENARIOS / file, *(word for item in sets for word in ("--set", item)), "--json")
    assert done.returncode == 0
    assert compare.of_ours(done.json) == compare.of_ours(compare.simulate(file, sets))


# the data and the scenarios


def test_the_matrix_is_whole():
    assert len(BULK) == 6
    assert [len(cell) for cell in BULK] == [1, 5, 5, 5, 1, 5]
    assert len(SHORT) == 2 * 5 * 8
    assert all(len(cell) == (1 if cell[0]["flows"] == 1 else 20) for cell in SHORT)
    runs = [*compare.stored("dumbbell"), *compare.stored("short")]
    assert len({run["command"] for run in runs}) == len(runs)
    assert {run["ns3"] for run in runs} == {"3.37-2"}


def test_every_short_transfer_of_ns3_ended():
    for run in compare.stored("short"):
        assert len(run["completions_s"]) == run["flows"]
        assert max(run["completions_s"]) == run["completion_s"]
        assert (run["drops"] == 0) == (run["first_drop_s"] is None)
        # what need not be sent again: the bare ACK that ends a handshake
        assert run["retransmits"] >= run["drops"] - run["flows"]


def test_scenario_files_are_as_written():
    assert {file.name: file.read_text() for file in networks.SCENARIOS.iterdir()} == networks.files()


def test_every_run_is_a_scenario_that_is_accepted():
    for cell in (*BULK, *SHORT):
        for run in (cell[0], cell[-1]):
            file, sets = networks.sets(run)
            scenario = Topology.load(networks.SCENARIOS / file, sets).scenario
            assert len(scenario["flows"]) == run["flows"]


def test_shares_sum_to_the_transfer():
    assert networks.shares(1_000_000, 7) == [142_858] + [142_857] * 6
    assert all(sum(networks.shares(size, k)) == size for size in (50_000, 1_000_000) for k in range(1, 9))


# the comparison


def flow(start_s=0.0, completion_s=None, delivered_s=None, goodput_bps=0.0):
    return {
        "start_s": start_s,
        "bytes": 1,
        "completion_s": completion_s,
        "delivered_s": delivered_s,
        "goodput_bps": goodput_bps,
    }


def document(*flows, drops=(0, 0), first=(None, None), simulated_s=60.0):
    links = [{"drops": n, "first_drop_s": at} for n, at in zip(drops, first, strict=True)]
    return {"flows": list(flows), "links": links, "simulated_s": simulated_s}


def short_run(completion_s, drops=0, first_drop_s=None, offset_us=0):
    return {
        "setting": "modern",
        "bytes": 50_000,
        "flows": 2,
        "offset_us": offset_us,
        "completion_s": completion_s,
        "drops": drops,
        "first_drop_s": first_drop_s,
    }


def test_completion_is_that_of_the_last_flow_from_time_zero_at_the_receiver():
    ours = compare.of_ours(document(flow(0, 2.5, 2.0), flow(0.5, 2.5, 1.8)))
    assert ours["completion_s"] == pytest.approx(2.3)
    assert compare.of_ours(document(flow(0, 2.5)))["completion_s"] == 2.5


def test_drops_are_summed_and_the_first_is_the_earliest():
    ours = compare.of_ours(document(flow(0, 1), drops=(3, 4), first=(1.5, 0.5)))
    assert (ours["drops"], ours["first_drop_s"]) == (7, 0.5)
    assert compare.of_ours(document(flow(0, 1)))["first_drop_s"] is None


def test_goodput_is_of_the_whole_run():
    ours = compare.of_ours(document(flow(0, goodput_bps=40e6), flow(30, goodput_bps=20e6)))
    assert ours["goodput_bps"] == pytest.approx(50e6)


@pytest.mark.parametrize(
    ("completion_s", "drops", "first", "broken"),
    [
        (1.019, 0, None, []),
        (0.979, 0, None, ["completion_s"]),
        (1.0, 1, 0.5, ["drops"]),
    ],
)
def test_bounds_without_losses(completion_s, drops, first, broken):
    ours = document(flow(0, completion_s), flow(0, 0.5), drops=(drops, 0), first=(first, None))
    assert compare.judge([short_run(1.0)], [ours]).broken == broken


@pytest.mark.parametrize(
    ("completion_s", "first", "broken"),
    [
        (1.09, 0.51, []),
        (1.11, 0.51, ["completion_s"]),
        (1.0, 0.53, ["first_drop_s"]),
        (1.0, None, ["first_drop_s"]),
        (None, 0.5, ["completion_s"]),
    ],
)
def test_bounds_with_losses(completion_s, first, broken):
    ours = document(flow(0, completion_s), drops=(1, 0), first=(first, None))
    assert compare.judge([short_run(1.0, 10, 0.5)], [ours]).broken == broken


@pytest.mark.parametrize(
    ("goodput", "drops", "broken"),
    [(94e6, 119, []), (92e6, 100, ["goodput_bps"]), (94e6, 121, ["drops"]), (94e6, 79, ["drops"])],
)
def test_bounds_of_bulk_flows(goodput, drops, broken):
    run = {"recovery": "prr", "flows": 1, "offset_us": 0, "goodput_bps": 94e6, "drops": 100, "first_drop_s": 0.2}
    ours = document(flow(0, goodput_bps=goodput), drops=(drops, 0), first=(0.2, None))
    assert compare.judge([run], [ours]).broken == broken


def test_medians_only_where_ns3_spreads():
    close = [short_run(1.0), short_run(1.04, offset_us=50), short_run(1.01, offset_us=100)]
    apart = [short_run(1.0), short_run(1.06, offset_us=50), short_run(1.01, offset_us=100)]
    assert compare.chosen(close) == close[:1]
    assert compare.chosen(apart) == apart
    asked = []

    def simulate(file, sets):
        asked.append((file, sets))
        return document(flow(0, 0.9 + 0.1 * len(asked)))

    verdict = compare.verdict(apart, simulate)
    assert [file for file, _ in asked] == ["short-2.toml"] * 3
    assert "flow.f2.start=50us" in asked[1][1]
    assert (verdict.ours["completion_s"], verdict.theirs["completion_s"]) == (pytest.approx(1.1), 1.01)


def test_deviation():
    assert compare.deviation(1.1, 1.0) == pytest.approx(0.1)
    assert compare.deviation(None, None) == compare.deviation(0, 0) == 0
    assert compare.deviation(None, 1.0) == compare.deviation(1, 0) == math.inf


def test_tables_name_what_is_broken():
    good = compare.judge([short_run(1.0)], [document(flow(0, 1.0))])
    bad = compare.judge([short_run(1.0, 10, 0.5)], [document(flow(0, 2.0))])
    table = compare.short_table([good, bad])
    assert len({len(row) for row in table}) == 1
    assert [row[-1] for row in table[1:]] == ["ok", "broken: completion_s, first_drop_s"]
    assert compare.summary([good, bad]) == "1 of 2 hold; broken: modern-50KB-2"


def test_the_page_and_its_tables_are_those_of_the_stored_runs():
    page = compare.PAGE.read_text()
    assert "NEW" in compare.replace(page, "compare", "NEW")
    with pytest.raises(ValueError, match="no markers"):
        compare.replace(page, "other", "NEW")
    for name, table in compare.reference_tables().items():
        assert compare.PAGE.with_name(f"{name}.csv").read_text() == compare.written(table), "run compare.py"
