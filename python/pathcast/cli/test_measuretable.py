"""What the table of a measurement shows of values that are doubtful, bounded or absent."""

from __future__ import annotations

from dataclasses import replace

from pathcast.cli.measuretable import interval, line, lost, rate, show
from pathcast.worlds.measurement import (
    Clock,
    Cross,
    Delay,
    Direction,
    Down,
    Loss,
    Measurement,
    PathMeasured,
    Policer,
    Queue,
    RateVariation,
    Value,
)

_AT = Value(0.01, 0.009, 0.011)
_DIRECTION = Direction(
    capacity_bps=Value(25.5e6, 20e6, 26e6, "inconsistent"),
    available_bps=Value(None, 0.0, 249e6, "too-few"),
    delay_s=Delay(_AT, _AT, _AT, 0.001, Clock(True, 0.0)),
    loss=Loss(2, 400),
    bytes=1000,
)


def test_a_doubtful_rate_is_marked_and_a_missing_one_says_why():
    assert rate(_DIRECTION.capacity_bps) == "25.5 Mbit/s (inconsistent)"
    assert rate(_DIRECTION.available_bps) == "too-few"
    assert interval(_DIRECTION.available_bps) == "0 bit/s to 249 Mbit/s"
    assert interval(Value(None, 3e6, None, "beyond-limit")) == "from 3 Mbit/s"
    assert interval(Value(None)) == "-"


def test_the_kind_of_a_line_is_said_where_it_was_found():
    assert line(_DIRECTION) == []
    known = replace(
        _DIRECTION,
        queue=Queue(depth_s=Value(None, 0.5, None, "beyond-limit"), fair=Value(0.97), managed=Value(0.1)),
        policer=Policer(Value(0.99), Value(20e6), Value(1e6)),
        cross=Cross(elastic=Value(0.9)),
    )
    assert line(known) == ["a queue a flow", "queue above 500 ms", "policed 20 Mbit/s", "mostly TCP"]


def test_where_nothing_was_found_nothing_is_said():
    none = replace(
        _DIRECTION,
        cross=Cross(load_bps=Value(118e3, 0.0, 450e3)),
        rate_variation=RateVariation(Value(0.004, 0.001, 0.01)),
    )
    assert line(none) == []
    assert line(replace(none, rate_variation=RateVariation(Value(0.02, 0.0, 0.05)))) == []
    some = replace(none, cross=Cross(load_bps=Value(4e6, 3e6, 5e6)), rate_variation=RateVariation(Value(0.1, 0.05)))
    assert line(some) == ["others 4 Mbit/s", "rate varies by 10%"]
    assert line(replace(none, cross=Cross(load_bps=Value(4e6)))) == ["others 4 Mbit/s"]  # no bound is known


def test_the_loss_is_the_lines_own_where_it_is_known():
    assert lost(Loss(93, 1000)) == "9.3 %"
    assert lost(Loss(93, 1000, Value(0.0, 0.0, 0.003))) == "0 %"
    assert lost(Loss(93, 1000, Value(0.01, 0.005, 0.02))) == "1 %"
    assert lost(Loss(93, 1000, Value(None, why="too-few"))) == "9.3 %"
    assert lost(Loss(0, 0)) == "-"


def test_a_path_that_is_down_has_its_row(capsys):
    paths = (
        PathMeasured("path1", "10.0.1.2", "10.0.1.1", {"out": _DIRECTION}),
        PathMeasured("path2", "10.0.2.2", "10.0.1.1", {"out": _DIRECTION}, down=Down(12, 3)),
    )
    show("far", Measurement(paths, 5000, 1.5, "ride"), "12:00")
    text = capsys.readouterr().out
    assert "to far, 12:00" in text
    assert "0.5 %" in text
    row = next(text_line for text_line in text.splitlines() if "path2" in text_line)
    assert "down: no answer to 12 probes in 3 s" in row
