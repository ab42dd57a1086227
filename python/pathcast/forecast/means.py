"""How a forecast comes to know its paths: by the history, or measured as thoroughly as caps have room for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pathcast.errors import Exit, PathcastError
from pathcast.forecast import fresh
from pathcast.forecast.forecast import Job
from pathcast.forecast.past import Past
from pathcast.forecast.watch import Watched, doubted, varies
from pathcast.units import span
from pathcast.worlds.gone import gone
from pathcast.worlds.measurement import EFFORTS, Away, Measurement, Request
from pathcast.worlds.world import World


@dataclass(frozen=True)
class Bound:
    """Of a path whose cap has no room for what is asked for: why, in words; light: it has for a light measurement."""

    why: str
    light: bool


@dataclass(frozen=True)
class Means:
    """known: what the history holds of some paths, or of all. measured, light: those that are measured, as is asked
    for, and lightly. away: those that do not answer, where this was looked for. notes: what is not as was asked for."""

    known: Watched | None
    measured: tuple[str, ...]
    light: tuple[str, ...] = ()
    away: tuple[Away, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sends(self) -> bool:
        """Whether anything is measured."""
        return bool(self.measured or self.light)


def means(
    world: World,
    names: Sequence[str],
    job: Job,
    asked: Request,
    past: Past | None = None,
    anew: bool = False,
    bounds: Mapping[str, Bound] | None = None,
) -> Means:
    """What the history holds of all these paths, else they are measured. Of the paths in `bounds` it counts in any
    case, a light measurement too; what it does not hold of them is measured lightly, or left out. anew: measure.

    Raises PathcastError: exit 4 where nothing is left, exit 1 where nobody answers.
    """
    bounds = bounds or {}

    def holds(these: Sequence[str], request: Request, always: bool = False) -> Watched | None:
        return held(past, these, job, request, names) if past is not None and these and (always or not anew) else None

    found = holds(names, asked)
    # a line may have died since
    if found is not None and not world.silent(names):
        return Means(found, ())
    if not bounds:
        return Means(None, tuple(names))
    dead = gone(world, names, None)
    alive = [name for name in names if name not in dead]
    tight = {name: bounds[name] for name in alive if name in bounds}
    lightly = replace(asked, effort=EFFORTS[0])
    # each by itself: what belies the measurement of one says nothing of another one's
    of = {name: holds([name], lightly, always=not bound.light) for name, bound in tight.items()}
    kept = {name: one for name, one in of.items() if one is not None}
    known = list(kept.values())
    light = [name for name, bound in tight.items() if name not in kept and bound.light]
    free = [name for name in alive if name not in bounds]
    if (rest := holds(free, asked)) is not None:
        known, free = [*known, rest], []
    notes = [_note(name, bound.why, kept.get(name), name in light) for name, bound in tight.items()]
    if not known and not free and not light:
        raise PathcastError("no-line", "no line has room in its cap: " + "; ".join(notes), None, Exit.REFUSED)
    away = tuple(Away(name, why) for name, why in dead.items())
    return Means(joined(known, names, ()) if known else None, tuple(free), tuple(light), away, tuple(notes))


def _note(name: str, why: str, kept: Watched | None, light: bool) -> str:
    if kept is not None:
        return f"{name} is as it was measured {span(kept.age_s)} ago: {why}"
    return f"{name} is measured lightly: {why}" if light else f"{name} is not measured: {why}"


def held(
    past: Past, names: Sequence[str], job: Job, asked: Request, over: Collection[str] | None = None
) -> Watched | None:
    """What the history holds of all these paths in place of a measurement; None: nothing that is fresh. over: the paths
    whose transfers may belie it, where these are more."""
    found = fresh.fresh(past, names, job.direction, asked.effort, over)
    if found is None:
        return None
    horizon_s = horizon(found.measured, job)
    loads = {name: fresh.loads(past, name, job.direction, horizon_s) for name in names}
    paths, until_s = [], fresh.belied_s(past, names, over)
    for path in found.measured.paths:
        looks = fresh.looks(past, path, job.direction, until_s)
        varied = varies(path, job.direction, looks, job.size_bytes)
        paths.append(doubted(path, job.direction, looks) if varied is None else varied[0])
        if varied is not None:
            loads[path.name] = varied[1]
    age_s = fresh.age_s(past, found.measured.paths)
    return Watched(replace(found.measured, paths=tuple(paths)), loads, age_s=age_s)


def horizon(measured: Measurement, job: Job) -> float:
    """About how long the job takes over what these paths have left [s]."""
    left = [path.directions[job.direction].available_bps.value for path in measured.paths if path.directions]
    return job.size_bytes * 8 / max(1.0, sum(one for one in left if one is not None))


def joined(parts: Sequence[Watched], names: Sequence[str], away: Sequence[Away]) -> Watched:
    """One measurement of several, its paths in the order of `names`, then those that came meanwhile; as thorough as the
    least of them."""
    all = [part.measured for part in parts]
    place = {name: n for n, name in enumerate(names)}
    paths = sorted((path for one in all for path in one.paths), key=lambda path: place.get(path.name, len(place)))
    measured = replace(
        all[0],
        paths=tuple(paths),
        probe_bytes=sum(one.probe_bytes for one in all),
        elapsed_s=sum(one.elapsed_s for one in all),
        effort=min((one.effort for one in all), key=EFFORTS.index),
        measured_at=min((one.measured_at for one in all if one.measured_at is not None), default=None),
        notes=tuple(dict.fromkeys(note for one in all for note in one.notes)),
        away=tuple(dict.fromkeys([*(of for one in all for of in one.away), *away])),
    )
    loads = {name: of for part in parts for name, of in part.loads.items()}
    spent = sum(part.probe_bytes for part in parts), sum(part.elapsed_s for part in parts)
    return Watched(measured, loads, *spent, age_s=max(part.age_s for part in parts))
