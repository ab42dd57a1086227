"""The verdict table: what is too long for a cell stands in the list below it."""

from __future__ import annotations

import pytest

from pathcast.lab.tally import below, full, short

CLAIM = {"id": "a", "kind": "ours", "text": "x > y", "paper": "-", "statistic": "-", "details": [], "uncounted": None}
LONG = "for " + 40 * "some reason "


@pytest.mark.parametrize(
    ("ours", "reason", "uncounted", "cells", "listed"),
    [
        ("1.5", None, None, ["**does not hold**", "1.5"], ""),
        ("1.5", "one missing", None, ["**does not hold**", "1.5; one missing"], ""),
        ("1.5, one missing", "one missing", None, ["**does not hold**", "1.5, one missing"], ""),
        ("1.5", LONG, None, ["**does not hold**", "1.5"], f"- **a**: {LONG}\n"),
        (LONG, None, None, ["**does not hold**", "see below"], f"- **a**: {LONG}\n"),
        (
            "1.5",
            None,
            "by construction",
            ["**does not hold** (not counted)", "1.5"],
            "- **a**: not counted: by construction\n",
        ),
        ("1.5", LONG, "odd", ["**does not hold** (not counted)", "1.5"], f"- **a**: {LONG}; not counted: odd\n"),
    ],
)
def test_cells_are_short_and_nothing_is_lost(ours, reason, uncounted, cells, listed):
    claim = {**CLAIM, "holds": False, "ours": ours, "reason": reason, "uncounted": uncounted}
    header, rows = short([claim], ())
    assert header == ["claim", "whose", "statement", "verdict", "here"]
    assert rows == [["a", "ours", "x > y", *cells]]
    assert below([claim]) == listed
    assert all(part in full([claim]) for part in (ours, reason or "", uncounted or ""))


def test_why_it_does_not_hold_is_not_said_twice():
    claim = {**CLAIM, "holds": False, "ours": "1.5 s; more", "reason": "not so: 1.5 s"}
    assert short([claim], ())[1][0][-1] == "1.5 s; more"


def test_what_is_reconstructed_stands_in_the_head():
    assert short([], ("GSAM", "CSS"))[0][-1] == "here (reconstruction: GSAM, CSS)"


def test_a_brief_table_has_the_verdicts_without_the_statements():
    claim = {**CLAIM, "holds": True, "ours": "1.5", "reason": None}
    assert short([claim], ("CSS",), statements=False) == (
        ["claim", "whose", "verdict", "here (reconstruction: CSS)"],
        [["a", "ours", "holds", "1.5"]],
    )
