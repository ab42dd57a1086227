"""The tables of the README and the page, the paper's numbers beside ours. Throughputs as in the paper: KB/s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pathcast.lab.experiment import Results, Table, Undecided

from .claims import LARGER
from .evaluation import MULTI, RELATIONS, SINGLE, Score, judged_network, scores
from .figures import FIGURES as PAPERS
from .open_show import FIGURES as OPEN_FIGURES
from .open_show import TABLES as OPEN_TABLES
from .telling import kbps
from .telling import percent as _percent

# label: RMSE [KB/s], share within 10 % [%]
_PAPER = {
    "single 64KB": (6126.4, 55.7),
    "tcp 64KB": (3029.9, 94.3),
    "multi 128KB": (4884.8, 77.7),
    "multi 256KB": (4902.9, 77.5),
    "multi 512KB": (4955.7, 77.5),
    "single 128KB": (6891.8, 47.5),
    "single 256KB": (6811.4, 49.6),
    "single 512KB": (6740.6, 51.1),
    "single 2MB": (6297.5, 53.3),
    "single 8MB": (5900.9, 58.2),
    "single 32MB": (5234.2, 72.1),
    "single 128MB": (4724.1, 75.6),
}
_RHO = {"single 64KB": 0.16, "tcp 64KB": 0.87}
_TABLE_5 = {
    MULTI: (84.2, 86.6, 75.6, 90.3, 89.0, 86.6, 40.8),
    SINGLE: (85.5, 76.1, 72.0, 61.3, 28.0, 25.4, 65.8),
}
_TABLE_6 = {0.75: (3702.2, 78.7), 0.5: (4812.8, 79.1), 0.25: (4946.6, 76.2), 0.1: (5199.1, 73.4), 0.05: (5206.9, 64.4)}
_CORE = (MULTI, SINGLE, "single 32MB")
_WORD = {1: "lower", 0: "not certain", -1: "higher"}
_HEADER = ("RMSE, paper", "RMSE", "within 10 %, paper", "within 10 %", "RMSE, unseen", "within 10 %, unseen")


def _score(results: Results, label: str, network: str | None = None) -> Score | None:
    """None: there are not samples enough."""
    try:
        return scores(results)(label, network or judged_network(results))
    except Undecided:
        return None


def _beside(results: Results, label: str) -> tuple[str, ...]:
    """The columns of `_HEADER`."""
    error, within = _PAPER[label]
    one = _score(results, label)
    if one is None:
        return (f"{error}", "-", f"{within} %", "-", "-", "-")
    trained = (f"{error}", kbps(one.error()), f"{within} %", _percent(one.fraction()))
    return (*trained, kbps(one.error(unseen=True)), _percent(one.fraction(unseen=True)))


def table_2(results: Results) -> Table:
    """One probe of 64 KB, for Multipath TCP and for plain TCP."""
    rows = []
    for target, label in (("MPTCP transfer", "single 64KB"), ("plain TCP transfer", "tcp 64KB")):
        one = _score(results, label)
        rho = "-" if one is None else f"{one.rho:.2f}"
        rows.append((target, *_beside(results, label), f"{_RHO[label]}", rho))
    return ("target", *_HEADER, "rho, paper", "rho"), rows


def _table(labels: Sequence[str]) -> Callable[[Results], Table]:
    def table(results: Results) -> Table:
        return ("probe", *_HEADER), [(label.split()[1], *_beside(results, label)) for label in labels]

    return table


def cdf(results: Results) -> Table:
    """SVR and CDF matching on the same single probe."""
    rows = []
    for size in results.plan.setup["singles"]:
        both = [_score(results, f"{kind} {size}") for kind in ("single", "cdf")]
        told = [("-",) * 4 if s is None else _errors(s) for s in both]
        rows.append((size, *told[0], *told[1]))
    names = ("RMSE", "within 10 %", "RMSE, unseen", "within 10 %, unseen")
    return ("probe", *(f"{kind}: {name}" for kind in ("SVR", "CDF") for name in names)), rows


def _errors(one: Score) -> tuple[str, ...]:
    return (
        kbps(one.error()),
        _percent(one.fraction()),
        kbps(one.error(unseen=True)),
        _percent(one.fraction(unseen=True)),
    )


def reductions(results: Results) -> Table:
    """Of multi-probe's RMSE over a single probe's: at equal bytes, and of 128 KB over large ones. What holds unseen?"""
    found, network, rows = scores(results), judged_network(results), []
    pairs = [(f"multi {size}", f"single {size}") for size in ("128KB", "256KB", "512KB")]
    for label, other in (*pairs, (MULTI, "single 32MB"), (MULTI, "single 128MB")):
        (multi, _), (single, _) = _PAPER[label], _PAPER[other]
        try:
            both = [found.reduction(label, other, network, unseen) for unseen in (False, True)]
            told = (*(one.percent() for one in both), _WORD[both[1].sign])
        except Undecided:
            told = ("-", "-", "-")
        rows.append((label, other, f"{100 * (1 - multi / single):+.1f} %", *told))
    return ("lower RMSE of", "than", "paper, training", "training (95 %)", "unseen (95 %)", "on unseen samples"), rows


def table_5(results: Results) -> Table:
    """The share within 10 % by relation of the RTTs."""
    columns: list[Sequence[str]] = [[name for name, _ in RELATIONS]]
    some = _score(results, MULTI)
    if some is None:
        columns.append(["-"] * len(RELATIONS))
    else:
        columns.append([str(int(np.sum(belongs(some.rtts[:, 0], some.rtts[:, 1])))) for _, belongs in RELATIONS])
    for label in (MULTI, SINGLE):
        one = _score(results, label)
        columns.append([f"{share} %" for share in _TABLE_5[label]])
        for unseen in (False, True):
            blank = ["-"] * len(RELATIONS)
            columns.append(blank if one is None else [_percent(share) for share in one.by_relation(unseen)])
    kinds = [f"{kind}, {what}" for kind in ("multi", "single") for what in ("paper", "training", "unseen")]
    return ("RTTs", "samples", *kinds), list(zip(*columns, strict=True))


def table_6(results: Results) -> Table:
    """Random splits; spread: least and largest of the splits."""
    found, rows = scores(results), []
    for share, (error, within) in _TABLE_6.items():
        errors = [e["rmse_bps"] for e in found.splits.get(share, [])]
        if not errors:
            rows.append((_percent(share), f"{error}", "-", f"{within} %", "-"))
            continue
        fractions = [e["fraction_within_10pct"] for e in found.splits[share]]
        told = f"{kbps(float(np.mean(errors)))} ({kbps(min(errors))} to {kbps(max(errors))})"
        spread = f"{_percent(float(np.mean(fractions)))} ({_percent(min(fractions))} to {_percent(max(fractions))})"
        rows.append((_percent(share), f"{error}", told, f"{within} %", spread))
    return ("trained on", "RMSE, paper", "RMSE", "within 10 %, paper", "within 10 %"), rows


def networks(results: Results) -> Table:
    """The core comparison on every network."""
    found, rows = scores(results), []
    for network in results.plan.setup["network"]:
        three = [_score(results, label, network) for label in _CORE]
        if any(one is None for one in three):
            continue
        y = three[0].actual / 8e6
        cheap = found.reduction(MULTI, "single 32MB", network, unseen=True)
        better = [found.reduction(MULTI, SINGLE, network, unseen) for unseen in (False, True)]
        spread = f"{y.min():.1f} to {y.max():.1f} MB/s"
        within = (f"{_percent(one.fraction(unseen=True))}" for one in three)
        rows.append(
            (
                network,
                spread,
                *(kbps(s.error(unseen=True)) for s in three),
                *within,
                *(one.percent() for one in (*better, cheap)),
            )
        )
    errors = [f"{label}: {what}" for what in ("RMSE, unseen", "within 10 %, unseen") for label in _CORE]
    last = ("reduction, training", "reduction, unseen", "over 32 MB, unseen")
    return ("network", "data", *errors, *last), rows


TABLES: dict[str, Callable[[Results], Any]] = {
    "table-2": table_2,
    "table-3": _table(("multi 128KB", "multi 256KB", "multi 512KB")),
    "table-4": _table(LARGER),
    "reductions": reductions,
    "cdf": cdf,
    "table-5": table_5,
    "table-6": table_6,
    "networks": networks,
    **OPEN_TABLES,
}
FIGURES = {**PAPERS, **OPEN_FIGURES}
ONLY = {"open-b": "sim", "open-b-kinds": "sim", "wan": "sim"}
