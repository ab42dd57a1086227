"""From pairs to shares, from shares to verdicts: one row a cell, and what each controller reaches in how many cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pathcast.lab.background.cells import BACKGROUND, FOREGROUND, Cell

KEPT, ALONE = 0.95, 0.90
REST = {"imtcp_bg": 0.8, "nice": 0.5, "lp": 0.5}
# below this buffer the bars are only told, not judged
JUDGED_BDP = 1.0
HEADER = (
    "background",
    "rate_mbit",
    "rtt_ms",
    "buffer_bdp",
    "foreground",
    "pairs",
    "kept",
    "kept_least",
    "kept_most",
    "share",
    "alone",
    "alone_least",
    "alone_most",
    "rest",
    "rest_least",
    "rest_most",
    "verdict",
)


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of the pairs."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value."""
        found = list(values)
        return cls(median(found), min(found), max(found))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f} to {self.most:.2f})"


@dataclass(frozen=True)
class Row:
    """One cell; shares, 1 is all."""

    cell: Cell
    pairs: int
    kept: Spread  # of what the foreground has alone
    share: Spread  # of the path, by the background beside the foreground
    alone: Spread  # of the path, by the background alone
    rest: Spread  # of what virtual traffic of half of the link leaves

    def misses(self) -> list[str]:
        """The bars that the median of the pairs does not reach; none are asked below 1 BDP."""
        if self.cell.buffer_bdp < JUDGED_BDP:
            return []
        bars = (
            ("kept", self.kept, KEPT),
            ("alone", self.alone, ALONE),
            ("rest", self.rest, REST.get(self.cell.controller, 0.0)),
        )
        return [name for name, spread, least in bars if spread.median < least]

    def verdict(self) -> str:
        """In a word, or the bars that are missed."""
        if self.cell.buffer_bdp < JUDGED_BDP:
            return "told only"
        return ", ".join(self.misses()) or "all"


def rows(lines: Iterable[Mapping[str, Any]]) -> list[Row]:
    """A row for each cell of the lines, in their order; pairs that failed are left out."""
    groups: dict[Cell, list[Mapping[str, Any]]] = {}
    for line in lines:
        if "error" in line:
            continue
        fields = dict(line["cell"])
        fields["settings"] = tuple((key, value) for key, value in fields["settings"])
        groups.setdefault(Cell(**fields), []).append(line)
    return [_row(cell, some) for cell, some in groups.items()]


def _row(cell: Cell, lines: Sequence[Mapping[str, Any]]) -> Row:
    def of_path(run: str) -> list[float]:
        found = []
        for line in lines:
            span_s = line["times"]["to_s"] - line["times"]["from_s"]
            found.append(line["bytes"][run][BACKGROUND] * 8 / (span_s * cell.payload_bps))
        return found

    kept = [line["bytes"]["beside"][FOREGROUND] / line["bytes"]["alone"][FOREGROUND] for line in lines]
    return Row(
        cell,
        len(lines),
        Spread.of(kept),
        Spread.of(of_path("beside")),
        Spread.of(of_path("unopposed")),
        Spread.of(2 * share for share in of_path("rest")),
    )


def csv_rows(found: Iterable[Row]) -> list[list[Any]]:
    """As HEADER has them; shares with four digits."""
    table = []
    for row in found:
        cell = row.cell
        numbers = [row.kept.median, row.kept.least, row.kept.most, row.share.median]
        for spread in (row.alone, row.rest):
            numbers += [spread.median, spread.least, spread.most]
        about = [cell.label, cell.rate_mbit, cell.rtt_ms, cell.buffer_bdp, cell.foreground, row.pairs]
        table.append([*about, *(f"{number:.4f}" for number in numbers), row.verdict()])
    return table


def markdown(found: Sequence[Row]) -> str:
    """The cells, then how many of the judged ones reach each bar."""
    lines = [
        "| background | Mbit/s | RTT ms | buffer BDP | foreground | foreground keeps | background's share | alone "
        "| rest taken | bars missed |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in found:
        cell = row.cell
        verdict = {"all": "none"}.get(row.verdict(), row.verdict())
        lines.append(
            f"| {cell.label} | {cell.rate_mbit} | {cell.rtt_ms} | {cell.buffer_bdp:g} | {cell.foreground} | {row.kept} "
            f"| {row.share.median:.2f} | {row.alone} | {row.rest} | {verdict} |"
        )
    return "\n".join([*lines, "", summary(found)])


def summary(found: Sequence[Row]) -> str:
    """A line for each controller: judged cells that reach each bar."""
    lines = ["| background | cells judged | foreground keeps 0.95 | alone 0.9 | rest |", "|---|---|---|---|---|"]
    for label in dict.fromkeys(row.cell.label for row in found):
        judged = [row for row in found if row.cell.label == label and row.cell.buffer_bdp >= JUDGED_BDP]
        counts = {bar: sum(bar not in row.misses() for row in judged) for bar in ("kept", "alone", "rest")}
        bar = next((REST.get(row.cell.controller) for row in judged), None)
        rest = f"{counts['rest']} (of {bar:g})" if bar else "no bar"
        lines.append(f"| {label} | {len(judged)} | {counts['kept']} | {counts['alone']} | {rest} |")
    return "\n".join(lines)
