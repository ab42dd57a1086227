"""How a claim's function comes to its finding: part by part, each met, missed or undecided."""

from __future__ import annotations

from pathcast.lab.experiment import Finding

_TOLD = 3


class Verdict:
    """False if a part is missed, else undecided if a part is, or was not run, or there is none, else true."""

    def __init__(self) -> None:
        self.asked = 0
        # figures, one a line
        self.details: list[str] = []
        self.missed: list[str] = []
        self.unsure: list[str] = []
        self.missing: list[str] = []

    def needs(self, met: bool | None, otherwise: str) -> bool | None:
        """A part; `otherwise`: what is so, or may be, if it is not met. Returns `met`."""
        self.asked += 1
        if met is None:
            self.unsure.append(otherwise)
        elif not met:
            self.missed.append(otherwise)
        return met

    def finding(self, ours: str, why: str = "") -> Finding:
        """ours: the result in few words; why: of what is missed."""
        holds = False if self.missed else None if self.unsure or self.missing or not self.asked else True
        reasons = [few(self.missed)] if self.missed else []
        if holds is None:
            reasons = [f"not certain: {few(self.unsure)}"] if self.unsure else []
            reasons += [f"not run: {', '.join(self.missing)}"] if self.missing else []
            reasons = reasons or ["none of its parts is there"]
        notes = [why] if self.missed and why else []
        if len(self.missed) > _TOLD:
            notes.append(f"missed: {'; '.join(self.missed)}")
        if len(self.unsure) > _TOLD or (holds is False and self.unsure):
            notes.append(f"not certain: {'; '.join(self.unsure)}")
        return Finding(ours, holds, ". ".join(reasons) or None, (*self.details, *notes))


def few(parts: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(parts) - _TOLD} more" if len(parts) > _TOLD else ""
    return "; ".join(parts[:_TOLD]) + more
