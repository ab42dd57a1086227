"""How a claim's function comes to its finding, and tells it."""

from __future__ import annotations

from collections.abc import Iterable

from pathcast.lab.experiment import Finding


def percent(share: float, sign: str = "") -> str:
    """`+3.1 %`."""
    return f"{100 * share:{sign}.1f} %"


class Verdict:
    """What was found, and what of it is wrong, unsure or not run: false if anything is wrong, else undecided if not all
    is there and sure."""

    def __init__(self) -> None:
        self.ours: list[str] = []
        self.wrong: list[str] = []
        self.unsure: list[str] = []
        self.missing: list[str] = []

    def needs(self, holds: bool | None, told: str) -> None:
        """told: what is so if it does not hold."""
        if holds is None:
            self.unsure.append(told)
        elif not holds:
            self.wrong.append(told)

    def finding(self, why: str = "") -> Finding:
        """why: of what is wrong."""
        ours = "; ".join(self.ours)
        if self.wrong:
            return Finding(ours, False, ". ".join(filter(None, ("; ".join(self.wrong), why))))
        doubts = [f"intervals hold zero: {'; '.join(self.unsure)}"] if self.unsure else []
        doubts += [f"not run: {', '.join(self.missing)}"] if self.missing else []
        return Finding(ours, None, ". ".join(doubts)) if doubts else Finding(ours, True)


def finding(ours: Iterable[str], wrong: Iterable[str], why: str = "", missing: Iterable[str] = ()) -> Finding:
    """Holds if nothing is wrong and nothing missing; the reason is what is, and why. missing: what was not run."""
    verdict = Verdict()
    verdict.ours, verdict.wrong, verdict.missing = list(ours), list(wrong), list(missing)
    return verdict.finding(why)
