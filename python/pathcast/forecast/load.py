"""How much others will send in the mean of a transfer's own time, by what they sent in a few looks before it.

Student's t around the looks' mean: of so few values their spread says little, and is held together with how far loads
vary that are so high (an inverse chi-squared prior). Its numbers are fitted to half `a` of the real paths
(experiments/forecast, grid `tuning`), of transfers of 7 s to 10 min: its 90 % interval held 90 % of their loads.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean

# the prior's weight [looks], the deviation of one look from the mean of a load m: a + b sqrt(m (1 - m))
_WEIGHT, _LEAST, _PER_ROOT = 1.0, 0.01, 0.2
# how much of a look's deviation is left in the mean of a transfer's time: shares of it by looks, and by its length
_OF_LOOKS, _CORRELATED_S, _ALWAYS = 0.5, 10.0, 0.005
# what nobody measured: beyond ten minutes a load is another at another time of day; deviations a decade
_LONG_S, _DRIFT, _DRIFT_LOAD = 600.0, 1.0, 0.1
# of a few looks fewer degrees of freedom would have no variance
_FEWEST = 2.0
# more is no load but a line that is full, unless it was seen
_MOST, _FULL = 0.9, 0.97


def drawn_load(looks: Sequence[float], horizon_s: float, deviation: float, draw: random.Random) -> float:
    """The mean load of the next `horizon_s`, over the rate, 0 to 1; `looks` at least one, each with this deviation of
    its own (its measurement's error)."""
    mean = fmean(looks)
    prior = _apart(mean)
    squares = math.fsum((look - mean) ** 2 for look in looks)
    freedom = _WEIGHT + len(looks) - 1
    variance = (_WEIGHT * prior**2 + squares) / freedom
    left = _OF_LOOKS / len(looks) + 1 / (1 + horizon_s / _CORRELATED_S)
    drift = _DRIFT * _apart(max(mean, _DRIFT_LOAD)) * math.log10(max(1.0, horizon_s / _LONG_S))
    scale = math.sqrt(variance * left + _ALWAYS**2 + deviation**2 / len(looks) + drift**2)
    freedom = max(freedom, _FEWEST)
    # Student's t by a normal and a chi-squared one
    student = draw.gauss(0, 1) / math.sqrt(draw.gammavariate(freedom / 2, 2) / freedom)
    return min(max(mean + scale * student, 0.0), min(max(_MOST, mean), _FULL))


def _apart(load: float) -> float:
    return _LEAST + _PER_ROOT * math.sqrt(max(load * (1 - load), 0.0))
