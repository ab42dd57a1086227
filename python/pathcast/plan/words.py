"""A plan in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable

from pathcast.plan.plan import Plan
from pathcast.units import size, span

# less money is told as less than that
_LEAST = 1e-6


def sentence(made: Plan, clock: Callable[[float], str]) -> str:
    """`fits (chance 93 %): 300 GB in 5 h (4 h to 7 h), done 03:12; dsl 132 GB, cable 198 GB (IP) for 90`; where it fits
    only perhaps what the lines carry is of the part that is planned with care, and this is said. clock: of seconds from
    now the time."""
    took = made.duration_s
    whole = f"{size(made.size_bytes)} {_took(took.value, took.low, took.high)}"
    if took.value is not None:
        whole += f", done {clock(took.value)}"
    over = ", ".join(f"{part.line} {size(part.line_bytes)}" for part in made.parts if part.line_bytes)
    over += " (IP)" if over else ""
    money = f" for {money_written(made.money)}" if made.money else ""
    there = f"by {clock(made.deadline_s)}" if made.deadline_s is not None else "under these terms"
    if made.fits == "no":
        return f"does not fit: {size(made.carried_bytes)} {there}; {whole}"
    head = "fits" if made.fits == "yes" else "may fit"
    if made.deadline_s is not None or made.fits != "yes":
        head += f" (chance {100 * made.probability:.0f} %)"
    if made.fits == "perhaps" and made.carried_bytes < made.size_bytes:
        part = f"{size(made.carried_bytes)} of it in nine of ten cases {there}"
        return f"{head}: {whole}; {part}{f': {over}{money}' if over else ''}"
    return f"{head}: {whole}; {over}{money}"


def money_written(value: float) -> str:
    """Without the currency, which nobody has told; of little two digits, since prices are of whole GB."""
    if 0 < value < _LEAST:
        return f"less than {_LEAST:f}"
    places = 2 if value == 0 or value >= 0.1 else 1 - math.floor(math.log10(value))
    return f"{value:.{places}f}".rstrip("0").rstrip(".")


def _took(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "never, under these terms"
    ends = "?" if low is None else span(low), "no end" if high is None else span(high)
    return f"in {span(value)}" if ends == (span(value),) * 2 else f"in {span(value)} ({ends[0]} to {ends[1]})"
