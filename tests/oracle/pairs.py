"""Whether a receiver acknowledges pairs of packets (delayed ACKs) and so holds the ACK of a lone packet back. Ours.

An ACK of several packets in Open gives two points, up to 64; one of a single packet less than 20 ms after another such
one, none of several between them, takes one. Points: it acknowledges pairs.
"""

from __future__ import annotations

from oracle.tcp import OPEN, Event, Flow


class Pairs:
    points = 0
    lone: int | None = None  # when the last ACK of one packet came [us]

    def __bool__(self) -> bool:
        return self.points > 0

    def held(self, flow: Flow, e: Event) -> bool:
        """Takes an ACK in; whether its packet may have waited for another."""
        if e.acked > 1:
            self.lone = None
            if flow.state == OPEN:
                self.points = min(self.points + 2, 64)
        if e.acked != 1:
            return False
        if self.lone is not None and flow.now - self.lone < 20_000:
            self.points = max(self.points - 1, 0)
        self.lone = flow.now
        return bool(self)
