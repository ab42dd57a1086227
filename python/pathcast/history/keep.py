"""Retention: what is too old goes, and of what is too much the oldest."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError, usage
from pathcast.history.clock import Moment
from pathcast.history.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection

AGE, SIZE = "PATHCAST_HISTORY_KEEP", "PATHCAST_HISTORY_SIZE"
_DAY_S = 86_400.0
# acts, and what belongs to them
_ACTS = ("measurement", "transfer", "forecast", "event")
# after making room there is some
_FILL = 0.9
# by a clock that is not synchronised, and further than that from the newest act, nothing is too old
_TRUSTED_S = 30 * _DAY_S


@dataclass(frozen=True)
class Keep:
    """age_s: the oldest that stays [s]. bytes: the most that stays."""

    age_s: float = 400 * _DAY_S
    bytes: int = 1_000_000_000

    @classmethod
    def of_environment(cls) -> Keep:
        """As PATHCAST_HISTORY_KEEP (400d) and PATHCAST_HISTORY_SIZE (1GB) say. Raises PathcastError (exit 2)."""
        return cls.parse(os.environ.get(AGE), os.environ.get(SIZE))

    @classmethod
    def parse(cls, age: str | None, size: str | None) -> Keep:
        """From quantities; None: the default."""
        from pathcast import _native

        found = cls(
            cls.age_s if age is None else _native.parse_duration(age) / 1e9,
            cls.bytes if size is None else _native.parse_bytes(size),
        )
        if found.age_s < _DAY_S:
            raise usage(f"a history of {age}: it holds one day at least")
        if found.bytes < 1_000_000:
            raise usage(f"a history of {size}: it may have 1 MB at least")
        return found


@dataclass(frozen=True)
class Pruned:
    """How many acts went, by table; the size before and after [byte]."""

    rows: dict[str, int]
    before_bytes: int
    after_bytes: int


def prune(store: Store, keep: Keep, at: Moment, synchronised: bool = True, dry: bool = False) -> Pruned:
    """Removes what is too old, then the oldest until it is small enough.

    synchronised: whether this clock can be trusted; else, and with nothing from the last 30 days, nothing is too old: a
    clock that was set wrong is no reason to forget. dry: only counts what is too old.
    """
    from sqlalchemy import func, select

    from pathcast.history.tables import NAMES

    rows = dict.fromkeys((*_ACTS, "usage"), 0)
    with store.writing() as connection:
        before = size_bytes(connection)
        newest = connection.execute(select(func.max(NAMES["measurement"].c.at_us))).scalar() or 0
        if synchronised or abs(at.utc_us - newest) < _TRUSTED_S * 1e6:
            cut = at.utc_us - round(keep.age_s * 1e6)
            for name in _ACTS:
                rows[name] += _remove(connection, name, NAMES[name].c.at_us < cut, dry)
            rows["usage"] += _remove(connection, "usage", NAMES["usage"].c.hour_us < cut, dry)
    while not dry:
        with store.writing() as connection:
            now = size_bytes(connection)
            if now <= keep.bytes:
                break
            removed = _oldest(connection, 1 - _FILL * keep.bytes / now)
        for name, count in removed.items():
            rows[name] += count
        if not sum(removed.values()):
            break
    if not dry and any(rows.values()):
        store.compact()
    with store.reading() as connection:
        return Pruned(rows, before, size_bytes(connection))


def forget(store: Store, world: str, at: Moment, older_s: float = 0.0, dry: bool = False) -> Pruned:
    """Removes what a world of networks that are files (`emu`, `sim`) has left, be it new. dry: only counts it."""
    from sqlalchemy import select

    from pathcast.history.tables import NAMES

    cut = at.utc_us - round(older_s * 1e6) if older_s else 1 << 62
    line, usage = NAMES["line"], NAMES["usage"]
    with store.writing() as connection:
        before = size_bytes(connection)
        rows = {
            name: _remove(connection, name, (NAMES[name].c.world == world) & (NAMES[name].c.at_us < cut), dry)
            for name in _ACTS
        }
        theirs = usage.c.line.in_(select(line.c.id).where(line.c.line_id.startswith(f"{world}:")))
        rows["usage"] = _remove(connection, "usage", theirs & (usage.c.hour_us < cut), dry)
    if not dry and any(rows.values()):
        store.compact()
    with store.reading() as connection:
        return Pruned(rows, before, size_bytes(connection))


def _oldest(connection: Connection, share: float) -> dict[str, int]:
    """Removes the oldest acts, about this share of them."""
    from sqlalchemy import func, select, union_all

    from pathcast.history.tables import NAMES

    acts = union_all(*(select(NAMES[name].c.at_us) for name in _ACTS)).subquery()
    count = connection.execute(select(func.count()).select_from(acts)).scalar() or 0
    if not count:
        return {}
    number = min(count - 1, max(0, round(count * share)))
    cut = connection.execute(select(acts.c.at_us).order_by(acts.c.at_us).offset(number).limit(1)).scalar()
    return {name: _remove(connection, name, NAMES[name].c.at_us <= cut) for name in _ACTS}


def _remove(connection: Connection, name: str, condition: Any, dry: bool = False) -> int:
    from sqlalchemy import delete, func, select

    from pathcast.history.tables import NAMES

    table = NAMES[name]
    if dry:
        return connection.execute(select(func.count()).select_from(table).where(condition)).scalar() or 0
    return max(0, connection.execute(delete(table).where(condition)).rowcount)


def size_bytes(connection: Connection) -> int:
    """What the rows take: of a file the pages in use, of a server the rows themselves."""
    from sqlalchemy import text

    from pathcast.history.tables import ORDER

    if connection.dialect.name == "sqlite":
        pages, free, size = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
    sums = (f'(SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM "{table.name}" t)' for table in ORDER)
    return int(connection.execute(text(f"SELECT {' + '.join(sums)}")).scalar() or 0)


def daily(store: Store, now: Callable[[], Moment]) -> Pruned | None:
    """Retention, once a day and history; None: it was done today, or cannot be done now."""
    from pathcast.machine import clock_state

    mark = store.place.spool / "pruned"
    at = now()
    try:
        age_s = at.utc_us / 1e6 - mark.stat().st_mtime
    except OSError:
        age_s = _DAY_S
    if 0 <= age_s < _DAY_S:
        return None
    try:
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(0o600)
        os.utime(mark, (at.utc_us / 1e6, at.utc_us / 1e6))
        return prune(store, Keep.of_environment(), at, bool(clock_state().get("synchronised")))
    except (PathcastError, OSError):
        return None
