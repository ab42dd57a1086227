"""What a round has seen of one direction of a path, as an alert asks for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """A value, or the bounds that are known of it."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def sure(self) -> float | None:
        """The value, or what it is at least."""
        return self.low if self.value is None else self.value

    def below(self, threshold: float) -> bool | None:
        """None: what is known does not tell."""
        if self.value is not None:
            return self.value < threshold
        if self.high is not None and self.high < threshold:
            return True
        return False if self.low is not None and self.low >= threshold else None

    def above(self, threshold: float) -> bool | None:
        """None: what is known does not tell."""
        if self.value is not None:
            return self.value > threshold
        if self.low is not None and self.low > threshold:
            return True
        return False if self.high is not None and self.high <= threshold else None


UNKNOWN = Level()


@dataclass(frozen=True)
class Seen:
    """available, capacity [bit/s]; rtt: its least [s]; queue: how long packets wait [s]; loss: the share of probes.
    down: why nothing comes through; None: something does."""

    available: Level = UNKNOWN
    capacity: Level = UNKNOWN
    rtt: Level = UNKNOWN
    queue: Level = UNKNOWN
    loss: Level = UNKNOWN
    down: str | None = None
