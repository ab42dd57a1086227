"""One measurement of one profile, beside Poisson traffic at each second's rate, round and round from a random start."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pathcast.errors import PathcastError, usage

from ..measuring.measured import columns, observed
from ..measuring.network import offered, truth
from .profiles import EMULATED, QUICK, Profile, drawn, load

# cross traffic alone, before the measurement: no queue begins empty then but one that is
SETTLE_S = 5.0
# as long as cross traffic goes on changing; a run that takes longer has failed
HORIZON_S = 240
DIRECTIONS = {"both": ("out", "in"), "out": ("out",)}


def _drawn(count: int) -> Any:
    return lambda setup: [profile.id for profile in drawn(list(load(setup["profiles"]).values()), count)]


LISTS = {
    "all": lambda setup: list(load(setup["profiles"])),
    "thirty": _drawn(EMULATED),
    "eight": _drawn(QUICK),
    "one": _drawn(1),
}


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The profile, where in it the run starts, and what is asked for."""
    profiles = load(setup["profiles"])
    if point["profile"] not in profiles:
        raise usage(f"there is no profile `{point['profile']}` in `{setup['profiles']}`")
    profile, seed = profiles[point["profile"]], point["seed"]
    start = random.Random(f"{profile.id} {seed}").uniform(0, len(profile.cross_kbps))
    return {"profile": asdict(profile), "start_s": start, "seed": seed, "directions": DIRECTIONS[point["directions"]]}


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """What was found and what was true (`measured.columns`) of the direction out, `in_…` of the other one, and what the
    path is like. `seconds` and `bytes` are of the whole measurement, also of one that found nothing."""
    of = scenario["profile"]
    profile = Profile(**{**of, "cross_kbps": tuple(of["cross_kbps"])})
    directions, seed = tuple(scenario["directions"]), scenario["seed"]
    about = {"text": text(profile, scenario["start_s"], seed), "settle_s": SETTLE_S}
    found, before, after = observed(world, {**about, "request": {"directions": directions, "seed": seed}})
    (began_s, ended_s) = (ledger["groups"][0]["since_start_s"] for ledger in (before, after))
    if ended_s > HORIZON_S:
        told = f"it ended after {ended_s:.0f} s, and the cross traffic of {HORIZON_S} s is known"
        raise PathcastError("horizon", told)
    out, back = truth(before, after, "out"), truth(before, after, "in")
    if found is None:
        values = {"refused": "no-answer", "truth_bps": out.available_bps, "capacity_truth_bps": out.capacity_bps}
        values |= {"seconds": ended_s - began_s, "bytes": _sent(after) - _sent(before)}
    else:
        values = columns(found, "out", out, back)
        if "in" in directions:
            rate = found.paths[0].directions["in"].available_bps
            values |= {"in_value_bps": rate.value, "in_truth_bps": back.available_bps}
    return {
        **values,
        "source": profile.source,
        "half": profile.half,
        "rate_bps": profile.rate_kbps * 1e3,
        "queue": profile.queue_packets,
        "one_way_s": profile.one_way_ms / 1e3,
        "load": profile.load,
        "judged": profile.judged,
    }


def _sent(ledger: Mapping[str, Any]) -> int:
    """IP bytes of real packets from both hosts, whatever became of them."""
    first = {"access/ab", "bottleneck/ba"}
    return sum(offered(link) for group in ledger["groups"] for link in group["links"] if link["name"] in first)


def text(profile: Profile, start_s: float, seed: int) -> str:
    """The scenario: client, access line, bottleneck, server; the bottleneck is the same both ways, with cross traffic
    out only."""
    rates, second = profile.cross_kbps, int(start_s)
    lines = [
        f'name = "real-path"\nseed = {seed}\n',
        '[[link]]\nname = "access"\na = "client"\nb = "router"\nrate = "1Gbit"\ndelay = "0s"\nqueue = "1000 packets"\n',
        f'[[link]]\nname = "bottleneck"\na = "router"\nb = "server"\nrate = "{_bits(profile.rate_kbps)}"\n'
        f'delay = "{round(profile.one_way_ms * 1e3)}us"\nqueue = "{profile.queue_packets} packets"\n',
        '[[path]]\nname = "path"\nlinks = ["access", "bottleneck"]\n',
        '[[traffic]]\nname = "cross"\nkind = "poisson"\nlink = "bottleneck"\ndirection = "ab"\npacket = "1500B"\n'
        f'rate = "{_bits(_at(rates, second))}"\n',
    ]
    # a change draws the next packet anew, which of a Poisson process alters nothing but its rate
    for n in range(1, HORIZON_S):
        at = round((second + n - start_s) * 1e6)
        lines.append(f'[[change]]\nat = "{at}us"\ntraffic = "cross"\nrate = "{_bits(_at(rates, second + n))}"\n')
    return "".join(lines)


def _at(rates: Sequence[float], second: int) -> float:
    return rates[second % len(rates)]


def _bits(kbps: float) -> str:
    """A second without traffic has the least rate that a scenario can: one packet in three hours."""
    return f"{max(1, round(kbps * 1e3))}bit"
