"""The cells of the experiment, and the scenarios of a pair: written once, for every world.

A pair is the foreground flow alone and the same with the background flow beside it, started at the same times; with it
go the background flow alone, and beside virtual traffic of half of the link. Which of the two flows starts first, and
when, is drawn from the seed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CONTROLLERS = ("imtcp_bg", "nice", "lp", "ledbatpp")
FOREGROUNDS = ("reno", "cubic")
RATES_MBIT = (20, 100)
RTTS_MS = (20, 100)
BUFFERS_BDP = (0.25, 1.0, 4.0)
PACKET_BYTES = 1500
MSS_BYTES = 1448
FOREGROUND, BACKGROUND, HALF = "foreground", "background", "half"
# what runs together, by the name that results have for it
ROLES = {
    "alone": (FOREGROUND,),
    "beside": (FOREGROUND, BACKGROUND),
    "unopposed": (BACKGROUND,),
    "rest": (BACKGROUND, HALF),
}


@dataclass(frozen=True, order=True)
class Cell:
    """One background controller, one path, one foreground controller."""

    controller: str
    rate_mbit: int
    rtt_ms: int
    buffer_bdp: float
    foreground: str
    settings: tuple[tuple[str, int], ...] = ()  # parameters of the background controller

    @property
    def label(self) -> str:
        """The controller, with what is set: `ledbatpp/target_us=15000`."""
        return "/".join((self.controller, *(f"{key}={value}" for key, value in self.settings)))

    @property
    def bdp_packets(self) -> float:
        """Bandwidth-delay product of the empty path, in packets of 1500 B."""
        return self.rate_mbit * 1e3 * self.rtt_ms / 8 / PACKET_BYTES

    @property
    def payload_bps(self) -> float:
        """What the path carries of payload at most [bit/s]."""
        return self.rate_mbit * 1e6 * MSS_BYTES / PACKET_BYTES


@dataclass(frozen=True)
class Times:
    """Of a pair's runs [s]: when the flows start, the interval that is measured; runs end with it."""

    foreground_s: float
    background_s: float
    from_s: float
    to_s: float


def cells(
    labels: Sequence[str] = CONTROLLERS,
    rates_mbit: Iterable[int] = RATES_MBIT,
    rtts_ms: Iterable[int] = RTTS_MS,
    buffers_bdp: Iterable[float] = BUFFERS_BDP,
    foregrounds: Iterable[str] = FOREGROUNDS,
) -> list[Cell]:
    """All combinations, the controller changing last. A label is a controller, or `NAME/PARAMETER=VALUE`.

    Raises ValueError for a label that is neither.
    """
    found = []
    for rate, rtt, buffer, foreground, label in itertools.product(
        rates_mbit, rtts_ms, buffers_bdp, foregrounds, labels
    ):
        controller, *settings = label.split("/")
        pairs = tuple((key, int(value)) for key, _, value in (setting.partition("=") for setting in settings))
        found.append(Cell(controller, rate, rtt, buffer, foreground, pairs))
    return found


def duration_s(cell: Cell, world: str) -> float:
    """How long a run takes in `world`.

    In the simulator three periods of Reno at a buffer of 1 BDP (BDP packets, one an RTT of 1.5 times the empty path's),
    but 60 to 240 s. In the emulator, where a second is a second, 20 s at 20 ms and 40 s at 100 ms.
    """
    if world == "sim":
        period_s = cell.bdp_packets * 1.5 * cell.rtt_ms / 1e3
        return min(max(3 * period_s, 60.0), 240.0)
    return 15.0 + cell.rtt_ms / 4


def times(cell: Cell, seed: int, world: str) -> Times:
    """Drawn from the seed and the path: the same for every controller. The last two thirds of a run are measured."""
    path = f"{cell.rate_mbit} {cell.rtt_ms} {cell.buffer_bdp}"
    draw = random.Random(f"pathcast background {path} {seed}")
    whole = duration_s(cell, world)
    early, late = draw.uniform(0, 0.01) * whole, draw.uniform(0.05, 0.1) * whole
    if draw.random() < 0.5:
        early, late = late, early
    return Times(round(early, 3), round(late, 3), round(whole / 3, 3), round(whole, 3))


def topology(cell: Cell) -> str:
    """One bottleneck between `client` and `server`; the queue in packets, at least one."""
    queue = max(1, round(cell.bdp_packets * cell.buffer_bdp))
    return f"""\
[[link]]
name = "bottleneck"
a = "client"
b = "server"
rate = "{cell.rate_mbit}Mbit"
delay = "{cell.rtt_ms * 500}us"
queue = "{queue} packets"

[[path]]
name = "path1"
links = ["bottleneck"]
"""


def scenario(cell: Cell, roles: Iterable[str], seed: int, world: str) -> str:
    """The topology with what `roles` says over it.

    Windows are bounded by the path, not by the hosts' buffers; a device gets packets, not bunches of them, for all
    controllers alike, since the paced trains of ImTCP need it.
    """
    at = times(cell, seed, world)
    parts = [f'name = "pair"\nseed = {seed}\nend = "{at.to_s}s"\n', topology(cell)]
    parts.append('[tcp]\nreceive_buffer = "64MiB"\nsend_buffer = "64MiB"\n')
    parts.append("[host.client]\nsend_segments = 1\n")
    flows = {FOREGROUND: (cell.foreground, at.foreground_s), BACKGROUND: (cell.controller, at.background_s)}
    for role in roles:
        if role == HALF:
            rate = f'"{cell.rate_mbit * 500}kbit"'
            parts.append(f'[[traffic]]\nkind = "constant"\nlink = "bottleneck"\ndirection = "ab"\nrate = {rate}\n')
            continue
        control, start_s = flows[role]
        parts.append(
            f'[[flow]]\nname = "{role}"\npaths = ["path1"]\ncontrol = "{control}"\n'
            f'start = "{start_s}s"\nstop = "{at.to_s}s"\n'
        )
        if role == BACKGROUND and cell.settings:
            values = "".join(f"{key} = {value}\n" for key, value in cell.settings)
            parts.append(f"[control.{control}]\n{values}")
    return "\n".join(parts)
