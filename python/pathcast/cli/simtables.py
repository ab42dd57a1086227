"""The tables of `pathcast sim`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from rich.table import Table

from pathcast.units import bits, seconds, size

# rows of a summary on the screen; all of them are in the document and the file
_ROWS = 60
_WORDS = ("flow", "control", "path", "name", "of", "link", "direction")


def tables(document: dict[str, Any], sized: Collection[str]) -> Iterator[Any]:
    """Of one run: flows, subflows, real traffic and pages if there are any, links that carried something.

    sized: the flows that have a size, and so can be complete.
    """
    ended = f"{document['simulated_s']:.6g} s simulated in {document['wall_s']:.2g} s"
    yield _flows(document, sized, f"{document['name']}, seed {document['seed']}: {ended}")
    if any(flow["subflows"] for flow in document["flows"]):
        yield _subflows(document)
    if document["traffic"]:
        yield _traffic(document)
    if any("pages" in one for one in (*document["flows"], *document["traffic"])):
        yield _pages(document)
    if any(link["packets"] or link["drops"] for link in document["links"]):
        yield _links(document)


def _table(title: str, *columns: str) -> Any:
    """A table with words on the left and numbers on the right of their columns."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in _WORDS else "right")
    return table


def _flows(document: dict[str, Any], sized: Collection[str], title: str) -> Any:
    table = _table(
        title, "flow", "control", "delivered", "completion", "goodput", "retransmits", "timeouts", "recoveries"
    )
    for flow in document["flows"]:
        done = "not complete" if flow["name"] in sized else "-"
        if flow["completion_s"] is not None:
            done = seconds(flow["completion_s"])
        if flow["failed"]:
            done = "failed: no path answered"
        counts = (f"{flow[name]}" for name in ("retransmits", "timeouts", "recoveries"))
        table.add_row(flow["name"], flow["control"], size(flow["bytes"]), done, bits(flow["goodput_bps"]), *counts)
    return table


def _subflows(document: dict[str, Any]) -> Any:
    times = ("min RTT", "RTT", "window, packets", "joined after")
    columns = ("acked", "packets sent", "again", "drops", "timeouts", *times)
    table = _table("subflows", "flow", "subflow", "path", *columns)
    for flow in document["flows"]:
        for number, sub in enumerate(flow["subflows"], 1):
            table.add_row(
                flow["name"] if number == 1 else "",
                f"{number}",
                sub["path"],
                size(sub["bytes"]),
                *(f"{sub[name]}" for name in ("sent", "retransmits", "drops", "timeouts")),
                seconds(sub["min_rtt_s"]),
                seconds(sub["srtt_s"]),
                f"{sub['cwnd_packets']}",
                seconds(sub["joined_s"]) if sub["joined_s"] is not None else "never",
            )
    return table


def _traffic(document: dict[str, Any]) -> Any:
    table = _table("traffic", "name", "control", "connections", "delivered", "goodput", "retransmits", "timeouts")
    for one in document["traffic"]:
        counts = (f"{one[name]}" for name in ("retransmits", "timeouts"))
        rate = bits(one["goodput_bps"])
        table.add_row(one["name"], one["control"], f"{one['connections']}", size(one["bytes"]), rate, *counts)
    return table


def _pages(document: dict[str, Any]) -> Any:
    table = _table("pages", "of", "pages", "bytes", "mean", "median", "95 %")
    for one in (*document["flows"], *document["traffic"]):
        if "pages" in one:
            p = one["pages"]
            times = (seconds(p[name]) for name in ("mean_s", "median_s", "p95_s"))
            table.add_row(one["name"], f"{p['pages']}", size(p["bytes"]), *times)
    return table


def _links(document: dict[str, Any]) -> Any:
    cross = any(link["cross_packets"] for link in document["links"])
    extra = ("virtual packets", "of them dropped") if cross else ()
    columns = ("packets", "bytes", "drops", "first drop", "busy", "queue, most", *extra)
    table = _table("links", "link", "direction", *columns)
    for link in document["links"]:
        if not link["packets"] and not link["drops"] and not link["cross_packets"]:
            continue
        table.add_row(
            link["name"],
            link["direction"],
            f"{link['packets']}",
            size(link["bytes"]),
            f"{link['drops']}",
            seconds(link["first_drop_s"]),
            f"{100 * link['utilisation']:.1f} %",
            f"{link['queue_max_packets']} packets",
            *((f"{link['cross_packets']}", f"{link['cross_drops']}") if cross else ()),
        )
    return table


def summary(document: dict[str, Any]) -> Any:
    """Of a sweep: a row for each setting and flow, medians over seeds."""
    keys = document["keys"]
    times = ("completion", "fastest", "slowest")
    columns = ("flow", "samples", *times, "goodput", "retransmits", "timeouts", "not complete")
    rows = document["summary"]
    shown = rows[:_ROWS]
    title = "medians of the samples"
    if len(rows) > len(shown):
        title += f": the first {len(shown)} of {len(rows)} rows, all are in samples.parquet"
    table = _table(title, *keys, *columns)
    for row in shown:
        table.add_row(
            *(row["set"][key] for key in keys),
            row["flow"],
            f"{row['samples']}",
            *(seconds(row[name]) for name in ("completion_s", "completion_least_s", "completion_most_s")),
            bits(row["goodput_bps"]),
            *(f"{row[name]:g}" for name in ("retransmits", "timeouts", "incomplete")),
        )
    return table
