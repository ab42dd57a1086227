"""What is believed of the ways while a job runs: their forecasts, renewed by what the job itself shows, line by line.

A line is judged by the ratio of what it carried to what the forecast of the way that was in use had promised for it;
other ways are taken to be faster or slower by the same. A run that is as fast as its user allows shows no line slower.
The forecast counts like `PRIOR_S` seconds of looking, and what was seen is forgotten over `MEMORY_S`, since lines
change. Of ways that are guesses only what was seen counts: a line is known when it was looked at for `KNOWN_S` beyond
its slow start, and one that is not is taken to be like those that are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pathcast.plan.terms import OVERHEAD, Rate, Way

PRIOR_S, MEMORY_S = 20.0, 300.0
# of a guess [s], at most, and no more than these shares of the time until the deadline
RAMP_S, KNOWN_S, RAMP_SHARE, KNOWN_SHARE = 1.0, 2.0, 0.05, 0.1
# of a line of which nothing is known; and how wide an interval that nobody has seen is [share of the rate]
_UNKNOWN_BPS, _WIDE = 1e6, 0.5
# of the rate that the user allows: what comes so near is held back by that, and not by the lines
_HELD = 0.9
_NORMAL = 1.645


@dataclass
class _Line:
    """Weights, forgotten exponentially: seconds looked at, promised and carried bits, and the squares of its ratio."""

    seen_s: float = 0.0
    promised: float = 0.0
    carried: float = 0.0
    squares: float = 0.0
    ramp_s: float = 0.0

    def look(self, passed_s: float, promised_bps: float, carried_bps: float) -> None:
        if not promised_bps:
            return  # there is nothing to judge it by
        keep = math.exp(-passed_s / MEMORY_S)
        ratio = carried_bps / promised_bps
        self.seen_s = self.seen_s * keep + passed_s
        self.promised = self.promised * keep + promised_bps * passed_s
        self.carried = self.carried * keep + carried_bps * passed_s
        self.squares = self.squares * keep + ratio * ratio * passed_s

    @property
    def ratio(self) -> float:
        return self.carried / self.promised if self.promised else 1.0

    @property
    def error(self) -> float:
        """How far the ratio may be off [share of it]; looks follow each other: a half-minute of them is worth one that
        knows nothing of the others."""
        off = _NORMAL * self.deviation / math.sqrt(max(self.seen_s / 30.0, 1.0))
        return off / self.ratio if self.ratio else 1.0

    @property
    def deviation(self) -> float:
        """Of the ratio of one look."""
        return math.sqrt(max(self.squares / self.seen_s - self.ratio**2, 0.0)) if self.seen_s else 0.0


@dataclass
class Renewed:
    """Of ways with a forecast; a way that nobody has forecast is the sum of its lines (`guessed`). enough_bps: what a
    line of which nothing is known is taken to carry; deadline_s: until then guesses have to be known. max_rate_bps: the
    job is never faster."""

    ways: Sequence[Way]
    enough_bps: float | None = None
    deadline_s: float = math.inf
    max_rate_bps: float | None = None
    _lines: dict[str, _Line] = field(default_factory=dict)

    def look(self, way: Way, passed_s: float, carried_bytes: Mapping[str, float]) -> None:
        """So many bytes of the job passed over the way's lines in that time, while nothing but the network and the
        program held them up."""
        # against its forecast, which the ratio is of: what is believed has moved with the ratio already
        way = next((one for one in self.ways if _same(one, way)), way)
        whole, held = sum(way.loads), self._held_back(way, passed_s, carried_bytes)
        for name, load in zip(way.lines, way.loads, strict=True):
            promised, carried_bps = way.rate.value * load / whole, carried_bytes.get(name, 0.0) * 8 / passed_s
            carried_bps = max(carried_bps, promised) if held else carried_bps
            line = self._lines.setdefault(name, _Line())
            if way.guess and line.ramp_s < min(RAMP_S, RAMP_SHARE * self.deadline_s):
                line.ramp_s += passed_s if carried_bps else 0.0
                continue
            line.look(passed_s, promised, carried_bps)

    def _held_back(self, way: Way, passed_s: float, carried_bytes: Mapping[str, float]) -> bool:
        """Whether it was as fast as it may be: the lines may be as fast as was forecast. Of a guess nothing was."""
        if way.guess or self.max_rate_bps is None:
            return False
        return sum(carried_bytes.get(name, 0.0) for name in way.lines) * 8 >= _HELD * self.max_rate_bps * passed_s

    def known(self, way: Way) -> bool:
        """Whether it is more than a guess."""
        return not way.guess or all(self._seen(name) for name in way.lines)

    def _seen(self, name: str) -> float | None:
        """What a line was seen to carry [bit/s], if it was seen for long enough."""
        line = self._lines.get(name, _Line())
        known = line.seen_s >= min(KNOWN_S, KNOWN_SHARE * self.deadline_s) and line.promised > 0
        return line.carried / line.seen_s if known else None

    def now(self) -> list[Way]:
        """The ways as they are believed to be."""
        return [self._renewed(way) for way in self.ways]

    def _guessed(self, way: Way) -> Way:
        """With what was seen of its lines."""
        seen = {name: rate for name in self._lines if (rate := self._seen(name))}
        usual = sum(seen.values()) / len(seen) if seen else self.enough_bps or _UNKNOWN_BPS
        value = low = high = 0.0
        rates = [seen.get(name, usual) for name in way.lines]
        for name, rate in zip(way.lines, rates, strict=True):
            off = min(self._lines[name].error, _WIDE) if name in seen else _WIDE
            value, low, high = value + rate, low + rate * (1 - off), high + rate * (1 + off)
        return replace(way, rate=Rate(value, low, high), loads=tuple(OVERHEAD * one / value for one in rates))

    def _renewed(self, way: Way) -> Way:
        if way.guess:
            return self._guessed(way)
        whole = sum(way.loads)
        value = low = high = 0.0
        prior = way.rate
        for name, load in zip(way.lines, way.loads, strict=True):
            line, share = self._lines.get(name, _Line()), load / whole
            seen = line.seen_s / (line.seen_s + PRIOR_S)
            scale = 1 - seen + seen * line.ratio
            error = line.error * line.ratio
            value += share * prior.value * scale
            low += share * ((1 - seen) * prior.low + seen * prior.value * max(line.ratio - error, 0.0))
            high += share * ((1 - seen) * prior.high + seen * prior.value * (line.ratio + error))
        return replace(way, rate=Rate(value, min(low, value), max(high, value)))


def _same(one: Way, other: Way) -> bool:
    """Apart from how fast it is."""
    return (one.lines, one.control, one.background) == (other.lines, other.control, other.background)


def completed(ways: Sequence[Way], names: Sequence[str], controls: Mapping[bool, str]) -> list[Way]:
    """And ways over the lines that have none: each alone, and beside the fastest, as fast as the others are on average.
    controls: by whether they give way, of ways that are new."""
    missing = [name for name in names if not any(name in way.lines for way in ways)]
    made = list(ways)
    for background in dict.fromkeys(way.background for way in ways) if missing else ():
        of = [way for way in ways if way.background == background]
        best = max(of, key=lambda way: way.rate.value)
        whole = sum(best.loads)
        rates = {name: best.rate.value * load / whole for name, load in zip(best.lines, best.loads, strict=True)}
        rates |= {way.lines[0]: way.rate.value for way in of if len(way.lines) == 1}
        new = guessed([*best.lines, *missing], {background: controls[background]}, rates)
        made += [way for way in new if set(way.lines) & set(missing)]
    return made


def guessed(lines: Sequence[str], controls: Mapping[bool, str], rates_bps: Mapping[str, float]) -> list[Way]:
    """Ways without a forecast: every line alone, and the first n of them together, with the sum of their rates; rates
    that are not known are taken to be equal. controls: by whether they give way."""
    known = [rate for name, rate in rates_bps.items() if name in lines and rate > 0]
    usual = sum(known) / len(known) if known else _UNKNOWN_BPS
    sets = [(name,) for name in lines] + [tuple(lines[:n]) for n in range(2, len(lines) + 1)]
    made = []
    for of in sets:
        rates = [rates_bps.get(name) or usual for name in of]
        whole = sum(rates)
        rate = Rate(whole, whole * (1 - _WIDE), whole * (1 + _WIDE))
        for background, control in controls.items():
            loads = tuple(OVERHEAD * one / whole for one in rates)
            made.append(Way(of, control, rate, loads, background, guess=not known))
    return made
