"""The tables of the README and the page, the paper's numbers beside ours. Rates in Mbit/s, times in seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from pathcast.lab.experiment import Results, Table
from pathcast.lab.interval import same

from ..measuring.peers import stored
from .cells import (
    CROSS,
    IMPROVED,
    INWARDS,
    LINES,
    NEW,
    OLD,
    PATHLOAD,
    Case,
    adsl,
    exponents,
    poisson,
    some,
    table_1,
    table_5,
)
from .figures import FIGURES as FIGURES

NAMES = {
    OLD: "old",
    IMPROVED: "improved",
    NEW: "new",
    "new-300kB": "new, 300 kB",
    "replay": "FIFO replay fit",
    PATHLOAD: "Pathload's algorithm",
}
# the paper's: cross: Pathload, PathTester, each with its time
PAPER_5 = {0.0: (2.68, 34.4, 4.48, 69.2), 0.5: (1.83, 76.0, 3.54, 69.1), 1.5: (1.84, 75.6, 2.65, 69.6)}
PAPER_5[3.0] = (0.87, 129.2, 1.36, 69.4)
# bw out, bw in, cap out, cap in, total s
PAPER_1 = {
    OLD: ("0.0", "78.8", "NA", "NA", "NA"),
    "old-16": ("0.0", "79.2", "NA", "NA", "NA"),
    "old-17": ("0.1", "51.2", "0.1", "727", "52"),
    "old-18": ("0.1", "52.5", "0.1", "848", "54"),
    "old-19": ("0.1", "56.6", "0.1", "880", "61"),
    "old-20": ("NA", "NA", "NA", "NA", "NA"),
}
# by table and line: BW, delay [ms], time, each old and improved, two runs
_PAPER_ADSL = {
    ("2", "adsl24"): ("0.90, 0.98", "0.96, 0.97", "18.6, 17.8", "16.9, 16.3", "11", "2"),
    ("3", "adsl24"): ("0.99, 0.98", "0.99, 0.92", "20.2, 20.5", "48.0, 46.3", "92", "20, 21"),
    ("6", "adsl24"): ("0.98, 0.98", "0.98, 0.98", "20.6, 17.8", "13.6, 13.3", "92", "15"),
    ("2", "adsl12"): ("0.91, 0.90", "0.89, 0.89", "9.9, 9.7", "8.3, 7.9", "11", "2"),
    ("3", "adsl12"): ("0.89, 0.60", "0.90, 0.54", "11.3, 11.3", "87.5, 84.9", "92, 91", "20, 21"),
    ("6", "adsl12"): ("0.91, 0.89", "0.88, 0.89", "11.3, 9.7", "76.7, 66.2", "92", "15"),
}


def _value(found: pd.DataFrame | None) -> str:
    """Mean of the values [Mbit/s], or why there is none."""
    if found is None:
        return "-"
    missing = found["value_bps"].isna()
    if missing.all():
        return f"none ({found['refused'].iloc[0]})"
    told = _three(found["value_bps"].mean() / 1e6)
    return f"{told} ({missing.sum()} of {len(found)} refused)" if missing.any() else told


def _three(value: float) -> str:
    """Three digits."""
    return f"{value:#.3g}".rstrip(".")


def _seconds(found: pd.DataFrame | None) -> str:
    return "-" if found is None else f"{found['seconds'].mean():.1f}"


def _errors(found: pd.Series, digits: int = 1) -> str:
    """Mean, and the least and the most."""
    found = 100 * found.dropna()
    if found.empty:
        return "-"
    if len(found) > 1 and same(found):
        return f"{found.mean():+.{digits}f} % (all the same)"
    return f"{found.mean():+.{digits}f} ({found.min():+.{digits}f} to {found.max():+.{digits}f}) %"


def table_5_beside(results: Results) -> Table:
    """The paper's columns and ours."""
    rows = []
    for cross in CROSS:
        paper, case, row = PAPER_5[cross], table_5(cross), [f"{cross:g}", f"{5 - cross:.1f}"]
        row += [f"{paper[0]} in {paper[1]} s", f"{paper[2]} in {paper[3]} s"]
        for method in (PATHLOAD, OLD, IMPROVED, NEW):
            found = some(results, case, method)
            row.append("-" if found is None else f"{_value(found)} in {_seconds(found)} s")
        rows.append(row)
    ours = (f"{NAMES[method]}, here" for method in (PATHLOAD, OLD, IMPROVED, NEW))
    return ("cross", "truth", "Pathload, paper", "improved, paper", *ours), rows


_COLUMNS = ("value", "truth", "error", "truth in the interval", "half of it", "seconds", "kB", "refused")


def _columns(found: pd.DataFrame) -> tuple[str, ...]:
    """Those of `_COLUMNS`."""
    known = found[found["value_bps"].notna()]
    inside = ((known["low_bps"] <= known["truth_bps"]) & (known["truth_bps"] <= known["high_bps"])).sum()
    half = ((known["high_bps"] - known["low_bps"]) / 2 / known["truth_bps"]).median()
    alike = len(known) > 1 and same(known["value_bps"])
    missing = found.loc[found["value_bps"].isna(), "refused"]
    reasons = ", ".join(f"{n} {why}" for why, n in missing.value_counts().items())
    return (
        _value(found),
        f"{found['truth_bps'].mean() / 1e6:#.4g}",
        _errors(found["relative_error"], 2),
        f"{inside} of {len(known)}{', all the same' if alike else ''}" if len(known) else "-",
        f"{100 * half:.1f} %" if len(known) else "-",
        f"{found['seconds'].mean():.2f} ({found['seconds'].max():.2f})",
        f"{found['bytes'].mean() / 1e3:.0f}",
        reasons or "none",
    )


def _detail(cases: Sequence[tuple[str, Case]], methods: Sequence[str]) -> Callable[[Results], Table]:
    def table(results: Results) -> Table:
        rows = []
        for name, case in cases:
            for method in methods:
                found = some(results, case, method)
                if found is not None:
                    rows.append((name, NAMES.get(method, method), str(len(found)), *_columns(found)))
        return ("case", "method", "runs", *_COLUMNS), rows

    return table


def table_1_beside(results: Results) -> Table:
    """The paper's columns and ours; below, what it has not."""
    header = (
        "iunit",
        *(f"{what}, {who}" for who in ("paper", "here") for what in ("bw out", "bw in", "cap out", "cap in")),
    )
    rows = []
    for method in (*PAPER_1, IMPROVED, NEW):
        out, back = (some(results, table_1(direction), method) for direction in ("out", "in"))
        *paper, paper_s = PAPER_1.get(method, ("",) * 5)
        capacity = ("-" if f is None else _three(f["capacity_bps"].mean() / 1e6) for f in (out, back))
        name = exponents(method) if method in PAPER_1 else NAMES[method]
        ours = (_value(out), _value(back), *capacity, f"{_seconds(out)}, {_seconds(back)}")
        rows.append((name, *paper, *ours[:4], paper_s, ours[4]))
    return (*header, "s, paper", "s out, in, here"), rows


def adsl_beside(results: Results) -> Table:
    """Tables 2, 3 and 6, which are of the same two lines."""
    rows = []
    for line in LINES:
        contract = f"1 / {line.removeprefix('adsl')}"
        for (table, of), (bw, bw_im, delay, delay_im, time, time_im) in _PAPER_ADSL.items():
            if of == line:
                rows.append((contract, f"table {table}", bw, bw_im, "", delay, delay_im, "", time, time_im, ""))
        three = [some(results, adsl(line, "out"), method) for method in (OLD, IMPROVED, NEW)]
        delays = ("-" if f is None else f"{1e3 * f['delay_s'].mean():.1f}" for f in three)
        rows.append((contract, "here, out", *map(_value, three), *delays, *map(_seconds, three)))
        three = [some(results, adsl(line, "in"), method) for method in (OLD, IMPROVED, NEW)]
        delays = ("-" if f is None else f"{1e3 * f['delay_s'].mean():.1f}" for f in three)
        rows.append((contract, "here, in", *map(_value, three), *delays, *map(_seconds, three)))
    kinds = (f"{what}, {who}" for what in ("Mbit/s", "delay ms", "s") for who in ("old", "improved", "new"))
    return ("line", "", *kinds), rows


def slow(results: Results) -> Table:
    """The old tool's lower end."""
    rates = list(dict.fromkeys(row["out"] for row in results.rows if row["grid"] == "slow"))
    rows = []
    for rate in rates:
        case = Case.of(rate, ("slow",), out=rate)
        rows.append(
            (rate.replace("kbit", " kbit/s").replace("Mbit", " Mbit/s"), *_pair(results, case, (OLD, IMPROVED)))
        )
    return ("line", *(f"{NAMES[m]}: {what}" for m in (OLD, IMPROVED) for what in ("Mbit/s", "s"))), rows


def _pair(results: Results, case: Case, methods: Sequence[str]) -> list[str]:
    found = [some(results, case, method) for method in methods]
    return [text for one in found for text in (_value(one), _seconds(one))]


def capacity(results: Results) -> Table:
    """Open problem 1."""
    rows = []
    named = [(f"table 5, {table_5(c).name}", table_5(c)) for c in CROSS]
    named += [(f"table 5, {poisson(c).name}", poisson(c)) for c in CROSS[1:]]
    named += [(case.name, case) for case in (*(adsl(line, "out") for line in LINES), table_1("out"), *INWARDS)]
    for name, case in named:
        found = [some(results, case, method) for method in (IMPROVED, NEW)]
        if any(one is not None for one in found):
            rows.append((name, *("-" if one is None else _errors(one["capacity_error"], 2) for one in found)))
    return ("case", "clusters (old, improved)", "new"), rows


def distance(results: Results) -> Table:
    """Open problem 2."""
    delays = list(dict.fromkeys(row["delay"] for row in results.rows if row["grid"] == "distance"))
    rows = []
    for delay in delays:
        improved, new = (some(results, Case.of(delay, ("distance",), delay=delay), m) for m in (IMPROVED, NEW))
        if new is None:
            continue
        off = 1e6 * (new["delay_s"] - new["delay_truth_s"])
        wait, rtt = new["rtt_large_s"].mean() * 120 / 1400, new["rtt_small_s"].mean()
        told = f"{1e3 * new['delay_truth_s'].mean():.2f}"
        spread = f"{off.mean():+.0f} ({off.min():+.0f} to {off.max():+.0f}) µs"
        rows.append((told, f"{1e3 * rtt:.1f}", f"{1e3 * wait:.1f}", spread, _seconds(improved), _seconds(new)))
    header = ("one way ms", "round trip ms, 120 octets", "the paper's wait ms", "new: off by", "improved: s", "new: s")
    return header, rows


def queue(results: Results) -> Table:
    """The authors' explanation."""
    lengths = list(dict.fromkeys(row["queue"] for row in results.rows if row["grid"] == "queue"))
    rows = []
    for cross in CROSS:
        cases = [Case.of(f"{n}", ("queue",), cross=cross, queue=n) for n in lengths] + [table_5(cross)]
        for method in (IMPROVED, NEW):
            found = [some(results, case, method) for case in cases]
            told = ("-" if one is None else _errors(one["relative_error"]) for one in found)
            rows.append((f"{cross:g}", NAMES[method], *told))
    return ("cross", "method", *lengths, "50 packets"), rows


def peers(results: Results) -> Table:
    """Other tools over another link, as stored: what they said, and their time and data in that run."""
    rows: dict[str, dict[float, str]] = {}
    for row in stored():
        if row["capacity_mbps"] != 5.0 or row["low_mbps"] is None or "capacity" in row["tool"]:
            continue
        cross = min(CROSS, key=lambda c: abs(5 - c * 1512 / 1470 - row["true_mbps"]))
        low, high = row["low_mbps"], row["high_mbps"]
        told = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
        cost = f"{row['elapsed_s']:.0f} s, {row['data_mb']:.1f} MB"
        rows.setdefault(row["tool"], {})[cross] = f"{told} for {row['true_mbps']:.2f} ({cost})"
    return ("tool", *(f"cross {c:g}" for c in CROSS)), [
        (tool, *(of.get(c, "-") for c in CROSS)) for tool, of in rows.items()
    ]


TABLES: dict[str, Callable[[Results], Any]] = {
    "table-5": table_5_beside,
    "table-5-runs": _detail([(f"cross {c:g}", table_5(c)) for c in CROSS], tuple(NAMES)),
    "table-1": table_1_beside,
    "adsl": adsl_beside,
    "adsl-runs": _detail([(c.name, c) for line in LINES for c in (adsl(line, "out"), adsl(line, "in"))], tuple(NAMES)),
    "slow": slow,
    "capacity": capacity,
    "distance": distance,
    "in": _detail([(case.name, case) for case in INWARDS], (OLD, IMPROVED, NEW)),
    "poisson": _detail([(poisson(c).name, poisson(c)) for c in CROSS[1:]], (OLD, IMPROVED, NEW)),
    "queue": queue,
    "peers": peers,
}
