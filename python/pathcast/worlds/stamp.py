"""Delay by STAMP (RFC 8762), the standard that routers speak: to any reflector, also one that is not ours."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

from pathcast.errors import Exit, PathcastError, usage
from pathcast.interruptible import interruptible
from pathcast.runtime.keys import Key
from pathcast.worlds.host import address

PORT = 862
INTERVAL_S = 0.02


def measure(
    url: str,
    time_s: float = 2.0,
    dscp: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
    key: Key | None = None,
) -> dict[str, Any]:
    """Asks the reflector of `stamp://HOST[:PORT]` every 20 ms: round trip, delay by direction and loss.

    With a key in the authenticated mode, as a far end with this key answers it; else in the open one.

    Raises exit 3 if nobody answers.
    """
    from pathcast import _native

    name, port = address(url.removeprefix("stamp://").rstrip("/"), PORT)
    if not 0.1 <= time_s <= 600:
        raise usage(f"a time of {time_s:g} s: allowed are 100ms to 600s")
    if not 0 <= dscp <= 63:
        raise usage(f"DSCP {dscp}: allowed are 0 to 63")
    try:
        found = str(socket.getaddrinfo(name, port, type=socket.SOCK_DGRAM)[0][4][0])
    except (OSError, UnicodeError) as error:  # the latter: not a name of the DNS
        reason = getattr(error, "strerror", None) or "it is no name of a host"
        raise PathcastError("resolve", f"cannot find the host `{name}`: {reason}") from None
    job = _native.Job()

    def meanwhile() -> None:
        if progress is not None and (phase := job.phase()) is not None:
            progress(*phase)

    count = max(2, round(time_s / INTERVAL_S))
    secret = None if key is None else (key.id, key.secret)
    call = lambda: _native.stamp(job, None, found, port, count, round(INTERVAL_S * 1e9), dscp, secret)  # noqa: E731
    report = json.loads(interruptible(call, job.cancel, meanwhile))
    document = {"target": url, "remote": found, "port": port, **report}
    if not report["received"]:
        raise PathcastError(
            "no-answer",
            f"no STAMP reflector answered at {found} port {port}",
            "is one running there, at this port, and with this key? ours: `pathcast serve --stamp-port PORT`",
            Exit.UNTRUSTWORTHY,
        )
    return document
