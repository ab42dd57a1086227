"""A transfer and the forecast that was made for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pathcast.history.identity import PathKey
from pathcast.history.plain import sound

if TYPE_CHECKING:
    from pathcast.history.plain import Plain

# a forecast is of the transfer that follows within this time, of about its size
_WITHIN_US = 3_600_000_000
_SIZE = 0.1


_FORECASTS = """
SELECT forecast.id, forecast.size_bytes, forecast.answer FROM forecast
JOIN forecast_path ON forecast_path.forecast_id = forecast.id
WHERE forecast_path.path IN :over AND forecast.at_us BETWEEN :since_us AND :at_us AND forecast.world = :world
ORDER BY forecast.at_us DESC LIMIT 20
"""
_OF_PAIR = """
SELECT id, remote_id FROM path
WHERE line = :line AND local = :local AND remote = :remote AND direction = :direction
"""


def link(
    plain: Plain, transfer: Mapping[str, Any], rows: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Mapping[str, Any]:
    """The transfer's row with its forecast: the newest of the hour before that has an option of these very paths, of
    this controller where both name one, for this size within 10 %."""
    over = [row["path"] for row in rows.get("transfer_path", ()) if row["transfer_id"] == transfer["id"]]
    if transfer.get("forecast_id") or not over or held_back(transfer.get("report")):
        return transfer
    same = _same(plain, over, rows.get("path", ()))
    first = [id for id, of in same.items() if of == over[0]]
    at_us = transfer["at_us"]
    when = {"since_us": at_us - _WITHIN_US, "at_us": at_us}
    for found in plain.rows(_FORECASTS, over=first, world=transfer["world"], **when):
        if abs(found.size_bytes - transfer["bytes"]) > _SIZE * found.size_bytes:
            continue
        names = plain.rows("SELECT name, path FROM forecast_path WHERE forecast_id = :id", id=found.id)
        paths = {row.name: same.get(row.path, row.path) for row in names}
        if option_of(found.answer, paths, set(over), transfer.get("control")) is not None:
            return {**transfer, "forecast_id": found.id}
    return transfer


def _same(plain: Plain, over: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Of every row of `path` that is one of these paths, by the far end's key or address, which of them it is."""
    found = {id: id for id in over}
    for row in rows:
        if row["id"] not in over:
            continue
        own = PathKey(row["line"], row["remote_id"], row["local"], row["remote"])
        pair = {name: sound(row[name]) for name in ("line", "local", "remote", "direction")}
        for one in plain.rows(_OF_PAIR, **pair):
            if own.meets(PathKey(own.line_id, one.remote_id, own.local, own.remote)):
                found.setdefault(one.id, row["id"])
    return found


def held_back(report: Mapping[str, Any] | None) -> bool:
    """Whether no forecast can be of a run: it was to go no faster than at some rate, its plan changed lines or
    controllers, or it waited."""
    auto = (report or {}).get("auto")
    if not isinstance(auto, dict):
        return False
    ways = {(frozenset(step["lines"]), step["control"]) for step in auto.get("steps") or ()}
    return auto.get("max_rate_bps") is not None or len(ways) > 1 or bool(auto.get("waits"))


def option_of(
    answer: Mapping[str, Any], paths: Mapping[str, str], over: set[str], control: str | None
) -> Mapping[str, Any] | None:
    """The option of a forecast that a transfer over these paths has carried out. paths: by the forecast's names."""
    for option in answer.get("options") or ():
        same = {paths.get(name) for name in option.get("paths") or ()} == over
        if same and (control is None or option.get("control") in (None, control)):
            return option  # type: ignore[no-any-return]
    return None
