"""The experiment's cells, a simulated one, and its claims: true, and false with the two rules swapped."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment, Results
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SETUP, SAMPLES = EXPERIMENT.plan, EXPERIMENT.plan.setup, EXPERIMENT.module("samples")


def results(change=lambda row: {}):
    rows = []
    for point in PLAN.points("sim"):
        case, control = point["case"], ("cubic", "lia", "bbr3")[point["case"] % 3]
        row = {
            **point,
            "control": control,
            "bytes": 10_000_000,
            "times": 2.0,
            "bdps": 200.0,
            "queue_bdp": 2.0,
            "loss": 0.0,
        }
        row |= {"ratio": 1.5, "bound": 1.45, "part": 0.93 + case / 1e5, "plain_ratio": 0.5 + case % 100 / 100}
        row |= {"a_bps": 2e7, "b_bps": 1e7, "both_bps": 3e7, "plain_bps": 1e7, "error": None, "key": "k", "tries": 1}
        rows.append({**row, **change(row)})
    return Results(rows, PLAN, "sim", False)


def judged(of):
    return {one["id"]: one["holds"] for one in EXPERIMENT.findings(of)}


def test_cells_are_drawn_by_their_number_within_the_bounds():
    cells = [SAMPLES.draw(number, 60) for number in range(1, 401)]
    assert [cell.text for cell in cells] == [SAMPLES.draw(number, 60).text for number in range(1, 401)]
    for cell in cells:
        one, other = cell.lines
        assert 1 <= one.rate_mbit / other.rate_mbit <= 50.001
        assert 1 / 9.001 <= one.rtt_ms / other.rtt_ms <= 9.001
        assert all(0.25 <= line.queue_bdp <= 4 and 0 <= line.loss <= 0.01 for line in cell.lines)
        assert 1e6 <= cell.bytes <= 1e9
        assert cell.bytes >= 9.99 * one.bdp
    assert {cell.control for cell in cells} == {"cubic", "lia", "bbr3"}
    unlike = [SAMPLES.four(number, 60) for number in range(1, 101)]
    assert all(len(cell.lines) == 4 and 1e6 <= cell.bytes <= 2e8 for cell in unlike)
    assert all(cell.lines[3].rtt_ms >= 500 and cell.lines[1].rate_mbit >= 20 for cell in unlike)
    assert len(Topology.parse(unlike[0].text, [], base=None).scenario["paths"]) == 4
    short = [SAMPLES.fast(number, 60) for number in range(1, 401)]
    assert {len(cell.lines) for cell in short} == {2, 3, 4}
    assert {cell.control for cell in short} == {"cubic", "lia", "bbr3", "olia", "balia"}
    for cell in short:
        one, *others = cell.lines
        assert 100 <= one.rate_mbit <= 2000
        assert all(2 <= one.rate_mbit / other.rate_mbit <= 200.001 for other in others)
        assert all(0.5 <= line.rtt_ms <= 20 and line.loss == 0 for line in cell.lines)
        assert max(1e6, 9.99 * one.bdp) <= cell.bytes <= 3e8
    Topology.parse(cells[0].text)


def test_a_simulated_cell():
    about = SAMPLES.scenario({"grid": "cells", "case": 1, "seed": 1}, {**SETUP, "longest_s": {"sim": 2}}, "sim")
    found = SAMPLES.sample({**about, "pairs": 2}, "sim")
    assert found["ratio"] > 0.5
    assert found["both_bps"] <= 1.05 * (found["a_bps"] + found["b_bps"])
    about = SAMPLES.scenario({"grid": "four", "case": 1, "seed": 1}, {**SETUP, "longest_s": {"sim": 2}}, "sim")
    found = SAMPLES.sample({**about, "pairs": 2}, "sim")
    assert found["both_bps"] <= 1.05 * sum(found[f"{name}_bps"] for name in "abcd")
    assert found["bound"] <= found["ratio"] + 1e-9
    about = SAMPLES.scenario({"grid": "fast", "case": 1, "seed": 1}, {**SETUP, "longest_s": {"sim": 0.1}}, "sim")
    found = SAMPLES.sample(about, "sim")
    assert found["bound"] == found["ratio"] > 0.5


def test_the_bound_is_students():
    assert SAMPLES.bound([1.0] * 5) == 1.0
    assert abs(SAMPLES.bound([0.9, 1.0, 1.1, 1.0, 1.0]) - (1 - 1.533 * 0.070711 / 5**0.5)) < 1e-4


def test_claims_hold_and_fail_with_the_rules_swapped():
    ours = {"never-slower", "four", "fast", "sum", "kernel-alone"}
    assert judged(results()) == dict.fromkeys(ours, True)
    swapped = results(
        lambda row: {"ratio": row["plain_ratio"], "bound": row["plain_ratio"], "part": 0.6, "plain_ratio": 1.5}
    )
    assert judged(swapped) == dict.fromkeys(ours, False)


def test_what_is_close_is_not_certain():
    close = results(lambda row: {"bound": 0.9 if row["case"] % 100 == 0 else 1.0})
    assert judged(close)["never-slower"] is None


def test_tables_and_figures_are_drawn():
    show, of = EXPERIMENT.module("show"), results()
    groups = show.kinds(of)[1]
    assert len(groups) == 3 + 3 * 3 + 4
    assert len(show.slowest(of)[1]) == 10
    assert show.ratios(of).axes


def test_each_grouping_has_all_cells():
    show = EXPERIMENT.module("show")
    # a fast line's transfer of the least time is of few products
    of = results(lambda row: {"bdps": (2.0, 20.0, 50.0, 200.0)[row["case"] % 4]})
    groups = show.kinds(of)[1]
    kinds = ["control" if name in ("cubic", "lia", "bbr3") else name.split()[0] for name, *_ in groups]
    every = {kind: sum(int(row[1]) for row, of in zip(groups, kinds, strict=True) if of == kind) for kind in kinds}
    assert every == dict.fromkeys(("control", *show.KINDS), 2000)


def test_where_no_sample_finished_nothing_is_decided_and_tables_are_empty():
    show = EXPERIMENT.module("show")
    failed = [{**point, "error": "late", "key": "k", "tries": 3} for point in PLAN.points("sim")]
    of = Results(failed, PLAN, "sim", False)
    found = EXPERIMENT.findings(of)
    assert {(one["holds"], one["reason"]) for one in found} == {(None, "none of its runs is there")}
    assert [make(of)[1] for make in show.TABLES.values()] == [[], []]
    assert show.ratios(of).axes


def test_a_line_alone_that_does_not_end_in_an_hour_is_a_slow_one_and_no_failed_cell():
    assert SAMPLES._alone(PathcastError("stalled", "not ended after 3600 s"), 450_000_000) == 1e6
    with pytest.raises(PathcastError, match="no such path"):
        SAMPLES._alone(PathcastError("usage", "no such path"), 450_000_000)
