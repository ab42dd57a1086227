"""Independent tasks in processes of this machine, or on a Dask cluster, through joblib."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from pathcast.errors import PathcastError


def unordered(
    function: Callable[..., Any],
    arguments: Iterable[tuple[Any, ...]],
    jobs: int,
    batch: int | str = 1,
    backend: str | None = None,
) -> Iterator[Any]:
    """What `function` returns for each of `arguments`, in the order in which they end.

    batch: calls handed over at once; "auto": as many as take about a second. backend: as joblib names it, None: local
    processes. Raises PathcastError (`worker`) when a process is ended from outside.
    """
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    calls = (delayed(function)(*one) for one in arguments)
    with parallel_config(backend=backend) if backend else nullcontext(), _uninterrupted():
        # workers start here, and Ctrl-C is for this process
        found = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=batch)(calls)
    try:
        for one in found:  # noqa: UP028, `yield from` would close it before our `finally`
            yield one
    except TerminatedWorkerError:
        hint = "was there too little memory? The same command continues; give it fewer --jobs"
        raise PathcastError("worker", "a process of the run was ended from outside", hint) from None
    finally:
        with warnings.catch_warnings():  # that tasks are lost is what an interrupt is for
            warnings.simplefilter("ignore")
            found.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A process that is started in the meantime ignores Ctrl-C; so does, for these milliseconds, this one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
