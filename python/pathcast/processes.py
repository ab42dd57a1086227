"""A process by its number and when it started, since numbers come again."""

from __future__ import annotations

from pathlib import Path


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process, or only its zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    after = stat.rpartition(")")[2].split()  # the name may hold spaces and parentheses
    return None if after[0] in "ZX" else int(after[19])


def parent(pid: int) -> int | None:
    """Who started a process, or has it since that one ended; None when there is no such process, and of the first."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[1]) or None
