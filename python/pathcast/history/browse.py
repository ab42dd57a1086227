"""A history as people look at it: all paths and what there is of them, the newest of everything, one act whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select

from pathcast.errors import usage
from pathcast.history import clock
from pathcast.history.identity import PathKey
from pathcast.history.read import KEY, Reader, key_of
from pathcast.history.records import Event, Forecasted, Measured, Sent
from pathcast.history.tables import event, forecast, line, measurement, path, transfer, transfer_path


@dataclass(frozen=True)
class Known:
    """A path, and what there is of it. name, target: what it was called last. first, last: of its acts."""

    key: PathKey
    name: str | None
    target: str | None
    world: str | None
    measurements: int
    transfers: int
    bytes: int
    first: str | None
    last: str | None
    age_s: float | None
    available_bps: dict[str, float | None]


@dataclass(frozen=True)
class Point:
    """A value of one path at a time, for graphs."""

    at_us: int
    key: PathKey
    name: str
    direction: str
    values: dict[str, float | None]


class Browser(Reader):
    """A reader of all that is there. newer_than_s, line_id, target: of nothing else; None: of all."""

    def paths(self) -> list[Known]:
        """Every path of this host, those that were used last first."""
        if not self.store.exists:
            return []
        found: dict[PathKey, dict[str, Any]] = {}
        with self.store.reading() as connection:
            for row in connection.execute(self._of_host(select(path.c.id, *KEY))):
                found.setdefault(key_of(row), {"ids": {}})["ids"][row.id] = row.direction
            return self._by_age([self._known(connection, key, of["ids"]) for key, of in found.items()])

    def measurements_of(
        self, newer_than_s: float | None, limit: int, line_id: str | None = None, target: str | None = None
    ) -> list[Measured]:
        """The newest measurements, one record for each path."""
        if not self.store.exists:
            return []
        rows = (
            self._of_host(select(measurement.c.act), measurement)
            .where(*self._newer(measurement, newer_than_s), *self._named(measurement, line_id, target))
            .order_by(measurement.c.at_us.desc())
        )
        with self.store.reading() as connection:
            # an act has as many rows as paths and directions
            acts: list[str] = []
            number = 8 * limit
            while len(acts) < limit:
                found = connection.execute(rows.limit(number)).all()
                acts = list(dict.fromkeys(row.act for row in found))[:limit]
                if len(found) < number:
                    break
                number *= 8
            return self._of_acts(connection, acts, line_id)[:limit]

    def transfers_of(
        self, newer_than_s: float | None, limit: int, line_id: str | None = None, target: str | None = None
    ) -> list[Sent]:
        """The newest transfers and runs."""
        if not self.store.exists:
            return []
        conditions = [transfer.c.host_id == self.host, *self._newer(transfer, newer_than_s)]
        if target is not None:
            conditions.append(transfer.c.target == target)
        if line_id is not None:
            over = (
                select(transfer_path.c.transfer_id)
                .join(path, path.c.id == transfer_path.c.path)
                .join(line, line.c.id == path.c.line)
                .where(line.c.line_id == line_id)
            )
            conditions.append(transfer.c.id.in_(over))
        with self.store.reading() as connection:
            return self._by_age(self._sent(connection, conditions, limit))

    def forecasts_of(self, newer_than_s: float | None, limit: int, target: str | None = None) -> list[Forecasted]:
        """The newest forecasts, with what came."""
        if not self.store.exists:
            return []
        conditions = [forecast.c.host_id == self.host, *self._newer(forecast, newer_than_s)]
        if target is not None:
            conditions.append(forecast.c.target == target)
        with self.store.reading() as connection:
            return self._by_age(self._forecasts(connection, conditions, limit))

    def act(self, id: str) -> list[Measured] | Sent | Forecasted | Event:
        """What has this key, or is the only one whose key begins so. Raises PathcastError (exit 2)."""
        columns = {"measurement": measurement.c.act, "transfer": transfer.c.id, "forecast": forecast.c.id}
        if not id or not self.store.exists:
            raise usage(
                f"nothing in this history has the key `{id}`", "`pathcast history list measurements` shows keys"
            )
        found: list[tuple[str, str]] = []
        with self.store.reading() as connection:
            for kind, column in {**columns, "event": event.c.id}.items():
                beginning = select(column).where(column.startswith(id, autoescape=True)).distinct().limit(3)
                found += [(kind, row[0]) for row in connection.execute(beginning)]
            if len(found) != 1:
                several = ", ".join(key for _, key in found)
                told = f"several keys begin with `{id}`: {several}" if found else f"nothing here has the key `{id}`"
                raise usage(told, "`pathcast history list measurements` (transfers, forecasts, events) shows keys")
            [(kind, key)] = found
            if kind == "measurement":
                return self._of_acts(connection, [key])
            if kind == "transfer":
                return self._sent(connection, [transfer.c.id == key], 1)[0]
            if kind == "forecast":
                return self._forecasts(connection, [forecast.c.id == key], 1)[0]
            return self._events(connection, [event.c.id == key], 1)[0]

    def series(
        self, newer_than_s: float | None = None, line_id: str | None = None, target: str | None = None
    ) -> list[Point]:
        """What graphs show of all measurements, the oldest first."""
        if not self.store.exists:
            return []
        columns = [getattr(measurement.c, name) for name in GRAPHED]
        wanted = (
            self._of_host(
                select(measurement.c.at_us, measurement.c.name, measurement.c.valid, *columns, *KEY), measurement
            )
            .where(*self._newer(measurement, newer_than_s), *self._named(measurement, line_id, target))
            .order_by(measurement.c.at_us)
        )
        with self.store.reading() as connection:
            rows = connection.execute(wanted).all()
        return [
            Point(r.at_us, key_of(r), r.name, r.direction, {name: getattr(r, name) for name in GRAPHED})
            for r in rows
            if r.valid is not False
        ]

    def _of_acts(self, connection: Any, acts: Sequence[str], line_id: str | None = None) -> list[Measured]:
        wanted = self._of_host(select(measurement, *KEY), measurement, any_host=True).where(measurement.c.act.in_(acts))
        if line_id is not None:
            wanted = wanted.where(line.c.line_id == line_id)
        return self._measured(connection.execute(wanted).all())

    def _known(self, connection: Any, key: PathKey, directions: dict[str, str]) -> Known:
        of_path = measurement.c.path.in_(list(directions))
        count, first, last = connection.execute(
            select(
                func.count(func.distinct(measurement.c.act)),
                func.min(measurement.c.at_us),
                func.max(measurement.c.at_us),
            ).where(of_path)
        ).one()
        available: dict[str, float | None] = {}
        newest = None
        for id, direction in directions.items():
            wanted = select(measurement).where(measurement.c.path == id).order_by(measurement.c.at_us.desc()).limit(1)
            if row := connection.execute(wanted).first():
                available[direction] = row.available_bps
                newest = row
        over = select(transfer_path.c.transfer_id).where(transfer_path.c.path.in_(list(directions)))
        sent, begun, ended = connection.execute(
            select(func.count(), func.min(transfer.c.at_us), func.max(transfer.c.at_us)).where(transfer.c.id.in_(over))
        ).one()
        carried = connection.execute(
            select(func.sum(transfer_path.c.bytes)).where(transfer_path.c.path.in_(list(directions)))
        ).scalar()
        latest = connection.execute(
            select(transfer).where(transfer.c.id.in_(over)).order_by(transfer.c.at_us.desc()).limit(1)
        ).first()
        times = [at for at in (first, last, begun, ended) if at is not None]
        newer = max((row for row in (newest, latest) if row is not None), key=lambda row: row.at_us, default=None)
        return Known(
            key=key,
            name=newest.name if newest else None,
            target=newer.target if newer else None,
            world=newer.world if newer else None,
            measurements=count,
            transfers=sent,
            bytes=int(carried or 0),
            first=clock.iso(min(times)) if times else None,
            last=clock.iso(max(times)) if times else None,
            age_s=self._when(newer)[1] if newer else None,
            available_bps=available,
        )

    def _of_host(self, wanted: Select[Any], table: Any = None, any_host: bool = False) -> Select[Any]:
        """Joined with its path and line, of this host."""
        if table is None:
            joined = wanted.select_from(path)
        else:
            joined = wanted.select_from(table).join(path, path.c.id == table.c.path)
        joined = joined.join(line, line.c.id == path.c.line)
        return joined if any_host else joined.where(line.c.host_id == self.host)

    @staticmethod
    def _named(table: Any, line_id: str | None, target: str | None) -> list[Any]:
        conditions = [] if target is None else [table.c.target == target]
        return conditions if line_id is None else [*conditions, line.c.line_id == line_id]


# what a graph can show of a measurement
GRAPHED = ("available_bps", "capacity_bps", "rtt_s", "delay_s", "loss")
