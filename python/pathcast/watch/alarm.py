"""The state of one alert on one path. It is told when what it asks for has lasted, and is over when the opposite, and a
tenth more of it, has lasted as long: what swings about the threshold is told once."""

from __future__ import annotations

from dataclasses import dataclass

from pathcast.watch.expression import Expression
from pathcast.watch.seen import Level, Seen
from pathcast.watch.usual import WEEK_S

MARGIN = 0.1


@dataclass
class Alarm:
    """since_s: from when on it has been bad. firing: it was told. usual: what was usual when that began."""

    of: Expression
    since_s: float | None = None
    firing: bool = False
    usual: float | None = None
    # of what is bad the last time; since when it is good again, and the last time
    _bad_s: float = 0.0
    _good_s: float | None = None
    _well_s: float = 0.0
    # of the last round, whatever it told
    _round_s: float | None = None

    def step(self, now_s: float, seen: Seen, usual: float | None, gap_s: float) -> str | None:
        """What a round has seen: `firing` or `over`, where that is to be told now.

        usual: of the quantity, today. gap_s: rounds that are further apart do not stand for what was between them.
        """
        if not self.firing and self._good_s is not None:
            self.since_s = self._good_s = None
        self._lapse(now_s, gap_s)
        # what has been for a week is usual
        if self.since_s is not None and now_s - self.since_s < WEEK_S:
            usual = self.usual
        if not self.firing:
            bad = self._bad(seen, usual)
            if bad is False:
                self.since_s = None
            elif bad:
                if self.since_s is None:
                    self.since_s, self.usual = now_s, usual
                self._bad_s = now_s
                if now_s - self.since_s >= self.of.for_s:
                    self.firing, self._good_s = True, None
                    return "firing"
            return None
        good = self._good(seen, usual)
        if good is False:
            self._good_s = None
        elif good:
            if self._good_s is None:
                self._good_s = now_s
            self._well_s = now_s
            if now_s - self._good_s >= self.of.for_s:
                self.firing = False
                return "over"
        return None

    def _lapse(self, now_s: float, gap_s: float) -> None:
        """What nobody has measured does not last, nor what no round has told of for longer than it is to last."""
        unmeasured = self._round_s is None or now_s - self._round_s > gap_s
        self._round_s, longest_s = now_s, max(gap_s, self.of.for_s)
        if not self.firing and (unmeasured or now_s - self._bad_s > longest_s):
            self.since_s = None
        if unmeasured or now_s - self._well_s > longest_s:
            self._good_s = None

    def _bad(self, seen: Seen, usual: float | None) -> bool | None:
        return self._beyond(seen, usual, 0.0)

    def _good(self, seen: Seen, usual: float | None) -> bool | None:
        beyond = self._beyond(seen, usual, MARGIN)
        return None if beyond is None else not beyond

    def _beyond(self, seen: Seen, usual: float | None, margin: float) -> bool | None:
        """Whether it is on the bad side of the threshold, or nearer to it than the margin."""
        of = self.of
        if of.what == "down":
            return seen.down is not None
        threshold = of.threshold
        if of.of_usual:
            if usual is None:
                return None
            threshold *= usual
        level: Level = getattr(seen, of.what)
        return level.below(threshold * (1 + margin)) if of.below else level.above(threshold * (1 - margin))
