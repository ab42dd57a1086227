"""What is found between two hosts: one finding for one thing about one path."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTED, FAULT, UNSEEN = "ok", "noted", "fault", "unseen"


@dataclass(frozen=True)
class Finding:
    """One thing about a path. status: ok, noted (no fault), fault, unseen (it could not be looked at)."""

    path: str
    name: str
    status: str
    detail: str
    mend: str | None = None


@dataclass(frozen=True)
class Between:
    """What lies between this host and a far end: several findings a path; faults: how many of them are faults."""

    host: str
    faults: int
    findings: tuple[Finding, ...]
