"""What was told of alerts last, however long ago that was and whatever else has happened since."""

from __future__ import annotations

from sqlalchemy import func, select

from pathcast.history.read import Reader
from pathcast.history.records import Event
from pathcast.history.tables import event

# of each alert so many: where a clock was set back the last one is not the newest by it
_LAST = 4


def last_told(reader: Reader) -> list[Event]:
    """The last events of every alert that was ever told on this host, by target, path and what it asks for; the newest
    first. Raises PathcastError as faults.py tells them."""
    if not reader.store.exists:
        return []
    key = (event.c.target, *(event.c.about[name].as_string() for name in ("path", "alert")))
    number = func.row_number().over(partition_by=key, order_by=event.c.at_us.desc()).label("number")
    told = select(event.c.id, number).where(event.c.host_id == reader.host, event.c.kind == "alert").subquery()
    with reader.store.reading() as connection:
        ids = connection.execute(select(told.c.id).where(told.c.number <= _LAST)).scalars().all()
    return reader.events_of(ids)
