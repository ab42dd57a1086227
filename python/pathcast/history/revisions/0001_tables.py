"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Makes all tables and indices."""
    op.create_table(
        "host",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("added_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "forecast",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("boot_us", sa.BigInteger(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("world", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("circumstances", _JSON, nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("chosen", _JSON, nullable=True),
        sa.Column("chosen_control", sa.Text(), nullable=True),
        sa.Column("made_from", _JSON, nullable=False),
        sa.Column("answer", _JSON, nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("forecast_at", "forecast", ["at_us"])
    op.create_table(
        "line",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("line_id", sa.Text(), nullable=False),
        sa.Column("added_us", sa.BigInteger(), nullable=False),
        sa.Column("retired_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "transfer",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("boot_us", sa.BigInteger(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("world", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("circumstances", _JSON, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("elapsed_s", sa.Float(), nullable=False),
        sa.Column("throughput_bps", sa.Float(), nullable=True),
        sa.Column("control", sa.Text(), nullable=True),
        sa.Column("protocol", sa.Text(), nullable=True),
        sa.Column("valid", sa.Boolean(), nullable=True),
        sa.Column("job", sa.Text(), nullable=True),
        sa.Column("forecast_id", sa.Text(), nullable=True),
        sa.Column("report", _JSON, nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("transfer_at", "transfer", ["at_us"])
    op.create_index("transfer_forecast", "transfer", ["forecast_id"])
    op.create_table(
        "path",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("remote_id", sa.Text(), nullable=False),
        sa.Column("local", sa.Text(), nullable=False),
        sa.Column("remote", sa.Text(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("added_us", sa.BigInteger(), nullable=False),
        sa.Column("retired_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["line"], ["line.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("path_of_line", "path", ["line", "remote_id"])
    op.create_table(
        "usage",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("hour_us", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("bytes_out", sa.BigInteger(), nullable=False),
        sa.Column("bytes_in", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["line"], ["line.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("usage_of_line", "usage", ["line", "hour_us"])
    op.create_table(
        "event",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("boot_us", sa.BigInteger(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("world", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("circumstances", _JSON, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("about", _JSON, nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"]),
        sa.ForeignKeyConstraint(["line"], ["line.id"]),
        sa.ForeignKeyConstraint(["path"], ["path.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("event_at", "event", ["at_us"])
    op.create_table(
        "forecast_path",
        sa.Column("forecast_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["forecast_id"], ["forecast.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["path"], ["path.id"]),
        sa.PrimaryKeyConstraint("forecast_id", "ordinal"),
    )
    op.create_index("forecast_over_path", "forecast_path", ["path", "forecast_id"])
    op.create_table(
        "measurement",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("act", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("boot_us", sa.BigInteger(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("world", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("circumstances", _JSON, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("effort", sa.Text(), nullable=True),
        sa.Column("elapsed_s", sa.Float(), nullable=False),
        sa.Column("probe_bytes", sa.BigInteger(), nullable=False),
        sa.Column("down", sa.Boolean(), nullable=False),
        sa.Column("valid", sa.Boolean(), nullable=True),
        sa.Column("capacity_bps", sa.Float(), nullable=True),
        sa.Column("available_bps", sa.Float(), nullable=True),
        sa.Column("rtt_s", sa.Float(), nullable=True),
        sa.Column("delay_s", sa.Float(), nullable=True),
        sa.Column("loss", sa.Float(), nullable=True),
        sa.Column("knowledge", _JSON, nullable=True),
        sa.Column("pair", _JSON, nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"]),
        sa.ForeignKeyConstraint(["path"], ["path.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("measurement_act", "measurement", ["act"])
    op.create_index("measurement_at", "measurement", ["at_us"])
    op.create_index("measurement_of_path", "measurement", ["path", "at_us"])
    op.create_table(
        "transfer_path",
        sa.Column("transfer_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("resent_bytes", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["path"], ["path.id"]),
        sa.ForeignKeyConstraint(["transfer_id"], ["transfer.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("transfer_id", "ordinal"),
    )
    op.create_index("transfer_over_path", "transfer_path", ["path", "transfer_id"])
