"""How far a run of many samples is: a bar with the remaining time on a terminal, now and then a line in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from pathcast.cli.output import console

_LINE_S = 30


def samples(stack: ExitStack, total: int, lines: bool = False) -> Callable[[], object] | None:
    """What is called after each sample; the bar ends with `stack`. lines: not only on a terminal."""
    if not sys.stderr.isatty():
        return _lines(total) if lines else None
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("samples"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    bar = stack.enter_context(Progress(*columns, console=console(stderr=True), transient=True))
    task = bar.add_task("", total=total)
    return lambda: bar.advance(task)


def _lines(total: int) -> Callable[[], None]:
    start = told = time.monotonic()
    count = 0

    def advance() -> None:
        nonlocal told, count
        count += 1
        now = time.monotonic()
        if now - told >= _LINE_S:
            told = now
            left_s = (now - start) / count * (total - count)
            print(f"{count} of {total} samples, about {left_s / 60:.0f} min left", file=sys.stderr, flush=True)

    return advance
