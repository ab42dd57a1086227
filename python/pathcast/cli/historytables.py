"""The tables of `pathcast history`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pathcast.cli.output import printable
from pathcast.cli.output import show as show_table
from pathcast.units import bits, seconds, size, span

_KEY = 16
# of a measurement what is shown as it was said
_SAID = ("name", "target", "world", "method", "effort", "path", "notes")


def listed(what: str, rows: Sequence[Any], lines: Mapping[str, str]) -> None:
    """Prints records of one kind, columns that are empty throughout left out. lines: their names by id."""
    if not rows:
        return
    from rich.table import Table
    from rich.text import Text

    found = [_ROWS[what](row, lines) for row in rows]
    names = [name for name in found[0] if any(row[name] for row in found)]
    table = Table()
    for name in names:
        # what is looked up by is shown whole
        table.add_column(name, no_wrap=name in ("key", "at"), overflow="fold")
    for row in found:
        table.add_row(*(Text(printable(row[name])) for name in names))  # names are no markup, and `:one:` is no picture
    show_table(table)


def shown(kind: str, found: Any, lines: Mapping[str, str]) -> None:
    """Prints one act."""
    if kind == "measurement":
        _measurement(found, lines)
    elif kind == "transfer":
        listed("transfers", [found], lines)
        for note in _printable(found.report.get("notes")) or ():
            print(f"note: {note}")
        _circumstances(found.circumstances)
    elif kind == "forecast":
        _forecast(found, lines)
    else:
        listed("events", [found], lines)
        if found.about is not None:
            print(json.dumps(found.about))


def _measurement(found: Sequence[Any], lines: Mapping[str, str]) -> None:
    from pathcast import codec
    from pathcast.cli.measuretable import show
    from pathcast.worlds.measurement import Measurement

    found = [replace(of, **{name: _printable(getattr(of, name)) for name in _SAID}) for of in found]
    first = found[0]
    sent = sum(way.get("bytes") or 0 for of in found for way in of.path["directions"].values())
    about = {"probe_bytes": sent, "elapsed_s": first.elapsed_s, "method": first.method, "effort": first.effort or ""}
    document = {"paths": [of.path for of in found], "notes": first.notes, **about}
    try:
        show(first.target or first.world, codec.read(Measurement, document), first.at)
    except ValueError:  # of a pathcast whose record is another one
        print(json.dumps(document["paths"], indent=1))
    for of in found:
        where = f"line {_line(of.key.line_id, lines)}, {of.key.local} to {of.key.remote} ({of.key.remote_id})"
        print(printable(f"{of.name}: {where}"))
    if first.valid is False:
        print("not to be trusted: the emulator was late")
    for note in first.notes:
        print(f"note: {note}")
    _circumstances(first.circumstances)


def _forecast(found: Any, lines: Mapping[str, str]) -> None:
    from rich.markup import escape
    from rich.table import Table

    found = replace(found, **{name: _printable(getattr(found, name)) for name in ("answer", "chosen")})

    table = Table("paths", "control", "throughput", "90 %", "duration", title=f"{found.at}: {size(found.size_bytes)}")
    for one in found.answer.get("options") or ():
        rate, took = _rate(one), one.get("duration_s") or {}
        took = took if isinstance(took, dict) else {"value": took}
        best = (one.get("paths"), one.get("control")) == (found.chosen, found.chosen_control)
        name = " + ".join(one.get("paths") or ())
        between = f"{bits(rate['low'])} to {bits(rate['high'])}" if rate.get("low") and rate.get("high") else "-"
        row = (escape(one.get("control") or ""), bits(rate.get("value")), between, span(took.get("value")))
        table.add_row(f"[bold]{escape(name)}[/] (chosen)" if best else escape(name), *row)
    show_table(table)
    for came in found.came:
        paths = zip(came.sent.names, came.sent.keys, strict=True)
        over = printable(" + ".join(name or _line(key.line_id, lines) for name, key in paths))
        forecast = _rate(came.option or {}).get("value")
        told = f"; forecast were {bits(forecast)}" if forecast else ""
        print(f"{came.sent.at}: over {over} came {bits(came.sent.throughput_bps)}{told}")
    if not found.came:
        print("no transfer followed")


def _printable(value: Any) -> Any:
    """All that is said in a document: it may be another host's, or of a history that was imported."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_printable(key): _printable(one) for key, one in value.items()}
    return [_printable(one) for one in value] if isinstance(value, (list, tuple)) else value


def _rate(option: dict[str, Any]) -> dict[str, Any]:
    """The forecast throughput; of a trained model without an interval."""
    return option.get("throughput_bps") or {"value": option.get("predicted_bps")}


def _circumstances(found: dict[str, Any]) -> None:
    load = found.get("load") or ["?"]
    known = [f"pathcast {found.get('pathcast')}", f"kernel {found.get('kernel')}", f"load {load[0]}"]
    known += [f"{name} {found[name]}" for name in ("program", "status", "set") if found.get(name) is not None]
    print(printable("; ".join(known)))


def _line(id: str, lines: Mapping[str, str]) -> str:
    return lines.get(id, id)


def _ago(row: Any) -> str:
    return "clock was wrong" if row.age_s is None else f"{span(row.age_s)} ago"


def _path(row: Any, lines: Mapping[str, str]) -> dict[str, str]:
    available = [f"{way} {bits(value)}" for way, value in row.available_bps.items() if value is not None]
    return {
        "line": _line(row.key.line_id, lines),
        "called": row.name or "",
        "from": row.key.local,
        "to": row.key.remote,
        "target": row.target or "",
        "world": row.world or "",
        "measured": str(row.measurements or ""),
        "transfers": str(row.transfers or ""),
        "carried": size(row.bytes) if row.bytes else "",
        "last": "" if row.last is None else _ago(row),
        "available": ", ".join(available),
    }


def _measured(row: Any, lines: Mapping[str, str]) -> dict[str, str]:
    def value(way: str, name: str) -> str:
        found = (row.path["directions"].get(way) or {}).get(name) or {}
        return bits(found.get("value")) if found.get("value") is not None and found.get("why") is None else ""

    rtt = (row.path.get("rtt_s") or {}).get("value")
    return {
        "key": row.id[:_KEY],
        "at": row.at[:19] + "Z",
        "age": _ago(row),
        "line": _line(row.key.line_id, lines),
        "called": row.name,
        "target": row.target or "",
        "capacity out": value("out", "capacity_bps"),
        "available out": "down" if row.path.get("down") else value("out", "available_bps"),
        "capacity in": value("in", "capacity_bps"),
        "available in": value("in", "available_bps"),
        "rtt": "" if rtt is None else seconds(rtt),
        "emulator": "late" if row.valid is False else "",
    }


def _sent(row: Any, lines: Mapping[str, str]) -> dict[str, str]:
    over = [_line(key.line_id, lines) for key in row.keys]
    whole = sum(of or 0 for of in row.bytes_by_path)
    shares = [f"{(of or 0) / whole:.0%}" for of in row.bytes_by_path] if whole and len(over) > 1 else []
    return {
        "key": row.id[:_KEY],
        "at": row.at[:19] + "Z",
        "age": _ago(row),
        "what": row.circumstances.get("program") or row.kind,
        "job": row.job or "",
        "target": row.target or "",
        "lines": " + ".join(over),
        "way": row.direction,
        "bytes": size(row.bytes),
        "throughput": bits(row.throughput_bps),
        "took": span(row.elapsed_s),
        "shares": " : ".join(shares),
        "control": row.control or "",
        "emulator": "late" if row.valid is False else "",
    }


def _forecasted(row: Any, lines: Mapping[str, str]) -> dict[str, str]:
    options = row.answer.get("options") or ()
    best: dict[str, Any] = next(
        (o for o in options if (o.get("paths"), o.get("control")) == (row.chosen, row.chosen_control)), {}
    )
    rate = _rate(best)
    low, high = rate.get("low"), rate.get("high")
    return {
        "key": row.id[:_KEY],
        "at": row.at[:19] + "Z",
        "age": _ago(row),
        "target": row.target or "",
        "job": row.answer.get("job") or "",
        "size": size(row.size_bytes),
        "chosen": " + ".join(row.chosen or ()) + (f" ({row.chosen_control})" if row.chosen_control else ""),
        "forecast": bits(rate.get("value")) if rate.get("value") else "",
        "90 %": f"{bits(low)} to {bits(high)}" if low and high else "",
        "came": ", ".join(bits(came.sent.throughput_bps) for came in row.came),
    }


def _event(row: Any, lines: Mapping[str, str]) -> dict[str, str]:
    about = {"key": row.id[:_KEY], "at": row.at[:19] + "Z", "age": _ago(row), "what": row.kind}
    return {**about, "line": _line(row.line_id or "", lines), "target": row.target or "", "in words": row.text}


def _hour(row: Any, lines: Mapping[str, str]) -> dict[str, str]:
    carried = {"out": size(row.bytes_out), "in": size(row.bytes_in)}
    return {"hour": row.at[:16] + "Z", "line": _line(row.line_id, lines), "counted by": row.source, **carried}


_ROWS = {
    "paths": _path,
    "measurements": _measured,
    "transfers": _sent,
    "forecasts": _forecasted,
    "events": _event,
    "usage": _hour,
}
