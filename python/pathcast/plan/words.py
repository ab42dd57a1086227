"""A plan in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from pathcast.plan.plan import Plan
from pathcast.units import size, span


def sentence(made: Plan, clock: Callable[[float], str]) -> str:
    """`fits (chance 93 %): 300 GB in 5 h (4 h to 7 h), by 03:12; dsl 120 GB, cable 180 GB for 90`. clock: of seconds
    from now the time."""
    took = made.duration_s
    whole = f"{size(made.size_bytes)} {_took(took.value, took.low, took.high)}"
    if took.value is not None:
        whole += f", done {clock(took.value)}"
    over = ", ".join(f"{part.line} {size(part.line_bytes)}" for part in made.parts if part.line_bytes)
    money = f" for {money_written(made.money)}" if made.money else ""
    if made.fits == "no":
        there = f"by {clock(made.deadline_s)}" if made.deadline_s is not None else "under these terms"
        return f"does not fit: {size(made.carried_bytes)} {there}; {whole}"
    head = "fits" if made.fits == "yes" else "may fit"
    if made.deadline_s is not None or made.fits != "yes":
        head += f" (chance {100 * made.probability:.0f} %)"
    return f"{head}: {whole}; {over}{money}"


def money_written(value: float) -> str:
    """Without the currency, which nobody has told."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _took(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "never, under these terms"
    ends = "?" if low is None else span(low), "no end" if high is None else span(high)
    return f"in {span(value)}" if ends == (span(value),) * 2 else f"in {span(value)} ({ends[0]} to {ends[1]})"
