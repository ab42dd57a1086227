"""How far a run of many samples is: a bar with the remaining time on a terminal, now and then a line in a log; and that
something goes on at all, on a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pathcast.cli.output import console

_LINE_S = 30
# nobody wonders before [s]
_SOON_S = 1.0


@contextmanager
def busy(text: str, quiet: bool = False) -> Iterator[None]:
    """While the block lasts longer than a second a terminal shows what is being done; nothing of that stays."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    status = console(stderr=True).status(f"{text} …")
    with ExitStack() as stack:
        lock = threading.Lock()

        def show() -> None:
            with lock:
                if not ended.is_set():
                    stack.enter_context(status)

        ended = threading.Event()
        soon = threading.Timer(_SOON_S, show)
        soon.daemon = True
        soon.start()
        try:
            yield
        finally:
            soon.cancel()
            with lock:
                ended.set()


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
