"""pathcast: measures paths, predicts Multipath TCP throughput, chooses the paths, and sends."""

from __future__ import annotations

# of no module: the command is to take a Ctrl-C before anything that takes time
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pathcast.worlds.measurement import Measurement

__all__ = ["measure"]


def measure(
    host: str,
    *,
    paths: Sequence[str] | None = None,
    directions: Sequence[str] = ("out", "in"),
    method: str = "ride",
    bytes: int | None = None,
    time_s: float | None = None,
    dscp: int = 0,
    at_once: bool = False,
    key_file: Path | str | None = None,
    ssh: str = "ssh",
    effort: str = "usual",
    queue_s: float = 0.5,
) -> Measurement:
    """Delay, available bandwidth and capacity to a host, as `pathcast measure HOST` finds them.

    host: of a `pathcast serve`, or ssh://USER@HOST. paths: names as `pathcast paths` shows them; None: all.
    directions: `out` towards the host, `in` from it. bytes, time_s: limits for each direction of a path, IP bytes and
    seconds; None: by the capacity found. effort: light, usual or thorough; queue_s: what a thorough one may build of a
    queue. Raises PathcastError; a value that cannot be trusted is None and has a reason,
    and `Measurement.untrustworthy` is then the error that the command ends with.
    """
    from contextlib import ExitStack
    from pathlib import Path

    from pathcast.worlds.host import Host
    from pathcast.worlds.measurement import Request
    from pathcast.worlds.remote import far_end

    request = Request(tuple(directions), method, bytes, time_s, dscp, at_once, None, effort, queue_s)
    with ExitStack() as stack:
        file = None if key_file is None else Path(key_file)
        if host.startswith("ssh://"):
            host, file = stack.enter_context(far_end(host, ssh))
        return stack.enter_context(Host(host, file)).measure(paths, request)
