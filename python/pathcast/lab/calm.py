"""Whether this machine wakes its real-time threads in time, right now. A virtual machine's host may not let it."""

from __future__ import annotations

import contextlib
import os
import threading
import time

SLEEP_S = 0.001
LATE_S = 0.001


def late_share(sleeps: int = 200) -> float:
    """The share of 1 ms sleeps of a real-time thread that end more than 1 ms late; takes about `sleeps` ms."""
    late: list[bool] = []

    def work() -> None:
        with contextlib.suppress(OSError):  # the calling thread only, and it ends below
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        for _ in range(sleeps):
            due = time.monotonic() + SLEEP_S
            time.sleep(SLEEP_S)
            late.append(time.monotonic() - due > LATE_S)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return sum(late) / len(late)
