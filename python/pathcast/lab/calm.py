"""Whether this machine wakes its real-time threads in time, right now. A virtual machine's host may not let it."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time

SLEEP_S = 0.001
LATE_S = 0.001


def late_share(sleeps: int = 200) -> float:
    """The share of 1 ms sleeps of a real-time thread that end more than 1 ms late; takes about `sleeps` ms."""
    late: list[bool] = []
    awake = _keep_awake()

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
    if awake is not None:
        os.close(awake)
    return sum(late) / len(late)


def _keep_awake() -> int | None:
    """Keeps the processors from sleeping deeply until the descriptor is closed; None where that is not allowed."""
    try:
        fd = os.open("/dev/cpu_dma_latency", os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, struct.pack("i", 0))
    except OSError:
        return None
    return fd
