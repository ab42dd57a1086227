"""What was measured a moment ago is not measured again; what an older measurement knows of a line is not forgotten."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median, median_low

from pathcast.forecast.losses import pooled
from pathcast.forecast.past import Earlier, Past
from pathcast.forecast.watch import Watched
from pathcast.worlds.measurement import EFFORTS, Direction, Loss, Measurement, PathMeasured, Value

# a measurement stands for now [s]; looks at the load, for a long job, as long as that will take, up to a day
FRESH_S, _DAY_S = 300.0, 86_400.0
# a line is another where its capacity is further from what it was [share]
_SAME = 0.15
# but one that varies by itself is so only where it is further than nine of ten looks; half of them are within the
# second number [standard deviations]. Of so many earlier ones
_FAR, _HALF, _RECENT = 1.645, 0.674, 9
# a transfer outside of its interval by this factor tells that the line is another one
_BELIED = 1.25
# losses are counted over this time [s], of as many measurements
_LOSS_S = 7 * 86_400.0
# a queue's depth of long ago: deviation of its logarithm that a day adds
_DEPTH_A_DAY = 0.05
_NOTHING = Value(None, why="not-looked-for")


def fresh(
    past: Past, names: Sequence[str], direction: str, effort: str, over: Collection[str] | None = None
) -> Watched | None:
    """The measurement that the history holds of all these paths, where it is fresh, was no less thorough and is not
    belied (`belied_s`), without looks at the load (`loads`). None: measure."""
    until_s = belied_s(past, names, over)
    found: list[PathMeasured] = []
    efforts: list[str] = []
    for name in names:
        whole = [
            one
            for one in past.of(name)
            if one.age_s <= min(FRESH_S, until_s)
            and one.path.down is None
            and one.path.directions[direction].capacity_bps.trusted
            and _rank(one.effort) >= _rank(effort)
        ]
        if not whole:
            return None
        # looks know less than the measurement that they follow: the one that knows most, of these the newest
        best = max(whole, key=lambda one: (_known(one, direction), -one.age_s))
        newest = whole[0].path.directions[direction]
        if not _alike(newest, best.path.directions[direction]):
            return None
        found.append(best.path)
        efforts.append(best.effort or effort)
    least = min(efforts, key=_rank)
    measured = Measurement(tuple(found), 0, 0.0, "history", least)
    return Watched(measured, {})


def age_s(past: Past, paths: Sequence[PathMeasured]) -> float:
    """How old the oldest of these is, which `fresh` took [s]."""
    return max((one.age_s for path in paths for one in past.of(path.name) if one.path is path), default=0.0)


def looks(past: Past, path: PathMeasured, direction: str, until_s: float = math.inf) -> list[Direction]:
    """What was found of a path whenever it was measured that still stands for now, and was not belied `until_s` ago,
    the oldest first; where two of them or more agree on another capacity than those before, these."""
    of = [one for one in past.of(path.name) if one.age_s <= min(FRESH_S, until_s) and one.path.down is None]
    since = since_change(replace(past, measured={path.name: tuple(of)}), path, direction)
    return [one.path.directions[direction] for one in reversed(since if len(since) > 1 else of)]


def belied_s(past: Past, names: Sequence[str], over: Collection[str] | None = None) -> float:
    """How long ago a transfer last took a time that its forecast had not thought possible [s]: what was measured before
    it counts no more. Infinite: none did. over: of the transfers that used one of these paths those over no others;
    None: over these."""
    among, found = set(names if over is None else over), math.inf
    for one in past.judged:
        span = one.option.get("duration_s") or {}
        low, high = span.get("low"), span.get("high")
        paths = one.carried.paths
        if paths <= among and paths & set(names) and low and high:
            took_s = one.carried.duration_s * one.size_bytes / max(1, one.carried.size_bytes)
            if not low / _BELIED <= took_s <= high * _BELIED:
                found = min(found, one.carried.age_s)
    return found


def loads(
    past: Past, name: str, direction: str, horizon_s: float, now: PathMeasured | None = None
) -> tuple[float, ...]:
    """What others took of a line at every look that still counts, the oldest first; now: what it is today, where that
    is not the history's last word."""
    since_s = min(max(FRESH_S, horizon_s), _DAY_S)
    of = [one.path.directions[direction] for one in past.of(name) if one.age_s <= since_s]
    last = now.directions[direction] if now is not None and direction in now.directions else of[0] if of else None
    found = []
    for one in of:
        capacity, left = one.capacity_bps.sure, one.available_bps.at_a_glance.sure
        if capacity and left is not None and last is not None and _alike(one, last):
            found.append(min(max(1 - left / capacity, 0.0), 1.0))
    return tuple(reversed(found))


def remembered(path: PathMeasured, past: Past, direction: str) -> PathMeasured:
    """With what earlier measurements of the same line knew and this one does not: queue, kind of cross traffic,
    variation; the losses of all of them together."""
    now = path.directions.get(direction)
    if now is None or path.down is not None:
        return path
    if not now.capacity_bps.trusted:
        better = _capacity(now, past.of(path.name), direction)
        if better is None and now.capacity_bps.value is None:
            return path
        now = better or now
        path = replace(path, directions={**path.directions, direction: now})
    # what the history holds may be one of them, whatever rate was concluded from all
    before = [one for one in since_change(past, path, direction) if one.path.directions[direction].loss is not now.loss]
    if not before:
        return path
    queue, cross = now.queue, now.cross
    for one in before:
        of = one.path.directions[direction]
        if queue.depth_bytes.value is None and of.queue.depth_bytes.trusted:
            queue = replace(queue, depth_bytes=_aged(of.queue.depth_bytes, one.age_s), depth_s=of.queue.depth_s)
        queue = replace(
            queue,
            fair=_first(queue.fair, of.queue.fair),
            managed=_first(queue.managed, of.queue.managed),
        )
        cross = replace(
            cross, elastic=_first(cross.elastic, of.cross.elastic) if one.age_s <= FRESH_S else cross.elastic
        )
    changed = replace(now, queue=queue, cross=cross, loss=_losses(now.loss, before, direction))
    return replace(path, directions={**path.directions, direction: changed})


def _capacity(now: Direction, before: Sequence[Earlier], direction: str) -> Direction | None:
    """With the capacity of the newest measurement that found one, as uncertain as a line is to be taken for the same;
    what others send now nobody knows."""
    for one in before:
        capacity = one.path.directions[direction].capacity_bps
        if one.age_s <= _DAY_S and capacity.value is not None and capacity.why is None:
            wide = Value(capacity.value, capacity.value * (1 - _SAME), capacity.value * (1 + _SAME))
            return replace(now, capacity_bps=wide)
    return None


def since_change(past: Past, path: PathMeasured, direction: str) -> list[Earlier]:
    """The earlier measurements of a line, back to where it had another capacity, by more than it varies by itself."""
    now, older = path.directions[direction], past.of(path.name)
    most = _varies(now, [one.path.directions[direction] for one in older])
    found = []
    for one in older:
        of = one.path.directions[direction]
        if of.capacity_bps.trusted and not _alike(of, now) and _apart(of, now) > most:
            break
        found.append(one)
    return found


def _varies(now: Direction, older: Sequence[Direction]) -> float:
    """How far two looks at a line are apart by what it does itself [logarithm], at most: as the newest of them that
    knows says, or as each of the older ones usually was from the next, which one change among them does not tell."""
    known = (one.rate_variation.cv.value for one in (now, *older))
    cv = next((one for one in known if one is not None), 0.0)
    apart = _FAR * math.sqrt(2 * math.log1p(cv**2))
    rates = [rate for one in older if (rate := one.capacity_bps.sure)][:_RECENT]
    steps = [abs(math.log(a / b)) for a, b in pairwise(rates)]
    return max(apart, _FAR / _HALF * median_low(steps)) if len(steps) > 1 else apart


def _apart(one: Direction, other: Direction) -> float:
    a, b = one.capacity_bps.value, other.capacity_bps.value
    return abs(math.log(a / b)) if a and b else 0.0


def changed_s(past: Past, path: PathMeasured, direction: str) -> tuple[float, float] | None:
    """How long ago a line last had another capacity, and which [bit/s]; None: it had none."""
    kept = len(since_change(past, path, direction))
    older = past.of(path.name)[kept:]
    if not older:
        return None
    rates = [of for one in older if (of := one.path.directions[direction].capacity_bps.sure) is not None]
    return older[0].age_s, median(rates[:_RECENT])


def _alike(one: Direction, other: Direction) -> bool:
    a, b = one.capacity_bps.value, other.capacity_bps.value
    return a is None or b is None or abs(a - b) <= _SAME * max(a, b)


def _losses(now: Loss, before: Sequence[Earlier], direction: str) -> Loss:
    of = [now, *(one.path.directions[direction].loss for one in before if one.age_s <= _LOSS_S)]
    return pooled(of)


def _aged(value: Value, seconds: float) -> Value:
    """Wider by what may have changed since then."""
    assert value.value is not None
    wider = 1 + 1.6449 * _DEPTH_A_DAY * seconds / _DAY_S
    low = value.value / 2 if value.low is None else value.low
    high = value.value * 2 if value.high is None else value.high
    return Value(value.value, low / wider, high * wider)


def _first(now: Value, before: Value) -> Value:
    return before if now.value is None and before.value is not None else now


def _known(one: Earlier, direction: str) -> int:
    of = one.path.directions[direction]
    return len(one.path.directions) + sum(
        value.value is not None for value in (of.queue.depth_bytes, of.queue.fair, of.loss.random, of.cross.elastic)
    )


def _rank(effort: str | None) -> int:
    return EFFORTS.index(effort) if effort in EFFORTS else -1
