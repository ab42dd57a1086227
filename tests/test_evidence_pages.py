"""What the READMEs of the experiments say of verdicts is what is stored beside them, and what the code would say."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast.lab.plan import Plan
from pathcast.lab.tally import VERDICTS, told

EXPERIMENTS = [page.parent for page in sorted((Path(__file__).parents[1] / "experiments").glob("*/README.md"))]
WORDS = {"holds": True, "**does not hold**": False, "undecided": None}
BLOCK = re.compile(r"<!-- lab: (\w+) (run|claims)(?: \w+)? -->\n(.*?)<!-- end -->", re.DOTALL)
TALLY = re.compile(r"^((?:The paper's|Calibrated|Ours): \d+ of .*?)\.(?= |$)", re.MULTILINE)
each = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)


def blocks(experiment: Path) -> Iterator[tuple[str, str, str]]:
    """World, kind and text of what was made from results."""
    yield from BLOCK.findall((experiment / "README.md").read_text())


def rows(text: str) -> dict[str, dict[str, object]]:
    """Of a table of verdicts by claim: as `told` has them, and the last cell."""
    found: dict[str, dict[str, object]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) < 4 or (word := cells[-2].removesuffix(" (not counted)")) not in WORDS:
            continue
        uncounted = None if word == cells[-2] else "not counted"
        found[cells[0]] = {"kind": cells[1], "holds": WORDS[word], "here": cells[-1], "uncounted": uncounted}
    return found


def stored(experiment: Path) -> dict[str, dict[str, dict[str, object]]]:
    """By world and claim what data/WORLD-claims.csv has."""
    verdicts = {word: holds for holds, word in VERDICTS.items()}
    found = {}
    for file in sorted(experiment.glob("data/*-claims.csv")):
        with file.open(newline="") as lines:
            every = [{**row, "holds": verdicts[row["holds"]]} for row in csv.DictReader(lines)]
        found[file.name.split("-")[0]] = {row["id"]: {**row, "uncounted": row["uncounted"] or None} for row in every}
    return found


@each
def test_verdicts_of_a_page_are_those_stored_beside_it(experiment):
    there = stored(experiment)
    for world, kind, text in blocks(experiment):
        if kind == "claims" and world in there:
            assert {name: row["holds"] for name, row in rows(text).items()} == {
                name: there[world][name]["holds"] for name in rows(text)
            }
    if there:
        # a tally may stand where the table is a file
        tallies = TALLY.findall((experiment / "README.md").read_text())
        assert set(tallies) <= {told(claims.values()) for claims in there.values()}


@each
def test_a_tally_is_that_of_the_table_below_it(experiment):
    for _, kind, text in blocks(experiment):
        if kind == "claims" and (tally := TALLY.search(text)):
            counted = [row for row in rows(text).values() if row["uncounted"] is None]
            assert tally[1].split("; not counted")[0] == told(counted)


@each
def test_no_claim_holds_where_samples_of_its_grid_failed(experiment):
    """As `Coverage` has it: a claim that lacks samples says how many, and is undecided or does not hold."""
    plan = Plan.load(experiment / "plan.toml")
    of = list(blocks(experiment))
    for world in (world for world, kind, text in of if kind == "run" and re.search(r" [1-9]\d* failed;", text)):
        tables = (rows(text) for at, kind, text in of if (at, kind) == (world, "claims"))
        found = {name: row for table in tables for name, row in table.items()}
        lacking = {name for name, row in found.items() if re.search(r"\d samples missing", str(row["here"]))}
        assert lacking, "samples failed, and no claim says that it lacks them"
        claims = {claim.id: claim for claim in plan.claims if claim.id in found}
        grids = {grid["name"] for grid in plan.grids if any(claims[name].of("grid", grid["name"]) for name in lacking)}
        on_them = {name for name, claim in claims.items() if any(claim.of("grid", grid) for grid in grids)}
        assert [name for name in sorted(on_them) if found[name]["holds"]] == []
