"""What was true while a line was measured, by the links' ledgers. Rates in bit/s, losses in shares of packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Ledger = Mapping[str, Any]
END = {"out": "/ab", "in": "/ba"}


@dataclass(frozen=True)
class Carried:
    """Between two ledgers, on one end of a link: IP bytes of others' virtual traffic that entered; real packets that
    were offered, and bytes that were not dropped; packets dropped in the queue, by the policer, on the wire; s."""

    virtual: int
    packets: int
    bytes: int
    queue: int
    policer: int
    wire: int
    waited_s: float
    seconds: float

    @property
    def dropped(self) -> int:
        """Packets, wherever."""
        return self.queue + self.policer + self.wire


def carried(before: Ledger, after: Ledger, name: str) -> Carried:
    """Of one end of a link, such as `line/ab`."""
    (old, since_s), (new, until_s) = _link(before, name), _link(after, name)

    def grown(*keys: str) -> Any:
        was, now = old["counters"], new["counters"]
        for key in keys:
            was, now = was[key], now[key]
        return now - was

    dropped = {kind: grown("dropped", kind, "packets") for kind in new["counters"]["dropped"]}
    lost = sum(grown("dropped", kind, "bytes") for kind in dropped if kind != "loss")
    return Carried(
        virtual=grown("cross", "entered", "bytes"),
        packets=grown("offered", "packets"),
        bytes=grown("offered", "bytes") - lost,
        queue=dropped["queue"] + dropped["aqm"],
        policer=dropped["policer"],
        wire=dropped["loss"],
        waited_s=grown("waited_s"),
        seconds=until_s - since_s,
    )


def _link(ledger: Ledger, name: str) -> tuple[Mapping[str, Any], float]:
    for group in ledger["groups"]:
        for link in group["links"]:
            if link["name"] == name:
                return link, group["since_start_s"]
    raise AssertionError(f"no link {name}")


def since(ledger: Ledger) -> float:
    """The network's age [s]."""
    return float(ledger["groups"][0]["since_start_s"])


def between(rates: Sequence[Sequence[float]], begin_s: float, end_s: float, again: bool) -> tuple[float, float, float]:
    """Mean, least and most [bit/s] from one time to another.

    rates: from when on [s] which; again: they begin again at their end, which is as far behind the last one as that one
    is behind the one before, else the last one stays.
    """
    if len(rates) == 1:
        return rates[0][1], rates[0][1], rates[0][1]
    period = 2 * rates[-1][0] - rates[-2][0] if again else max(end_s, rates[-1][0]) + 1
    marks = [*(at for at, _ in rates), period]
    bits, seen = 0.0, []
    for lap in range(int(begin_s / period), int(end_s / period) + 1):
        for (start, stop), (_, rate) in zip(pairwise(marks), rates, strict=True):
            time_s = min(end_s, lap * period + stop) - max(begin_s, lap * period + start)
            if time_s > 0:
                bits += rate * time_s
                seen.append(rate)
    return bits / (end_s - begin_s), min(seen), max(seen)
