"""The reading side: what is known of paths, what was sent over them, what was forecast and what came."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathcast.history import clock
from pathcast.history.clock import Moment
from pathcast.history.identity import PathKey, host_id, remote_of_address
from pathcast.history.link import option_of
from pathcast.history.plain import Plain
from pathcast.history.records import Came, Event, Forecasted, Hour, Measured, Sent
from pathcast.history.store import Store

Pair = tuple[str, str]
KEY = "line.line_id, path.remote_id, path.local, path.remote, path.direction"
# a row of `path` with its line
LINED = "JOIN line ON line.id = path.line"


@dataclass(frozen=True)
class Where:
    """Conditions in SQL that all hold, and the values of their parameters."""

    conditions: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)

    def __and__(self, other: Where) -> Where:
        return Where(self.conditions + other.conditions, self.values | other.values)

    def __str__(self) -> str:
        return " AND ".join(self.conditions) or "1 = 1"


def where(condition: str, **values: Any) -> Where:
    """One condition."""
    return Where((condition,), values)


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
        with self.store.asking() as plain:
            for renumbered in (False, True):
                ids = self._paths(plain, key, others if renumbered else None)
                acts = self._acts(plain, ids, newer_than_s, limit)
                if acts:
                    break
            else:
                return []
            # other paths of these acts are few: asked for here, they would be looked up by the paths' thousands of rows
            rows = [row for row in self._of_acts(plain, acts) if row.path in ids]
        return self._measured(rows, renumbered)[:limit]

    def thinned(
        self, key: PathKey, newer_than_s: float, apart_s: float, limit: int, others: Collection[Pair] = ()
    ) -> list[Measured]:
        """Measurements in which a path answered, the newest and others so far apart at least; where that is more than
        `limit`, as many evenly. Also those of before its address changed, but none of `others`, as in `measurements`.
        """
        if not self.store.exists:
            return []
        with self.store.asking() as plain:
            acts: dict[str, tuple[int, list[str]]] = {}
            for id in {id for them in (None, others) for id in self._paths(plain, key, them)}:
                wanted = where("path = :path AND NOT down", path=id) & self._newer("measurement", newer_than_s)
                for row in plain.rows(f"SELECT id, act, at_us FROM measurement WHERE {wanted}", **wanted.values):
                    acts.setdefault(row.act, (row.at_us, []))[1].append(row.id)
            apart: list[list[str]] = []
            last_us: int | None = None
            for at_us, ids in sorted(acts.values(), reverse=True):
                if last_us is None or last_us - at_us >= apart_s * 1e6:
                    last_us = at_us
                    apart.append(ids)
            ids = [id for of in apart[:: max(1, -(-len(apart) // limit))] for id in of]
            return self._measured(self._of_ids(plain, ids))

    def transfers(self, keys: Sequence[PathKey], newer_than_s: float | None = None, limit: int = 200) -> list[Sent]:
        """The newest transfers whose paths are all among these."""
        if not self.store.exists or not keys:
            return []
        with self.store.asking() as plain:
            ids = self._all_paths(plain, keys)
            found = self._sent(plain, _over_these("transfer", ids) & self._newer("transfer", newer_than_s), limit)
        return self._by_age(found)

    def forecasts(
        self, keys: Sequence[PathKey], newer_than_s: float | None = None, limit: int = 200
    ) -> list[Forecasted]:
        """The newest forecasts whose paths are all among these, each with the transfers that followed it."""
        if not self.store.exists or not keys:
            return []
        with self.store.asking() as plain:
            ids = self._all_paths(plain, keys)
            found = self._forecasts(plain, _over_these("forecast", ids) & self._newer("forecast", newer_than_s), limit)
        return self._by_age(found)

    def events(
        self,
        newer_than_s: float | None = None,
        limit: int = 200,
        kind: str | None = None,
        world: str | None = None,
    ) -> list[Event]:
        """The newest events of this host. kind, world: of this one only."""
        if not self.store.exists:
            return []
        wanted = self._here("event") & self._newer("event", newer_than_s)
        if kind is not None:
            wanted &= where("event.kind = :kind", kind=kind)
        if world is not None:
            wanted &= where("event.world = :world", world=world)
        with self.store.asking() as plain:
            return self._events(plain, wanted, limit)

    def events_of(self, ids: Sequence[str]) -> list[Event]:
        """Those with these keys, the newest first."""
        if not ids or not self.store.exists:
            return []
        with self.store.asking() as plain:
            return self._events(plain, where("event.id IN :ids", ids=list(ids)), len(ids))

    def probed(self, command: str, newer_than_s: float) -> list[tuple[float, int]]:
        """Measurements of this host by a command: how long ago each ended [s], and its probes' bytes; oldest first."""
        if not self.store.exists:
            return []
        wanted = self._here("measurement") & self._newer("measurement", newer_than_s)
        wanted &= where("measurement.command = :command", command=command)
        by = "act, at_us, boot_us, boot"
        text = (
            f"SELECT {by}, MAX(elapsed_s) AS elapsed_s, SUM(probe_bytes) AS bytes FROM measurement "
            f"WHERE {wanted} GROUP BY {by} ORDER BY at_us"
        )
        with self.store.asking() as plain:
            rows = plain.rows(text, **wanted.values)
        ages = [(clock.age_s(Moment(row.at_us, row.boot_us, row.boot), self.at) or 0.0, row) for row in rows]
        return [(max(0.0, age_s - row.elapsed_s), int(row.bytes)) for age_s, row in ages]

    def rounds(self, command: str, target: str, newer_than_s: float, limit: int) -> list[tuple[str, float]]:
        """The newest tries of a command to measure to a target, also in vain: when, UTC, and how long ago [s]."""
        if not self.store.exists:
            return []
        found: list[tuple[str, float]] = []
        with self.store.asking() as plain:
            for table, more in (("measurement", Where()), ("event", where("event.kind = 'failed'"))):
                wanted = self._here(table) & self._newer(table, newer_than_s) & more
                wanted &= where(f"{table}.command = :command AND {table}.target = :target", command=command)
                text = (
                    f"SELECT DISTINCT at_us, boot_us, boot FROM {table} WHERE {wanted} ORDER BY at_us DESC LIMIT :limit"
                )
                rows = plain.rows(text, limit=limit, target=target, **wanted.values)
                found += [(at, age_s) for at, age_s in map(self._when, rows) if age_s is not None]
        return sorted(found, key=lambda of: of[1])[:limit]

    def usage(self, line_ids: Iterable[str] | None = None, since_us: int = 0, begun_us: int = 0) -> list[Hour]:
        """What lines of this host carried, hour by hour and by who has counted it, the oldest first. begun_us: of what
        began then or later."""
        if not self.store.exists:
            return []
        wanted = where("line.host_id = :host AND usage.hour_us >= :since_us", host=self.host, since_us=since_us)
        if line_ids is not None:
            wanted &= where("line.line_id IN :lines", lines=list(line_ids))
        if begun_us:
            wanted &= where("usage.at_us >= :begun_us", begun_us=begun_us)
        by = "usage.hour_us, line.line_id, usage.source"
        text = (
            f"SELECT {by}, SUM(usage.bytes_out) AS away, SUM(usage.bytes_in) AS back FROM usage "
            f"JOIN line ON line.id = usage.line WHERE {wanted} GROUP BY {by} ORDER BY {by}"
        )
        with self.store.asking() as plain:
            rows = plain.rows(text, **wanted.values)
        return [Hour(clock.iso(r.hour_us), r.line_id, r.source, int(r.away), int(r.back)) for r in rows]

    def _all_paths(self, plain: Plain, keys: Sequence[PathKey]) -> set[str]:
        """Rows of `path` of these paths, and of what they were before their addresses changed."""
        pairs = [(key.local, key.remote) for key in keys]
        return {id for key in keys for others in (None, pairs) for id in self._paths(plain, key, others)}

    def _paths(self, plain: Plain, key: PathKey, others: Collection[Pair] | None) -> set[str]:
        """Rows of `path`: of this very pair, or (`others` given) of the same line and far end with other addresses."""
        wanted = where("line.host_id = :host AND line.line_id = :line", host=self.host, line=key.line_id)
        text = f"SELECT path.id, path.remote_id, path.local, path.remote FROM path {LINED} WHERE "
        if others is None:
            # `run` knows of a far end no more than its address, and of the ways to it nothing
            known = [key.remote_id, *([] if key.way else [remote_of_address(key.remote)])]
            wanted &= where("path.remote_id IN :remote_ids", remote_ids=known)
            wanted &= where("path.local = :local AND path.remote = :remote", local=key.local, remote=key.remote)
            return {row.id for row in plain.rows(f"{text}{wanted}", **wanted.values)}
        if key.remote_id.startswith("address:"):
            return set()
        taken = {*others, (key.local, key.remote)}
        by_key = wanted & where("path.remote_id = :remote_id", remote_id=key.remote_id)
        found = {
            row.id: PathKey(key.line_id, row.remote_id, row.local, row.remote)
            for row in plain.rows(f"{text}{by_key}", **by_key.values)
            if (row.local, row.remote) not in taken
        }
        found = {id: of for id, of in found.items() if of.family == key.family}
        # what is known by these addresses only was the same path then
        addresses = [] if key.way else sorted({remote_of_address(of.remote) for of in found.values()})
        by_address = wanted & where("path.remote_id IN :addresses", addresses=addresses)
        pairs = {(of.local, of.remote) for of in found.values()}
        rows = plain.rows(f"{text}{by_address}", **by_address.values) if addresses else ()
        return {*found, *(row.id for row in rows if (row.local, row.remote) in pairs)}

    def _acts(self, plain: Plain, ids: Collection[str], newer_than_s: float | None, limit: int) -> list[str]:
        """The newest acts over these paths, found path by path: so the index gives them in order."""
        found: dict[str, int] = {}
        newer = self._newer("measurement", newer_than_s)
        for id in ids:
            wanted = where("path = :path", path=id) & newer
            text = f"SELECT act, at_us FROM measurement WHERE {wanted} ORDER BY at_us DESC LIMIT :limit"
            found |= {row.act: row.at_us for row in plain.rows(text, limit=limit, **wanted.values)}
        return sorted(found, key=lambda act: found[act], reverse=True)[:limit]

    def _of_ids(self, plain: Plain, ids: Sequence[str]) -> list[Any]:
        text = f"SELECT measurement.*, {KEY} FROM measurement JOIN path ON path.id = measurement.path {LINED}"
        return plain.rows(f"{text} WHERE measurement.id IN :ids", ids=list(ids)) if ids else []

    def _of_acts(self, plain: Plain, acts: Sequence[str], wanted: Where | None = None) -> list[Any]:
        wanted = where("measurement.act IN :acts", acts=list(acts)) & (wanted or Where())
        text = f"SELECT measurement.*, {KEY} FROM measurement JOIN path ON path.id = measurement.path {LINED}"
        return plain.rows(f"{text} WHERE {wanted}", **wanted.values)

    def _measured(self, rows: Iterable[Any], renumbered: bool = False) -> list[Measured]:
        found: dict[tuple[str, PathKey], list[Any]] = {}
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

    def _sent(self, plain: Plain, wanted: Where, limit: int) -> list[Sent]:
        rows = self._newest(plain, "transfer", wanted, limit)
        over = _over(plain, "transfer", [row.id for row in rows])
        found = []
        for r in rows:
            paths = over.get(r.id, [])
            keys = tuple(key_of(p) for p in paths)
            about = (r.bytes, r.elapsed_s, r.throughput_bps, r.control, r.protocol, r.valid, r.world, r.target, r.job)
            by_path = (tuple(p.name for p in paths), tuple(p.bytes for p in paths))
            head = (r.id, *self._when(r), r.kind, r.direction, keys, *by_path)
            found.append(Sent(*head, *about, r.forecast_id, r.report, r.circumstances))
        return found

    def _forecasts(self, plain: Plain, wanted: Where, limit: int) -> list[Forecasted]:
        rows = self._newest(plain, "forecast", wanted, limit)
        ids = [row.id for row in rows]
        over = _over(plain, "forecast", ids)
        came: dict[str, list[Sent]] = {}
        followed_by = where("transfer.forecast_id IN :forecasts", forecasts=ids)
        for sent in self._sent(plain, followed_by, 10 * limit) if ids else ():
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

    def _events(self, plain: Plain, wanted: Where, limit: int) -> list[Event]:
        text = (
            "SELECT event.*, line.line_id AS of_line FROM event LEFT JOIN line ON line.id = event.line "
            f"WHERE {wanted} ORDER BY event.at_us DESC LIMIT :limit"
        )
        return self._by_age(
            [
                Event(r.id, *self._when(r), r.kind, r.text, r.of_line, r.world, r.target, r.about)
                for r in plain.rows(text, limit=limit, **wanted.values)
            ]
        )

    def _newest(self, plain: Plain, table: str, wanted: Where, limit: int) -> list[Any]:
        text = f"SELECT {table}.* FROM {table} WHERE {wanted} ORDER BY {table}.at_us DESC LIMIT :limit"
        return plain.rows(text, limit=limit, **wanted.values)

    def _here(self, table: str) -> Where:
        """Of this host."""
        return where(f"{table}.host_id = :host", host=self.host)

    def _when(self, row: Any) -> tuple[str, float | None]:
        return clock.iso(row.at_us), clock.age_s(Moment(row.at_us, row.boot_us, row.boot), self.at)

    def _newer(self, table: str, seconds: float | None) -> Where:
        """Of this boot by the time since it, which nobody sets; of others by UTC."""
        if seconds is None:
            return Where()
        since = round(seconds * 1e6)
        return where(
            f"(({table}.boot = :boot AND {table}.boot_us >= :since_boot_us) "
            f"OR ({table}.boot <> :boot AND {table}.at_us >= :since_at_us))",
            boot=self.at.boot,
            since_boot_us=self.at.boot_us - since,
            since_at_us=self.at.utc_us - since,
        )

    def _by_age(self, records: list[Any]) -> list[Any]:
        return sorted(records, key=lambda of: (of.age_s is None, of.age_s or 0.0))


_FORECAST = ("id", "direction", "size_bytes", "chosen", "chosen_control", "answer", "world", "target")


def key_of(row: Any) -> PathKey:
    return PathKey(row.line_id, row.remote_id, row.local, row.remote)


def _over(plain: Plain, table: str, ids: Sequence[str]) -> dict[str, list[Any]]:
    """The paths of transfers or forecasts, in their order."""
    text = (
        f"SELECT each.{table}_id AS owner, each.*, {KEY} FROM {table}_path each "
        f"JOIN path ON path.id = each.path {LINED} WHERE each.{table}_id IN :ids ORDER BY owner, each.ordinal"
    )
    found: dict[str, list[Any]] = {}
    for row in plain.rows(text, ids=ids) if ids else ():
        found.setdefault(row.owner, []).append(row)
    return found


def _over_these(table: str, ids: Collection[str]) -> Where:
    """Transfers or forecasts that have paths, all of them among these."""
    over = f"SELECT {table}_id FROM {table}_path WHERE path"
    return where(f"{table}.id IN ({over} IN :over) AND {table}.id NOT IN ({over} NOT IN :over)", over=list(ids))


def _came(sent: Sent, answer: dict[str, Any], keys: Sequence[PathKey], names: Sequence[str | None]) -> Came:
    over = {name: key for name, key in zip(names, keys, strict=True) if name is not None}
    ids = {name: str(next((own for own in sent.keys if own.meets(key)), key)) for name, key in over.items()}
    option = option_of(answer, ids, {str(key) for key in sent.keys}, sent.control)
    return Came(sent, None if option is None else dict(option))


def last_moment(plain: Plain, boot: str, host: str) -> Moment | None:
    """When this host added something last in this boot, as far as its newest rows tell."""
    if not boot:
        return None
    steps = "SELECT at_us, boot_us, boot FROM event WHERE boot = :boot AND kind = 'clock-step'"
    rows = plain.rows(f"{steps} ORDER BY boot_us DESC LIMIT 1", boot=boot)
    for table in ("measurement", "transfer", "forecast"):
        newest = f"SELECT at_us, boot_us, boot FROM {table} WHERE host_id = :host ORDER BY at_us DESC LIMIT 1"
        rows += plain.rows(newest, host=host)
    last = max((row for row in rows if row.boot == boot), key=lambda row: row.boot_us, default=None)
    return None if last is None else Moment(last.at_us, last.boot_us, boot)
