"""A transfer and the forecast that was made for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Connection

# a forecast is of the transfer that follows within this time, of about its size
_WITHIN_US = 3_600_000_000
_SIZE = 0.1


def link(
    connection: Connection, transfer: Mapping[str, Any], rows: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Mapping[str, Any]:
    """The transfer's row with its forecast: the newest of the hour before that has an option of these very paths, of
    this controller where both name one, for this size within 10 %."""
    from sqlalchemy import select

    from pathcast.history.tables import forecast, forecast_path

    over = [row["path"] for row in rows.get("transfer_path", ()) if row["transfer_id"] == transfer["id"]]
    if transfer.get("forecast_id") or not over or _held_back(transfer):
        return transfer
    wanted = (
        select(forecast.c.id, forecast.c.size_bytes, forecast.c.answer)
        .join(forecast_path, forecast_path.c.forecast_id == forecast.c.id)
        .where(
            forecast_path.c.path == over[0],
            forecast.c.at_us.between(transfer["at_us"] - _WITHIN_US, transfer["at_us"]),
            forecast.c.world == transfer["world"],
        )
        .order_by(forecast.c.at_us.desc())
        .limit(20)
    )
    for id, size_bytes, answer in connection.execute(wanted):
        if abs(size_bytes - transfer["bytes"]) > _SIZE * size_bytes:
            continue
        names = select(forecast_path.c.name, forecast_path.c.path).where(forecast_path.c.forecast_id == id)
        paths = {row.name: row.path for row in connection.execute(names)}
        if option_of(answer, paths, set(over), transfer.get("control")) is not None:
            return {**transfer, "forecast_id": id}
    return transfer


def _held_back(transfer: Mapping[str, Any]) -> bool:
    """Whether its user has let it go no faster than at some rate, which no forecast knows of."""
    auto = (transfer.get("report") or {}).get("auto")
    return isinstance(auto, dict) and auto.get("max_rate_bps") is not None


def option_of(
    answer: Mapping[str, Any], paths: Mapping[str, str], over: set[str], control: str | None
) -> Mapping[str, Any] | None:
    """The option of a forecast that a transfer over these paths has carried out. paths: by the forecast's names."""
    for option in answer.get("options") or ():
        same = {paths.get(name) for name in option.get("paths") or ()} == over
        if same and (control is None or option.get("control") in (None, control)):
            return option  # type: ignore[no-any-return]
    return None
