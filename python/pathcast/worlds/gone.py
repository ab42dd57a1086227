"""A far end that goes while it is measured: what was found of some paths is half a truth, and of the others none.

A line is down only if another one still answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from pathcast.errors import PathcastError
from pathcast.worlds.measurement import Down, Measurement, PathMeasured

# why a value is missing, or not to be trusted, where answers ceased to come
_CEASED = ("no-answer", "feedback-lost", "session-lost")
# after so long a silence a measurement of a path gives up [s] (`SILENCE`, crates/measure/src/client_path.rs)
_SILENCE_S = 5
# of longer round trips an answer may come later than it is waited for (`REACH`, crates/net/src/client.rs) [s]
_PATIENT_S = 1.0
# of a path that did not even greet
DIED = Down(1, _SILENCE_S)


class Asks(Protocol):
    """Of a world what is needed."""

    def silent(self, paths: Sequence[str] | None = None) -> Mapping[str, str]: ...


def checked(found: Measurement, world: Asks, now: Callable[[], datetime] = datetime.now) -> Measurement:
    """A measurement that has just ended, with the paths as down whose answers ceased and that still are silent.

    Asks the world only where answers ceased. Raises exit 1 where no path answers any more.
    """
    ceased = [path.name for path in found.paths if path.down or _ceased(path)]
    if not ceased or any((path.rtt_s.value or 0.0) > _PATIENT_S for path in found.paths):
        return found
    ended = now()
    began = ended - timedelta(seconds=found.elapsed_s)
    silent = gone(world, [path.name for path in found.paths], began + timedelta(seconds=_last_s(found)), now)
    paths = [
        replace(path, down=Down(_lost(path), _SILENCE_S))
        if path.name in ceased and path.name in silent and path.down is None
        else path
        for path in found.paths
    ]
    return replace(found, paths=tuple(paths))


def gone(
    world: Asks, names: Sequence[str], seen: datetime | None, now: Callable[[], datetime] = datetime.now
) -> Mapping[str, str]:
    """Of these paths those that are silent now, and why. seen: when one of them answered last, as far as is known.

    Raises exit 1 where all are.
    """
    silent = world.silent(names)
    if not names or not set(names) <= set(silent):
        return silent
    since = "" if seen is None else f" (its last answer came at about {seen:%H:%M:%S})"
    whys = "; ".join(f"{name}: {silent[name]}" for name in names)
    raise PathcastError(
        "no-answer",
        f"the far end has gone: it answers over no path at {now():%H:%M:%S}{since}: {whys}",
        "is `pathcast serve` still running there? Start it, and ask again",
    )


def _ceased(path: PathMeasured) -> bool:
    return any(value.why in _CEASED for of in path.directions.values() for value in (of.capacity_bps, of.available_bps))


def _last_s(found: Measurement) -> float:
    """When the last probe of the far end came, after the measurement began [s]; 0 where none did."""
    back = [path.directions["in"].probed_s for path in found.paths if "in" in path.directions]
    return max((of[-1] for of in back if of), default=0.0)


def _lost(path: PathMeasured) -> int:
    return max(1, sum(of.loss.lost for of in path.directions.values()))
