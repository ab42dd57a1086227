"""Retention: what is too old goes, and of what is too much the oldest."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError, usage
from pathcast.history.clock import Moment
from pathcast.history.identity import host_id
from pathcast.history.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection

AGE, SIZE = "PATHCAST_HISTORY_KEEP", "PATHCAST_HISTORY_SIZE"
_DAY_S = 86_400.0
_ACTS = ("measurement", "transfer", "forecast", "event")
# what belongs to acts and goes with them
_PARTS = {"transfer_path": "transfer", "forecast_path": "forecast"}
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
    def parse(cls, age: str | None, size: str | None, called: tuple[str, str] = (AGE, SIZE)) -> Keep:
        """From quantities; None: the default. called: what a refusal calls them."""
        from pathcast import _native

        found = cls(
            cls.age_s if age is None else _parsed(called[0], age, _native.parse_duration) / 1e9,
            cls.bytes if size is None else _parsed(called[1], size, _native.parse_bytes),
        )
        if found.age_s < _DAY_S:
            raise usage(f"{called[0]} `{age}`: a history holds one day at least")
        if found.bytes < 1_000_000:
            raise usage(f"{called[1]} `{size}`: a history may have 1 MB at least")
        return found


def _parsed(called: str, text: str, parse: Callable[[str], int]) -> int:
    try:
        return parse(text)
    except PathcastError as error:
        raise usage(f"{called} {error.message}", error.hint) from None


@dataclass(frozen=True)
class Pruned:
    """How many acts went, by table; the size before and after [byte], as of `size_bytes`."""

    rows: dict[str, int]
    before_bytes: int
    after_bytes: int


def prune(
    store: Store,
    keep: Keep,
    at: Moment,
    synchronised: bool = True,
    dry: bool = False,
    host: str | None = None,
    before_us: int | None = None,
) -> Pruned:
    """Removes what is too old, then the oldest until it is small enough: of a file all hosts' rows, of a server, which
    others share, those of `host` only (None: this one).

    synchronised: whether this clock can be trusted; else, and with nothing from the last 30 days, nothing is too old: a
    clock that was set wrong is no reason to forget. before_us: what this clock itself has dated then or later [us] is
    no witness for it. dry: only counts what is too old.
    """
    rows = dict.fromkeys((*_ACTS, "usage"), 0)
    own = _own(store, host)
    with store.writing() as connection:
        before = size_bytes(connection, own)
        if synchronised or abs(at.utc_us - _newest(connection, own, before_us)) < _TRUSTED_S * 1e6:
            cut = at.utc_us - round(keep.age_s * 1e6)
            for name in rows:
                rows[name] += _remove(connection, name, _time(name) < cut, own, dry)
    while not dry:
        with store.writing() as connection:
            now = size_bytes(connection, own)
            # were it the paths that are too much, all else would go for nothing
            if now <= keep.bytes or (own is None and _paths_bytes(connection) > keep.bytes):
                break
            removed = _oldest(connection, 1 - _FILL * keep.bytes / now, own)
        for name, count in removed.items():
            rows[name] += count
        if not sum(removed.values()):
            break
    if not dry and any(rows.values()):
        store.compact()
    with store.reading() as connection:
        return Pruned(rows, before, size_bytes(connection, own))


def forget(
    store: Store, world: str, at: Moment, older_s: float = 0.0, dry: bool = False, host: str | None = None
) -> Pruned:
    """Removes what a world of networks that are files (`emu`, `sim`) has left, be it new. host: as of `prune`. dry:
    only counts it."""
    from sqlalchemy import select

    from pathcast.history.tables import NAMES

    cut = at.utc_us - round(older_s * 1e6) if older_s else 1 << 62
    line, usage = NAMES["line"], NAMES["usage"]
    own = _own(store, host)
    with store.writing() as connection:
        before = size_bytes(connection, own)
        rows = {
            name: _remove(connection, name, (NAMES[name].c.world == world) & (NAMES[name].c.at_us < cut), own, dry)
            for name in _ACTS
        }
        theirs = usage.c.line.in_(select(line.c.id).where(line.c.line_id.startswith(f"{world}:")))
        rows["usage"] = _remove(connection, "usage", theirs & (usage.c.hour_us < cut), own, dry)
    if not dry and any(rows.values()):
        store.compact()
    with store.reading() as connection:
        return Pruned(rows, before, size_bytes(connection, own))


def _own(store: Store, host: str | None) -> str | None:
    """Whose rows may go; None: all hosts'. A file is this host's, also what it has imported."""
    return (host or host_id()) if store.place.file is None else None


def _newest(connection: Connection, own: str | None, before_us: int | None) -> int:
    """When was the last measurement before a time by a clock that was synchronised; where none was, by any [us]."""
    from sqlalchemy import func, select

    from pathcast.history.tables import NAMES

    table = NAMES["measurement"]
    newest = select(func.max(table.c.at_us)).where(_of_host("measurement", own))
    if before_us is not None:
        newest = newest.where(table.c.at_us < before_us)
    vouched = table.c.circumstances["clock", "synchronised"].as_boolean()
    found = connection.execute(newest.where(vouched)).scalar() or connection.execute(newest).scalar()
    return int(found or 0)


def _oldest(connection: Connection, share: float, own: str | None) -> dict[str, int]:
    """Removes the oldest rows, about this share of them."""
    from sqlalchemy import func, select, union_all

    names = (*_ACTS, "usage")
    times = union_all(*(select(_time(name).label("at_us")).where(_of_host(name, own)) for name in names)).subquery()
    count = connection.execute(select(func.count()).select_from(times)).scalar() or 0
    if not count:
        return {}
    number = min(count - 1, max(0, round(count * share)))
    cut = connection.execute(select(times.c.at_us).order_by(times.c.at_us).offset(number).limit(1)).scalar()
    return {name: _remove(connection, name, _time(name) <= cut, own) for name in names}


def _paths_bytes(connection: Connection) -> int:
    """About what the paths of a file take, which stay; their keys stand in an index, too."""
    from sqlalchemy import func, select

    from pathcast.history.tables import NAMES

    path = NAMES["path"].c
    each = sum(func.length(column) for column in (path.id, path.line, path.remote_id, path.local, path.remote))
    return 2 * int(connection.execute(select(func.sum(each))).scalar() or 0)


def _time(name: str) -> Any:
    """The column by which a table's rows are old."""
    from pathcast.history.tables import NAMES

    return NAMES[name].c["hour_us" if name == "usage" else "at_us"]


def _of_host(name: str, host: str | None) -> Any:
    """The condition that a row of acts, of their parts or of `usage` is a host's; None: any's."""
    from sqlalchemy import select, true

    from pathcast.history.tables import NAMES

    table = NAMES[name]
    if host is None:
        return true()
    if name in _PARTS:
        acts = NAMES[_PARTS[name]]
        return table.c[f"{_PARTS[name]}_id"].in_(select(acts.c.id).where(acts.c.host_id == host))
    if name == "usage":
        line = NAMES["line"]
        return table.c.line.in_(select(line.c.id).where(line.c.host_id == host))
    return table.c.host_id == host


def _remove(connection: Connection, name: str, condition: Any, own: str | None, dry: bool = False) -> int:
    from sqlalchemy import delete, func, select

    from pathcast.history.tables import NAMES

    table, condition = NAMES[name], condition & _of_host(name, own)
    if dry:
        return connection.execute(select(func.count()).select_from(table).where(condition)).scalar() or 0
    return max(0, connection.execute(delete(table).where(condition)).rowcount)


def size_bytes(connection: Connection, own: str | None = None) -> int:
    """What the rows take: of a file the pages in use, of a server what a host (None: all) has in rows that can go."""
    from sqlalchemy import func, literal_column, select

    from pathcast.history.tables import NAMES

    if connection.dialect.name == "sqlite":
        pages, free, size = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
    total = 0
    for name in (*_ACTS, *_PARTS, "usage"):
        size = func.sum(func.pg_column_size(literal_column(f'"{name}".*')))
        total += connection.execute(select(size).select_from(NAMES[name]).where(_of_host(name, own))).scalar() or 0
    return int(total)


def daily(store: Store, at: Moment, host: str, before_us: int) -> Pruned | None:
    """Retention, once a day and history; None: it was done today, or cannot be done now. host, before_us: as of
    `prune`."""
    from pathcast.machine import clock_state

    mark = store.place.spool / "pruned"
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
        synchronised = bool(clock_state().get("synchronised"))
        return prune(store, Keep.of_environment(), at, synchronised, host=host, before_us=before_us)
    except (PathcastError, OSError):
        return None
