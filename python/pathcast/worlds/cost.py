"""What a measurement will cost, said before it begins."""

from __future__ import annotations

import json

from pathcast.units import bits, seconds, size
from pathcast.worlds.measurement import Request

MONTH_S = 30 * 86_400


def most_bytes(request: Request) -> int:
    """What a path takes at most [IP byte]: twice, since a forecast may measure again."""
    from pathcast import _native

    most = int(json.loads(_native.measure_costs())[f"{request.effort}_most"][0])
    return most if request.effort == "light" else 2 * (request.bytes or most) * len(request.directions)


def usual_bytes(request: Request, paths: int) -> int:
    """What a usual measurement of so many paths of 5 Mbit/s takes; of faster ones it is more [IP byte]."""
    from pathcast import _native

    return int(json.loads(_native.measure_costs())["usual"][1][1] * paths * len(request.directions))


def cost(request: Request, paths: int, every_s: float | None = None) -> str:
    """A sentence: IP bytes and seconds of a measurement of so many paths, both ends' bytes counted, estimated.

    every_s: of one that is repeated, from one beginning to the next; its totals are added.
    """
    from pathcast import _native

    known = json.loads(_native.measure_costs())
    ways = paths * len(request.directions)
    each = "path" if paths == 1 else "paths"
    of = f"{paths} {each}, {ways} direction{'s' if ways > 1 else ''}"
    least: float | None = None
    most_bytes, most_s = known[f"{request.effort}_most"]
    # every two of up to four paths are held against each other
    paired = min(paths, 4) if request.effort == "thorough" else 0
    pairs = paired * (paired - 1) // 2 * len(request.directions)
    most = most_bytes * paths if request.effort == "light" else (request.bytes or most_bytes) * (ways + 2 * pairs)
    most_s = (request.time_s or most_s) * ((len(request.directions) if request.at_once else ways) + pairs)
    text = f"at most {size(most)} and {seconds(most_s)} ({of})"
    if request.effort == "usual" and request.bytes is None:
        rows = known["usual"]
        least = min(row[1] for row in rows) * ways
        usually = "; ".join(f"{size(row[1] * ways)} and {seconds(row[2] * ways)} at {bits(row[0])}" for row in rows[1:])
        text = f"about {usually}; up to three times that where traffic varies; {text}"
    if every_s is None:
        return text
    rounds = MONTH_S / every_s
    total = size(most * rounds) if least is None else f"{size(least * rounds)} to {size(most * rounds)}"
    return f"each round {text}; every {seconds(every_s)} that is {total} in 30 days"
