"""How much others send, again and again for a while: the load over a transfer's own time is what a forecast hangs on,
and one look of a second or two says little of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from statistics import fmean, median, stdev

from pathcast.errors import Exit, PathcastError
from pathcast.forecast.belief import ahead, perhaps, polices, wires
from pathcast.forecast.losses import pooled
from pathcast.worlds.gone import DIED, gone
from pathcast.worlds.measurement import Direction, Measurement, PathMeasured, Queue, RateVariation, Request, Value
from pathcast.worlds.world import World

# by how thoroughly was measured [s]; looks, at most; the job's bytes over theirs, at least
_TIMES_S = {"light": 10.0, "usual": 10.0, "thorough": 20.0}
_MOST, _SHARE = 16, 4
# of a light measurement and its looks: IP bytes a path, or a share of the job's where that is more; of one look a path
_LIGHT_BYTES, _LIGHT_SHARE, _LIGHT_LOOK = 116_000, 0.02, 58_000
# once more, for paths of which nothing was found: seconds and IP bytes of each
_PATIENT_S, _PATIENT_BYTES = 30.0, 2_000_000
# a line is no steady one where a look found more than this times the capacity that another one found
_STEADY = 1.2
# nor where they take its rate for so different ones: they agree to a few per mille where it is steady
_APART = 1.15
# nor where what two of them are sure of is so far apart
_DISJOINT = 1.005
# where looks' readings differ by so much it is as likely as not that it varies, and the surer the more they do
_DOUBT, _STEEP = 0.02, 4
# of radio the last look counts so much more than the others, less where the time ahead is longer than this [s] (every
# other one of 23 drives over four operators)
_LAST, _LAST_S = 0.6, 10.0
# a policer has dropped more than this share of a long measurement
_LOST = 0.2
# of every path what others took of its rate, look by look, 0 to 1
Loads = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Watched:
    """The measurement, with what it did not find itself and a look did; the loads, the first of which is its own. What
    the looks cost: IP bytes, and seconds of the world. age_s: of what the history held."""

    measured: Measurement
    loads: Loads
    probe_bytes: int = 0
    elapsed_s: float = 0.0
    age_s: float = 0.0


def watch(
    world: World,
    measured: Measurement,
    direction: str,
    size_bytes: int,
    seed: int | None = None,
    time_s: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Watched:
    """Looks at what was measured, all paths at once, for as long as its effort (or `time_s`) allows and the job would
    take (or one look longer), or until as many bytes were sent as by the measurement, or a quarter of the job's. Of a
    light one first again at the paths of which it found nothing, and no more in all than 116 kB a path, or 2 % of the
    job. A far end that gives up meanwhile ends it; one that goes is an error (exit 1), a line that dies is down.
    progress: hears where a look waits in the far end's queue."""
    ask = world.measure if progress is None else partial(world.measure, progress=_waiting(progress))
    longest_s, patient_s = (_TIMES_S[measured.effort], _TIMES_S["thorough"]) if time_s is None else (time_s, 0.0)
    time_s = min(longest_s, size_bytes * 8 / max(1.0, _available_bps(measured, direction)))
    light = measured.effort == "light"
    request = Request(directions=(direction,), at_once=True, effort="light" if light else "usual")
    most = min(measured.probe_bytes, size_bytes // _SHARE)
    if light:
        most = max(_LIGHT_BYTES * len(measured.paths), round(_LIGHT_SHARE * size_bytes)) - measured.probe_bytes
    up = [path.name for path in measured.paths if path.down is None and direction in path.directions]
    found = {path.name: path for path in measured.paths}
    seen, answered = [measured], datetime.now()
    sent, passed = 0, 0.0
    # where round trips take a second a measurement may end with nothing
    lacking = [name for name in up if _capacity(found[name], direction) is None]
    if lacking and not light:
        patient = replace(request, effort="thorough", time_s=_PATIENT_S, bytes=_PATIENT_BYTES, seed=seed, at_once=False)
        try:
            look = ask(lacking, patient)
            seen.append(look)
            sent, passed = sent + look.probe_bytes, passed + look.elapsed_s
            for path in look.paths:
                found[path.name] = _filled(found[path.name], path, direction)
        except PathcastError as error:
            _broken(world, up, error, answered)
        up = [name for name in up if found[name].down is None]
        lacking = [name for name in lacking if name in up and _capacity(found[name], direction) is None]
    time_s, most = time_s + passed, most + sent
    while up and (passed < time_s or (light and lacking)) and passed < patient_s + time_s and len(seen) <= _MOST:
        names = lacking if light and lacking else up
        if sent + (_LIGHT_LOOK * len(names) if light else 1) > most:
            break
        try:
            look = ask(names, replace(request, seed=None if seed is None else seed + len(seen)))
        except PathcastError as error:
            died = _broken(world, up, error, answered)
            found = {name: replace(of, down=DIED) if name in died else of for name, of in found.items()}
            break
        answered = datetime.now()
        seen.append(look)
        sent, passed = sent + look.probe_bytes, passed + look.elapsed_s
        for path in look.paths:
            found[path.name] = _filled(found[path.name], path, direction)
        up = [name for name in up if found[name].down is None]
        lacking = [name for name in lacking if name in up and _capacity(found[name], direction) is None]
    up = [name for name in up if found[name].down is None]
    loads = {
        name: tuple(load for one in seen if (load := _load(one, name, direction, found[name])) is not None)
        for name in up
    }
    for name in up:
        found[name] = _counted(found[name], direction, [of for one in seen if (of := _of(one, name, direction))])
        looks = [of for one in seen if (of := _of(one, name, direction)) is not None]
        if (varied := varies(found[name], direction, looks, size_bytes)) is not None:
            found[name], loads[name] = varied
        else:
            found[name] = doubted(found[name], direction, looks)
    merged = replace(measured, paths=tuple(found[path.name] for path in measured.paths))
    return Watched(merged, loads, sent, passed)


def _waiting(progress: Callable[[str, int, int], None]) -> Callable[[str, int, int], None]:
    """The queue's phase as it is; of the others that it is looked."""

    def hear(phase: str, done: int, of: int) -> None:
        progress(*(phase, done, of) if phase == "queue" else ("looking how the load varies", 0, 0))

    return hear


def _broken(world: World, names: Sequence[str], error: PathcastError, answered: datetime) -> Collection[str]:
    """Of a look that could not be: the paths that have died. Raises where the far end has, or it was interrupted."""
    if error.exit == Exit.INTERRUPTED:
        raise error
    return gone(world, names, answered) if error.exit == Exit.RUNTIME else ()


def _capacity(path: PathMeasured, direction: str) -> float | None:
    return path.directions[direction].capacity_bps.value


def light_bytes(paths: int, size_bytes: int) -> int:
    """What a forecast by a light measurement of so many paths sends at most [IP byte]: the measurement, then looks."""
    least = _LIGHT_BYTES * paths
    return min(max(least, round(_LIGHT_SHARE * size_bytes)), least * (1 + _MOST))


def _counted(path: PathMeasured, direction: str, looks: Sequence[Direction]) -> PathMeasured:
    """With the losses of all looks, and the depth that they saw."""
    own = path.directions[direction]
    queue = replace(own.queue, depth_bytes=deepest([look.queue for look in looks]))
    own = replace(own, loss=pooled([look.loss for look in looks]), queue=queue)
    return replace(path, directions={**path.directions, direction: own})


def deepest(looks: Sequence[Queue]) -> Value:
    """How deep a queue is [byte] by all of them: who filled it knows best; else their median, as uncertain as they
    differ, and as what was in it without a loss."""
    depths = [one.depth_bytes for one in looks]
    filled = [one.depth_bytes for one in looks if one.managed.value is not None]
    if filled and filled[0].value is not None:
        return filled[0]
    held = max((one.low for one in depths if one.low is not None), default=None)
    # who drops packets that waited for nobody has no queue
    seen = [one for one in depths if one.value is not None and one.low]
    if not seen:
        return replace(depths[0], low=held) if depths else Value(None)
    lows, highs = [one.low for one in seen if one.low is not None], [one.high for one in seen if one.high is not None]
    middle = median(one.value for one in seen if one.value is not None)
    high = max([*highs, middle, held or 0.0]) if len(highs) == len(seen) else None
    return Value(middle, min([*lows, middle]), high)


def varies(
    path: PathMeasured, direction: str, looks: Sequence[Direction], size_bytes: int
) -> tuple[PathMeasured, tuple[float, ...]] | None:
    """A path whose looks, the oldest first, contradict that its rate is always the same: as it is while the job goes
    on, with its loads, which are none. None: they do not, or somebody polices."""
    policed = path.directions[direction].policer.rate_bps.value is not None
    if policed or not (rates := varying(looks)):
        return None
    return _varied(path, direction, rates, looks, size_bytes), (0.0,) * len(rates)


def varying(looks: Sequence[Direction]) -> list[float]:
    """What was to be had of a line at each look [bit/s], where these contradict that its rate is always the same, as of
    radio; else nothing. What others send and how the rate changes are then one."""
    capacities = [rate for one in looks if (rate := one.capacity_bps.sure)]
    left = [rate for one in looks if (rate := one.available_bps.sure)]
    seen = _readings(looks)
    above = bool(capacities) and max(*capacities, *left, 0.0) > _STEADY * min(capacities)
    if not above and not _disjoint(looks) and (len(seen) < 2 or max(seen) <= _APART * min(seen)):
        return []
    # what was left is at most what the line had shortly before: of radio both are its rate, at different times
    radio = len(capacities) > 1 and max(capacities) > _STEADY * min(capacities)
    rates = [_both(one) if radio else one.available_bps.sure for one in looks] if len(left) > 1 else seen
    found = [rate for rate in rates if rate]
    return found if len(found) > 1 else []


def doubted(path: PathMeasured, direction: str, looks: Sequence[Direction]) -> PathMeasured:
    """With how probably its rate varies by itself, though no two looks contradict each other, and nobody polices."""
    own, seen = path.directions[direction], _readings(looks)
    apart = max(seen) / min(seen) - 1 if seen else 0.0
    policed = own.policer.rate_bps.value is not None
    if policed or own.rate_variation.cv.value is not None or not apart:
        return path
    cv = perhaps(1 / (1 + (_DOUBT / apart) ** _STEEP))
    if cv.high is None:
        return path
    own = replace(own, rate_variation=RateVariation(cv))
    return replace(path, directions={**path.directions, direction: own})


def _both(look: Direction) -> float | None:
    left, capacity = look.available_bps.sure, look.capacity_bps.value
    return math.sqrt(left * capacity) if left and capacity else left


def _disjoint(looks: Sequence[Direction]) -> bool:
    """Whether looks are sure of different capacities."""
    sure = [one.capacity_bps for one in looks if one.capacity_bps.sure]
    ends = [(one.low, one.high) for one in sure if one.low is not None and one.high is not None]
    return len(ends) > 1 and max(low for low, _ in ends) > _DISJOINT * min(high for _, high in ends)


def _readings(looks: Sequence[Direction]) -> list[float]:
    """What each look took the line's rate for, trusted or not; of one that found none what was to be had."""
    rates = [one.available_bps.sure if (of := one.capacity_bps.value) is None else of for one in looks]
    return [rate for rate in rates if rate]


def _varied(
    path: PathMeasured, direction: str, rates: Sequence[float], looks: Sequence[Direction], size_bytes: int
) -> PathMeasured:
    """With what is expected of it while the job goes on as its capacity, by these rates, and how they varied."""
    mean = fmean(rates)
    ahead_s = size_bytes * 8 / mean
    last = _LAST / (1 + ahead_s / _LAST_S)
    mean = mean ** (1 - last) * rates[-1] ** last
    # others' traffic may hide how much the line itself varies
    cv = max(stdev(of) / fmean(of) for of in (rates, _readings(looks)) if len(of) > 1)
    wide = ahead(cv, ahead_s, len(rates))
    capacity = Value(mean, mean / wide, mean * wide)
    own = path.directions[direction]
    # without bounds and scale: see `PathBelief`
    variation = RateVariation(Value(own.rate_variation.cv.value or cv))
    own = replace(own, capacity_bps=capacity, available_bps=capacity, rate_variation=variation)
    directions = {**path.directions, direction: own}
    then, other = _readings(looks[:1]), {"out": "in", "in": "out"}[direction]
    back = path.directions.get(other)
    if then and back is not None and back.capacity_bps.value:
        # what comes back was seen by the first look alone, and is as much better or worse since
        times, left = mean / then[0], back.available_bps
        rate = back.capacity_bps.value * times
        left = replace(left, value=left.value and left.value * times)
        directions[other] = replace(back, capacity_bps=Value(rate, rate / wide, rate * wide), available_bps=left)
    return replace(path, directions=directions)


def _of(seen: Measurement, name: str, direction: str) -> Direction | None:
    of = [one.directions.get(direction) for one in seen.paths if one.name == name]
    return of[0] if of else None


def _available_bps(measured: Measurement, direction: str) -> float:
    left = [path.directions[direction].available_bps.value for path in measured.paths if direction in path.directions]
    return sum(one for one in left if one is not None)


def _filled(path: PathMeasured, look: PathMeasured, direction: str) -> PathMeasured:
    """With rates and round trip that were missing; down where it died meanwhile."""
    if look.down is not None:
        return replace(path, down=look.down)
    own, other = path.directions[direction], look.directions.get(direction)
    if other is None:
        return path
    if (passed := _passed(own, other)) is not None:
        policer = polices(passed.value or 0.0) if own.queue.depth_bytes.value is None else own.policer
        own = replace(own, capacity_bps=passed, available_bps=passed, policer=policer)
    elif _better(own.capacity_bps, other.capacity_bps):
        # it may have been shorter than a policer's burst
        own = replace(other, policer=own.policer) if own.policer.rate_bps.value is not None else other
    elif _better(own.available_bps, other.available_bps):
        own = replace(own, available_bps=other.available_bps)
    rtt_s = look.rtt_s if path.rtt_s.value is None else path.rtt_s
    return replace(path, directions={**path.directions, direction: own}, rtt_s=rtt_s)


def _passed(own: Direction, look: Direction) -> Value | None:
    """What came through for long, where much of it was lost and a short look took the line for a faster one: a policer
    whose bucket was full when the look began."""
    left, line = own.available_bps, look.capacity_bps.value
    if own.capacity_bps.value is not None or left.value is None or left.high is None or line is None:
        return None
    if line <= left.high or (own.loss.share or 0.0) < _LOST or wires(own.loss):
        return None
    return Value(left.value, left.value / _STEADY, left.high)


def _better(own: Value, other: Value) -> bool:
    """Whether the other one is a value, or one to be trusted, where the own one is not."""
    return (other.trusted and not own.trusted) or (own.value is None and other.value is not None)


def _load(seen: Measurement, name: str, direction: str, path: PathMeasured) -> float | None:
    capacity = path.directions[direction].capacity_bps.value
    of = _of(seen, name, direction)
    left = of.available_bps.sure if of else None
    return None if left is None or not capacity else min(max(1 - left / capacity, 0.0), 1.0)
