"""Real paths in pairs, side by side between two hosts.

A profile is that of experiments/real-paths: rate, queue, delay, and others' traffic towards the far end second by
second, cyclic from a random start.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

# a folder whose name Python does not take; a sample's scenario has all that comes of it
_real_paths = importlib.import_module(f"{__package__.rpartition('.')[0]}.real-paths.profiles")
Profile, load = _real_paths.Profile, _real_paths.load
HALVES = {"tuning": "a", "judged": "b"}
# so often every source of a half meets another one
ROUNDS = {"tuning": 2, "judged": 4}
# as long as others' traffic goes on changing [s]
HORIZON_S = 900


def pairs(profiles: Mapping[str, Any], half: str) -> list[str]:
    """Ids of two paths each, `one+other`: in every round each source of the half once, with a path drawn of it; always
    the same."""
    of: dict[str, list[str]] = {}
    for profile in profiles.values():
        if profile.judged and profile.half == HALVES[half]:
            of.setdefault(profile.source, []).append(profile.id)
    draw = random.Random(f"pairs {half}")  # a str seeds by SHA-512
    found: list[str] = []
    for _ in range(ROUNDS[half]):
        sources = draw.sample(sorted(of), len(of))
        for one, other in zip(sources[::2], sources[1::2], strict=False):
            pair = f"{draw.choice(sorted(of[one]))}+{draw.choice(sorted(of[other]))}"
            if pair not in found:
                found.append(pair)
    return found


def text(two: Sequence[Any], starts_s: Sequence[float], seed: int) -> str:
    """The scenario: paths `p1` and `p2`, each over a link of its own."""
    lines = [f'name = "two-real-paths"\nseed = {seed}\n']
    for n, (profile, start_s) in enumerate(zip(two, starts_s, strict=True), 1):
        rates, second = profile.cross_kbps, int(start_s)
        lines.append(
            f'[[link]]\nname = "l{n}"\na = "client"\nb = "server"\nrate = "{_bits(profile.rate_kbps)}"\n'
            f'delay = "{round(profile.one_way_ms * 1e3)}us"\nqueue = "{profile.queue_packets} packets"\n'
            f'[[path]]\nname = "p{n}"\nlinks = ["l{n}"]\n'
            f'[[traffic]]\nname = "x{n}"\nkind = "poisson"\nlink = "l{n}"\ndirection = "ab"\npacket = "1500B"\n'
            f'rate = "{_bits(rates[second % len(rates)])}"\n'
        )
        # a change draws the next packet anew, which of a Poisson process alters nothing but its rate
        for ahead in range(1, HORIZON_S):
            at = round((second + ahead - start_s) * 1e6)
            rate = _bits(rates[(second + ahead) % len(rates)])
            lines.append(f'[[change]]\nat = "{at}us"\ntraffic = "x{n}"\nrate = "{rate}"\n')
    return "".join(lines)


def _bits(kbps: float) -> str:
    """A second without traffic has the least rate that a scenario can: one packet in three hours."""
    return f"{max(1, round(kbps * 1e3))}bit"
