"""What earlier transfers over the same paths teach of a forecast: their own times, and what they were to the twin's.

Three ways to say how long a choice takes: `twin`, the simulated draws as they are; `corrected`, these by what transfers
were to them, shrunk towards nothing where few are known; `past`, the median of equal transfers. The one is taken whose
errors on earlier forecasts of this choice were least (Dawid's prequential principle, 1984): none is judged by the
transfer that it is to foretell. Intervals are scaled so that nine of ten earlier ones would have held (split conformal
prediction with normalised scores; Lei et al., 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from pathcast.forecast.past import Carried, Judged, Past
from pathcast.forecast.twin import Choice

WAYS = ("twin", "corrected", "past")
# equal: of a size within this share
_EQUAL = 0.1
# sizes whose errors say something of each other, as a factor
_SIMILAR = 8.0
# errors that are taken for granted, with this weight [transfers]: of the twin; of the past by so many transfers
_TWIN_ERROR, _PAST_ERROR, _WEIGHT = 0.13, 0.08, 3.0
# the correction: transfers that weigh as much as the belief that none is needed; those by other controllers
_SHRINK, _OTHER_CONTROL = 1.0, 0.3
# the spread of equal transfers is held together with the twin's, which weighs as much as so many
_SPREAD_WEIGHT = 2.0
# fewer scores have no 95 % quantile; more are not asked
_FEWEST, _MOST_SCORES, _COVERED = 19, 100, 0.9
# transfers against what was forecast of them: so many in a row are no chance
_DRIFTED, _DRIFT = 3, 0.25


@dataclass(frozen=True)
class Lesson:
    """Of one choice and size. factor: on the twin's durations; past_s: the median of equal transfers, and deviation of
    their logarithm; errors: of each way, on what was forecast before; scale: of the interval; transfers: behind it."""

    factor: float = 1.0
    past_s: float | None = None
    spread: float = 0.0
    weight: float = 0.0
    errors: Mapping[str, float] | None = None
    scale: float = 1.0
    transfers: int = 0
    newest_s: float | None = None

    @property
    def way(self) -> str:
        """The one to take."""
        errors = self.errors or {"twin": 0.0}
        return min(errors, key=lambda way: (errors[way], WAYS.index(way)))

    @property
    def error(self) -> float:
        """How far that way may be off [logarithm]."""
        return (self.errors or {}).get(self.way, _TWIN_ERROR)

    def told(self, durations: Sequence[float]) -> tuple[list[float], list[float], dict[str, Any]]:
        """Durations of the draws as this lesson has them; the same before they were stretched, by which choices are
        compared; and for the document which way was taken, what each would have said [s], and by how much the interval
        was scaled."""
        ended = [one for one in durations if one < math.inf]
        if not ended or median(durations) == math.inf:
            return list(durations), list(durations), {"by": "twin", "ways_s": {}, "scale": 1.0}
        twin = median(durations)
        ways = {"twin": twin}
        if self.factor != 1.0:
            ways["corrected"] = twin * self.factor
        if self.past_s is not None:
            ways["past"] = self.past_s
        way = self.way if self.way in ways else "twin"
        stretch = self.scale
        if way == "past":
            stretch *= self._stretch([math.log(one / twin) for one in ended])
        center = ways[way]
        made = [center * (one / twin) ** stretch if one < math.inf else one for one in durations]
        return made, [center / twin * one for one in durations], {"by": way, "ways_s": ways, "scale": self.scale}

    def _stretch(self, logs: Sequence[float]) -> float:
        """Of the draws, so that they lie as far apart as equal transfers did, held together with the draws' own."""
        own = math.sqrt(fmean(one**2 for one in logs))
        if not own:
            return 1.0
        both = (_SPREAD_WEIGHT * own**2 + self.weight * self.spread**2) / (_SPREAD_WEIGHT + self.weight)
        return math.sqrt(both * (1 + 1 / max(self.weight, 1.0))) / own


def lesson(past: Past, choice: Choice, size_bytes: int, since_s: float = math.inf) -> Lesson:
    """Of everything that is younger than `since_s`, since the lines are what they are; after a drift only of what came
    with it."""
    paths = frozenset(choice.paths)
    since_s = min(since_s, _drifted_s(past, paths, since_s))
    scale = conformal(past, choice, size_bytes, since_s)
    own = [one for one in past.judged if one.carried.paths == paths and one.carried.age_s < since_s]
    own = [one for one in own if _similar(one, size_bytes)]
    equal = [
        one
        for one in past.carried
        if one.paths == paths
        and one.control == choice.control
        and one.age_s < since_s
        and abs(one.size_bytes - size_bytes) <= _EQUAL * size_bytes
    ]
    same = [one for one in own if one.carried.control == choice.control]
    if not own and not equal:
        return Lesson(scale=scale)
    factor = math.exp(_correction(own, choice.control)) if own else 1.0
    past_s, spread, weight = _equal(equal, size_bytes)
    errors = {"twin": _error(same, "twin", _TWIN_ERROR)}
    if factor != 1.0:
        # a forecast that could not be corrected yet counts by the twin's error
        errors["corrected"] = _error(same, "corrected", _TWIN_ERROR * 0.95)
    if past_s is not None:
        errors["past"] = _error(same, "past", _PAST_ERROR * math.sqrt(1 + 1 / weight))
    newest = min([one.carried.age_s for one in same] + [one.age_s for one in equal], default=None)
    return Lesson(factor, past_s, spread, weight, errors, scale, len(equal), newest)


def conformal(past: Past, choice: Choice, size_bytes: int, since_s: float = math.inf) -> float:
    """By how much a choice's interval is to be stretched, in the logarithm of the duration: by what was judged of such
    transfers; where these are too few by others, who make none narrower. 1 where too few were judged at all."""
    of = [one for one in past.judged if one.carried.age_s < since_s and _score(one) is not None]
    mine = [one for one in of if one.carried.paths == frozenset(choice.paths)]
    sized = [one for one in mine if _similar(one, size_bytes)]
    own = [one for one in sized if one.carried.control == choice.control]
    for judged in (own, sized, mine, of):
        if len(judged) >= _FEWEST:
            scores = sorted(score for one in judged[:_MOST_SCORES] if (score := _score(one)) is not None)
            scale = scores[min(math.ceil((len(scores) + 1) * _COVERED), len(scores)) - 1]
            return scale if judged is own else max(1.0, scale)
    return 1.0


def drift(past: Past, paths: frozenset[str], since_s: float = math.inf) -> float | None:
    """By how much longer (above 0) or shorter the last transfers took than was forecast, where none is chance."""
    off = [_off(one, _said(one)) for one in _over(past, paths, since_s)[:_DRIFTED]]
    known = [one for one in off if one is not None]
    if len(known) < _DRIFTED or not (all(one > _DRIFT for one in known) or all(one < -_DRIFT for one in known)):
        return None
    return math.exp(median(known)) - 1


def _drifted_s(past: Past, paths: frozenset[str], since_s: float) -> float:
    """What is younger came with the drift: the last transfers, and those before them that were as far off; infinite
    where there is none."""
    by, found_s = drift(past, paths, since_s), math.inf
    if by is not None:
        for one in _over(past, paths, since_s):
            off = _off(one, _said(one))
            if off is not None and math.copysign(off, off * by) <= _DRIFT:
                break
            found_s = math.nextafter(one.carried.age_s, math.inf)
    return found_s


def _over(past: Past, paths: frozenset[str], since_s: float) -> list[Judged]:
    return [one for one in past.judged if one.carried.paths == paths and one.carried.age_s < since_s]


def _similar(one: Judged, size_bytes: int) -> bool:
    return 1 / _SIMILAR <= one.carried.size_bytes / size_bytes <= _SIMILAR


def _correction(judged: Sequence[Judged], control: str) -> float:
    """Logarithm of the factor on the twin's durations: the weighted mean of what transfers were to them, shrunk."""
    total, weights = 0.0, _SHRINK
    for one in judged:
        off = _off(one, _ways(one).get("twin"))
        if off is not None:
            weight = one.carried.weight * (1.0 if one.carried.control == control else _OTHER_CONTROL)
            total, weights = total + weight * off, weights + weight
    return total / weights


def _equal(transfers: Sequence[Carried], size_bytes: int) -> tuple[float | None, float, float]:
    """Median of their durations at this size, the deviation of the logarithm, and their weight."""
    if not transfers:
        return None, 0.0, 0.0
    weighed = sorted((one.duration_s * size_bytes / one.size_bytes, one.weight) for one in transfers)
    total = math.fsum(weight for _, weight in weighed)
    passed, middle = 0.0, weighed[-1][0]
    for n, (duration, weight) in enumerate(weighed):
        passed += weight
        if passed >= total / 2:
            # of two equal halves the middle between them
            even = math.isclose(passed, total / 2) and n + 1 < len(weighed)
            middle = math.sqrt(duration * weighed[n + 1][0]) if even else duration
            break
    square = math.fsum(weight * math.log(one / middle) ** 2 for one, weight in weighed) / total
    return middle, math.sqrt(square), total


def _error(judged: Sequence[Judged], way: str, granted: float) -> float:
    """Mean absolute error of a way's logarithms, with what is taken for granted."""
    total, weights = _WEIGHT * granted, _WEIGHT
    for one in judged:
        ways = _ways(one)
        said = ways.get(way, ways.get("twin") if way == "corrected" else None)
        if (off := _off(one, said)) is not None:
            total, weights = total + one.carried.weight * abs(off), weights + one.carried.weight
    return total / weights


def _score(one: Judged) -> float | None:
    """How far the transfer was from the median, over the half interval before it was scaled."""
    duration = one.option.get("duration_s") or {}
    value, low, high = (duration.get(name) for name in ("value", "low", "high"))
    off = _off(one, value)
    if off is None or not low or not high:
        return None
    half = (math.log(high / value) if off > 0 else math.log(value / low)) / (one.option.get("scale") or 1.0)
    return abs(off) / half if half > 0 else None


def _said(one: Judged) -> float | None:
    return (one.option.get("duration_s") or {}).get("value")


def _ways(one: Judged) -> Mapping[str, float]:
    """What each way would have said; a forecast of before there were any was the twin's."""
    ways = one.option.get("ways_s")
    if ways:
        return dict(ways)
    return {} if (said := _said(one)) is None else {"twin": said}


def _off(one: Judged, said: float | None) -> float | None:
    """Logarithm of the transfer's time, at the size that was forecast, over what was said."""
    took_s = one.carried.duration_s * one.size_bytes / max(1, one.carried.size_bytes)
    return math.log(took_s / said) if said and took_s > 0 else None
