"""Rates, times and sizes as people write them."""

from __future__ import annotations


def bits(value: float | None) -> str:
    """A rate for people: `93.2 Mbit/s`."""
    if value is None:
        return "-"
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if abs(value) >= size:
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
        if value >= unit_size:
            return f"{value / unit_size:.4g} {unit}"
    return f"{value:.0f} B"


def span(value: float | None) -> str:
    """A time as people plan with it: `5.4 s`, `12 min`, `3 h 20 min`, `9 days`."""
    if value is None:
        return "-"
    if value < 100:
        return seconds(value)
    minutes = round(value / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 10:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    hours = round(value / 3600)
    return f"{hours} h" if hours < 100 else f"{round(value / 86_400)} days"
