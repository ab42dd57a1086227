"""The drawing in docs/architecture.md is the code's: dependencies go along its arrows only, and every arrow is used."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/pathcast"


@cache
def drawing() -> dict[str, set[str]]:
    """Room by room, those that its arrows lead to."""
    text = (ROOT / "docs/architecture.md").read_text()
    block = re.search(r"```mermaid\nflowchart TD\n(.*?)```", text, re.DOTALL).group(1)
    rooms: dict[str, set[str]] = {}
    for line in block.splitlines():
        if found := re.fullmatch(r"\s*([\w &]+?) --> ([\w &]+?)\s*", line):
            of, to = ({name.strip() for name in side.split("&")} for side in found.groups())
            for name in of:
                rooms.setdefault(name, set()).update(to)
            for name in to:
                rooms.setdefault(name, set())
        else:
            assert not line.strip() or re.match(r"\s*(subgraph|end|%%)", line), line
    return rooms


@cache
def crates() -> dict[str, set[str]]:
    """What each crate depends on, tests apart."""
    found = {}
    for manifest in (ROOT / "crates").glob("*/Cargo.toml"):
        of = tomllib.loads(manifest.read_text()).get("dependencies", {})
        found[manifest.parent.name] = {name.removeprefix("pathcast-") for name in of if name.startswith("pathcast-")}
    return found


def room(name: str) -> str:
    """Of a module below `pathcast`, by the first part of its name."""
    if name == "_native":
        return "native"
    return name if (PACKAGE / name).is_dir() else "common"


def imported(tree: ast.AST):
    """The modules of ours that a file imports, wherever it does so, for types only too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def python() -> dict[str, set[str]]:
    """What each room of the package imports, tests apart."""
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        if file.name.startswith("test_") or file.name in ("conftest.py", "testing.py"):
            continue
        first = file.relative_to(PACKAGE).with_suffix("").parts[0]
        if first == "__init__":  # the front door: what it shows of the rooms behind it
            continue
        own = found.setdefault(room(first), set())
        for name in imported(ast.parse(file.read_text())):
            package, _, rest = name.partition(".")
            if package == "pathcast" and rest:
                own.add(room(rest.split(".")[0]))
        own.discard(room(first))
    return found


@cache
def real() -> dict[str, set[str]]:
    return crates() | python()


def reachable(start: str) -> set[str]:
    seen, todo = set(), [start]
    while todo:
        for name in drawing().get(todo.pop(), ()):
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def test_the_drawing_has_every_room_and_no_circle():
    assert set(drawing()) == set(real())
    list(TopologicalSorter(drawing()).static_order())  # raises on a circle


@pytest.mark.parametrize("of", sorted(real()))
def test_dependencies_go_along_the_arrows(of):
    assert real()[of] <= reachable(of), f"{of} uses {sorted(real()[of] - reachable(of))}"


@pytest.mark.parametrize("of", sorted(real()))
def test_every_arrow_is_used(of):
    assert drawing()[of] <= real()[of], f"{of} does not use {sorted(drawing()[of] - real()[of])}"


def test_products_need_no_experiments():
    product = {name for name in python() if name not in ("cli", "lab")}
    assert not any("lab" in python()[name] for name in product)
    for file in (PACKAGE / "cli").glob("*.py"):
        if file.name in ("lab.py", "demo.py", "paperdemo.py", "app.py") or file.name.startswith("test_"):
            continue
        names = set(imported(ast.parse(file.read_text())))
        assert not any(name.startswith("pathcast.lab") for name in names), file.name
