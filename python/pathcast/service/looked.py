"""From the record of a measurement to what an alert asks for."""

from __future__ import annotations

from pathcast.watch.seen import UNKNOWN, Level, Seen
from pathcast.worlds.measurement import PathMeasured, Value


def seen(path: PathMeasured, direction: str, least_rtt_s: float | None) -> Seen:
    """Of one direction. least_rtt_s: of the week; what the round trip is longer than that stands in a queue."""
    if path.down is not None:
        return Seen(down=path.down.said)
    of = path.directions.get(direction)
    if of is None:
        return Seen()
    rtt_s, minimum, median = path.rtt_s.sure, of.delay_s.minimum.sure, of.delay_s.median.sure
    waits = None if minimum is None or median is None else max(0.0, median - minimum)
    if waits is not None and rtt_s is not None and least_rtt_s is not None:
        waits += max(0.0, rtt_s - least_rtt_s)
    levels = _level(of.available_bps.at_a_glance), _level(of.capacity_bps)
    return Seen(*levels, Level(rtt_s), Level(waits), Level(of.loss.share))


def _level(of: Value) -> Level:
    # an interval about a value that is not to be trusted is no better than that
    return UNKNOWN if of.value is not None and not of.trusted else Level(of.value, of.low, of.high)
