"""A history as people look at it: all paths and what there is of them, the newest of everything, one act whole."""

from __future__ import annotations

from dataclasses import dataclass

from pathcast.errors import usage
from pathcast.history import clock
from pathcast.history.identity import PathKey, remote_of_address
from pathcast.history.plain import Plain
from pathcast.history.read import KEY, LINED, Reader, Where, key_of, where
from pathcast.history.records import Event, Forecasted, Measured, Sent


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
    """A reader of all that is there. newer_than_s, line_id, target, world: of nothing else; None: of all."""

    def paths(self) -> list[Known]:
        """Every path of this host, those that were used last first; one whose far end was known by its address, too, is
        one by its key."""
        if not self.store.exists:
            return []
        found: dict[PathKey, dict[str, str]] = {}
        with self.store.asking() as plain:
            text = f"SELECT path.id, {KEY} FROM path {LINED} WHERE line.host_id = :host"
            for row in plain.rows(text, host=self.host):
                found.setdefault(key_of(row), {})[row.id] = row.direction
            return self._by_age([self._known(plain, key, ids) for key, ids in _by_key(found).items()])

    def measurements_of(
        self,
        newer_than_s: float | None,
        limit: int,
        line_id: str | None = None,
        target: str | None = None,
        world: str | None = None,
    ) -> list[Measured]:
        """The newest measurements, one record for each path."""
        if not self.store.exists:
            return []
        wanted = where("line.host_id = :host", host=self.host) & self._newer("measurement", newer_than_s)
        wanted &= self._named(line_id, target) & _of("measurement", world)
        text = f"SELECT measurement.act FROM {_MEASURED} WHERE {wanted} ORDER BY measurement.at_us DESC LIMIT :limit"
        with self.store.asking() as plain:
            # an act has as many rows as paths and directions
            acts: list[str] = []
            number = 8 * limit
            while len(acts) < limit:
                found = plain.rows(text, limit=number, **wanted.values)
                acts = list(dict.fromkeys(row.act for row in found))[:limit]
                if len(found) < number:
                    break
                number *= 8
            return self._measured(self._of_acts(plain, acts, self._named(line_id, None)))[:limit]

    def newest(self, newer_than_s: float, world: str | None = None) -> list[Measured]:
        """Of every path its newest measurement of a time."""
        if not self.store.exists:
            return []
        wanted = where("measurement.path = path.id") & self._newer("measurement", newer_than_s)
        wanted &= _of("measurement", world)
        # path by path: so the index gives it, however often others were measured since
        one = f"SELECT measurement.id FROM measurement WHERE {wanted} ORDER BY measurement.at_us DESC LIMIT 1"
        text = f"SELECT ({one}) AS id FROM path {LINED} WHERE line.host_id = :host"
        with self.store.asking() as plain:
            ids = [row.id for row in plain.rows(text, host=self.host, **wanted.values) if row.id is not None]
            return self._measured(self._of_ids(plain, ids))

    def transfers_of(
        self,
        newer_than_s: float | None,
        limit: int,
        line_id: str | None = None,
        target: str | None = None,
        world: str | None = None,
    ) -> list[Sent]:
        """The newest transfers and runs."""
        if not self.store.exists:
            return []
        wanted = self._here("transfer") & self._newer("transfer", newer_than_s) & _of("transfer", world)
        if target is not None:
            wanted &= where("transfer.target = :target", target=target)
        if line_id is not None:
            over = f"SELECT transfer_id FROM transfer_path JOIN path ON path.id = transfer_path.path {LINED}"
            wanted &= where(f"transfer.id IN ({over} WHERE line.line_id = :line)", line=line_id)
        with self.store.asking() as plain:
            return self._by_age(self._sent(plain, wanted, limit))

    def forecasts_of(
        self, newer_than_s: float | None, limit: int, target: str | None = None, world: str | None = None
    ) -> list[Forecasted]:
        """The newest forecasts, with what came."""
        if not self.store.exists:
            return []
        wanted = self._here("forecast") & self._newer("forecast", newer_than_s) & _of("forecast", world)
        if target is not None:
            wanted &= where("forecast.target = :target", target=target)
        with self.store.asking() as plain:
            return self._by_age(self._forecasts(plain, wanted, limit))

    def worlds(self, table: str) -> dict[str, int]:
        """How many measurements (`measurement`), transfers, forecasts or events of this host are in each world."""
        if not self.store.exists:
            return {}
        number = "COUNT(DISTINCT act)" if table == "measurement" else "COUNT(*)"
        text = f"SELECT world, {number} AS number FROM {table} WHERE host_id = :host GROUP BY world ORDER BY world"
        with self.store.asking() as plain:
            return {row.world: row.number for row in plain.rows(text, host=self.host)}

    def act(self, id: str) -> list[Measured] | Sent | Forecasted | Event:
        """What has this key, or is the only one whose key begins so. Raises PathcastError (exit 2)."""
        columns = {"measurement": "act", "transfer": "id", "forecast": "id", "event": "id"}
        if not id or not self.store.exists:
            raise usage(
                f"nothing in this history has the key `{id}`", "`pathcast history list measurements` shows keys"
            )
        found: list[tuple[str, str]] = []
        with self.store.asking() as plain:
            for table, column in columns.items():
                text = f"SELECT DISTINCT {column} FROM {table} WHERE substr({column}, 1, :length) = :id LIMIT 3"
                found += [(table, row[0]) for row in plain.rows(text, length=len(id), id=id)]
            if len(found) != 1:
                several = ", ".join(key for _, key in found)
                told = f"several keys begin with `{id}`: {several}" if found else f"nothing here has the key `{id}`"
                raise usage(told, "`pathcast history list measurements` (transfers, forecasts, events) shows keys")
            [(kind, key)] = found
            if kind == "measurement":
                return self._measured(self._of_acts(plain, [key]))
            if kind == "transfer":
                return self._sent(plain, where("transfer.id = :id", id=key), 1)[0]
            if kind == "forecast":
                return self._forecasts(plain, where("forecast.id = :id", id=key), 1)[0]
            return self._events(plain, where("event.id = :id", id=key), 1)[0]

    def series(
        self, newer_than_s: float | None = None, line_id: str | None = None, target: str | None = None
    ) -> list[Point]:
        """What graphs show of all measurements, the oldest first."""
        if not self.store.exists:
            return []
        wanted = where("line.host_id = :host", host=self.host) & self._newer("measurement", newer_than_s)
        wanted &= self._named(line_id, target)
        columns = ", ".join(f"measurement.{name}" for name in ("at_us", "name", "valid", *GRAPHED))
        text = f"SELECT {columns}, {KEY} FROM {_MEASURED} WHERE {wanted} ORDER BY measurement.at_us"
        with self.store.asking() as plain:
            rows = plain.rows(text, **wanted.values)
        return [
            Point(r.at_us, key_of(r), r.name, r.direction, {name: getattr(r, name) for name in GRAPHED})
            for r in rows
            if r.valid is not False
        ]

    def line_ids(self) -> list[str]:
        """Every line of this host."""
        if not self.store.exists:
            return []
        with self.store.asking() as plain:
            return [r.line_id for r in plain.rows("SELECT line_id FROM line WHERE host_id = :host", host=self.host)]

    def targets(self) -> list[str]:
        """What this host ever measured, forecast for or sent to, be it in vain."""
        if not self.store.exists:
            return []
        of = "SELECT target FROM {} WHERE host_id = :host AND target IS NOT NULL"
        text = " UNION ".join(of.format(table) for table in ("measurement", "transfer", "forecast", "event"))
        with self.store.asking() as plain:
            return [row.target for row in plain.rows(text, host=self.host)]

    def _known(self, plain: Plain, key: PathKey, directions: dict[str, str]) -> Known:
        ids = list(directions)
        [of] = plain.rows(
            "SELECT COUNT(DISTINCT act) AS number, MIN(at_us) AS first_us, MAX(at_us) AS last_us FROM measurement "
            "WHERE path IN :ids",
            ids=ids,
        )
        text = "SELECT * FROM measurement WHERE path = :path ORDER BY at_us DESC LIMIT 1"
        last = [(directions[id], row) for id in ids for row in plain.rows(text, path=id)]
        last.sort(key=lambda one: one[1].at_us)
        available = {direction: row.available_bps for direction, row in last}
        newest = last[-1][1] if last else None
        over = "transfer WHERE id IN (SELECT transfer_id FROM transfer_path WHERE path IN :ids)"
        text = f"SELECT COUNT(*) AS number, MIN(at_us) AS first_us, MAX(at_us) AS last_us FROM {over}"
        [sent] = plain.rows(text, ids=ids)
        [carried] = plain.rows("SELECT SUM(bytes) AS bytes FROM transfer_path WHERE path IN :ids", ids=ids)
        latest = next(iter(plain.rows(f"SELECT * FROM {over} ORDER BY at_us DESC LIMIT 1", ids=ids)), None)
        times = [at for at in (of.first_us, of.last_us, sent.first_us, sent.last_us) if at is not None]
        newer = max((row for row in (newest, latest) if row is not None), key=lambda row: row.at_us, default=None)
        return Known(
            key=key,
            name=newest.name if newest else None,
            target=newer.target if newer else None,
            world=newer.world if newer else None,
            measurements=of.number,
            transfers=sent.number,
            bytes=int(carried.bytes or 0),
            first=clock.iso(min(times)) if times else None,
            last=clock.iso(max(times)) if times else None,
            age_s=self._when(newer)[1] if newer else None,
            available_bps=available,
        )

    @staticmethod
    def _named(line_id: str | None, target: str | None) -> Where:
        """Of measurements."""
        wanted = Where() if target is None else where("measurement.target = :target", target=target)
        return wanted if line_id is None else wanted & where("line.line_id = :line", line=line_id)


def _by_key(found: dict[PathKey, dict[str, str]]) -> dict[PathKey, dict[str, str]]:
    """What is known by the far end's address is that of the key there; where several are, nobody can tell whose."""
    pairs: dict[tuple[str, str, str], list[PathKey]] = {}
    for key in found:
        pairs.setdefault((key.line_id, key.local, key.remote), []).append(key)
    made = dict(found)
    for keys in pairs.values():
        for key in keys:
            same = [other for other in keys if other != key and other.meets(key)]
            if key.remote_id == remote_of_address(key.remote) and len(same) == 1:
                made[same[0]] = made[same[0]] | made.pop(key)
    return made


def _of(table: str, world: str | None) -> Where:
    return Where() if world is None else where(f"{table}.world = :world", world=world)


# what a graph can show of a measurement
GRAPHED = ("available_bps", "capacity_bps", "rtt_s", "delay_s", "loss")
# a measurement with its path and line
_MEASURED = f"measurement JOIN path ON path.id = measurement.path {LINED}"
