"""Verdicts counted by what their claims are: the paper's, those that something was fitted to, and ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pathcast.lab.plan import KINDS

VERDICTS = {True: "holds", False: "fails", None: "undecided"}
_NAMES = {"paper": "the paper's", "calibrated": "calibrated", "ours": "ours"}


def tally(claims: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many claims of each kind there are, and how many of them hold, fail or are undecided; the uncounted apart."""
    found = {kind: dict.fromkeys(("claims", *VERDICTS.values()), 0) for kind in KINDS}
    for one in claims:
        if one["uncounted"] is None:
            found[one["kind"]]["claims"] += 1
            found[one["kind"]][VERDICTS[one["holds"]]] += 1
    return {kind: counts for kind, counts in found.items() if counts["claims"]}


def told(claims: Iterable[Mapping[str, Any]]) -> str:
    """`The paper's: 7 of 9 hold, 1 undecided; ours: …`."""
    every = list(claims)
    parts = []
    for kind, counts in tally(every).items():
        unsure = f", {counts['undecided']} undecided" if counts["undecided"] else ""
        parts.append(f"{_NAMES[kind]}: {counts['holds']} of {counts['claims']} hold{unsure}")
    if left := sum(one["uncounted"] is not None for one in every):
        parts.append(f"not counted: {left}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]
