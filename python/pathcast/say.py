"""Words for people, on standard error: a full disc there, or a reader that has gone, ends nothing."""

from __future__ import annotations

import sys
from contextlib import suppress


def say(text: str, before: str = "pathcast:") -> None:
    """At once. What cannot be written is lost, and what it speaks of goes on."""
    with suppress(OSError):
        print(f"{before} {text}", file=sys.stderr, flush=True)
