"""Independent tasks in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from typing import Any

from pathcast.errors import PathcastError


def unordered(
    function: Callable[..., Any],
    arguments: Iterable[tuple[Any, ...]],
    jobs: int,
    batch: int | str = 1,
    backend: str | None = None,
) -> Iterator[Any]:
    """What `function` returns for each of `arguments`, in the order in which they end; through joblib.

    When this ends early what runs is killed: it must have nothing to remove. batch: calls handed over at once; "auto":
    as many as take about a second. backend: as joblib names it, None: local processes. Raises PathcastError (`worker`)
    when a process is ended from outside.
    """
    from joblib import delayed

    calls = (delayed(function)(*one) for one in arguments)
    with _safe_path():
        yield from _unordered(calls, jobs, batch, backend)


def _unordered(calls: Iterable[Any], jobs: int, batch: int | str, backend: str | None) -> Iterator[Any]:
    from joblib import Parallel, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

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
def _safe_path() -> Iterator[None]:
    """No process that is started in the meantime looks for modules in the current directory, which may be anybody's."""
    old = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if old is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = old


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


def lanes(module: str, calls: Iterable[Any], count: int) -> Iterator[Any]:
    """What the program `python -m module` answers to each call, in the order in which they end.

    `count` of these programs run side by side; a call, and an answer, is a line of JSON. When this ends early they get
    SIGTERM, and are waited for: they remove what they have made. Raises PathcastError (`worker`) where one is gone.
    """
    left, started = iter(calls), []
    try:
        with selectors.DefaultSelector() as waiting:
            for call in islice(left, count):
                started.append(lane := _lane(module))
                assert lane.stdout is not None
                waiting.register(lane.stdout, selectors.EVENT_READ, lane)
                _ask(lane, call)
            while waiting.get_map():
                for ready, _ in waiting.select():
                    answer = ready.data.stdout.readline()
                    if not answer:
                        raise PathcastError("worker", "a process of the run was ended from outside")
                    call = next(left, None)
                    if call is None:
                        waiting.unregister(ready.fileobj)
                    else:
                        _ask(ready.data, call)
                    yield json.loads(answer)
    except BaseException:
        for lane in started:
            lane.terminate()
        raise
    finally:
        for lane in started:
            with lane:  # closes its pipes, so that it ends, and waits
                pass


def _lane(module: str) -> subprocess.Popen[str]:
    # -P: not what lies in the current directory. In a session of its own: Ctrl-C is for this process
    command = [sys.executable, "-P", "-m", module]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)


def _ask(lane: subprocess.Popen[str], call: Any) -> None:
    assert lane.stdin is not None
    with suppress(BrokenPipeError):  # it is gone, which its answer tells
        lane.stdin.write(json.dumps(call) + "\n")
        lane.stdin.flush()
