"""Verdicts counted by what their claims are, and shown: the paper's, those that something was fitted to, and ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pathcast.lab.plan import KINDS

VERDICTS = {True: "holds", False: "fails", None: "undecided"}
# signs in a cell of the verdict table; what is longer stands in the list below it
_CELL = 160
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


def short(
    claims: Iterable[Mapping[str, Any]], reconstructed: Sequence[str], *, statements: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the verdict table, with what is claimed or, where another table says that, without.

    `reconstructed`: what of the paper's is here by our reconstruction only.
    """
    here = f"here (reconstruction: {', '.join(reconstructed)})" if reconstructed else "here"
    header = ["claim", "whose", *(["statement"] if statements else []), "verdict", here]
    rows = [[one["id"], one["kind"], *([one["text"]] if statements else []), _word(one), _cell(one)] for one in claims]
    return header, rows


def below(claims: Iterable[Mapping[str, Any]]) -> str:
    """The list below the verdict table, as Markdown: what is too long for a cell, and why a claim is not counted."""
    lines = []
    for one in claims:
        # the reason alone, where the cell has what was found
        left = _found(one).removeprefix(f"{one['ours']}; ") if _cell(one) == one["ours"] else _found(one)
        parts = [] if _cell(one) == _found(one) else [left]
        parts += [] if one["uncounted"] is None else [f"not counted: {one['uncounted']}"]
        lines += [f"- **{one['id']}**: {'; '.join(parts)}\n"] if parts else []
    return "".join(lines)


def full(claims: Iterable[Mapping[str, Any]]) -> str:
    """Every claim as Markdown: what the paper says, what was computed, and all figures."""
    return "\n".join(_full(one) for one in claims)


def _full(one: Mapping[str, Any]) -> str:
    lines = [f"**{one['id']}** ({one['kind']}; {_verdict(one)}): {one['text']}.", ""]
    about = {"Paper": one["paper"], "Statistic": one["statistic"], "Here": _found(one)}
    lines += [f"- {name}: {text}" for name, text in about.items()]
    return "\n".join([*lines, *(f"- {line}" for line in one["details"]), ""])


def _verdict(one: Mapping[str, Any]) -> str:
    return _word(one) if one["uncounted"] is None else f"{_word(one)}: {one['uncounted']}"


def _word(one: Mapping[str, Any]) -> str:
    word = {True: "holds", False: "**does not hold**", None: "undecided"}[one["holds"]]
    return word if one["uncounted"] is None else f"{word} (not counted)"


def _found(one: Mapping[str, Any]) -> str:
    """What was found, and why the claim does not hold where that does not say it already."""
    # "not so: " and the like stand before what may be all that was found
    said = one["reason"] is None or one["reason"].removeprefix("not so: ") in one["ours"]
    return one["ours"] if said else f"{one['ours']}; {one['reason']}"


def _cell(one: Mapping[str, Any]) -> str:
    """As much of it as a cell has room for."""
    return next((text for text in (_found(one), one["ours"]) if len(text) <= _CELL), "see below")
