"""The experiments in the kernel: what is stored, what is repeated, and the tables; without a network."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pathcast.lab.kernel import beside, coupling, inline
from pathcast.lab.kernel.runs import command, markdown, run, tried
from pathcast.worlds.topology import Topology


@dataclass(frozen=True)
class Cell:
    number: int


CALLS: list[tuple[int, int]] = []


def measure(cell, seed):
    CALLS.append((cell.number, seed))
    return {"valid": True, "value": 10 * cell.number + seed}


def late_once(cell, seed):
    CALLS.append((cell.number, seed))
    return {"valid": len(CALLS) > 1}


@pytest.fixture(autouse=True)
def calls():
    CALLS.clear()


def test_what_is_stored_is_not_run_again(tmp_path):
    path, cells = tmp_path / "runs.jsonl", [Cell(1), Cell(2)]
    lines = run(cells, [1, 2], measure, path, jobs=1)
    assert [line["value"] for line in lines] == [11, 21, 12, 22]  # a run that is broken off has few seeds everywhere
    path.write_text(path.read_text() + '{"broken o')
    assert run([*cells, Cell(3)], [1, 2], measure, path, jobs=1)[0] == lines[0]
    assert CALLS == [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2)]
    run([*cells, Cell(3)], [1, 2], measure, path, jobs=1)
    assert len(CALLS) == 6  # the first line after the broken one is a line of its own


def test_a_late_run_is_repeated_and_counted():
    assert tried(late_once, Cell(1), 1) == {"valid": True, "tries": 2}
    CALLS.clear()
    assert tried(lambda cell, seed: {"valid": False}, Cell(1), 1) == {"valid": False, "tries": 3}


@pytest.mark.parametrize("experiment", [coupling, inline, beside])
def test_every_cell_is_a_scenario(experiment):
    for cell in experiment.CELLS:
        scenario = Topology.parse(experiment.scenario(cell, 7)).scenario
        assert scenario["seed"] == 7
        assert scenario["flows"]


def test_inline_results_are_judged_by_their_median():
    cell = vars(inline.Cell(20, 20, 0.4))
    line = {"cell": cell, "valid": True, "results": [0.9, 1.0, 1.3], "goodput": 0.97}
    late = {"cell": cell, "valid": False, "results": [5.0], "goodput": 5.0}
    [_, row] = inline.table([line, late])
    assert row[:4] == ["20 Mbit/s", "20 ms", "40%", "1 of 2"]
    assert (row[5], row[-1]) == ("1.00", "holds")
    [_, row] = inline.table([{**line, "results": [1.2, 1.2]}])
    assert row[-1] == "missed: +20%"
    [_, row] = inline.table([{**line, "results": []}])
    assert row[-1] == "no result"


def coupled(cell, goodputs, subflows=(0.5, 0.5), transitions=()):
    names = ("coupled", "single")[: len(goodputs)]
    return {
        "cell": vars(cell),
        "valid": True,
        "goodput_bps": dict(zip(names, goodputs, strict=True)),
        "subflows": list(subflows),
        "transitions": list(transitions),
    }


def test_coupling_is_judged_by_its_bars():
    shared = coupling.Cell(coupling.SHARED, "lia", loss=0.01)
    [_, row] = coupling.table([coupled(shared, (11e6, 10e6))])
    assert row[-3:] == ["1.10", "1.10 to 1.10", "holds"]
    [_, row] = coupling.table([coupled(shared, (20e6, 10e6))])
    assert row[-1] == "missed"
    [_, row] = coupling.table([coupled(coupling.Cell(coupling.SHARED, "olia"), (5e6, 10e6))])
    assert row[-1] == "told only"
    [_, row] = coupling.table([coupled(coupling.Cell(coupling.DISJOINT, "lia"), (9e6,), (0.9, 0.1))])
    assert (row[-3], row[-1]) == ("0.10", "missed")
    state = "".join(number.to_bytes(4, "little").hex() for number in (1, 40_000, 0, 0, 0, 0))
    assert coupling.threshold_s(state) == 0.045
    transition = {"subflow": 1, "rtt_s": 0.047, "threshold_s": 0.045}
    gsam = coupling.Cell(coupling.TRANSITION, "gsam", 1)
    [_, row] = coupling.table([coupled(gsam, (9e6,), transitions=[transition])])
    assert row[-1] == "holds"
    [_, row] = coupling.table([coupled(gsam, (9e6,))])
    assert row[-1] == "nothing seen"


def test_cells_that_do_not_exist_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["x", "--only", "nothing", "--out", str(tmp_path)])
    assert command("x", [Cell(1)], measure, lambda lines: []) == 2
    assert "--only `nothing` is in the text of no cell; one of them is Cell(number=1)" in capsys.readouterr().err


def test_tables_are_markdown():
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
