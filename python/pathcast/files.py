"""Files that somebody names: read without waiting for ever, and up to a size; and whose are as good as our own."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_file(path: Path) -> BinaryIO:
    """Opens a file to read. Raises OSError, also for a pipe with a name, which would be waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    file = open(fd, "rb")  # noqa: SIM115
    if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode) and not is_descriptor(path):
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe, and those are read as /dev/fd/N only")
    os.set_blocking(file.fileno(), True)
    return file


def read_file(path: Path, largest: int) -> bytes:
    """What a file holds. Raises OSError, also for more than `largest` bytes."""
    with open_file(path) as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest} bytes")
    return data


def is_descriptor(path: Path) -> bool:
    """Whether it names one of our own descriptors, as the shell's <(…) does."""
    return str(path) == "/dev/stdin" or str(path.parent) in ("/dev/fd", "/proc/self/fd")


def trusted_users() -> set[int]:
    """Whose files are as good as our own: user ids, ours, root's and, as root, that of who called sudo."""
    us = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if us == 0 else ""
    return {us, 0, *([int(caller)] if caller.isdecimal() else [])}
