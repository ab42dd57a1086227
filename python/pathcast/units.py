"""Rates, times and sizes as people write them."""

from __future__ import annotations


def bits(value: float | None) -> str:
    """A rate for people: `93.2 Mbit/s`."""
    if value is None:
        return "-"
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if abs(value) >= 0.9995 * size:  # what three digits round to it
            return f"{value / size:.3g} {unit}" if abs(value) < 100 * size else f"{value / size:.0f} {unit}"
    return f"{value:.0f} bit/s"


def seconds(value: float | None) -> str:
    """A time for people: `93.2 ms`, `1 h 14 min`."""
    if value is None:
        return "-"
    if value >= 100:
        return span(value)
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def size(value: float) -> str:
    """A size for people: `12.8 MB`."""
    for unit_size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if value >= 0.99995 * unit_size:  # what four digits round to it
            return f"{value / unit_size:.4g} {unit}"
    return f"{value:.0f} B"


def span(value: float | None) -> str:
    """A time as people plan with it: `5.4 s`, `3 min 20 s`, `12 min`, `3 h 20 min`, `9 days`."""
    if value is None:
        return "-"
    if value < 100:
        return seconds(value)
    if value < 595:
        minutes, rest = divmod(round(value, -1), 60)
        return f"{minutes:.0f} min {rest:.0f} s" if rest else f"{minutes:.0f} min"
    minutes = round(value / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 10:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    hours = round(value / 3600)
    return f"{hours} h" if hours < 100 else f"{round(value / 86_400)} days"


def spans(low: float | None, high: float | None) -> str:
    """Two times as one form, in the unit that suits the longer one: `95 to 120 s`, `3.57 to 12 h`. high: None: no end.

    Where the shorter one would be next to nothing in it, each has its own: `4 s to 3 h`.
    """
    if low is None:
        return "-"
    if high is None:
        return f"{span(low)} to no end"
    if high < 1:
        return f"{seconds(low)} to {seconds(high)}"
    unit, name = next((unit, name) for most, unit, name in _PLANNED if high < most)
    if low < max(unit / 20, high / 100):
        return f"{span(low)} to {span(high)}"
    return f"{_short(low / unit)} to {_short(high / unit)} {name}"


# from where on times are planned with in the next unit [s]
_PLANNED = (
    (300.0, 1.0, "s"),
    (300 * 60.0, 60.0, "min"),
    (100 * 3600.0, 3600.0, "h"),
    (float("inf"), 86_400.0, "days"),
)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"
