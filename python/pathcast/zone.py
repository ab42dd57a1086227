"""The machine's time zone: what is kept for all commands goes by it, whatever `TZ` one of them was given."""

from __future__ import annotations

import struct
from datetime import UTC, tzinfo
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
