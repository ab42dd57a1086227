"""A forecast in words and numbers: of every choice the distribution of throughput and duration, and which to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from pathcast.forecast.race import Runner, placed

_INTERVAL = (0.05, 0.95)
# one choice is taken in place of another for no less [share of the time]
_WORTH_IT = 0.01


def option(runner: Runner, size_bytes: int, deadline_s: float | None) -> dict[str, Any]:
    """What is told of a choice."""
    durations = sorted(runner.durations_s())
    ended = [one for one in runner.outcomes if one]
    carried = [one.bytes_by_path for one in ended]
    times = spread(durations)
    rates = [None if not t else 0.0 if math.isinf(t) else size_bytes * 8 / t for t in times]
    told: dict[str, Any] = {
        "paths": list(runner.choice.paths),
        "control": runner.choice.control,
        "throughput_bps": {"value": rates[0], "low": rates[2], "high": rates[1]},
        "duration_s": dict(zip(("value", "low", "high"), (None if math.isinf(t) else t for t in times), strict=True)),
        "expected_s": _finite(fmean(runner.compared_s())),
        "deadline_probability": None,
        "bytes_by_path": [round(fmean(shares)) for shares in zip(*carried, strict=True)],
        "resent_bytes": round(fmean(one.resent_bytes for one in ended)) if ended else None,
        "by": runner.told.get("by", "twin"),
        "ways_s": runner.told.get("ways_s") or ({} if math.isinf(times[0]) else {"twin": times[0]}),
        "scale": runner.told.get("scale", 1.0),
        "draws": len(durations),
        "simulated_bytes": max((one.simulated_bytes for one in ended), default=0),
    }
    if deadline_s is not None:
        told["deadline_probability"] = met(runner, deadline_s)
    return told


def met(runner: Runner, deadline_s: float) -> float:
    """How probable it is that the job is done by then; a few draws make nothing certain (rule of succession)."""
    durations = runner.durations_s()
    return (sum(one <= deadline_s for one in durations) + 0.5) / (len(durations) + 1) if deadline_s > 0 else 0.0


def chosen(runners: Sequence[Runner]) -> Runner | None:
    """The fastest by expected time; another than all paths only where that is faster by more than chance and a per
    cent. None: nothing ended."""
    # what was given up is slower for certain; by its few draws alone it may look faster
    ended = [runner for runner in runners if any(runner.outcomes) and runner.running]
    ended = ended or [runner for runner in runners if any(runner.outcomes)]
    if not ended:
        return None
    best = min(ended, key=lambda runner: (runner.place, -len(runner.choice.paths)))
    widest = [runner for runner in ended if len(runner.choice.paths) == max(len(one.choice.paths) for one in ended)]
    usual = min(widest, key=lambda runner: runner.place)
    if usual is best:
        return best
    pairs = list(zip(usual.compared_s(), best.compared_s(), strict=False))
    if placed([own for own, _ in pairs])[0] > placed([bests for _, bests in pairs])[0]:
        return best
    gains = [own - bests for own, bests in pairs if max(own, bests) < math.inf]
    chance = math.hypot(_error(gains), *_own_errors(usual, best))
    return best if gains and fmean(gains) > max(_WORTH_IT * best.place[1], chance) else usual


def _own_errors(*runners: Runner) -> list[float]:
    """How far the means of these may be off, each by itself [s]; nothing where all are off by the same: the twin's are,
    and the same corrections."""
    ways = {runner.told.get("by", "twin") for runner in runners}
    if ways == {"twin"} or (ways == {"corrected"} and len({frozenset(one.choice.paths) for one in runners}) == 1):
        return []
    return [runner.error * runner.place[1] for runner in runners]


def _error(values: Sequence[float]) -> float:
    if len(values) < 2:
        return math.inf
    mean = fmean(values)
    return math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (len(values) - 1) / len(values))


def spread(ordered: Sequence[float]) -> tuple[float, float, float]:
    """Median and the ends of the 90 % interval of a sorted sample."""
    low, high = (quantile(ordered, share) for share in _INTERVAL)
    return median(ordered), low, high


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of a sorted sample, as one of those that would make it as likely for the next value to lie below as `share`."""
    at = share * (len(ordered) + 1) - 1
    if at <= 0:
        return ordered[0]
    if at >= len(ordered) - 1:
        return ordered[-1]
    whole = int(at)
    low, high = ordered[whole], ordered[whole + 1]
    return high if math.isinf(high) and at > whole else low + (at - whole) * (high - low) if at > whole else low


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
