"""What the demo writes: its directory, with the result as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from pathcast.lab.paper import plots
from pathcast.results.html import image, table
from pathcast.results.rundir import RunDir
from pathcast.results.style import LABELS, PAGE, style
from pathcast.units import bits, size


def write(document: dict[str, Any], directory: RunDir) -> Path:
    """Writes everything a run owes: samples, tables, plots, the page, `run.json`; returns the page."""
    directory.samples("rounds", document["rounds"])
    directory.samples("shares", document["shares"])
    errors = document["errors"]
    directory.table(
        "errors",
        ("predictor", "rmse_bps", "fraction_within_10pct", "n"),
        [(n, e["rmse_bps"], e["fraction_within_10pct"], e["n"]) for n, e in errors.items()],
    )
    options = document["choice"]["options"]
    rows = [("+".join(o["paths"]), o["predicted_bps"], o["actual_bps"]) for o in options]
    directory.table("choice", ("paths", "predicted_bps", "actual_bps"), rows)
    with style():
        figures = {
            "predictions": plots.predictions(document["rounds"], document["world"]),
            "surface": plots.surface(document["rounds"], document["world"]),
            "shares": plots.shares(document["shares"], document["world"]),
        }
        files = {name: directory.figure(name, figure)[0] for name, figure in figures.items()}
    directory.run({"world": document["world"], "seed": document["plan"]["seed"], "result": document})
    return directory.text("index.html", page(document, files))


def page(document: dict[str, Any], figures: dict[str, Path]) -> str:
    """The page of a demo's document; `figures` holds the SVG files `predictions`, `surface`, `shares`."""
    plan, errors, choice = document["plan"], document["errors"], document["choice"]
    names = [n for n in ("multi", "single", "cdf", "placebo") if n in errors]
    error_rows = [
        (LABELS[n], bits(errors[n]["rmse_bps"]), f"{100 * errors[n]['fraction_within_10pct']:.0f} %") for n in names
    ]
    option_rows = [(" + ".join(o["paths"]), bits(o["predicted_bps"]), bits(o["actual_bps"])) for o in choice["options"]]
    chosen = next((i for i, o in enumerate(choice["options"]) if o["paths"] == choice["chosen"]), None)
    round_rows = [_round_row(r) for r in document["rounds"]]
    counted = document["counted"]
    lead = (
        f"World <code>{escape(document['world'])}</code>, seed {plan['seed']}, controller {escape(plan['control'])}, "
        f"{size(plan['transfer_bytes'])} transfers, probes of {size(plan['probe_bytes'])} a path; "
        f"{counted['training']} training and {counted['unseen']} unseen rounds counted, {counted['left_out']} left out."
    )
    warning = ""
    if document["untrustworthy"]:
        warning = f'<p class="warning">Not to be trusted: {escape(document["untrustworthy"])}.</p>'
    rtts = " and ".join(f"{r * 1e3:.0f} ms" for r in choice["rtt_s"])
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>pathcast demo</title><style>{PAGE}</style></head><body>
<h1>How fast will a Multipath TCP transfer be, before it is sent?</h1>
<p class="lead">{lead}</p>
{warning}
<h2>Errors on unseen rounds</h2>
{table(("predictor", "RMSE", "within 10 %"), error_rows, 0)}
<p><small>“Wrong probes” is the multi-probe predictor fed with another round's probes: it must be worse.</small></p>
{image(figures["predictions"], "predicted against measured throughput of the unseen rounds")}
<h2>The choice of paths, round trip times {rtts}</h2>
{table(("paths", "predicted", "measured"), option_rows, chosen)}
<p>Chosen: <b>{escape(" + ".join(choice["chosen"]))}</b>; regret {100 * choice["regret"]:.1f} % of the best.</p>
<h2>What the probes saw</h2>
{image(figures["surface"], "probe throughputs of both paths and the transfer's throughput")}
<h2>Where the bytes went, by transfer size</h2>
{image(figures["shares"], "share of bytes on subflow 1 by transfer size")}
<h2>Rounds</h2>
{table(("round", "RTT 1, 2", "probes", "MPTCP probe", "measured", "multi", "single", "CDF", "on path 1"), round_rows)}
</body></html>
"""


def _round_row(r: dict[str, Any]) -> tuple[str, ...]:
    name = f"{r['index'] + 1}{' unseen' if r['unseen'] else ''}{' left out' if r['left_out'] else ''}"
    predicted = r["predicted_bps"] or {}
    total = sum(r["subflow_bytes"]) or 1
    return (
        name,
        ", ".join(f"{x * 1e3:.0f} ms" for x in r["rtt_s"]),
        ", ".join(bits(x) for x in r["probes_bps"]),
        bits(r["mptcp_probe_bps"]),
        bits(r["actual_bps"]),
        *(bits(predicted.get(n)) for n in ("multi", "single", "cdf")),
        f"{100 * r['subflow_bytes'][0] / total:.0f} %" if r["subflow_bytes"] else "-",
    )
