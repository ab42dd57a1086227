"""The reading side: what is known of paths, what was sent over them, what was forecast and what came."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, or_, select

from pathcast.history import clock
from pathcast.history.clock import Moment
from pathcast.history.identity import PathKey, host_id
from pathcast.history.link import option_of
from pathcast.history.records import Came, Event, Forecasted, Hour, Measured, Sent
from pathcast.history.store import Store
from pathcast.history.tables import (
    event,
    forecast,
    forecast_path,
    line,
    measurement,
    path,
    transfer,
    transfer_path,
    usage,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

Pair = tuple[str, str]


class Reader:
    """A history as it is now. Of this host, unless another is named; nothing where there is no history yet.

    Raises PathcastError as faults.py tells them.
    """

    def __init__(self, store: Store, at: Moment | None = None, host: str | None = None) -> None:
        self.store, self.at, self.host = store, at or clock.now(), host or host_id()

    def measurements(
        self, key: PathKey, newer_than_s: float | None = None, limit: int = 50, others: Collection[Pair] = ()
    ) -> list[Measured]:
        """The newest measurements of a path, each with all of its directions.

        Where nothing is known of this address pair, those of the same line to the same far end, whose addresses were
        others then; but none of `others`, which are paths of today of their own.
        """
        if not self.store.exists:
            return []
        with self.store.reading() as connection:
            for renumbered in (False, True):
                ids = self._paths(connection, key, others if renumbered else None)
                acts = self._acts(connection, ids, newer_than_s, limit)
                if acts:
                    break
            else:
                return []
            wanted = (
                select(measurement, *KEY)
                .select_from(measurement)
                .join(path, path.c.id == measurement.c.path)
                .join(line, line.c.id == path.c.line)
                .where(measurement.c.act.in_(acts))
            )
            # other paths of these acts are few: asked for here, they would be looked up by the paths' thousands of rows
            rows = [row for row in connection.execute(wanted) if row.path in ids]
        return self._measured(rows, renumbered)[:limit]

    def transfers(self, keys: Sequence[PathKey], newer_than_s: float | None = None, limit: int = 200) -> list[Sent]:
        """The newest transfers whose paths are all among these."""
        if not self.store.exists or not keys:
            return []
        with self.store.reading() as connection:
            ids = self._all_paths(connection, keys)
            inside = select(transfer_path.c.transfer_id).where(transfer_path.c.path.in_(ids))
            outside = select(transfer_path.c.transfer_id).where(transfer_path.c.path.not_in(ids))
            found = self._sent(
                connection,
                (transfer.c.id.in_(inside), transfer.c.id.not_in(outside), *self._newer(transfer, newer_than_s)),
                limit,
            )
        return self._by_age(found)

    def forecasts(
        self, keys: Sequence[PathKey], newer_than_s: float | None = None, limit: int = 200
    ) -> list[Forecasted]:
        """The newest forecasts whose paths are all among these, each with the transfers that followed it."""
        if not self.store.exists or not keys:
            return []
        with self.store.reading() as connection:
            ids = self._all_paths(connection, keys)
            inside = select(forecast_path.c.forecast_id).where(forecast_path.c.path.in_(ids))
            outside = select(forecast_path.c.forecast_id).where(forecast_path.c.path.not_in(ids))
            conditions = (forecast.c.id.in_(inside), forecast.c.id.not_in(outside))
            found = self._forecasts(connection, (*conditions, *self._newer(forecast, newer_than_s)), limit)
        return self._by_age(found)

    def events(self, newer_than_s: float | None = None, limit: int = 200) -> list[Event]:
        """The newest events of this host."""
        if not self.store.exists:
            return []
        with self.store.reading() as connection:
            return self._events(connection, [event.c.host_id == self.host, *self._newer(event, newer_than_s)], limit)

    def usage(self, line_ids: Iterable[str] | None = None, since_us: int = 0) -> list[Hour]:
        """What lines of this host carried, hour by hour and by who has counted it, the oldest first."""
        if not self.store.exists:
            return []
        conditions = [line.c.host_id == self.host, usage.c.hour_us >= since_us]
        if line_ids is not None:
            conditions.append(line.c.line_id.in_(list(line_ids)))
        by = (usage.c.hour_us, line.c.line_id, usage.c.source)
        sums = (func.sum(usage.c.bytes_out).label("out"), func.sum(usage.c.bytes_in).label("back"))
        wanted = select(*by, *sums).join(line, line.c.id == usage.c.line).where(*conditions).group_by(*by).order_by(*by)
        with self.store.reading() as connection:
            rows = connection.execute(wanted).all()
        return [Hour(clock.iso(r.hour_us), r.line_id, r.source, int(r.out), int(r.back)) for r in rows]

    def _all_paths(self, connection: Connection, keys: Sequence[PathKey]) -> set[str]:
        """Rows of `path` of these paths, and of what they were before their addresses changed."""
        pairs = [(key.local, key.remote) for key in keys]
        return {id for key in keys for others in (None, pairs) for id in self._paths(connection, key, others)}

    def _paths(self, connection: Connection, key: PathKey, others: Collection[Pair] | None) -> set[str]:
        """Rows of `path`: of this very pair, or (`others` given) of the same line and far end with other addresses."""
        wanted = (
            select(path.c.id, path.c.remote_id, path.c.local, path.c.remote)
            .join(line, line.c.id == path.c.line)
            .where(line.c.host_id == self.host, line.c.line_id == key.line_id)
        )
        if others is None:
            # `run` knows of a far end no more than its address
            who = or_(path.c.remote_id == key.remote_id, path.c.remote_id == f"address:{key.remote}")
            rows = connection.execute(wanted.where(path.c.local == key.local, path.c.remote == key.remote, who))
            return {row.id for row in rows}
        if key.remote_id.startswith("address:"):
            return set()
        taken = {*others, (key.local, key.remote)}
        return {
            row.id
            for row in connection.execute(wanted.where(path.c.remote_id == key.remote_id))
            if (row.local, row.remote) not in taken
            and PathKey(key.line_id, row.remote_id, row.local, row.remote).family == key.family
        }

    def _acts(self, connection: Connection, ids: Collection[str], newer_than_s: float | None, limit: int) -> list[str]:
        """The newest acts over these paths, found path by path: so the index gives them in order."""
        found: dict[str, int] = {}
        for id in ids:
            wanted = (
                select(measurement.c.act, measurement.c.at_us)
                .where(measurement.c.path == id, *self._newer(measurement, newer_than_s))
                .order_by(measurement.c.at_us.desc())
                .limit(limit)
            )
            found |= {row.act: row.at_us for row in connection.execute(wanted)}
        return sorted(found, key=lambda act: found[act], reverse=True)[:limit]

    def _measured(self, rows: Iterable[Row[Any]], renumbered: bool = False) -> list[Measured]:
        found: dict[tuple[str, PathKey], list[Row[Any]]] = {}
        for row in rows:
            found.setdefault((row.act, key_of(row)), []).append(row)
        records = []
        for (act, key), of in found.items():
            r = of[0]
            directions = {row.direction: row.knowledge for row in of if row.knowledge is not None}
            pair = {name: value for name, value in r.pair.items() if name != "notes" and value is not None}
            document = {"name": r.name, "local": key.local, "remote": key.remote, "directions": directions, **pair}
            about = (r.name, r.world, r.target, r.method, r.effort, r.elapsed_s, r.valid)
            notes = tuple(r.pair.get("notes") or ())
            records.append(Measured(act, *self._when(r), key, renumbered, *about, document, notes, r.circumstances))
        return self._by_age(records)

    def _sent(self, connection: Connection, conditions: Sequence[Any], limit: int) -> list[Sent]:
        rows = connection.execute(
            select(transfer).where(*conditions).order_by(transfer.c.at_us.desc()).limit(limit)
        ).all()
        over = _over(connection, transfer_path, transfer_path.c.transfer_id, [row.id for row in rows])
        found = []
        for r in rows:
            paths = over.get(r.id, [])
            keys = tuple(key_of(p) for p in paths)
            about = (r.bytes, r.elapsed_s, r.throughput_bps, r.control, r.protocol, r.valid, r.world, r.target, r.job)
            by_path = (tuple(p.name for p in paths), tuple(p.bytes for p in paths))
            head = (r.id, *self._when(r), r.kind, r.direction, keys, *by_path)
            found.append(Sent(*head, *about, r.forecast_id, r.report, r.circumstances))
        return found

    def _forecasts(self, connection: Connection, conditions: Sequence[Any], limit: int) -> list[Forecasted]:
        rows = connection.execute(
            select(forecast).where(*conditions).order_by(forecast.c.at_us.desc()).limit(limit)
        ).all()
        ids = [row.id for row in rows]
        over = _over(connection, forecast_path, forecast_path.c.forecast_id, ids)
        came: dict[str, list[Sent]] = {}
        for sent in self._sent(connection, (transfer.c.forecast_id.in_(ids),), 10 * limit) if ids else ():
            came.setdefault(sent.forecast_id or "", []).append(sent)
        found = []
        for r in rows:
            paths = over.get(r.id, [])
            keys, names = tuple(key_of(p) for p in paths), tuple(p.name for p in paths)
            followed = tuple(_came(sent, r.answer, keys, names) for sent in reversed(came.get(r.id, [])))
            of: dict[str, Any] = {name: getattr(r, name) for name in _FORECAST}
            at, age_s = self._when(r)
            made_from = tuple(r.made_from)
            found.append(
                Forecasted(at=at, age_s=age_s, keys=keys, names=names, made_from=made_from, came=followed, **of)
            )
        return found

    def _events(self, connection: Connection, conditions: Sequence[Any], limit: int) -> list[Event]:
        wanted = (
            select(event, line.c.line_id.label("of_line"))
            .outerjoin(line, line.c.id == event.c.line)
            .where(*conditions)
            .order_by(event.c.at_us.desc())
            .limit(limit)
        )
        return self._by_age(
            [
                Event(r.id, *self._when(r), r.kind, r.text, r.of_line, r.world, r.target, r.about)
                for r in connection.execute(wanted)
            ]
        )

    def _when(self, row: Any) -> tuple[str, float | None]:
        return clock.iso(row.at_us), clock.age_s(Moment(row.at_us, row.boot_us, row.boot), self.at)

    def _newer(self, table: Any, seconds: float | None) -> tuple[Any, ...]:
        """Of this boot by the time since it, which nobody sets; of others by UTC."""
        if seconds is None:
            return ()
        microseconds = round(seconds * 1e6)
        here = (table.c.boot == self.at.boot) & (table.c.boot_us >= self.at.boot_us - microseconds)
        there = (table.c.boot != self.at.boot) & (table.c.at_us >= self.at.utc_us - microseconds)
        return (here | there,)

    def _by_age(self, records: list[Any]) -> list[Any]:
        return sorted(records, key=lambda of: (of.age_s is None, of.age_s or 0.0))


_FORECAST = ("id", "direction", "size_bytes", "chosen", "chosen_control", "answer", "world", "target")
KEY = (line.c.line_id, path.c.remote_id, path.c.local, path.c.remote, path.c.direction)


def key_of(row: Any) -> PathKey:
    return PathKey(row.line_id, row.remote_id, row.local, row.remote)


def _over(connection: Connection, table: Any, of: Any, ids: Sequence[str]) -> dict[str, list[Any]]:
    """The paths of transfers or forecasts, in their order."""
    wanted = (
        select(of.label("owner"), table, *KEY)
        .select_from(table)
        .join(path, path.c.id == table.c.path)
        .join(line, line.c.id == path.c.line)
        .where(of.in_(ids))
        .order_by(of, table.c.ordinal)
    )
    found: dict[str, list[Any]] = {}
    for row in connection.execute(wanted) if ids else ():
        found.setdefault(row.owner, []).append(row)
    return found


def _came(sent: Sent, answer: dict[str, Any], keys: Sequence[PathKey], names: Sequence[str | None]) -> Came:
    ids = {name: str(key) for name, key in zip(names, keys, strict=True) if name is not None}
    option = option_of(answer, ids, {str(key) for key in sent.keys}, sent.control)
    return Came(sent, None if option is None else dict(option))


def last_moment(connection: Connection, boot: str) -> Moment | None:
    """When something was added last in this boot, as far as the newest rows tell."""
    if not boot:
        return None
    steps = select(event.c.at_us, event.c.boot_us).where(event.c.boot == boot, event.c.kind == "clock-step")
    wanted = [steps.order_by(event.c.boot_us.desc()).limit(1)]
    for table in (measurement, transfer, forecast):
        newest = select(table.c.at_us, table.c.boot_us, table.c.boot).order_by(table.c.at_us.desc()).limit(1).subquery()
        wanted.append(select(newest.c.at_us, newest.c.boot_us).where(newest.c.boot == boot))
    rows = [row for query in wanted for row in connection.execute(query)]
    newest_row = max(rows, key=lambda row: row.boot_us, default=None)
    return None if newest_row is None else Moment(newest_row.at_us, newest_row.boot_us, boot)
