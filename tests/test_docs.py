"""What README.md, docs/ and the READMEs of the experiments promise: they are short, and their pictures are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("experiments/*/README.md"))]
WORDS, README_WORDS = 60_000, 1_100
CELL = 200


def test_all_pages_together_are_read_in_a_day():
    words = {str(page.relative_to(ROOT)): len(page.read_text().split()) for page in PAGES}
    assert words["README.md"] <= README_WORDS
    assert sum(words.values()) <= WORDS, sorted(words.items(), key=lambda item: -item[1])[:5]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_cell_of_a_table_is_a_paragraph(page):
    """Long tables are CSV files, long cells lists below the table (docs/lab.md)."""
    cells = (
        (cell.strip(), number)
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if line.startswith("|")
        for cell in re.split(r"(?<!\\)\|", line)
    )
    assert [f"line {number}: {cell[:60]}…" for cell, number in cells if len(cell) > CELL] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_and_headings_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{target}: there is no such file"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
            assert anchor in anchors, f"{target}: there is no such heading"


def test_the_simulators_page_shows_what_the_commands_print(pathcast, tmp_path):
    """Every row of its examples, blanks aside, to the figure."""
    examples = re.findall(
        r"```console\n\$ pathcast ((?:.*\\\n)*.*)\n((?:.*\n)*?)```", (ROOT / "docs" / "sim.md").read_text()
    )
    shown = {command: re.findall(r"^[┃│].*", below, re.MULTILINE) for command, below in examples}
    assert sum(map(len, shown.values())) == 4
    for command, rows in shown.items():
        if rows:
            words = re.sub(r"out/\S+", str(tmp_path), command.replace("\\\n", "")).split()
            words += ["--jobs", "1"] if "--sweep" in words else []
            printed = re.sub(" +", " ", pathcast(*words).stdout)
            assert [row for row in rows if re.sub(" +", " ", row) not in printed] == []


@pytest.mark.parametrize("number", [0, 1])
def test_the_scenarios_of_their_page_run(pathcast, tmp_path, number):
    file = tmp_path / "scenario.toml"
    file.write_text(re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "scenario.md").read_text(), re.DOTALL)[number])
    done = pathcast("sim", file, "--json")
    assert done.returncode == 0, done.stderr


def test_the_readmes_pictures_are_made_again_by_their_script(tmp_path):
    command = [sys.executable, ROOT / "scripts" / "pictures", tmp_path, "--world", "sim"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    drawn = (tmp_path / "demo.svg").read_text()
    assert drawn.startswith("<svg")
    assert "http:" not in drawn.replace("http://www.w3.org", "")
    for words in ("make&#160;demo", "forecast", "90&#160;%&#160;interval", "(chosen)", "It&#160;took"):
        assert words in drawn
    readme = (ROOT / "README.md").read_text()
    for made in tmp_path.iterdir():
        shown = ROOT / "docs" / "pictures" / made.name
        assert f"docs/pictures/{made.name}" in readme
        assert shown.exists()
        assert shown.stat().st_size < 200_000
