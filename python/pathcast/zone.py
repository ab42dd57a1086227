"""The machine's time zone: what is kept for all commands, typed and told goes by it, whatever `TZ` one was given."""

from __future__ import annotations

import struct
import time
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

FILE = Path("/etc/localtime")


def zone() -> tzinfo:
    """As programs without a `TZ` have it (localtime(5)): UTC where the file is missing, or is none of a zone."""
    from zoneinfo import ZoneInfo

    try:
        with FILE.open("rb") as file:
            return ZoneInfo.from_file(file, str(FILE))
    except (OSError, EOFError, ValueError, struct.error):
        return UTC


def local(at_s: float | None = None, of: tzinfo | None = None) -> datetime:
    """A moment [s since 1970; None: now] there, with its offset to UTC: such moments compare and subtract as they are.
    of: the zone, where many are asked for."""
    at = datetime.fromtimestamp(time.time() if at_s is None else at_s, of or zone())
    return at.replace(tzinfo=timezone(at.utcoffset() or timedelta(), at.tzname() or ""), fold=0)


def clock(at_s: float | None = None) -> datetime:
    """The same as the clock on the wall shows it: without an offset."""
    return local(at_s).replace(tzinfo=None)


def mark(at: datetime) -> str:
    """What a time of `local` needs beside it where this process was told of another zone: ` CET`, else nothing."""
    own = at.tzinfo is None or at.astimezone().utcoffset() == at.utcoffset()
    return "" if own else f" {at.tzname()}"
