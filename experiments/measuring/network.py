"""Networks to measure: a bottleneck, or two, between fast access lines, with cross traffic; and what was true of them.

The truth is the ledger's: a link's rate less the cross traffic that entered its queue during the measurement, the least
of all links. Rates are IP bits per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cross:
    """Cross traffic on one link, towards the server (`ab`) or back (`ba`). Kinds as in a scenario's [[traffic]]."""

    kind: str
    rate: str
    direction: str = "ab"
    more: str = ""  # further keys of the table


@dataclass(frozen=True)
class Link:
    """A link by its TOML values; one value a direction where they differ: `{ ab = "1Mbit", ba = "24Mbit" }`."""

    rate: str
    queue: str = '"50 packets"'
    delay: str = '"5ms"'
    loss: str = "0.0"
    cross: tuple[Cross, ...] = ()
    more: str = ""


def toml(links: tuple[Link, ...], access: str = '"100Mbit"', seed: int = 1, name: str = "measured") -> str:
    """The scenario: access line, `links` (`l1`, `l2`, …), access line."""
    nodes = ["client", *(f"r{i}" for i in range(len(links) + 1)), "server"]
    ends = Link(access, '"1000 packets"', '"1ms"')
    chain = [("in", ends), *((f"l{i}", link) for i, link in enumerate(links, 1)), ("out", ends)]
    text = f'name = "{name}"\nseed = {seed}\n'
    for (link, of), a, b in zip(chain, nodes, nodes[1:], strict=False):
        text += f'\n[[link]]\nname = "{link}"\na = "{a}"\nb = "{b}"\nrate = {of.rate}\n'
        text += f"queue = {of.queue}\ndelay = {of.delay}\nloss = {of.loss}\n{of.more}"
        for n, cross in enumerate(of.cross):
            text += f'\n[[traffic]]\nname = "{link}-{n}"\nkind = "{cross.kind}"\nlink = "{link}"\n'
            text += f'direction = "{cross.direction}"\nrate = "{cross.rate}"\npacket = "1500B"\n{cross.more}'
    # a link's own traffic tables stand between the links; TOML takes them in any order
    names = ", ".join(f'"{link}"' for link, _ in chain)
    return f'{text}\n[[path]]\nname = "path"\nlinks = [{names}]\n'


@dataclass(frozen=True)
class Truth:
    """Of one direction [bit/s], and the delay [s] of a packet of so many IP bytes that meets no other."""

    available_bps: float
    capacity_bps: float
    propagation_s: float
    seconds_a_bit: float

    def delay_s(self, bytes: int) -> float:
        """Propagation and transmission over all links."""
        return self.propagation_s + self.seconds_a_bit * bytes * 8


def truth(before: Mapping[str, Any], after: Mapping[str, Any], direction: str, own_bytes: int | None = None) -> Truth:
    """Between two ledgers; direction `out` (towards the server) or `in`.

    own_bytes: of the measurement's packets; given, what other real packets took counts as cross traffic too.
    """
    from pathcast import _native

    end = {"out": "/ab", "in": "/ba"}[direction]
    old = {link["name"]: (link, group["since_start_s"]) for group in before["groups"] for link in group["links"]}
    rates, left, delay_s, transmission = [], [], 0.0, 0.0
    for group in after["groups"]:
        for link in group["links"]:
            if not link["name"].endswith(end):
                continue
            earlier, since_s = old[link["name"]]
            params, bucket = link["params"], link["params"].get("bucket")
            line = _native.parse_rate(params["rate"])
            rate = min(line, _native.parse_rate(bucket["rate"])) if bucket else line
            rates.append(rate)
            entered = _entered(link) - _entered(earlier)
            if own_bytes is not None:
                entered += max(0, offered(link) - offered(earlier) - own_bytes)
            left.append(rate - entered * 8 / (group["since_start_s"] - since_s))
            delay_s += _native.parse_duration(params["delay"]) / 1e9
            transmission += 1 / line
    # what fills a queue enters faster than it is carried: nothing is left then, and not less
    return Truth(max(0.0, min(left)), min(rates), delay_s, transmission)


def _entered(link: Mapping[str, Any]) -> int:
    return link["counters"]["cross"]["entered"]["bytes"]


def offered(link: Mapping[str, Any]) -> int:
    counters = link["counters"]
    return counters["offered"]["bytes"] - counters["dropped"]["queue"]["bytes"]
