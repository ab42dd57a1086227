"""Prints what pathcast with some extras needs of requirements.lock: scripts/locked.py EXTRA..., where all is installed."""

from __future__ import annotations

import re
import sys
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(extras: set[str]) -> set[str]:
    """The canonical names of all that pathcast with `extras` needs, without itself."""
    found: set[str] = set()
    waiting = [("pathcast", frozenset(extras))]
    seen = set(waiting)
    while waiting:
        name, wanted = waiting.pop()
        for line in requires(name) or ():
            need = Requirement(line)
            if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in wanted or {""}):
                continue
            one = (canonical(need.name), frozenset(need.extras))
            if one[0] != "pathcast":
                found.add(one[0])
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return found


def main() -> None:
    names = closure(set(sys.argv[1:]) | {""})
    lock = Path(__file__).parent.parent / "requirements.lock"
    there = set()
    for entry in re.split(r"\n(?=\S)", lock.read_text()):
        if (head := re.match(r"[A-Za-z0-9._-]+", entry)) and canonical(head[0]) in names:
            there.add(canonical(head[0]))
            print(entry.rstrip("\n"))
    if names - there:
        raise SystemExit(f"requirements.lock lacks {', '.join(sorted(names - there))}; `make lock` writes it")


main()
