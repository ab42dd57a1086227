"""Where a history lies: as --history or PATHCAST_HISTORY say, else in the state directory of its user."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from pathcast.errors import PathcastError, usage

ENVIRONMENT = "PATHCAST_HISTORY"
STATE = "PATHCAST_STATE_DIR"
OFF = "off"
ROOT_STATE = Path("/var/lib/pathcast")
FORMS = "a FILE, sqlite:///FILE, or postgresql://[USER@]HOST[:PORT]/DATABASE"
_POSTGRES = ("postgresql", "postgres")


@dataclass(frozen=True)
class Place:
    """url: as SQLAlchemy takes it, with what secrets it holds. shown: the same for people. spool: the directory of what
    cannot be stored now. file: of SQLite. given: whether this command's user named it, and is to hear of its faults."""

    url: str
    shown: str
    spool: Path
    file: Path | None = None
    given: bool = True


def find(text: str | None = None) -> Place | None:
    """The place that is meant; None: nothing is to be kept.

    text: what --history says. Raises PathcastError (exit 2) for what is no place.
    """
    if text is not None:
        return None if text == OFF else parse(text)
    chosen = os.environ.get(ENVIRONMENT)
    if chosen is None:
        return replace(_sqlite(state_directory() / "history.db"), given=False)
    return None if chosen == OFF else replace(parse(chosen), given=False)


def parse(text: str) -> Place:
    """A file, or a URL. Raises PathcastError (exit 2) that names the allowed forms."""
    if "://" not in text:
        if not text:
            raise _refused(text)
        return _file(text, Path(text))
    scheme, _, rest = text.partition("://")
    if scheme == "sqlite":
        # as SQLAlchemy has it: three strokes, then the path; an absolute one has a fourth
        if not rest.startswith("/") or len(rest) < 2 or "?" in rest:
            raise _refused(text)
        return _file(text, Path(rest[1:]))
    if scheme not in _POSTGRES:
        raise _refused(text)
    return _postgres(text)


def _refused(text: str) -> PathcastError:
    return usage(f"the history `{_without_password(text)}`: allowed are {FORMS}", "or --no-history, to keep nothing")


def _file(text: str, file: Path) -> Place:
    """Refuses what is there and no file: a device or a pipe would be taken for an empty database."""
    with suppress(OSError, ValueError):
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            raise usage(f"the history `{text}` is {_kind(mode)}: allowed are {FORMS}", "--no-history keeps nothing")
    return _sqlite(file)


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a directory", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((word for of, word in kinds.items() if of(mode)), "a device")


def _sqlite(file: Path) -> Place:
    file = file.absolute()
    return Place(f"sqlite:///{file}", str(file), file.with_name(file.name + ".spool"), file)


def _postgres(text: str) -> Place:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise _refused(text) from None
    if not parts.path.strip("/"):
        raise _refused(text)
    shown = _without_password(text)
    name = hashlib.sha256(shown.encode()).hexdigest()[:16]
    return Place(
        urlunsplit(parts._replace(scheme="postgresql+psycopg")), shown, state_directory() / "spool" / name, None
    )


def _without_password(text: str) -> str:
    """A URL as it may be shown: a password, also one of the query, is not."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return text.partition("://")[0] + "://…"
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    query = "&".join(part for part in parts.query.split("&") if not part.startswith("password="))
    return urlunsplit(parts._replace(netloc=f"{name}{':***' if colon else ''}{at}{host}", query=query))


def state_directory() -> Path:
    """`$PATHCAST_STATE_DIR`, or `/var/lib/pathcast` of root, else `$XDG_STATE_HOME/pathcast`.

    Raises PathcastError (exit 2) without a home.
    """
    if chosen := os.environ.get(STATE):
        return Path(chosen)
    if os.geteuid() == 0:
        return ROOT_STATE
    if chosen := os.environ.get("XDG_STATE_HOME"):
        return Path(chosen) / "pathcast"
    try:
        return Path.home() / ".local/state/pathcast"
    except RuntimeError:
        raise usage("this user has no home to keep a history in", "--history FILE names one") from None
