"""The tables. Rows are added and retired, never changed: what is stored once is what was seen.

Times are microseconds: `at_us` UTC since 1970, `boot_us` since the boot named `boot` (clock.py). Hosts, lines and paths
have keys made of what they are (identity.py), all else keys of its own, so that rows can be sent twice.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()
_JSON = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def _when() -> tuple[Column[Any], ...]:
    return (
        Column("at_us", BigInteger, nullable=False),
        Column("boot_us", BigInteger, nullable=False),
        Column("boot", Text, nullable=False),
    )


def _kind() -> tuple[Column[Any], ...]:
    """Where and how it came about: labels, for people, and circumstances."""
    return (
        Column("host_id", ForeignKey("host.id"), nullable=False),
        Column("world", Text, nullable=False),
        Column("target", Text),
        Column("command", Text),
        Column("circumstances", _JSON, nullable=False),
    )


host = Table(
    "host",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("added_us", BigInteger, nullable=False),
)
line = Table(
    "line",
    metadata,
    Column("id", Text, primary_key=True),
    Column("host_id", ForeignKey("host.id"), nullable=False),
    Column("line_id", Text, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("retired_us", BigInteger),
)
path = Table(
    "path",
    metadata,
    Column("id", Text, primary_key=True),
    Column("line", ForeignKey("line.id"), nullable=False),
    Column("remote_id", Text, nullable=False),
    Column("local", Text, nullable=False),
    Column("remote", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("retired_us", BigInteger),
    Index("path_of_line", "line", "remote_id"),
)
# one direction of one path; those of one call of `measure` have the same `act`
measurement = Table(
    "measurement",
    metadata,
    Column("id", Text, primary_key=True),
    Column("act", Text, nullable=False),
    *_when(),
    *_kind(),
    Column("path", ForeignKey("path.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("effort", Text),
    Column("elapsed_s", Float, nullable=False),
    Column("probe_bytes", BigInteger, nullable=False),
    Column("down", Boolean, nullable=False),
    # False: the emulator was late, say; None: nobody judged
    Column("valid", Boolean),
    # for graphs; all that is known is in `knowledge`
    Column("capacity_bps", Float),
    Column("available_bps", Float),
    Column("rtt_s", Float),
    Column("delay_s", Float),
    Column("loss", Float),
    Column("knowledge", _JSON),
    Column("pair", _JSON, nullable=False),
    Index("measurement_of_path", "path", "at_us"),
    Index("measurement_at", "at_us"),
    Index("measurement_act", "act"),
)
transfer = Table(
    "transfer",
    metadata,
    Column("id", Text, primary_key=True),
    *_when(),
    *_kind(),
    Column("kind", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("elapsed_s", Float, nullable=False),
    Column("throughput_bps", Float),
    Column("control", Text),
    Column("protocol", Text),
    Column("valid", Boolean),
    Column("job", Text),
    # no reference: retention may have taken it
    Column("forecast_id", Text),
    Column("report", _JSON, nullable=False),
    Index("transfer_at", "at_us"),
    Index("transfer_forecast", "forecast_id"),
)
transfer_path = Table(
    "transfer_path",
    metadata,
    Column("transfer_id", ForeignKey("transfer.id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("path", ForeignKey("path.id"), nullable=False),
    Column("name", Text),
    Column("bytes", BigInteger),
    Column("resent_bytes", BigInteger),
    Index("transfer_over_path", "path", "transfer_id"),
)
forecast = Table(
    "forecast",
    metadata,
    Column("id", Text, primary_key=True),
    *_when(),
    *_kind(),
    Column("direction", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("chosen", _JSON),
    Column("chosen_control", Text),
    Column("made_from", _JSON, nullable=False),
    Column("answer", _JSON, nullable=False),
    Index("forecast_at", "at_us"),
)
forecast_path = Table(
    "forecast_path",
    metadata,
    Column("forecast_id", ForeignKey("forecast.id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("path", ForeignKey("path.id"), nullable=False),
    Column("name", Text),
    Index("forecast_over_path", "path", "forecast_id"),
)
# what a line carried: increments, to be summed over an hour
usage = Table(
    "usage",
    metadata,
    Column("id", Text, primary_key=True),
    Column("line", ForeignKey("line.id"), nullable=False),
    Column("hour_us", BigInteger, nullable=False),
    Column("source", Text, nullable=False),
    Column("bytes_out", BigInteger, nullable=False),
    Column("bytes_in", BigInteger, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Index("usage_of_line", "line", "hour_us"),
)
event = Table(
    "event",
    metadata,
    Column("id", Text, primary_key=True),
    *_when(),
    *_kind(),
    Column("kind", Text, nullable=False),
    Column("line", ForeignKey("line.id")),
    Column("path", ForeignKey("path.id")),
    Column("text", Text, nullable=False),
    Column("about", _JSON),
    Index("event_at", "at_us"),
)

# what a row refers to stands before it
ORDER: tuple[Table, ...] = tuple(metadata.sorted_tables)
NAMES: dict[str, Table] = {table.name: table for table in ORDER}
