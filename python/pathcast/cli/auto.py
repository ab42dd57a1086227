"""`run --paths auto`: what was asked for becomes a course, with a forecast where a far end is named."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pathcast import zone
from pathcast.cli import planoptions
from pathcast.cli.output import brief
from pathcast.cli.planoptions import AUTO, Asked
from pathcast.errors import Exit, PathcastError, need, usage
from pathcast.say import say

if TYPE_CHECKING:
    from pathcast.cli.deadline import Deadline
    from pathcast.forecast.record import Recorder
    from pathcast.lines.config import Line
    from pathcast.plan.terms import LineTerms, Way, Wish
    from pathcast.service.auto import Auto

# progress is told so often at a terminal, and elsewhere [s]
_TERMINAL_S, _ELSEWHERE_S = 10.0, 600.0
# nearer than so far there is no time to measure for a deadline; up to then a light measurement has to do [s], and looks
# and draws take about this part of the time that is left
_FORECAST_S, _NEAR_S, _NEAR_SHARE = 20.0, 180.0, 0.1
_SPENT = "--max and --budget leave nothing to any line"
_QUIET, _SEVERAL, _ONE = "gleaner", "lia", "cubic"


@dataclass(frozen=True)
class Prepared:
    """control: the first. addresses: of all lines that may be used; lines: and those that these get later. forecast:
    what was, where a far end was named. whole: whether all lines have an address."""

    auto: Auto
    control: str
    addresses: list[str]
    lines: Mapping[str, list[str]]
    forecast: dict[str, Any] | None
    wish: Wish
    sized: bool
    limit: Deadline | None
    whole: bool

    @property
    def expected_s(self) -> float | None:
        """How long it was to take by the forecast; None where there was none."""
        return None if self.forecast is None else self.auto.expected_s

    def document(self, report: dict[str, Any]) -> dict[str, Any]:
        """For the report."""
        from pathcast.service.auto import carried_sentence
        from pathcast.units import span

        told = f"{carried_sentence(report, self.lines)} in {span(report['elapsed_s'])}"
        if self.limit is not None:
            left_s = self.limit.left_s(None)
            told += f"; {span(abs(left_s))} {'before' if left_s >= 0 else 'after'} the deadline"
        final = self.auto.ended and self.whole and self.auto.spent
        if final:
            told += f"; ended, since {_SPENT}"
        elif self.auto.ended:
            silent = self.auto.step.wait is not None
            why = "nothing got through" if silent else "no line may be used now"
            told += f"; ended, since {why}: start it again when {'a line answers' if silent else 'one may'}"
        return {
            **self.auto.document(report["paths"]),
            "sentence": told,
            "final": final,
            "lines": dict(self.lines),
            "size_bytes": self.wish.size_bytes if self.sized else None,
            "deadline_s": self.wish.deadline_s,
            "max_rate_bps": self.wish.max_rate_bps,
            "expected_s": self.expected_s,
            "forecast": self.forecast,
        }


def prepare(asked: Asked, control: str | None, sets: bool, into: Recorder | None) -> Prepared:
    """Refuses what makes no sense (exit 2), and where no line may be used now (4), before anything runs or is sent.
    Prints what will be done."""
    from pathcast.lines import carried, config, here
    from pathcast.plan.course import Course
    from pathcast.plan.program import HORIZON_S
    from pathcast.plan.renewed import completed
    from pathcast.runtime.state import tidy
    from pathcast.service.auto import Auto
    from pathcast.service.terms import Changes, passing, terms

    wish, most, limit = asked.checked()
    sized = asked.size is not None
    if limit is not None and not sized:
        raise usage("--by needs --size: what is left tells how fast it has to go")
    if sets:
        raise usage("--set does not go with --paths auto, which chooses the controllers")
    if control not in (None, AUTO) and asked.background:
        raise usage(f"--background chooses the controller, and --control {control} is given: choose one")
    if asked.key_file is not None and asked.to is None:
        raise usage("--key-file goes with --to HOST")
    need("scipy")
    tidy(say)  # what a killed run has left would count against caps unseen
    known = config.load()
    if not known:
        raise usage("--paths auto: no line has a name yet", "pathcast line add NAME --from ADDRESS names one")
    planoptions.known(most, list(known))
    found = here.addresses()
    lines = {name: [one.local for one in here.used(line, found)] for name, line in known.items()}
    down = [name for name, of in lines.items() if not of]
    for sentence in brief(
        (f"{name} is down: it has no address now" for name in down), "`pathcast line list` shows them"
    ):
        say(sentence)
    lines = {name: of for name, of in lines.items() if of}
    if not lines:
        raise PathcastError(  # one may have it again in a moment
            "no-line",
            "--paths auto: none of the lines has an address now",
            "`pathcast line list` shows them",
            Exit.REFUSED,
        )
    forecast = None if asked.to is None else _forecast(asked, wish, most, limit, lines, into)
    if limit is not None:
        wish = _until(wish, limit.left_s(None))
    if (apart := carried.apart({name: known[name] for name in lines})) is not None:
        say(apart)
    now, away = zone.local(), []
    reach_s = max(HORIZON_S, wish.deadline_s or 0.0)
    changes = Changes({name: known[name] for name in lines}, say, reach_s)
    if forecast is None:
        ways, of = _guessed(list(lines), known, wish), terms(lines, known, most, now, reach_s=reach_s)
    else:  # a line that did not answer may come back, and one that is full may get more
        away = [name for name in lines if name not in forecast[2]]
        ways = completed(forecast[1], list(lines), {True: _QUIET, False: _SEVERAL})
        of = {**forecast[2], **terms(away, known, most, now, reach_s=reach_s)}
    if control not in (None, AUTO):
        ways = [replace(way, control=str(control)) for way in ways]
    course = Course(ways, of, wish, sized, away)
    controls = tuple(dict.fromkeys(way.control for way in ways if wish.takes(way)))
    tell_s = _TERMINAL_S if sys.stderr.isatty() else _ELSEWHERE_S
    counted = passing({name: known[name] for name in lines})
    dated = limit is not None and limit.at is not None
    auto = Auto(
        course,
        lines,
        controls,
        wish.max_rate_bps,
        say,
        tell_s,
        counted,
        dated=dated,
        changed=changes.look,
        stepped=changes.stepped,
        found=_finding({name: known[name] for name in lines}),
        further=changes.further,
    )
    if not auto.step.lines and auto.spent and not down:
        raise usage(f"--paths auto: {_SPENT}")
    if not auto.step.lines:
        raise PathcastError(
            "no-line", "no line may be used now", "`pathcast line list` shows hours and caps", Exit.REFUSED
        )
    say(f"over {' and '.join(auto.step.lines)} with {auto.step.control}")
    addresses = [address for of_line in lines.values() for address in of_line]
    seen = forecast[0] if forecast else None
    return Prepared(auto, auto.step.control, addresses, auto.lines, seen, wish, sized, limit, not down)


def _finding(lines: Mapping[str, Line]) -> Callable[[], dict[str, list[str]]]:
    """The addresses of lines at any time, of those that may get others."""
    from pathcast.lines import here

    may = {name: line for name, line in lines.items() if not line.addresses}

    def find() -> dict[str, list[str]]:
        found = here.addresses() if may else []
        return {name: [one.local for one in here.of_line(line, found)] for name, line in may.items()}

    return find


def _until(wish: Wish, left_s: float) -> Wish:
    """With its deadline; until here it may have passed, which keeps no program from its start."""
    if left_s > 0:
        return replace(wish, deadline_s=left_s)
    say("the deadline is past: it goes as fast as it may")
    return wish.late()


def _forecast(
    asked: Asked, wish: Wish, most: dict[str, int], limit: Any, lines: Mapping[str, list[str]], into: Recorder | None
) -> tuple[dict[str, Any], list[Way], dict[str, LineTerms]] | None:
    """The plan's document, and what it is made of; None, with the reason, where the far end does not tell."""
    from pathcast.cli.plan import measured_ways
    from pathcast.cli.target import target
    from pathcast.worlds.measurement import Request

    left_s = math.inf if limit is None else limit.left_s(None)
    if left_s < _FORECAST_S:
        say("no forecast (the deadline is too near for one): it goes by what the transfer shows")
        return None
    far = target(asked.to, "host", None, None, asked.key_file, None, into)
    near = left_s < _NEAR_S
    request = Request(effort="usual" if wish.size_bytes > 1 and not near else "light")
    within_s = _NEAR_SHARE * left_s if near else None
    job = wish if wish.size_bytes > 1 else replace(wish, size_bytes=1_000_000_000)

    def tell(text: str) -> None:
        if " is down: " not in text or text.partition(" is down: ")[0] in lines:  # else it is told already, or no line
            say(text)

    try:
        document, ways, of, _ = measured_ways(far, job, "out", most, None, request, limit, within_s=within_s, tell=tell)
    except PathcastError as error:
        late = limit is not None and limit.left_s(None) <= 0  # a busy machine takes long
        if error.exit == Exit.INTERRUPTED or (error.exit == Exit.USAGE and not late):
            raise
        say(f"no forecast ({error.message}): it goes by what the transfer shows")
        return None
    here = [way for way in ways if set(way.lines) <= set(lines)]
    if not here:
        say("no forecast (it knows no path over these lines): it goes by what the transfer shows")
        return None
    return document, here, {name: line for name, line in of.items() if name in lines}


def _guessed(names: list[str], known: Mapping[str, Any], wish: Wish) -> list[Way]:
    from pathcast.plan.renewed import guessed

    order = sorted(names, key=lambda name: (known[name].prefer or 101, known[name].price or 0.0))
    full = _SEVERAL if len(names) > 1 else _ONE
    controls = {True: _QUIET} if wish.background else {False: full}
    if wish.hurry:
        controls[False] = full
    return guessed(order, controls, {})
