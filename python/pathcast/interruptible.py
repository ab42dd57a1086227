"""Native work that takes long, in a thread of its own, so that a signal ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar, cast

from pathcast.errors import PathcastError

T = TypeVar("T")
_LOOK_S = 0.1
# how long work may take to end when it is told to: a far end is told, too
PATIENCE_S = 2.0


def interruptible(
    work: Callable[[], T],
    cancel: Callable[[], None],
    meanwhile: Callable[[], object] | None = None,
    patience_s: float = PATIENCE_S,
) -> T:
    """What `work` returns or raises.

    `cancel` tells it to end, where anything is raised here meanwhile, and so long that is waited for: what computes may
    not hear it. `meanwhile` is called ten times a second.
    """
    result: list[tuple[T, None] | tuple[None, BaseException]] = []

    def run() -> None:
        try:
            result.append((work(), None))
        except BaseException as error:
            result.append((None, error))

    worker = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(_LOOK_S)
            if meanwhile is not None:
                meanwhile()
    except BaseException:
        cancel()
        worker.join(patience_s)
        raise
    [(value, error)] = result
    if error is None:
        return cast(T, value)
    if isinstance(error, Exception):
        raise error
    hint = "please report it, with the scenario or the command"
    raise PathcastError("internal", f"native code failed: {error}", hint) from error  # a panic
