"""The processes in network namespaces by their names, and their end: nobody else's, and not those who ask for it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from pathcast.processes import parent

# how long a process may take to end when it is asked to, and when it is made to
_ASKED_S, _MADE_S = 2.0, 0.5
# those that end may have started others, which are ended in turn
_ROUNDS = (signal.SIGTERM, *[signal.SIGKILL] * 4)


def end(namespaces: Collection[Path], asker: int | None = None) -> Counter[str]:
    """Ends what runs in these namespaces, which must have their names still; returns whose processes ended, by name.

    Spared are this process and its children, `asker`, and who started either: a shell in there may ask for this.
    """
    places = {place for path in namespaces if (place := _place(path)) is not None} - {_place("/proc/1/ns/net")}
    ended: Counter[str] = Counter()
    if not places:
        return ended
    spared = {*_line(os.getpid()), *(_line(asker) if asker else ())}
    for number in _ROUNDS:
        found = dict(_inside(places, spared))
        try:
            for pidfd in found:
                with contextlib.suppress(OSError):  # it has ended
                    signal.pidfd_send_signal(pidfd, number)
            over = _wait(set(found), _ASKED_S if number == signal.SIGTERM else _MADE_S)
            ended += Counter(found[pidfd] for pidfd in over)
        finally:
            for pidfd in found:
                os.close(pidfd)
        if not found:
            break
    return ended


def told(ended: Counter[str], where: str) -> list[str]:
    """In words, if there were any."""
    if not ended:
        return []
    names = ", ".join(name if n == 1 else f"{name} ({n} times)" for name, n in sorted(ended.items()))
    return [f"ended {ended.total()} process{'es' if ended.total() > 1 else ''} that ran in {where}: {names}"]


def _place(path: str | Path) -> tuple[int, int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _line(pid: int) -> Iterator[int]:
    """A process, and who started it, and who that."""
    of: int | None = pid
    while of:
        yield of
        of = parent(of)


def _inside(places: Collection[tuple[int, int]], spared: Collection[int]) -> Iterator[tuple[int, str]]:
    """Descriptors and names of the processes in these places; whoever asks closes them."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in spared:
            continue
        try:
            # first the descriptor: should the number become another's, a signal reaches nobody
            pidfd = os.pidfd_open(int(entry))
        except OSError:
            continue
        name = ""
        with contextlib.suppress(OSError):
            if _place(f"/proc/{entry}/ns/net") in places and parent(int(entry)) != os.getpid():
                name = Path("/proc", entry, "comm").read_text(errors="replace").rstrip("\n") or "?"
        if name:
            yield pidfd, "".join(c if c.isprintable() else "?" for c in name)
        else:
            os.close(pidfd)


def _wait(pidfds: Collection[int], patience_s: float) -> set[int]:
    """Those whose processes have ended by then."""
    deadline, over, poll = time.monotonic() + patience_s, set[int](), select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    while len(over) < len(pidfds) and (left := deadline - time.monotonic()) > 0:
        for pidfd, _ in poll.poll(left * 1000):
            poll.unregister(pidfd)
            over.add(pidfd)
    return over
