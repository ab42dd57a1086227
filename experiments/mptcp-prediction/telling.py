"""How values are written in claims and tables."""

from __future__ import annotations


def kbps(bps: float) -> str:
    """As in the paper: kilobytes a second."""
    return f"{bps / 8e3:.1f}"


def percent(share: float) -> str:
    """A share 0..1; a dash for NaN."""
    return "-" if share != share else f"{100 * share:.1f} %"
