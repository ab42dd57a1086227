"""The calibration of GSAM's reconstruction: for each choice of its parameters, the cells that agree with the paper."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pathcast import _native
from pathcast.lab.experiment import Results, Undecided
from pathcast.lab.interval import Interval

from .cells import PAPER, Cell, completions, parameters

# theta_shift, theta_floor_us, samples, st_div
Parameters = tuple[int, ...]


def register() -> Parameters:
    """The register's own."""
    (gsam,) = (row for row in json.loads(_native.controllers()) if row["name"] == "gsam")
    return parameters({one["name"]: one["default"] for one in gsam["params"]})


def agreement(results: Results, seeds: Iterable[int]) -> dict[Parameters, dict[Cell, int]]:
    """By parameters and cell: 1 where MPTCP is faster than GSAM, -1 where GSAM is, 0 where neither is for certain."""
    wanted = tuple(seeds)
    return results.once(lambda every: _agreement(every, wanted), "agreement")


def _agreement(results: Results, seeds: tuple[int, ...]) -> dict[Parameters, dict[Cell, int]]:
    frame = results.frame
    if frame.empty or "theta_shift" not in frame:
        raise Undecided("no sample of the calibration has a result")
    frame = frame[(frame["grid"] == "calibration") & frame["seed"].isin(seeds)]
    found: dict[Parameters, dict[Cell, int]] = {}
    columns = ["theta_shift", "theta_floor_us", "samples", "st_div", "bytes", "subflows"]
    for key, rows in frame.groupby(columns, sort=False):
        about = dict(zip(columns, key, strict=True))
        cell = (about["bytes"], int(about["subflows"]))
        lia = completions(results, PAPER, cell, "lia", seeds)
        gsam = rows.set_index("seed")["completion_s"]
        found.setdefault(parameters(about), {})[cell] = Interval.mean(gsam - lia).sign
    return found
