"""What the demo writes: its directory, with the result as one self-contained HTML page, in words first."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from pathcast.lab.demo import plots
from pathcast.results.html import image, table
from pathcast.results.rundir import RunDir
from pathcast.results.style import PAGE, style
from pathcast.units import bits, size, span, spans

COLUMNS = ("paths", "control", "forecast", "90 % interval", "came", "off by", "shares forecast", "shares that came")


def write(document: dict[str, Any], directory: RunDir) -> Path:
    """Writes everything a run owes: samples, a table, the plot, the page, `run.json`; returns the page."""
    rows = [
        {"round": number, "told": round["told"], **option}
        for number, round in enumerate(document["rounds"], 1)
        for option in round["options"]
    ]
    directory.samples("options", rows)
    directory.table(
        "options",
        ("round", "paths", "control", "duration_s", "low_s", "high_s", "came_s"),
        [
            (
                one["round"],
                "+".join(one["paths"]),
                one["control"],
                *(one["duration_s"][name] for name in ("value", "low", "high")),
                one["sent"]["duration_s"] if one["sent"] else None,
            )
            for one in rows
        ],
    )
    with style():
        file = directory.figure("forecast", plots.forecasts(document["rounds"], document["world"]))[0]
    directory.run({"world": document["world"], "seed": document["plan"]["seed"], "result": document})
    return directory.text("index.html", page(document, file))


def page(document: Mapping[str, Any], figure: Path) -> str:
    """The page of a demo's document; `figure`: the SVG file of the plot."""
    plan = document["plan"]
    warning = ""
    if document["untrustworthy"]:
        warning = f'<p class="warning">Not to be trusted: {escape(document["untrustworthy"])}.</p>'
    rounds = "".join(_round(number, round) for number, round in enumerate(document["rounds"], 1))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>pathcast demo</title><style>{PAGE}</style></head><body>
<h1>{escape(size(plan["size_bytes"]))}: over which lines, how long, how sure?</h1>
<p class="lead">Two lines whose load others change all the time, in world <code>{escape(document["world"])}</code>, seed
{plan["seed"]}. Nothing was learnt before: both are measured for seconds, and this very transfer is tried in simulated
networks like them. Then it is sent.</p>
{warning}
{image(figure, "forecasts of every choice with their intervals, and what came")}
{rounds}
<p><small>“Off by” is the forecast's median against what came; 9 of 10 transfers are to lie inside the interval. Choices
that would have taken too long for a demo were not sent.</small></p>
</body></html>
"""


def _round(number: int, round: Mapping[str, Any]) -> str:
    lines = "; ".join(
        f"{escape(one['path'])}: {bits(one['capacity_bps'])}, of which {bits(one['available_bps'])} were free, "
        f"round trip {one['rtt_s'] * 1e3:.0f} ms"
        for one in round["measured"]
        if one["capacity_bps"] and one["rtt_s"]
    )
    rows = [option_row(option) for option in round["options"]]
    marked = next(at for at, one in enumerate(round["options"]) if is_chosen(round, one))
    return f"""<h2>{number}. {escape(round["told"][:1].upper() + round["told"][1:])}</h2>
<p><b>{escape(verdict(round))}</b> {escape(round["why"][:1].upper() + round["why"][1:])}.</p>
{table(COLUMNS, rows, marked)}
<p><small>Measured with {size(round["probe_bytes"])} in {span(round["elapsed_s"])}: {lines}.</small></p>
"""


def is_chosen(round: Mapping[str, Any], option: Mapping[str, Any]) -> bool:
    """Whether it is the choice that the forecast made."""
    return (option["paths"], option["control"]) == (round["chosen"], round["chosen_control"])


def verdict(round: Mapping[str, Any]) -> str:
    """What a person wants to know: use this, so long, so sure; and what came."""
    best = next(one for one in round["options"] if is_chosen(round, one))
    over = " and ".join(best["paths"]) + (" alone" if len(best["paths"]) == 1 else "")
    told = f"Use {over}: {span(best['duration_s']['value'])}, 9 times of 10 {interval(best)}."
    if not best["sent"]:
        return told
    inside = "" if best["sent"]["inside"] else ", outside of the interval"
    return f"{told} It took {span(best['sent']['duration_s'])}{inside}."


def interval(option: Mapping[str, Any]) -> str:
    """Of its duration."""
    return spans(option["duration_s"]["low"], option["duration_s"]["high"])


def option_row(option: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of COLUMNS."""
    sent = option["sent"]
    return (
        " + ".join(option["paths"]),
        option["control"],
        span(option["duration_s"]["value"]),
        interval(option),
        span(sent["duration_s"]) if sent else "not sent",
        f"{sent['error']:+.0%}" if sent and sent["error"] is not None else "-",
        _shares(option["bytes_by_path"]),
        _shares(sent["bytes_by_path"]) if sent else "-",
    )


def _shares(carried: list[float]) -> str:
    whole = sum(carried) or 1
    return " : ".join(f"{one / whole:.0%}" for one in carried)
