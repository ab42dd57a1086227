"""Our simulator beside ns-3: the stored runs of data/ against the same networks in `pathcast sim`.

`python tests/reference/compare.py` prints the tables, writes them beside docs/evidence/ns3.md, whose summary it renews,
and exits with 1 if a bound is broken. With `--wide` it compares the runs whose flows start 2 to 20 ms apart, on which
no bound is set, and writes nothing.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import networks

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).with_name("data")
PAGE = ROOT / "docs" / "evidence" / "ns3.md"

GREEDY = {"goodput_bps": 0.01, "drops": 0.20}
LOSS_FREE = {"completion_s": 0.02, "drops": 0.0}
LOSSY = {"completion_s": 0.10, "first_drop_s": 0.05}
# where ns-3 itself spreads by more than this over the start offsets, medians are compared
SPREAD = 0.05
NARROW_US = 1000

Measured = dict[str, float | None]


# the stored runs


def stored(name: str) -> list[dict[str, Any]]:
    """The runs of ns-3 in data/NAME.jsonl."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


def cells(runs: Iterable[dict[str, Any]], wide: bool = False) -> list[list[dict[str, Any]]]:
    """Runs that differ in nothing but the offset of the starts, in its order."""
    found: dict[tuple, list[dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda run: run["offset_us"]):
        if (run["offset_us"] > NARROW_US) == wide:
            found.setdefault(key(run), []).append(run)
    return [found[name] for name in sorted(found)]


def key(run: dict[str, Any]) -> tuple:
    """What a run is, without the offset."""
    if "setting" in run:
        return run["setting"], run["bytes"], run["flows"]
    return ("dumbbell", ("prr", "classic").index(run["recovery"]), run["flows"])


def label(run: dict[str, Any]) -> str:
    """A cell's name for people and for the names of tests."""
    if "setting" in run:
        return f"{run['setting']}-{run['bytes'] // 1000}KB-{run['flows']}"
    return f"dumbbell-{run['recovery']}-{run['flows']}"


# what is compared


def of_ns3(run: dict[str, Any]) -> Measured:
    """What a run of ns-3 measured."""
    if "setting" in run:
        return {name: run[name] for name in ("completion_s", "drops", "first_drop_s")}
    return {name: run[name] for name in ("goodput_bps", "drops", "first_drop_s")}


def of_ours(document: dict[str, Any]) -> Measured:
    """The same of a document of `pathcast sim --json`; times begin at 0 and goodput is that of the whole run."""
    firsts = [link["first_drop_s"] for link in document["links"] if link["first_drop_s"] is not None]
    measured: Measured = {
        "drops": sum(link["drops"] for link in document["links"]),
        "first_drop_s": min(firsts, default=None),
    }
    flows = document["flows"]
    if all(_end(flow) is not None for flow in flows):
        measured["completion_s"] = max(flow["start_s"] + _end(flow) for flow in flows)
    end = document["simulated_s"]
    measured["goodput_bps"] = sum(flow["goodput_bps"] * (end - flow["start_s"]) / end for flow in flows)
    return measured


def _end(flow: dict[str, Any]) -> float | None:
    """From the flow's start to its last byte at the receiver, or else to its completion."""
    delivered = flow.get("delivered_s")
    return flow["completion_s"] if delivered is None else delivered


def middle(runs: Sequence[Measured], name: str) -> float | None:
    """The median of those that have it."""
    values = [run[name] for run in runs if run.get(name) is not None]
    return median(values) if values else None


def spread(runs: Sequence[Measured], name: str) -> float:
    """Largest less smallest, as a share of the median."""
    values = [run[name] for run in runs if run.get(name) is not None]
    centre = median(values) if values else 0
    return (max(values) - min(values)) / centre if centre else 0.0


def deviation(ours: float | None, theirs: float | None) -> float:
    """Of ours from ns-3's, as a share of ns-3's; infinite where only one of them has it."""
    if ours == theirs:
        return 0.0
    if ours is None or not theirs:
        return math.inf
    return ours / theirs - 1


@dataclass(frozen=True)
class Verdict:
    """One cell: both sides, and what is held to a bound."""

    run: dict[str, Any]
    runs: int
    ours: Measured
    theirs: Measured
    bounds: dict[str, float]

    def deviation(self, name: str) -> float:
        return deviation(self.ours[name], self.theirs[name])

    @property
    def broken(self) -> list[str]:
        return [name for name, bound in self.bounds.items() if abs(self.deviation(name)) > bound]

    def __str__(self) -> str:
        parts = [
            f"{name} {self.ours[name]} against {self.theirs[name]}: {self.deviation(name):+.1%} (bound {bound:.0%})"
            for name, bound in self.bounds.items()
        ]
        return f"{label(self.run)}: " + "; ".join(parts)


def chosen(cell: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """All runs of a cell where ns-3 spreads, else the one with no offset."""
    measured = [of_ns3(run) for run in cell]
    return list(cell) if any(spread(measured, name) > SPREAD for name in measured[0]) else [cell[0]]


def judge(runs: Sequence[dict[str, Any]], documents: Sequence[dict[str, Any]]) -> Verdict:
    """Holds our documents against the runs of ns-3 that they belong to."""
    theirs, ours = [of_ns3(run) for run in runs], [of_ours(document) for document in documents]
    if "setting" not in runs[0]:
        bounds = GREEDY
    elif any(run["drops"] for run in runs):
        bounds = LOSSY
    else:
        bounds = LOSS_FREE
    return Verdict(
        runs[0],
        len(runs),
        {name: middle(ours, name) for name in theirs[0]},
        {name: middle(theirs, name) for name in theirs[0]},
        bounds,
    )


# our side


def simulate(file: str, sets: Sequence[str]) -> dict[str, Any]:
    """`pathcast sim FILE --set ... --json` in this process: its start would take longer than the simulation."""
    from pathcast.cli import runner

    arguments = ["sim", str(networks.SCENARIOS / file), *(word for item in sets for word in ("--set", item)), "--json"]
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = runner.run(arguments)
    if status:
        raise RuntimeError(f"`pathcast {' '.join(arguments)}` exits with {status}: {errors.getvalue()}{out.getvalue()}")
    return json.loads(out.getvalue())


Simulate = Callable[[str, Sequence[str]], dict[str, Any]]


def verdict(cell: Sequence[dict[str, Any]], run: Simulate = simulate) -> Verdict:
    """Runs ours for one cell and judges."""
    runs = chosen(cell)
    return judge(runs, [run(*networks.sets(one)) for one in runs])


# tables

Table = list[list[str]]


def _number(value: float | None, scale: float = 1, digits: int = 3) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


def _share(value: float) -> str:
    return "only one" if math.isinf(value) else f"{value:+.1%}"


def _mark(one: Verdict) -> str:
    return "broken: " + ", ".join(one.broken) if one.broken else "ok"


def dumbbell_table(verdicts: Iterable[Verdict]) -> Table:
    head = ["recovery", "flows", "goodput, ours", "ns-3 [Mbit/s]", "", "drops, ours", "ns-3", "", "runs", ""]
    rows = [
        [
            one.run["recovery"],
            str(one.run["flows"]),
            _number(one.ours["goodput_bps"], 1e-6, 2),
            _number(one.theirs["goodput_bps"], 1e-6, 2),
            _share(one.deviation("goodput_bps")),
            _number(one.ours["drops"], digits=0),
            _number(one.theirs["drops"], digits=0),
            _share(one.deviation("drops")),
            str(one.runs),
            _mark(one),
        ]
        for one in verdicts
    ]
    return [head, *rows]


def short_table(verdicts: Iterable[Verdict]) -> Table:
    head = ["setting", "size", "flows", "completion, ours", "ns-3 [s]", "", "first drop, ours", "ns-3 [s]", ""]
    rows = [
        [
            one.run["setting"],
            f"{one.run['bytes'] // 1000} KB",
            str(one.run["flows"]),
            _number(one.ours["completion_s"]),
            _number(one.theirs["completion_s"]),
            _share(one.deviation("completion_s")),
            _number(one.ours["first_drop_s"]),
            _number(one.theirs["first_drop_s"]),
            "" if one.theirs["first_drop_s"] is None else _share(one.deviation("first_drop_s")),
            _number(one.ours["drops"], digits=0),
            _number(one.theirs["drops"], digits=0),
            str(one.runs),
            _mark(one),
        ]
        for one in verdicts
    ]
    return [[*head, "drops, ours", "ns-3", "runs", ""], *rows]


def summary(verdicts: Sequence[Verdict]) -> str:
    """One line: how many cells hold."""
    broken = [label(one.run) for one in verdicts if one.broken]
    return f"{len(verdicts) - len(broken)} of {len(verdicts)} hold" + (
        f"; broken: {', '.join(broken)}" if broken else ""
    )


def reference_tables() -> dict[str, Table]:
    """What ns-3 alone says: medians, and the range over the offsets where it is not one value."""

    def span(runs: Sequence[Measured], name: str, scale: float, digits: int) -> str:
        values = sorted(run[name] * scale for run in runs if run[name] is not None)
        if not values:
            return "-"
        low, high = f"{values[0]:.{digits}f}", f"{values[-1]:.{digits}f}"
        return low if low == high else f"{median(values):.{digits}f} ({low} to {high})"

    bulk = [["starts apart", "recovery", "flows", "total goodput [Mbit/s]", "drops", "first drop [s]"]]
    bulk[0] += ["fast recoveries", "timeouts"]
    for wide, apart in ((False, "0 to 1 ms"), (True, "3 to 13 ms")):
        for cell in cells(stored("dumbbell"), wide):
            found = [span(cell, "goodput_bps", 1e-6, 2), span(cell, "drops", 1, 0), span(cell, "first_drop_s", 1, 3)]
            found += [span(cell, name, 1, 0) for name in ("fast_recoveries", "timeouts")]
            bulk.append([apart, cell[0]["recovery"], str(cell[0]["flows"]), *found])
    short = [["starts apart", "setting", "size", *(f"k = {k}: completion [s] [drops]" for k in networks.SHORT_FLOWS)]]
    for wide, apart in ((False, "0 to 0.95 ms"), (True, "2 to 20 ms")):
        rows: dict[tuple[str, int], dict[int, str]] = {}
        for cell in cells(stored("short"), wide):
            first = cell[0]
            text = span(cell, "completion_s", 1, 2) + f" [{span(cell, 'drops', 1, 0)}]"
            rows.setdefault((first["setting"], first["bytes"]), {})[first["flows"]] = text
        for (setting, size), row in rows.items():
            short.append([apart, setting, f"{size // 1000} KB", *(row.get(k, "") for k in networks.SHORT_FLOWS)])
    return {"ns3-bulk": bulk, "ns3-short": short}


def written(table: Table) -> str:
    """As CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue()


def replace(text: str, name: str, body: str) -> str:
    """Puts `body` between the markers `<!-- NAME -->` and `<!-- /NAME -->`."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no markers `{name}`")
    return f"{before}{begin}{body.rstrip()}\n{end}{after}"


def main() -> int:
    wide = sys.argv[1:] == ["--wide"]
    if sys.argv[1:] and not wide:
        print(__doc__, file=sys.stderr)
        return 2
    if wide:
        every = cells(stored("short"), wide=True)
        verdicts = [judge(cell, [simulate(*networks.sets(run)) for run in cell]) for cell in every]
        print(written(short_table(verdicts)), summary(verdicts), sep="\n")
        return 0
    bulk = [verdict(cell) for cell in cells(stored("dumbbell"))]
    short = [verdict(cell) for cell in cells(stored("short"))]
    tables = {**reference_tables(), "ns3-bulk-beside": dumbbell_table(bulk), "ns3-short-beside": short_table(short)}
    for name, table in tables.items():
        PAGE.with_name(f"{name}.csv").write_text(written(table))
        print(name, written(table), sep="\n")
    told = f"Bulk flows: {summary(bulk)}. Short transfers: {summary(short)}."
    print(told)
    PAGE.write_text(replace(PAGE.read_text(), "compare", told))
    return int(any(one.broken for one in (*bulk, *short)))


if __name__ == "__main__":
    sys.exit(main())
