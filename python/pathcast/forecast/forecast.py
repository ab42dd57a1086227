"""The forecast of one transfer: what was measured of the paths becomes networks, this very transfer is tried in each.

Nothing is learnt before, and nothing but the measurement is sent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from pathcast.errors import Exit, PathcastError, usage
from pathcast.forecast.answer import chosen, option
from pathcast.forecast.begin import begun, further
from pathcast.forecast.belief import PathBelief
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort, clock, effort
from pathcast.forecast.field import MOST_PATHS, field_of
from pathcast.forecast.fresh import changed_s, remembered
from pathcast.forecast.learnt import learn, taught
from pathcast.forecast.lessons import drift, lesson
from pathcast.forecast.outcome import Outcome
from pathcast.forecast.past import Past
from pathcast.forecast.race import Runner, race
from pathcast.forecast.twin import NETWORK_PATHS, Choice, simulate
from pathcast.forecast.watch import Loads
from pathcast.forecast.why import why
from pathcast.units import bits, size, span
from pathcast.worlds.ends import Ends
from pathcast.worlds.measurement import DIRECTIONS, Measurement

# so many draws at most, at once, and before a choice is given up: fewer have no 90 % interval of their own
DRAWS, BATCH, LEAST = 40, 8, 24
# of so few the ends of the interval are the least and the largest, and hold four of five
_ROUGH = 12
# an error that nobody need know of
_NOTHING = 0.01
# of the time for all simulations, where it is to be found out too over which path several begin
_RACE = 0.75
# what if queues were managed is tried in so many draws, and told where it takes so many times as long
_FEW, _NOTED = 6, 1.3


@dataclass(frozen=True)
class Job:
    """A transfer that somebody means to make: `out` to the far end, or `in` from it."""

    size_bytes: int
    controls: Controls
    direction: str = "out"
    ends: Ends = ()

    def __post_init__(self) -> None:
        if self.size_bytes < 1:
            raise usage(f"--size {self.size_bytes}B: a transfer has at least one byte")
        if self.direction not in DIRECTIONS:
            raise usage(f"direction `{self.direction}`: allowed are {', '.join(DIRECTIONS)}")


@dataclass(frozen=True)
class Forecast:
    """The choices by expected time, the fastest first, which of them is best, and what is to be known beside it."""

    job: Job
    runners: tuple[Runner, ...]
    chosen: Runner
    notes: tuple[str, ...]
    down: tuple[str, ...] = field(default=())

    def document(self, deadline_s: float | None = None) -> dict[str, Any]:
        """For JSON."""
        best = self.chosen.choice
        return {
            "size_bytes": self.job.size_bytes,
            "direction": self.job.direction,
            "deadline_s": deadline_s,
            "options": [option(runner, self.job.size_bytes, deadline_s) for runner in self.runners],
            "chosen": list(best.paths),
            "chosen_control": best.control,
            "why": why(self.runners, self.chosen, self.job.size_bytes, deadline_s),
            "down": list(self.down),
            "notes": list(self.notes),
        }


def forecast(
    measured: Measurement,
    job: Job,
    loads: Loads | None = None,
    draws: int | None = None,
    limits: Effort | None = None,
    seed: int = 0,
    past: Past | None = None,
    time_s: float | None = None,
) -> Forecast:
    """Of a measurement; no time passes in the world that it was made in.

    loads: looks at what others send (`watch`). limits: None: so that the answer comes in time on this machine, in
    `time_s` where that is given. past: what the history holds of these paths.

    Raises PathcastError (exit 3) where nothing can be said: no path is known well enough, or no transfer ended.
    """
    looks, before = loads or {}, past or Past()
    measured = replace(measured, paths=tuple(remembered(path, before, job.direction) for path in measured.paths))
    since_s, changes = _changes(before, measured, job.direction)
    sent = {path.name: before.packets(path.name, since_s.get(path.name, math.inf)) for path in measured.paths}
    beliefs = [
        (path, PathBelief.of(path, job.direction, looks.get(path.name, ()), sent[path.name])) for path in measured.paths
    ]
    known = [belief for _, belief in beliefs if belief is not None]
    guesses = [PathBelief.guess(path, job.direction, known) for path, belief in beliefs if belief is None]
    # the first subflow is better not over one of which nothing is known
    by_room = sorted(
        (one for one in (*known, *guesses) if one is not None),
        key=lambda belief: (belief.guessed, -belief.available_bps),
    )
    beyond = [belief.name for belief in by_room[NETWORK_PATHS:]]
    guessed = {belief.name for belief in by_room[:NETWORK_PATHS] if belief.guessed}
    unknown = [path.name for path, belief in beliefs if belief is None and path.name not in beyond]
    notes = [*_beyond(beyond), *_unknown(measured, job.direction, unknown, guessed)]
    known = by_room[:NETWORK_PATHS]
    if not known:
        hint = measured.untrustworthy.hint if measured.untrustworthy else "measure --thorough, or with more time"
        raise PathcastError("untrustworthy", f"nothing can be forecast: {'; '.join(notes)}", hint, Exit.UNTRUSTWORTHY)
    left_bps = sum(belief.available_bps for belief in known if not belief.guessed)
    known = [replace(one, horizon_s=job.size_bytes * 8 / max(1.0, left_bps)) for one in known]
    names = [belief.name for belief in known]
    shared = {
        frozenset((belief.name, other)): probability
        for belief in known
        for other, probability in belief.shared
        if probability > 0.5 and other in names
    }
    notes += [f"{' and '.join(sorted(pair))} end in one and the same line ({p:.0%} sure)" for pair, p in shared.items()]
    choices = field_of(names, job.controls, shared)
    if len(known) > MOST_PATHS:
        notes.append(
            f"of {len(known)} paths not every combination was tried: all of the {MOST_PATHS} with most room, the "
            "others alone and one after the other beside these"
        )
    notes += changes
    limits = limits or effort(known, choices, job.size_bytes, time_s)
    most = DRAWS if draws is None else draws
    runners = _tried(known, choices, job, limits, most, seed)
    lessons = {
        runner.choice: lesson(before, runner.choice, job.size_bytes, min(since_s[name] for name in runner.choice.paths))
        for runner in runners
    }
    drawn = {runner.choice: runner.durations_s() for runner in runners}
    for runner in runners:
        learn(runner, lessons[runner.choice])
    # of a line that is not known nothing speaks for leaving it out
    wide = [runner for runner in runners if guessed and len(runner.choice.paths) == len(names)]
    best = chosen(wide) or chosen(runners)
    if best is None:
        told = "in every network that these paths may be, the transfer did not end"
        raise PathcastError("untrustworthy", told, "measure again, or ask for less", Exit.UNTRUSTWORTHY)
    notes += taught(best, lessons[best.choice])
    notes += _drifts(before, runners, since_s)
    # where the time did not do for all draws there is none for more
    if not lessons[best.choice].transfers and max(len(runner.outcomes) for runner in runners) >= most:
        notes += _if_managed(known, best.choice, drawn[best.choice], job, limits, seed)
    notes += _cut(runners, limits, job.size_bytes, most)
    return Forecast(
        job,
        tuple(sorted(runners, key=lambda runner: runner.place)),
        best,
        tuple(notes),
        tuple(path.name for path in measured.paths if path.down),
    )


def _tried(
    beliefs: Sequence[PathBelief], choices: Sequence[Choice], job: Job, limits: Effort, draws: int, seed: int
) -> list[Runner]:
    """The choices after their race, and the best of several paths as it had better begin, if there is time for that."""

    def run(seeds: Sequence[int], left: Sequence[Choice]) -> list[list[Outcome | None]]:
        return simulate(beliefs, [seed + one for one in seeds], left, job.size_bytes, limits.of, job.ends)

    passed_s = clock()
    several = any(len(choice.paths) > 1 for choice in choices)
    runners = race(choices, run, draws, BATCH, LEAST, limits.time_s * (_RACE if several else 1.0), passed_s)
    made = sum(len(runner.outcomes) for runner in runners)
    if several and passed_s() * (1 + further(runners) / made) <= limits.time_s:
        guessed = [belief.name for belief in beliefs if belief.guessed]
        return begun(runners, lambda seeds, choice: [one for [one] in run(seeds, [choice])], guessed)
    return runners


def _if_managed(
    beliefs: Sequence[PathBelief], best: Choice, drawn_s: Sequence[float], job: Job, limits: Effort, seed: int
) -> list[str]:
    """What the choice would take, by a few of its draws, if the queues that nobody looked at were managed. drawn_s: of
    each draw, before anything was learnt."""
    names = best.paths
    asked = [one for one in beliefs if one.name in names and one.forward.queue.managed.value is None]
    # the same draws otherwise
    managed = [one.managed() if one in asked else one for one in beliefs]
    own = drawn_s[:_FEW]
    if not asked or math.inf in own:
        return []
    seeds = [seed + 1 + k for k in range(len(own))]
    runs = simulate(managed, seeds, [best], job.size_bytes, limits.of, job.ends)
    times = [one.duration_s if one else math.inf for [one] in runs]
    longer = median(times) / median(own)
    if longer < _NOTED:
        return []
    whose = "the queue is" if len(asked) == 1 else "queues are"
    took = f"{longer:.2g} times as long" if math.isfinite(longer) else "much longer"
    return [
        f"nobody looked whether {whose} managed (fq_codel, PIE): then it takes {took}; a thorough measurement looks"
    ]


def _changes(past: Past, measured: Measurement, direction: str) -> tuple[dict[str, float], list[str]]:
    """Since when each line is what it is, as far as is known, and a sentence for those that are other ones now."""
    since_s, told = {}, []
    for path in measured.paths:
        if path.down is not None or direction not in path.directions:
            continue
        since_s[path.name] = math.inf
        if (changed := changed_s(past, path, direction)) is not None:
            since_s[path.name], rate = changed
            now = path.directions[direction].capacity_bps.value
            told.append(
                f"{path.name} has {bits(now)}, and had {bits(rate)} until {span(changed[0])} ago: what was sent then "
                "counts no more"
            )
    return since_s, told


def _drifts(past: Past, runners: Sequence[Runner], since_s: Mapping[str, float]) -> list[str]:
    told = []
    for paths in dict.fromkeys(frozenset(runner.choice.paths) for runner in runners):
        off = drift(past, paths, min(since_s[name] for name in paths))
        if off is not None:
            more = f"{off:.0%} longer" if off > 0 else f"{-off:.0%} shorter"
            told.append(
                f"the last transfers over {' and '.join(sorted(paths))} took {more} than forecast: only they count"
            )
    return told


def _unknown(measured: Measurement, direction: str, names: Sequence[str], guessed: Collection[str] = ()) -> list[str]:
    """Why these are not forecast, or no more than guessed."""
    told = []
    for name in names:
        path = measured.path(name)
        lines = [
            one
            for one in measured.missing
            if name in one.replace("`", " ").split() and f" {_other(direction)}:" not in one
        ]
        reason = "; ".join(lines) or "its round trip or its capacity is not known"
        what = "is taken for a line like the others, which is a guess" if name in guessed else "is left out"
        told.append(reason if path.down else f"{name} {what}: {reason}")
    return told


def _beyond(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    are = f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'}"
    return [f"{are} left out: at most {NETWORK_PATHS} paths are simulated, those with most room"]


def _other(direction: str) -> str:
    return {"out": "in", "in": "out"}[direction]


def _cut(runners: Sequence[Runner], limits: Effort, size_bytes: int, draws: int) -> list[str]:
    """What was left out for the sake of time, in terms of trust."""
    told = []
    cut = [runner for runner in runners if limits.of(runner.choice) < size_bytes]
    if cut:
        of = "every transfer" if len(cut) == len(runners) else ", ".join(_called(runner.choice) for runner in cut)
        least, error = min(limits.of(runner.choice) for runner in cut), max(_uncertain(runner) for runner in cut)
        off = f"may be {2 * error:.0%} off, and makes the interval wider" if 2 * error >= _NOTHING else "is hardly off"
        told.append(f"of {of} the first {size(least)} were tried out: that the rest goes on like them {off}")
    made = max(len(runner.outcomes) for runner in runners)
    if made < draws:
        rough = "rough: about every fifth time it may end outside" if made < _ROUGH else "a little rougher than usual"
        told.append(f"there was too little time to compute more, so that the interval is {rough}")
    return told


def _called(choice: Choice) -> str:
    return f"{' + '.join(choice.paths)} with {choice.control}"


def _uncertain(runner: Runner) -> float:
    """The error of what was not simulated, in the median of the draws."""
    return median([one.error for one in runner.outcomes if one] or [0.0])
