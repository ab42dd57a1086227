"""What stands for the version of the code in a sample's key."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from pathcast.simulation.run import code

__all__ = ["code", "files", "imported", "packages", "worlds"]


@functools.cache
def worlds() -> str:
    """The hash of the Python in which the worlds' verbs, and what rounds send by them, are written."""
    from pathcast import codec
    from pathcast import worlds as package
    from pathcast.forecast import rounds

    own = (path for path in Path(package.__file__).parent.glob("*.py") if not path.name.startswith("test_"))
    return files([*own, Path(codec.__file__), Path(rounds.__file__)])


def imported(path: Path) -> set[Path]:
    """A file and what it imports beside it and in folders beside its own (`from .name import …`, `from ..folder.name
    import …`), and what those import."""
    found, left = set(), [path]
    while left:
        one = left.pop()
        if one in found:
            continue
        found.add(one)
        for node in ast.walk(ast.parse(one.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.level:
                place = one.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                names = [place, *(place / alias.name for alias in node.names)]
                left += [file for name in names if (file := name.with_suffix(".py")).exists()]
    return found


def packages(names: Iterable[str]) -> set[Path]:
    """The Python of packages, tests apart, and of single modules."""
    found: set[Path] = set()
    for name in names:
        module = import_module(name)
        file = Path(module.__file__ or "")
        found |= set(file.parent.glob("*.py")) if hasattr(module, "__path__") else {file}
    return {path for path in found if not path.name.startswith(("test_", "conftest", "testing"))}


def files(paths: Iterable[Path]) -> str:
    """The hash of files, their names included, in whatever order they are given."""
    lines = sorted(f"{path.name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in paths)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
