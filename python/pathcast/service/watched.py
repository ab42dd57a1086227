"""What a watch knows of one path: what is usual there, and the state of its alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pathcast.service.looked import seen
from pathcast.watch.alarm import Alarm
from pathcast.watch.expression import OF_USUAL, Expression
from pathcast.watch.seen import Seen
from pathcast.watch.usual import Usual
from pathcast.worlds.measurement import DIRECTIONS, PathMeasured

if TYPE_CHECKING:
    from pathcast.history.clock import Moment

# by more than that a clock was set [s]
_SET_S = 1.0


@dataclass
class Told:
    """An alert whose state has changed."""

    alarm: Alarm
    state: str
    seen: Seen


@dataclass
class Watched:
    """name: as it is called now. seen: by direction, of the last round; at_s: when that was. learnt: what was before is
    in `usual`."""

    name: str
    alarms: list[Alarm]
    usual: dict[tuple[str, str], Usual] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    at_s: float = 0.0
    learnt: bool = False
    _utc: tuple[float, float] | None = None

    def utc_s(self, now: Moment) -> float:
        """When the last round was [s since 1970]: the same as long as the machine's clock is not set."""
        utc_s = now.utc_us / 1e6 - (now.boot_us / 1e6 - self.at_s)
        # two clocks that are read one after the other differ by a little each time
        if self._utc is None or self._utc[0] != self.at_s or abs(utc_s - self._utc[1]) > _SET_S:
            self._utc = self.at_s, utc_s
        return self._utc[1]

    def learn(self, at_s: float, path: PathMeasured) -> None:
        """A measurement that is past; they come by age."""
        for direction in DIRECTIONS:
            self._add(at_s, direction, seen(path, direction, None))

    def look(self, at_s: float, path: PathMeasured, gap_s: float) -> list[Told]:
        """A measurement of now."""
        least = self.usual[DIRECTIONS[0], "rtt"].least(at_s) if (DIRECTIONS[0], "rtt") in self.usual else None
        return self.judge(at_s, {direction: seen(path, direction, least) for direction in DIRECTIONS}, gap_s)

    def down(self, at_s: float, why: str, gap_s: float) -> list[Told]:
        """A round in which nothing came through."""
        return self.judge(at_s, {direction: Seen(down=why) for direction in DIRECTIONS}, gap_s)

    def judge(self, at_s: float, found: dict[str, Seen], gap_s: float) -> list[Told]:
        """What is to be told of what was seen."""
        told = []
        for alarm in self.alarms:
            of = found[alarm.of.direction]
            if state := alarm.step(at_s, of, self.median(at_s, alarm.of.direction, alarm.of.what), gap_s):
                told.append(Told(alarm, state, of))
        for direction, of in found.items():
            self._add(at_s, direction, of)
        self.seen, self.at_s = found, at_s
        return told

    def median(self, at_s: float, direction: str, what: str) -> float | None:
        """What is usual; None: not known."""
        usual = self.usual.get((direction, what))
        return None if usual is None else usual.median(at_s)

    def _add(self, at_s: float, direction: str, of: Seen) -> None:
        for what in OF_USUAL:
            if (value := getattr(of, what).sure) is not None:
                self.usual.setdefault((direction, what), Usual()).add(at_s, value)


def alarms(alerts: Sequence[Expression], called: set[str]) -> list[Alarm]:
    """Those of a path that is called so."""
    return [Alarm(of) for of in alerts if of.name == "*" or of.name in called]
