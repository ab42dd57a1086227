"""What this host's devices carried, as /proc has it: always of the caller's own network namespace, while /sys may be of
another."""

from __future__ import annotations

from pathlib import Path

# of the thread that reads it (proc_net(5))
FILE = Path("/proc/thread-self/net/dev")
# of a row's numbers those of bytes received, and sent
_RECEIVED, _SENT = 0, 8


def read() -> dict[str, tuple[int, int]]:
    """Of every device the bytes that it received and sent since it is there; of none where they cannot be read."""
    try:
        rows = [line.rpartition(":") for line in FILE.read_text().splitlines()[2:]]
        numbers = {device.strip(): numbers.split() for device, _, numbers in rows}
        return {device: (int(of[_RECEIVED]), int(of[_SENT])) for device, of in numbers.items()}
    except (OSError, ValueError, IndexError):
        return {}
