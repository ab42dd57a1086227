"""Whose turn it is: each far end every so long, evenly beside the others; what was late does not move what follows."""

from __future__ import annotations

from collections.abc import Sequence


class Schedule:
    """names: what is measured in turn. every_s: from one beginning to the next of each."""

    def __init__(self, names: Sequence[str], every_s: float, now_s: float) -> None:
        self.every_s = every_s
        self._due = {name: now_s + every_s * number / len(names) for number, name in enumerate(names)}

    def next(self) -> tuple[str, float]:
        """Who is next, and when [s]: whoever waits for longest."""
        name = min(self._due, key=self._due.__getitem__)
        return name, self._due[name]

    def done(self, name: str, began_s: float) -> None:
        """Its round began then: the next one at its time, or, where that is over, at the first that is not."""
        late = max(0.0, began_s - self._due[name])
        self._due[name] += self.every_s * (int(late / self.every_s) + 1)
