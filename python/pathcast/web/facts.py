"""What the page shows, as plain data. Each part is asked for alone: what one lacks is a sentence in its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from pathcast import zone
from pathcast.errors import PathcastError
from pathcast.history.browse import Browser
from pathcast.history.place import Place
from pathcast.history.records import Event, Measured, Sent
from pathcast.history.store import Store
from pathcast.watch.seen import UNKNOWN, Level, Seen

T = TypeVar("T")
# what may be looked at: how long back [s], and of how long a mean is [s]
SPANS: dict[str, tuple[float, float]] = {
    "1d": (86_400.0, 600.0),
    "7d": (7 * 86_400.0, 1_800.0),
    "28d": (28 * 86_400.0, 7_200.0),
    "91d": (91 * 86_400.0, 21_600.0),
    "365d": (365 * 86_400.0, 86_400.0),
}
# what is measured in emulated and simulated networks is of no line of this host
WORLD = "host"
_WEEK_S = 7 * 86_400.0
# what answered this long ago at most is up: three rounds of a watch as it is without options [s]
_UP_S = 900.0
# of a watch so many rounds tell how far they are apart, and so many that did not come that it has ended
_ROUNDS, _MISSED = 8, 3
# so many events are shown, so many failures are looked through for lines of now, and for reasons of gaps
_EVENTS, _FAILED, _REASONS = 200, 1_000, 20_000
# a plot's data is this old at most, so that many viewers cost as much as one [s]
_KEPT_S = 20.0


@dataclass(frozen=True)
class Part:
    """One part of the page: what it shows, or why it shows nothing."""

    of: Any = None
    why: str | None = None


def part(look: Callable[[], T]) -> Part:
    """Whatever keeps it from being shown is said, and the rest of the page is there."""
    try:
        return Part(look())
    except PathcastError as error:
        told = [
            words if words.endswith(("?", ".", "!")) else f"{words}." for words in (error.message, error.hint) if words
        ]
        return Part(why=" ".join(told))
    except OSError as error:
        return Part(why=f"{error.filename or 'the system'}: {error.strerror}.")


class Facts:
    """place: of the history; None: none is kept."""

    def __init__(self, place: Place | None) -> None:
        self.place = place
        self._store = None if place is None else Store(place, read_only=True)
        self._kept: dict[Any, tuple[float, Any]] = {}
        self._flows: dict[tuple[str, Any], tuple[float, int]] = {}

    def browser(self) -> Browser:
        """The history as it is now. Raises PathcastError where there is none."""
        if self._store is None:
            raise PathcastError("nothing", "no history is kept", "--history names one")
        if not self._store.exists:
            told = f"there is no history {self._store.place.shown} yet"
            raise PathcastError("nothing", told, "`pathcast watch HOST` fills it")
        return Browser(self._store)

    def names(self) -> dict[str, str]:
        """What lines are called, by their ids; what the file is wrong about is told beside the caps."""
        from pathcast.lines import config

        try:
            return {line.id: line.name for line in config.load().values() if line.id is not None}
        except PathcastError:
            return {}

    def lines(self) -> list[dict[str, Any]]:
        """Of every path its last measurement of a week, and why a later one failed.

        up: it answered just now. ago_s: of one that is of no now.
        """
        names, found, known = self.names(), [], list[Measured]()
        browser = self.browser()
        failed = browser.events(_WEEK_S, _FAILED, kind="failed")
        for one in browser.newest(_WEEK_S, WORLD):
            if any(of.target == one.target and _same(of, one) for of in known):
                continue
            known.append(one)
            later = next((event.text for event in failed if _after(event, one)), None)
            ago_s = one.age_s if one.age_s is not None and one.age_s > _UP_S else None
            about: dict[str, Any] = {"line": names.get(one.key.line_id, one.name), "target": one.target or one.world}
            about |= {"at": one.at, "ago_s": ago_s, "local": one.key.local, "remote": one.key.remote}
            down = one.path.get("down")
            ways = {direction: _way(one.path["directions"].get(direction)) for direction in ("out", "in")}
            told = None if not down else f"no answer to {down.get('probes', 'its')} probes"
            up = not down and later is None and ago_s is None and one.age_s is not None
            about |= {"down": told, "failed": later, "up": up}
            found.append({**about, "ways": ways, "rtt_s": _level(one.path.get("rtt_s")).value})
        return sorted(found, key=lambda of: (str(of["line"]), str(of["target"])))

    def trend(self, span: str) -> dict[str, Any]:
        """Means and gaps."""
        return self._once(("trend", span), lambda: self._trend(span))

    def _trend(self, span: str) -> dict[str, Any]:
        from pathcast.history.trend import gaps, means

        newer_s, width_s = SPANS[span]
        browser, names = self.browser(), self.names()
        failed = browser.events(newer_s, _REASONS, kind="failed")
        away = [{"line": names.get(g.line_id, g.line_id), **vars(g)} for g in gaps(browser, newer_s, failed, WORLD)]
        return {"means": means(browser, newer_s, width_s, WORLD), "gaps": away, "names": names, "width_s": width_s}

    def forecasts(self, span: str) -> list[dict[str, Any]]:
        """What was forecast, and what came; the newest first."""
        return self.forecasts_of(SPANS[span][0], 200)

    def forecasts_of(self, newer_s: float, most: int) -> list[dict[str, Any]]:
        """The same of any time."""
        found = []
        for one in self.browser().forecasts_of(newer_s, most, world=WORLD):
            options = one.answer.get("options") or ()
            chosen = next(
                (o for o in options if (o.get("paths"), o.get("control")) == (one.chosen, one.chosen_control)), None
            )
            said = (one.came[0].option if one.came else None) or chosen or {}
            took = said.get("duration_s")
            came = one.came[0].sent if one.came else None
            rate, seconds = said.get("throughput_bps") or {}, took if isinstance(took, dict) else {"value": took}
            about = {"at": one.at, "target": one.target, "size_bytes": one.size_bytes, "duration": seconds}
            over = " + ".join(said.get("paths") or one.chosen or ())
            found.append({**about, "rate": rate, "paths": over, "control": said.get("control"), "came": came})
        return found

    def transfers(self, span: str) -> list[Any]:
        """The newest first; a path that was recorded without a name is called as its line."""
        names = self.names()

        def called(one: Sent) -> tuple[str, ...]:
            return tuple(
                name or names.get(key.line_id, key.line_id) for name, key in zip(one.names, one.keys, strict=True)
            )

        return [
            replace(one, names=called(one)) for one in self.browser().transfers_of(SPANS[span][0], 100, world=WORLD)
        ]

    def events(self, span: str) -> dict[str, Any]:
        """Alerts and what else is worth knowing, the newest first (`rows`); cut: there are more of that time."""
        names, found = self.names(), self.browser().events(SPANS[span][0], _EVENTS + 1)
        rows = [
            {"at": e.at, "kind": e.kind, "line": names.get(e.line_id or "", ""), "target": e.target, "text": e.text}
            for e in found[:_EVENTS]
        ]
        return {"rows": rows, "cut": len(found) > len(rows)}

    def firing(self) -> list[dict[str, Any]]:
        """Alerts that are not over. last: when that was last known, where their watch measures no more; else None."""
        from pathcast.history.alerts import last_told

        browser = self.browser()
        newest: dict[tuple[str, str, str], dict[str, Any]] = {}
        for event in last_told(browser):
            if isinstance(event.about, dict):
                key = (str(event.target), str(event.about.get("path")), str(event.about.get("alert")))
                told = {"at": event.at, "text": event.text, "target": event.target}
                newest.setdefault(key, {**told, "age_s": event.age_s, "state": event.about.get("state")})
        found = [of for of in newest.values() if of["state"] == "firing"]
        return [{**of, "last": _last(browser, of)} for of in found]

    def caps(self) -> list[dict[str, Any]]:
        """What each named line carried of its cap."""
        from pathcast.lines import config
        from pathcast.service.terms import account

        now, found = zone.local(), []
        for line in config.load().values():
            of, cap = account(line, now), None if line.cap is None else line.cap.bytes
            found.append({"line": line.name, "bytes": of.bytes, "cap": cap, "sentence": of.sentence()})
        return found

    def jobs(self) -> list[dict[str, Any]]:
        """Each with its next run and its last results; of a file that cannot be read the reason (`damaged`)."""
        from pathcast.plan.again import next_due
        from pathcast.service import jobs

        found: list[dict[str, Any]] = []
        for job in jobs.every(lambda error: found.append({"damaged": str(error)})):
            runs = jobs.runs(job.name)
            ended = [_ended(one) for one in runs if one.get("event") == "ended"]
            open = bool(runs) and runs[-1].get("event") != "ended"
            due = next_due(job.times, zone.clock()).replace(tzinfo=zone.zone()).isoformat()
            about = {"name": job.name, "by": job.by, "next": due, "command": " ".join(job.command), "damaged": None}
            found.append({**about, "running": open and _held(jobs.runs_file(job.name)), "last": ended[-5:][::-1]})
        return found

    def live(self) -> dict[str, Any]:
        """Programs under `pathcast run`, and of every controller its living subflows."""
        from pathcast.control import kernel
        from pathcast.runtime import state

        runs = [_run(record.about) for record in state.records("run") if record.alive]
        now, found, before = time.monotonic(), [], self._flows
        after: dict[tuple[str, Any], tuple[float, int]] = {}
        for instance in kernel.instances():
            if instance.stale:
                continue
            try:
                flows = instance.ask("flows")["flows"]
            except PathcastError:  # it ends just now, or is not ours to ask
                continue
            for flow in flows:
                key = (instance.kernel_name, flow["id"])
                last = before.get(key)
                sent = flow["bytes_acked"]
                rate = None if last is None or now - last[0] < 0.2 else (sent - last[1]) * 8 / (now - last[0])
                after[key] = (now, sent) if last is None or rate is not None else last
                found.append({**flow, "control": instance.name, "rate_bps": rate})
        self._flows = after
        return {"runs": runs, "flows": found, "hidden": state.hidden() is not None}

    def _once(self, key: Any, look: Callable[[], T]) -> T:
        now = time.monotonic()
        at, of = self._kept.get(key, (float("-inf"), None))
        if now - at < _KEPT_S:
            return of  # type: ignore[no-any-return]
        found = look()
        self._kept[key] = (time.monotonic(), found)
        return found


def _last(browser: Browser, alert: Mapping[str, Any]) -> str | None:
    """When the watch of an alert was last seen, where that is longer ago than three of its own rounds; else None."""
    rounds = browser.rounds("watch", str(alert["target"]), _WEEK_S, _ROUNDS)
    apart_s = median(later - sooner for (_, sooner), (_, later) in pairwise(rounds)) if len(rounds) > 1 else 0.0
    # what it told is a sign of it, too
    at, age_s = min(
        [*rounds, (str(alert["at"]), inf if alert["age_s"] is None else alert["age_s"])], key=lambda of: of[1]
    )
    return None if age_s <= max(_UP_S, _MISSED * apart_s) else at


def _run(about: Mapping[str, Any]) -> dict[str, Any]:
    """A run as its record has it, of whatever pathcast: what it lacks is not known."""
    told = about.get("progress") or {}
    progress = {name: told.get(name) for name in ("done", "bytes", "wait")} if told else None
    if progress is not None:
        progress |= {"rates": told.get("rates_bps") or {}, "end": told.get("end_s") or {}}
        control = told.get("control") or about.get("control")
    else:
        control = about.get("control")
    command = about.get("command") or ["?"]
    return {"command": command, "control": control, "job": about.get("job"), "progress": progress}


def _way(of: Mapping[str, Any] | None) -> Seen:
    """One direction as it was recorded, by whatever pathcast: what it lacks is not known."""
    of = of or {}
    delay, loss = of.get("delay_s") or {}, of.get("loss") or {}
    least, usual = (_level(delay.get(name)).value for name in ("minimum", "median"))
    waits = None if least is None or usual is None else max(0.0, usual - least)
    lost = loss["lost"] / loss["packets"] if loss.get("packets") else None
    # a gentle look tells what was left just then
    available = _level(of.get("available_bps"), None, "too-short")
    levels = (available, _level(of.get("capacity_bps")), UNKNOWN, Level(waits), Level(lost))
    return Seen(*levels)


def _level(of: Mapping[str, Any] | None, *whys: str | None) -> Level:
    """A value that nothing is said against but `whys`; an interval about one that is not to be trusted is none."""
    if not of or (of.get("value") is not None and of.get("why") not in (whys or (None,))):
        return UNKNOWN
    return Level(of.get("value"), of.get("low"), of.get("high"))


def _same(one: Measured, other: Measured) -> bool:
    """Whether both, to one target, are of one path, whose addresses may have changed."""
    named = one.name == other.name and one.key.line_id == other.key.line_id
    return named or one.key.meets(other.key)


def _after(event: Event, one: Measured) -> bool:
    """Whether it failed over this line, or altogether, after it was measured."""
    if event.target != one.target or event.line_id not in (None, one.key.line_id):
        return False
    return event.age_s is not None and one.age_s is not None and event.age_s < one.age_s


def _ended(one: Mapping[str, Any]) -> dict[str, Any]:
    """An end of a job's run, by whatever pathcast: what it lacks is not known."""
    known = {name: one.get(name) for name in ("at_s", "status", "elapsed_s", "expected_s", "in_time")}
    return {**known, "bytes_sent": one.get("bytes_sent") or 0, "lines": one.get("lines") or {}}


def _held(runs: Path) -> bool:
    """Whether somebody has the lock of a job, found out without taking it."""
    try:
        inode = runs.with_suffix(".lock").stat().st_ino
        words = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return False
    return any(len(w) > 5 and w[1] == "FLOCK" and w[5].rpartition(":")[2] == str(inode) for w in words)


def plots(trend: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of every quantity one plot, of rates one each way, for the script and for a table. None in a series: a gap;
    False: nothing at this time.

    A line is a series for each target and direction.
    """
    means, names = trend["means"], trend["names"]
    targets = {of.target for of in means}
    xs = sorted({of.at_s for of in means})
    gap_s = _gap_s(xs, trend["width_s"])
    grid: list[tuple[float, bool]] = []
    for at_s in xs:
        if grid and at_s - grid[-1][0] > gap_s:
            grid.append((grid[-1][0] + trend["width_s"], True))
        grid.append((at_s, False))
    found = []
    for name, title, unit in QUANTITIES:
        series: dict[tuple[str, str, str], dict[float, float]] = {}
        for of in means:
            if name == "rtt_s" and of.direction != "out":  # it is that of both directions
                continue
            if (value := getattr(of, name)) is not None:
                series.setdefault((of.line_id, of.target, of.direction), {})[of.at_s] = value
        drawn = []
        for (line, target, direction), values in sorted(series.items()):
            label = names.get(line, line) + (f" to {target}" if len(targets) > 1 else "")
            label += "" if name == "rtt_s" else f" {direction}"
            drawn.append({"label": label, "way": direction, "values": _values(grid, values, gap_s)})
        plot = {"unit": unit, "x": [at for at, _ in grid]}
        # a line may be 25 times as fast one way as the other
        ways = ("out", "in") if unit == "bits" else (None,)
        for way in ways:
            if of := [one for one in drawn if way in (None, one["way"])]:
                more = ("", "") if way is None else (f"-{way}", f", {way}")
                found.append({"name": name + more[0], "title": title + more[1], **plot, "series": of})
    return found


QUANTITIES = (
    ("available_bps", "Available", "bits"),
    ("capacity_bps", "Capacity", "bits"),
    ("rtt_s", "Least round trip", "seconds"),
    ("delay_s", "One-way delay", "seconds"),
    ("queue_s", "Waiting in queues", "seconds"),
    ("loss", "Probes lost", "share"),
)


def _gap_s(xs: list[float], width_s: float) -> float:
    apart = [later - sooner for sooner, later in pairwise(xs)]
    return 3 * max(width_s, median(apart) if apart else 0.0)


def _values(grid: list[tuple[float, bool]], values: Mapping[float, float], gap_s: float) -> list[float | bool | None]:
    found: list[float | bool | None] = []
    last = float("-inf")
    for at_s, empty in grid:
        if at_s in values:
            found.append(values[at_s])
            last = at_s
        else:
            found.append(None if empty or at_s - last > gap_s else False)
    return found
