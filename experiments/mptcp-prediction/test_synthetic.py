"""The study on the model: one small case, the choices, and that the document has every row of the script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment

MODULE = Experiment(Path(__file__).parent).module("synthetic")


def test_multi_probe_knows_what_the_single_probe_does_not():
    found = MODULE.errors(16, 1, {"transfer_bytes": 2e6}, unseen=20)
    assert set(found) == set(MODULE.PREDICTORS)
    assert found["multi, log"][0] < 0.8 * min(found["single, log"][0], found["CDF"][0])
    assert found["multi, log"][1] > found["single, log"][1]


def test_choosing_costs_less_than_always_taking_all_paths():
    taken, lost, everything = MODULE.chosen(100e3, sets=1, unseen=20)
    assert taken > 0.4
    assert 0 <= lost < everything < 1


@pytest.mark.parametrize(
    ("name", "rows"),
    [("errors", [(name, str(n)) for name, n, *_ in MODULE.CASES]), ("choices", [(name,) for name in MODULE.TRANSFERS])],
)
def test_the_document_has_a_row_for_every_case_in_a_block_that_is_renewed(name, rows):
    text = MODULE.DOC.read_text()
    block = re.search(f"<!-- synthetic {name} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)[1]
    found = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in block.split("\n")[2:]]
    assert [row[: len(rows[0])] for row in found] == rows
    assert MODULE.renewed(text, name, block.split("\n")) == text
    assert "new\n<!-- end -->" in MODULE.renewed(text, name, ["new"])
