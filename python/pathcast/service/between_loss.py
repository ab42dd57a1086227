"""How many of a look's small packets the path lost, and which silence that explains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pathcast.service.findings import NOTED, OK, Finding

# silence that comes about by chance more often than this is no finding
_CHANCE = 0.01
AGAIN = "look again when the path loses less"


@dataclass(frozen=True)
class Loss:
    """Round trips of small unmarked packets: how many were asked for and answered. None asked for: nothing is known."""

    asked: int = 0
    answered: int = 0

    @staticmethod
    def of(seen: Mapping[str, Any]) -> Loss:
        """As a look at packets has it (`crates/measure/src/echoes/document.rs`)."""
        return Loss(seen["small"]["asked"], seen["small"]["answered"])

    @property
    def said(self) -> str:
        """In words."""
        return f"{self.asked - self.answered} of {self.asked} small packets or their answers were lost"

    @property
    def why(self) -> str:
        """How a sentence ends that tells of a silence which it explains."""
        return f", which the path's loss explains ({self.said})"

    def explains(self, tries: int) -> bool:
        """Whether so many tries in a row may well be lost by chance: by the loss and twice its standard error."""
        if self.answered >= self.asked:
            return False
        share = 1 - self.answered / self.asked
        return min(1.0, share + 2 * math.sqrt(share * (1 - share) / self.asked)) ** tries > _CHANCE

    def finding(self, path: str) -> Finding:
        """Loss alone is no fault: how much of it a line has is what `measure` tells."""
        if self.answered >= self.asked:
            return Finding(path, "loss", OK, f"none of {self.asked} small packets was lost")
        mend = "`pathcast measure` tells how much is lost, and in which direction"
        return Finding(path, "loss", NOTED, self.said, mend)


# where it is not known
NO_LOSS = Loss()


def syns(patience_s: float) -> int:
    """How many SYNs a connection sends meanwhile: after 1 s, 3 s, 7 s, ... one more."""
    return 1 + int(math.log2(patience_s + 1))
