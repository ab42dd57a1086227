"""This machine: versions, processors, clock, and whether it wakes its real-time threads in time, right now."""

from __future__ import annotations

import contextlib
import os
import platform
import struct
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
SLEEP_S = 0.001
LATE_S = 0.001


def versions() -> dict[str, str]:
    """Versions of pathcast and of what its numbers depend on."""
    found = {"python": platform.python_version()}
    for name in ("pathcast", "numpy", "scikit-learn", "pyarrow", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine_id() -> str | None:
    """What stays when the host gets another name. It is not to leave the machine but hashed (machine-id(5))."""
    for file in MACHINE_IDS:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if text := Path(file).read_text().strip():
                return text
    return None


def machine() -> dict[str, Any]:
    """Kernel, processors, and whether the kernel believes its clock to be synchronised."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "clock": clock_state(),
    }


def clock_state() -> dict[str, Any]:
    """From adjtimex(2), read only."""
    import ctypes

    class Timex(ctypes.Structure):
        _fields_ = (
            ("modes", ctypes.c_uint),
            ("offset", ctypes.c_long),
            ("freq", ctypes.c_long),
            ("maxerror", ctypes.c_long),
            ("esterror", ctypes.c_long),
            ("status", ctypes.c_int),
            ("rest", ctypes.c_char * 256),
        )

    timex = Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    if state < 0:
        return {"synchronised": None}
    synchronised = not timex.status & 0x40  # STA_UNSYNC
    return {"synchronised": synchronised, "maximum_error_s": timex.maxerror / 1e6}


def late_share(sleeps: int = 200) -> float:
    """The share of 1 ms sleeps of a real-time thread that end more than 1 ms late; takes about `sleeps` ms.

    A virtual machine's host may not let it wake in time.
    """
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
