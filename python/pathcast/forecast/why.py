"""One plain sentence: which choice, how long, and what the next best would cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from pathcast.forecast.answer import met, spread
from pathcast.forecast.race import Runner
from pathcast.units import size, span, spans

# below and above it a deadline is as good as missed, or kept
_MISSED, _KEPT = 0.1, 0.9
# differences below this share are none
_ALIKE = 0.02


def why(runners: Sequence[Runner], chosen: Runner, size_bytes: int, deadline_s: float | None) -> str:
    """Of a forecast's choice; `deadline_s` from now on."""
    told = _against(runners, chosen)
    if deadline_s is not None:
        told = f"{_deadline(chosen, size_bytes, deadline_s)}; {told}"
    return told


def _deadline(chosen: Runner, size_bytes: int, deadline_s: float) -> str:
    middle, low, high = spread(sorted(chosen.durations_s()))
    whole = f"all of it in {span(_finite(middle))} ({spans(_finite(low), _finite(high))})"
    if deadline_s <= 0:
        return f"too late: the deadline passed while it was measured; {whole}"
    probability = met(chosen, deadline_s)
    if probability < _MISSED:
        done = 0.0 if math.isinf(middle) else size_bytes * deadline_s / middle
        return f"does not fit: {size(done)} by then; {whole}"
    if probability > _KEPT:
        return f"fits: {whole}, and there are {span(deadline_s)}"
    return f"may fit (chance {probability:.0%}): {whole}, and there are {span(deadline_s)}"


def _against(runners: Sequence[Runner], chosen: Runner) -> str:
    """The choice, and what the most telling other one would take: all paths where fewer are chosen, else the best of
    fewer."""
    paths, control = chosen.choice.paths, chosen.choice.control
    head = f"{_names(paths)}{' alone' if len(paths) == 1 and len(_all(runners)) > 1 else ''} with {control}"
    fewer = [one for one in runners if set(one.choice.paths) < set(paths)]
    wider = [one for one in runners if set(one.choice.paths) > set(paths)]
    same = [one for one in runners if one is not chosen and one.choice.paths == paths]
    if wider:
        other = min(wider, key=lambda one: (-len(one.choice.paths), one.place))
        added = [name for name in other.choice.paths if name not in paths]
        more = _more(other, chosen)
        return f"{head}: over {_names(added)} too it would {_took(more)}{_since(added, other, more)}"
    if fewer:
        other = min(fewer, key=lambda one: one.place)
        return f"{head}: {_names(other.choice.paths)} alone would {_took(_more(other, chosen))}"
    others = [one for one in runners if one is not chosen and one not in same]
    if others or same:
        other = min(others or same, key=lambda one: one.place)
        named = _names(other.choice.paths) if others else other.choice.control
        return f"{head}: {named} would {_took(_more(other, chosen))}"
    return f"{head} is the only choice"


def _since(added: Sequence[str], other: Runner, more: float) -> str:
    """How little the others would carry, where that is so."""
    ended = [one for one in other.outcomes if one]
    if not ended or more < _ALIKE:
        return ""
    shares = {
        name: fmean(one.bytes_by_path[at] / max(1.0, sum(one.bytes_by_path)) for one in ended)
        for at, name in enumerate(other.choice.paths)
    }
    carried = sum(shares[name] for name in added)
    return f", since {_names(added)} would carry {carried:.0%} of it and hold up the rest" if carried < 1 else ""


def _took(more: float) -> str:
    if math.isinf(more):
        return "perhaps never end"
    if more < -_ALIKE:
        return f"take {-more:.0%} less, which is too uncertain to act upon"
    if more < _ALIKE:
        return "take as long"
    return f"take {more:.0%} longer" if more < 1 else f"take {1 + more:.2g} times as long"


def _more(other: Runner, chosen: Runner) -> float:
    """By how much longer, of the draws that both had."""
    pairs = list(zip(other.compared_s(), chosen.compared_s(), strict=False))
    own = [b for _, b in pairs if b < math.inf]
    theirs = [a for a, b in pairs if b < math.inf]
    if not own or math.inf in theirs:
        return math.inf
    return fmean(theirs) / fmean(own) - 1


def _all(runners: Sequence[Runner]) -> set[str]:
    return {name for runner in runners for name in runner.choice.paths}


def _names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
