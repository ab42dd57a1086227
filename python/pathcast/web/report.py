"""Some weeks of a watch as one self-contained page, out of the history: nothing is fetched, nothing runs in it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from pathcast.errors import PathcastError
from pathcast.history.browse import Point
from pathcast.history.identity import PathKey
from pathcast.history.records import Event
from pathcast.history.rounds import Round, Spent, rounds, spent
from pathcast.history.trend import UNMEASURED, Gap, Mean, gaps, means
from pathcast.results.html import image, table
from pathcast.results.style import PAGE, style
from pathcast.units import bits, seconds, size, span
from pathcast.watch.quality import DEGRADED, HOUR_S, Quality, quality
from pathcast.watch.seen import Level
from pathcast.web.facts import WORLD, Facts
from pathcast.zone import local, zone

DAY_S = 86_400.0
# the plot has so many points a line, each a mean; tables have so many rows at most
_POINTS, _ROWS = 336, 50
_EVENTS, _FORECASTS = 100_000, 1_000
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_HOURS = 3
_STYLE = "th, td { white-space: nowrap } .words { text-align: left } td.words { white-space: normal }"
# columns of sentences
_WORDS = ("why", "what was told")


@dataclass(frozen=True)
class Way:
    """One direction of a line to one target: its measurements, and what they come to."""

    line_id: str
    target: str
    direction: str
    rounds: tuple[Round, ...]
    quality: Quality


@dataclass(frozen=True)
class Report:
    """All that the page shows. names: of lines by their ids. gone: lines that the host did not have for a time."""

    begin_s: float
    end_s: float
    names: Mapping[str, str]
    ways: tuple[Way, ...]
    gaps: tuple[Gap, ...]
    means: tuple[Mean, ...]
    alerts: tuple[dict[str, Any], ...]
    forecasts: tuple[dict[str, Any], ...]
    spent: tuple[Spent, ...]
    gone: frozenset[str] = frozenset()

    def away_s(self, line_id: str, unmeasured: bool = False) -> float:
        """For how long a line was away, or for how long nobody has looked."""
        found = [gap for gap in self.gaps if gap.line_id == line_id and (gap.why == UNMEASURED) == unmeasured]
        return sum((gap.until_s or self.end_s) - gap.from_s for gap in found)

    def _away(self, line_id: str) -> str:
        if away_s := self.away_s(line_id):
            return f"away {span(away_s)}"
        down = [one.down for way in self.ways if (way.line_id, way.direction) == (line_id, "out") for one in way.rounds]
        if any(down):
            return f"not away for long: no answer in {sum(down)} of {len(down)} rounds"
        return "not away for long" if line_id in self.gone else "never away"

    def sentences(self) -> list[str]:
        """Of every line one."""
        found = []
        for line_id in dict.fromkeys(way.line_id for way in self.ways):
            of = [way for way in self.ways if way.line_id == line_id]
            shares = [(way.quality.share, way.direction) for way in of if way.quality.share is not None]
            worst = max(shares, default=None)
            words = (
                "too few values of what was available" if worst is None else f"degraded {_share(worst[0])} of the time"
            )
            words += f" ({worst[1]})" if worst and worst[0] else ""
            found.append(f"{self.names.get(line_id, line_id)}: {words}, {self._away(line_id)}")
        return found


def gathered(facts: Facts, newer_s: float) -> Report:
    """Of so long before now. Raises PathcastError where there is no history, or as faults.py tells them."""
    browser = facts.browser()
    failed = browser.events(newer_s, _EVENTS, kind="failed")
    by_way: dict[tuple[str, str, str], list[Round]] = {}
    for one in rounds(browser, newer_s, WORLD):
        by_way.setdefault((one.line_id, one.target, one.direction), []).append(one)
    ways = [Way(*key, tuple(of), _quality(of)) for key, of in by_way.items()]
    first_s = min((of[0].at_s for of in by_way.values()), default=0.0)
    names = facts.names()
    end_s = browser.at.utc_us / 1e6
    return Report(
        end_s - newer_s,
        end_s,
        names,
        tuple(sorted(ways, key=lambda w: (names.get(w.line_id, w.line_id), w.target, w.direction != "out"))),
        tuple(gaps(browser, newer_s, failed, WORLD)),
        tuple(means(browser, newer_s, max(60.0, min(newer_s, end_s - first_s) / _POINTS), WORLD)),
        tuple(alerts(browser.events(newer_s, _EVENTS, kind="alert"))),
        tuple(facts.forecasts_of(newer_s, _FORECASTS)),
        tuple(spent(browser, newer_s, WORLD)),
        frozenset(one.line_id for one in failed if one.line_id and _gone(one.about)),
    )


def _gone(about: Any) -> bool:
    return isinstance(about, dict) and about.get("code") == "away"


def _quality(of: Sequence[Round]) -> Quality:
    return quality([(one.at_s, Level(one.available_bps, one.low_bps, one.high_bps)) for one in of if not one.down])


def alerts(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Alerts with their ends, the newest first; events: the newest first. until: None: it lasts."""
    found: list[dict[str, Any]] = []
    open: dict[tuple[str, str, str], dict[str, Any]] = {}
    for event in reversed(events):
        of = event.about
        if event.kind != "alert" or not isinstance(of, dict):
            continue
        key = (str(event.target), str(of.get("path")), str(of.get("alert")))
        over = of.get("state") != "firing"
        if key not in open:  # one that is told again, after a restart, is the same
            about = {"path": key[1], "target": event.target or "", "alert": key[2], "text": event.text}
            open[key] = {**about, "since": of.get("since") or event.at, "until": None}
            found.append(open[key])
        if over:
            open.pop(key)["until"] = event.at
    return found[::-1]


def page(of: Report) -> str:
    """As HTML. Raises PathcastError where nothing of that time is in the history."""
    if not (of.ways or of.alerts or of.forecasts or of.gaps):
        raise PathcastError(
            "nothing",
            f"nothing was recorded in the last {span(of.end_s - of.begin_s)}",
            "`pathcast watch HOST` does it",
        )
    here = local(of.end_s).tzname() or "local time"
    parts = [
        ("How each line was", _lines(of)),
        ("Worst hours", _worst(of)),
        ("Away", _away(of)),
        ("Alerts", _alerts(of)),
        ("Forecasts and what came", _forecasts(of)),
        ("What measuring has cost", _spent(of)),
    ]
    sections = "\n".join(f"<h2>{title}</h2>\n{body}" for title, body in parts)
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in of.sentences())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>pathcast watch: report</title><style>{PAGE}{_STYLE}</style></head><body>
<h1>Lines from {_day(of.begin_s)} to {_day(of.end_s)}</h1>
<p class="lead">Times are in {escape(here)}. What is usual is the median of this time; degraded is less than
{100 * DEGRADED:.0f} % of it.</p>
<ul>{sentences}</ul>
{sections}
</body></html>
"""


def _lines(of: Report) -> str:
    if not of.ways:
        return "<p>Nothing was measured in this time.</p>"
    head = ["line", "to", "way", "measured", "available", "worst tenth", "round trip", "queue", "lost", "degraded"]
    head += ["away", "not measured"]
    rows: list[tuple[Any, ...]] = []
    for way in of.ways:
        seen = [one for one in way.rounds if not one.down]
        available = [v for one in seen if (v := Level(one.available_bps, one.low_bps, one.high_bps).sure) is not None]
        tenth = quantiles(available, n=10)[0] if len(available) > 10 else None
        trips, queues = ([getattr(one, name) for one in seen] for name in ("rtt_s", "queue_s"))
        losses = [one.loss for one in seen if one.loss is not None]
        away, unmeasured = of.away_s(way.line_id), of.away_s(way.line_id, True)
        rows.append(
            (
                of.names.get(way.line_id, way.line_id),
                way.target,
                way.direction,
                len(way.rounds),
                bits(median(available)) if available else "-",
                bits(tenth),
                seconds(_median(trips)),
                seconds(_median(queues)),
                _share(fmean(losses)) if losses else "-",
                _share(way.quality.share),
                span(away) if away else "-",
                span(unmeasured) if unmeasured else "-",
            )
        )
    if len({way.target for way in of.ways}) == 1:  # of all the same
        head, rows = [head[0], *head[2:]], [(row[0], *row[2:]) for row in rows]
    return table(head, rows) + _plot(of)


def _plot(of: Report) -> str:
    from pathcast.history.plot import figure

    several = len({(one.target) for one in of.means}) > 1
    points = [
        Point(
            round(one.at_s * 1e6),
            PathKey(
                f"{of.names.get(one.line_id, one.line_id)} to {one.target}" if several else one.line_id, "", "", ""
            ),
            one.line_id,
            one.direction,
            {name: getattr(one, name) for name in ("available_bps", "capacity_bps", "rtt_s", "delay_s", "loss")},
        )
        for one in of.means
    ]
    with tempfile.TemporaryDirectory() as directory, style():
        from matplotlib import pyplot

        file = Path(directory) / "lines.svg"
        made = figure(points, (), (), ("available", "rtt", "loss"), of.names)
        try:
            made.savefig(file)
        finally:
            pyplot.close(made)
        return image(file, "available bandwidth, least round trip and loss of every line over this time")


def _worst(of: Report) -> str:
    here = zone()
    by_day, single = [], []
    for way in of.ways:
        hours: dict[int, list[float]] = {}
        who = (of.names.get(way.line_id, way.line_id), way.target, way.direction)
        for hour in way.quality.hours:
            hours.setdefault(local(hour.at_s, here).hour, []).append(hour.share)
            if hour.share < DEGRADED:
                single.append((hour.share, hour.at_s, who))
        worst = sorted((fmean(shares), hour) for hour, shares in hours.items())[:_HOURS]
        if worst:
            words = ", ".join(f"{hour:02}:00 to {(hour + 1) % 24:02}:00 ({_share(share)})" for share, hour in worst)
            by_day.append((*who, words))
    if not by_day:
        return "<p>Too few values of what was available.</p>"
    told = "<p>Hours of the day, with the mean of what was available, as a share of what is usual:</p>"
    told += table(("line", "to", "way", "worst hours of the day"), by_day)
    if not single:
        return told + "<p>In no single hour was a line degraded.</p>"
    rows = [
        (*who, f"{_time(at_s)} to {_clock(at_s + HOUR_S)}", _share(share)) for share, at_s, who in sorted(single)[:10]
    ]
    return (
        told
        + f"<p>{len(single)} single hours were degraded; the worst:</p>"
        + table(("line", "to", "way", "hour", "of usual"), rows)
    )


def _away(of: Report) -> str:
    rows = [
        (of.names.get(gap.line_id, gap.line_id), _time(gap.from_s), _lasted(gap.from_s, gap.until_s), gap.why)
        for gap in of.gaps
    ]
    return _most(("line", "from", "for", "why"), rows, "No line was away for long.")


def _alerts(of: Report) -> str:
    rows = []
    for one in of.alerts:
        since, until = (None if one[name] is None else datetime.fromisoformat(one[name]) for name in ("since", "until"))
        assert since is not None
        lasted = _lasted(since.timestamp(), None if until is None else until.timestamp())
        rows.append((one["path"], one["target"], one["alert"], _time(since.timestamp()), lasted, one["text"]))
    return _most(("path", "to", "alert", "since", "for", "what was told"), rows, "There was no alert.")


def _forecasts(of: Report) -> str:
    rows, inside, judged = [], 0, 0
    for one in of.forecasts:
        rate, came = one["rate"], one["came"]
        low, value, high = (rate.get(name) for name in ("low", "value", "high"))
        row = [_time(datetime.fromisoformat(one["at"]).timestamp()), one["target"] or "", size(one["size_bytes"])]
        row += [one["paths"], f"{bits(value)}, {span(one['duration'].get('value'))}", f"{bits(low)} to {bits(high)}"]
        if came is None:
            rows.append([*row, "-", "-", "-"])
            continue
        rate_bps = came.throughput_bps
        off = "-" if not rate_bps or not value else f"{100 * (value - rate_bps) / min(value, rate_bps):+.0f} %"
        held = "-"
        if rate_bps and low and high:
            judged += 1
            inside += low <= rate_bps <= high
            held = "yes" if low <= rate_bps <= high else "no"
        rows.append([*row, f"{bits(rate_bps)}, {span(came.elapsed_s)}", off, held])
    head = ("at", "to", "size", "over", "forecast", "90 %", "came", "off by", "within")
    told = f"<p>{inside} of {judged} transfers came within their 90 % interval.</p>" if judged else ""
    return told + _most(head, rows, "Nothing was forecast in this time.")


def _spent(of: Report) -> str:
    if not of.spent:
        return "<p>Nothing was measured in this time.</p>"
    first_s = min((way.rounds[0].at_s for way in of.ways), default=of.begin_s)
    days = max(1.0, (of.end_s - max(of.begin_s, first_s)) / DAY_S)
    rows = [
        (of.names.get(one.line_id, one.line_id), one.command, one.measurements, size(one.bytes), size(one.bytes / days))
        for one in of.spent
    ]
    total = sum(one.bytes for one in of.spent)
    told = f"<p>{size(total)} of probes, both ends' together, {size(total / days)} a day; sessions are not counted.</p>"
    return told + table(("line", "by", "measurements", "bytes", "a day"), rows)


def _most(head: Sequence[str], rows: Sequence[Sequence[Any]], none: str) -> str:
    """The newest rows; how many more there are is said."""
    if not rows:
        return f"<p>{none}</p>"
    more = f"<p>The newest {_ROWS} of {len(rows)}.</p>" if len(rows) > _ROWS else ""
    return more + table(head, rows[:_ROWS], words=_WORDS)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"


def _lasted(from_s: float, until_s: float | None) -> str:
    return "until now" if until_s is None else span(max(0.0, until_s - from_s))


def _day(at_s: float) -> str:
    return f"{local(at_s):%Y-%m-%d}"


def _time(at_s: float) -> str:
    return f"{local(at_s):%Y-%m-%d %H:%M}"


def _clock(at_s: float) -> str:
    return f"{local(at_s):%H:%M}"
