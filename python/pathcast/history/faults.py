"""What can be wrong with a database, as errors that a user can act on."""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

from pathcast.errors import Exit, PathcastError, install

# of SQLite, by its result codes: busy, locked; full; cannot open; corrupt, no database; read only
_BUSY, _FULL, _CANNOT_OPEN, _CORRUPT, _READ_ONLY = (5, 6), (13,), (14,), (11, 26), (8,)
_DISC = (10,)
# rows that no database takes: constraints, types, ranges
_ROWS = (19, 20, 25)


def history_error(code: str, message: str, hint: str | None = None, exit: int = Exit.RUNTIME) -> PathcastError:
    """One of ours; `history-away` is the one that passes by itself."""
    return PathcastError(f"history-{code}", message, hint, exit)


def away(shown: str, why: str, hint: str | None = "is its server running?") -> PathcastError:
    """It cannot be reached now."""
    return history_error("away", f"the history `{shown}` cannot be reached: {why}", hint)


def told(error: Exception, shown: str) -> PathcastError:
    """What SQLAlchemy, its driver or SQLite has raised. Only the driver's words: SQLAlchemy's show what is stored."""
    cause: Any = getattr(error, "orig", None) or error
    words = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    if isinstance(cause, ImportError):
        package = cause.name or str(cause)
        return history_error("missing", f"no Python package {package}", install([package]), Exit.MISSING)
    if isinstance(cause, OSError):
        return _system(cause, shown)
    code = getattr(cause, "sqlite_errorcode", None)
    state = getattr(cause, "sqlstate", None)
    if (
        (cause is error and not isinstance(error, sqlite3.Error))
        or (code or 0) & 0xFF in _ROWS
        or (state or "")[:2] in ("22", "23")
        or isinstance(cause, TypeError)
    ):
        return history_error("rows", f"the history `{shown}` cannot hold this: {words}", None, Exit.USAGE)
    if code is not None:
        return _sqlite(code & 0xFF, words, shown)
    if state == "53100":
        return full(shown)
    if state is not None and state[:2] in ("28", "3D", "42", "25"):
        # another password, another right: that does not pass by itself
        return history_error("refused", f"the history `{shown}` refuses: {words}", None, Exit.USAGE)
    return away(shown, words)


def full(shown: str) -> PathcastError:
    """No space."""
    return history_error(
        "full", f"no space is left for the history `{shown}`", "make room, or `pathcast history prune`"
    )


def _system(error: OSError, shown: str) -> PathcastError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return full(shown)
    return history_error("place", f"cannot keep a history in `{shown}`: {error.strerror}", None, Exit.USAGE)


def _sqlite(code: int, words: str, shown: str) -> PathcastError:
    if code in _FULL:
        return full(shown)
    if code in _BUSY:
        return away(shown, "another command writes to it and does not end", None)
    if code in _DISC:
        return away(shown, words, "is its disc full, or broken?")
    if code in _CORRUPT:
        hint = "move it away; a new one is made, and `pathcast history import` reads what was exported"
        return history_error("corrupt", f"`{shown}` is no history, or a broken one: {words}", hint, Exit.USAGE)
    if code in (*_CANNOT_OPEN, *_READ_ONLY):
        return history_error("place", f"cannot keep a history in `{shown}`: {words}", None, Exit.USAGE)
    return away(shown, words, None)
