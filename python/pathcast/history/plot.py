"""Graphs of a history over days and weeks: one panel for each quantity, one colour for each line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any

from pathcast.history.browse import GRAPHED, Point
from pathcast.history.records import Forecasted, Sent
from pathcast.results.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

# a name in the command, its label, what it is divided by
QUANTITIES = {
    "available": ("available_bps", "available [Mbit/s]", 1e6),
    "capacity": ("capacity_bps", "capacity [Mbit/s]", 1e6),
    "rtt": ("rtt_s", "least round trip [ms]", 1e-3),
    "delay": ("delay_s", "one-way delay [ms]", 1e-3),
    "loss": ("loss", "probes lost [%]", 0.01),
    "throughput": ("throughput_bps", "throughput of transfers [Mbit/s]", 1e6),
}
assert {of for of, *_ in QUANTITIES.values()} == {*GRAPHED, "throughput_bps"}
_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, "#000000", "#999999")
# a line is not drawn over a gap of so many usual intervals
_GAP = 5
# beside the first and the last time
_LEAST_SPARE = timedelta(minutes=1)


def figure(
    points: Sequence[Point],
    sent: Sequence[Sent],
    forecasts: Sequence[Forecasted],
    wanted: Sequence[str],
    lines: Mapping[str, str] | None = None,
) -> Any:
    """The figure, to be drawn in our style. wanted: of QUANTITIES; those without a value have no panel. lines: names of
    lines by their ids."""
    from matplotlib import pyplot

    shown = [name for name in wanted if _is_there(name, points, sent)] or list(wanted[:1])
    size = (9, 1.2 + 2.1 * len(shown))
    made, panels = pyplot.subplots(len(shown), 1, figsize=size, sharex=True, squeeze=False)
    series = _series(points)
    colours = {line: _COLOURS[n % len(_COLOURS)] for n, line in enumerate(dict.fromkeys(line for line, _ in series))}
    labels: dict[str, Any] = {}
    for ax, name in zip(panels[:, 0], shown, strict=True):
        column, label, unit = QUANTITIES[name]
        if name == "throughput":
            _transfers(ax, sent, forecasts, unit)
            ax.legend(fontsize=7, loc="lower left")
        for (line, direction), of in series.items() if name != "throughput" else ():
            known = [(p.at_us, v / unit) for p in of if (v := p.values[column]) is not None]
            # a round trip is that of both directions
            if known and (name != "rtt" or direction == "out" or (line, "out") not in series):
                style = {"ls": "-" if direction == "out" else "--", "marker": "." if len(known) < 100 else None}
                [drawn] = ax.plot(*_broken(known), color=colours[line], lw=1, **style)
                name_of = _drawable((lines or {}).get(line, line))
                labels.setdefault(f"{name_of} {direction}", drawn)
        ax.set_ylabel(label)
        low, high = ax.dataLim.intervaly
        ax.set_ylim(min(0, 1.1 * low), 1.1 * high if high > 0 else 1)
    times = [_time(point.at_us) for point in points] + [datetime.fromisoformat(of.at) for of in sent]
    if times:
        spare = max(_LEAST_SPARE, 0.03 * (max(times) - min(times)))  # of one time the axis would be years
        panels[-1, 0].set_xlim(min(times) - spare, max(times) + spare)
    if labels:
        made.legend(labels.values(), labels.keys(), fontsize=7, ncols=2, loc="outside upper center")
    panels[-1, 0].set_xlabel("time (UTC)")
    panels[-1, 0].tick_params("x", rotation=20)
    return made


def _drawable(name: str) -> str:
    """A name as letters: no formula, nothing that has no shape."""
    return "".join(c if c.isprintable() else "?" for c in name).replace("$", r"\$")


def _is_there(name: str, points: Sequence[Point], sent: Sequence[Sent]) -> bool:
    if name == "throughput":
        return any(of.throughput_bps for of in sent)
    return any(point.values[QUANTITIES[name][0]] is not None for point in points)


def _series(points: Sequence[Point]) -> dict[tuple[str, str], list[Point]]:
    """By line and direction: a line goes on when its addresses change."""
    found: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        found.setdefault((point.key.line_id, point.direction), []).append(point)
    return found


def _broken(known: Sequence[tuple[int, float]]) -> tuple[list[datetime], list[float]]:
    """Times and values, with nothing where there was nothing for long."""
    gaps = [later - sooner for (sooner, _), (later, _) in pairwise(known)]
    usual = median(gaps) if gaps else 0
    times, values = [], []
    for n, (at_us, value) in enumerate(known):
        if n and gaps[n - 1] > _GAP * usual:
            times.append(_time(known[n - 1][0] + 1))
            values.append(float("nan"))
        times.append(_time(at_us))
        values.append(value)
    return times, values


def _transfers(ax: Any, sent: Sequence[Sent], forecasts: Sequence[Forecasted], unit: float) -> None:
    """What was sent, and what had been forecast for it with its 90 % interval."""
    known = [(datetime.fromisoformat(of.at), of.throughput_bps / unit) for of in sent if of.throughput_bps]
    if known:
        ax.plot(*zip(*known, strict=True), ls="", marker=".", color=BLUE, label="transfers")
    said = []
    for of in forecasts:
        for came in of.came:
            rate = (came.option or {}).get("throughput_bps") or {}
            if all(rate.get(name) is not None for name in ("value", "low", "high")):
                said.append((datetime.fromisoformat(came.sent.at), *(rate[n] / unit for n in ("value", "low", "high"))))
    if said:
        times, values, lows, highs = zip(*said, strict=True)
        errors = (
            [v - low for v, low in zip(values, lows, strict=True)],
            [h - v for v, h in zip(values, highs, strict=True)],
        )
        label = "forecast for them, 90 % interval"
        ax.errorbar(times, values, errors, fmt="_", color=ORANGE, capsize=2, lw=1, label=label)


def _time(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us / 1e6, UTC)
