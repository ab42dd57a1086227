"""Runs an oracle and its C header over the same random sequences of events and compares their windows after every
event.

The bound is max(1 packet, 2 %), 2 % below one packet. Where the two differ, a decision of the oracle that stood
within rounding of its threshold (a tie, `tcp.Ties`) may be taken the other way, one at a time; the sequence is then
compared anew from its start. No window is ever copied. Sequences that needed this are counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from oracle import ORACLES
from oracle.connection import Connection
from oracle.events import Maker, PacketMaker, rows, vary
from oracle.tcp import JOIN, SEND, Event
from pathcast import _native

PACKETS, SHARE = 1.0, 0.02
TIES = 0.01  # of the sequences may need a tie taken the other way
# its rate is of the very packets that are held against it, so that both are often equal but for rounding
# gleaner's are of twice as many events (32 of 1000 were)
MORE_TIES = {"bbr3": 0.06, "gleaner": 0.05}
# and so many may part for good: headers round to whole packets and microseconds, which adds up in one of a thousand
FAILED = 0.001
SPACED = ("imtcp", "imtcp_bg", "bbr3", "gleaner")  # controllers that space packets and publish a bandwidth
FLIPS = 8  # ties of one sequence that may be taken the other way
TRIED = 200  # the latest ties before a deviation, each of which is tried
PAIRED = 12  # the latest of these, of which pairs are tried too
REGISTER = {row["name"]: row for row in json.loads(_native.controllers())}


@dataclass
class Result:
    """What a comparison found."""

    control: str
    sequences: int = 0
    events: int = 0
    worst: float = 0.0  # largest deviation, in units of the bound
    packets: float = 0.0  # largest deviation of a window, packets
    share: float = 0.0  # largest deviation among windows above 50 packets, relative
    ties: int = 0  # sequences in which a tie was taken the other way
    failed: int = 0
    first: str = ""  # of the sequences that failed

    def __str__(self) -> str:
        """A row of docs/evidence/oracle.csv, with bars between its cells."""
        row = f"{self.control} | {self.events:,} | {self.worst:.3f} | {self.packets:.0f} | {self.share:.2%}"
        return f"| {row} | {self.ties} | {self.failed} |"


def values(control: str, changed: dict[str, int] | None = None) -> dict[str, int]:
    """All parameters of a controller."""
    return {p["name"]: p["default"] for p in REGISTER[control]["params"]} | (changed or {})


def native(control: str, changed: dict[str, int], events: list[Event]) -> np.ndarray:
    """The header's windows, first words, and how far windows are rounded.

    Below one packet the window is what the pace of the last transmit opportunity says, which is whole bytes per second.
    """
    answer = np.frombuffer(_native.replay(control, list(changed.items()), rows(events)), dtype="<u8").reshape(-1, 6)
    windows = answer[:, 0].astype(float)
    rounding = np.zeros(len(events))
    if control == "nice":
        paced: dict[int, tuple[float, float]] = {}
        for index, event in enumerate(events):
            if event.kind in (JOIN, SEND):
                one = event.srtt_us / 1e6 / event.mss  # packets of one byte per second
                paced[event.subflow] = (float(answer[index, 2]) * one, one)
            if paced[event.subflow][0]:
                windows[index], rounding[index] = paced[event.subflow]
    return np.stack([windows, answer[:, 4].astype(float), rounding], axis=1)


def deviation(control: str, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """In units of the bound; windows below one packet have no packet to be off by, and a measured bandwidth neither."""
    packets = np.where(np.minimum(ours[:, 0], theirs[:, 0]) < 1, 0.0, PACKETS)
    off = np.abs(ours[:, :2] - theirs)
    windows = np.maximum(off[:, 0] - ours[:, 2], 0) / np.maximum(packets, SHARE * theirs[:, 0])
    if control not in SPACED:
        return windows
    return np.maximum(windows, off[:, 1] / np.maximum(SHARE * theirs[:, 1], 1.0))


def again(
    control: str, params: dict[str, int], events: list[Event], flips: frozenset[int]
) -> tuple[np.ndarray, list[int]]:
    """The oracle's windows with some ties taken the other way, and the events of all ties."""
    world = Connection(ORACLES[control], params, flips)
    return np.array([world.step(event) for event in events]), world.ties.met


def first_beyond(off: np.ndarray) -> int:
    beyond = np.flatnonzero(off > 1 + 1e-9)
    return int(beyond[0]) if len(beyond) else len(off)


def settle(
    control: str, params: dict[str, int], events: list[Event], ours: np.ndarray
) -> tuple[np.ndarray, frozenset[int]]:
    """The oracle's windows with as many ties as needed taken the other way, each time the one that helps longest."""
    flips: frozenset[int] = frozenset()
    windows, met = again(control, params, events, flips)
    end = first_beyond(deviation(control, ours, windows))
    while end < len(events) and len(flips) < FLIPS:
        choices = [tie for tie in range(len(met)) if met[tie] <= end and tie not in flips]
        # one tie, or two of the latest if none alone helps: the one's decision may move the other
        for sets in ([{tie} for tie in choices[-TRIED:]], map(set, combinations(choices[-PAIRED:], 2))):
            tried = [(flips | more, *again(control, params, events, flips | more)) for more in sets]
            reach = [first_beyond(deviation(control, ours, w)) for _, w, _ in tried]
            if reach and max(reach) > end:
                break
        else:
            break
        flips, windows, met = tried[reach.index(max(reach))]
        end = max(reach)
    return windows, flips


def sequence(control: str, index: int, seed: int, fixed: dict[str, int]) -> tuple[Maker, dict[str, int]]:
    """One sequence; every second one with other parameters than the defaults, but for those that are fixed."""
    rng = np.random.default_rng([seed, sorted(REGISTER).index(control), index])
    changed = vary(rng, REGISTER[control]["params"]) if index % 2 else {}
    changed |= fixed
    spaced = control in SPACED
    maker = (PacketMaker if spaced else Maker)(rng, ORACLES[control], values(control, changed))
    if control == "gleaner":
        maker.policers = True
    maker.run(int(rng.integers(100, 201)) * (4 if spaced else 1))
    return maker, changed


def compare(
    control: str,
    sequences: int,
    seed: int = 1,
    header: dict[str, int] | None = None,
    most_failed: int = 1_000_000,
    fixed: dict[str, int] | None = None,
) -> Result:
    """`fixed` parameters are both's; `header` are the header's alone, which must make the comparison fail."""
    result = Result(control)
    for index in range(sequences):
        maker, changed = sequence(control, index, seed, fixed or {})
        params, events, theirs = values(control, changed), maker.events, np.array(maker.windows)
        ours = native(control, changed | (header or {}), events)
        off = deviation(control, ours, theirs)
        flips: frozenset[int] = frozenset()
        if off.max() > 1 + 1e-9:
            theirs, flips = settle(control, params, events, ours)
            off = deviation(control, ours, theirs)
        result.sequences += 1
        result.events += len(events)
        result.ties += bool(flips)
        if off.max() > 1 + 1e-9:
            at = first_beyond(off)
            result.failed += 1
            if not result.first:
                result.first = f"sequence {index} event {at} {events[at]}: header {ours[at, :2]}, oracle {theirs[at]}"
            if result.failed >= most_failed:
                break
        result.worst = max(result.worst, float(off.max()))
        result.packets = max(result.packets, float(np.abs(ours[:, 0] - theirs[:, 0]).max()))
        wide = theirs[:, 0] > 50
        if wide.any():
            share = np.abs(ours[wide, 0] - theirs[wide, 0]) / theirs[wide, 0]
            result.share = max(result.share, float(share.max()))
    return result
