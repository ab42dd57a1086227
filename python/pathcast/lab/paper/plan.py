"""What the demo's experiment consists of: everything is drawn from the seed before anything runs."""

from __future__ import annotations

import random
from dataclasses import dataclass

from pathcast.errors import usage
from pathcast.forecast.rounds import Task

PATHS = ("path1", "path2")
LINKS = ("wan1", "wan2")
TRAINING, UNSEEN = 24, 8
STEER = ("none", "openflow")


@dataclass(frozen=True)
class Plan:
    """Sizes, ranges and seed of one demo.

    Round trip times are drawn uniformly and independently for each path and round. One probe is a TCP transfer of
    `probe_bytes` on each path; the MPTCP probe carries the same bytes in all. With `steer` `openflow` the paths are
    between two OpenFlow switches and have one address pair, as in the paper.
    """

    seed: int = 1
    rounds: int = TRAINING
    unseen: int = UNSEEN
    control: str = "cubic"
    vary_rate: bool = False
    rate_bps: int = 100_000_000
    rate_range_bps: tuple[int, int] = (10_000_000, 200_000_000)
    rtt_range_s: tuple[float, float] = (0.020, 0.180)
    queue_packets: int = 1000
    chunk: str = (
        "250us"  # two packets at 100 Mbit/s leave at once: half the wake-ups, and round trips are 20 ms and more
    )
    probe_bytes: int = 64_000
    transfer_bytes: int = 16_000_000
    share_rtts_s: tuple[tuple[float, float], ...] = ((0.150, 0.150), (0.150, 0.120), (0.120, 0.150))
    share_bytes: tuple[int, ...] = (64_000, 256_000, 1_000_000, 4_000_000, 16_000_000)
    choice_rtts_s: tuple[float, float] = (0.180, 0.020)
    steer: str = "none"

    def __post_init__(self) -> None:
        # 5-fold search and learning need some rounds; more than this is an experiment, not a demo
        for name, value, low, high in (("--rounds", self.rounds, 10, 1000), ("--seed", self.seed, 0, 2**63 - 1)):
            if not low <= value <= high:
                raise usage(f"{name} {value}: allowed are {low} to {high}")
        if self.steer not in STEER:
            raise usage(f"--steer `{self.steer}`: allowed are {', '.join(STEER)}")

    @property
    def probe_total_bytes(self) -> int:
        """Bytes of all TCP probes of a round, and of its MPTCP probe."""
        return self.probe_bytes * len(PATHS)

    def task(self, unseen: bool) -> Task:
        """What a round measures: transfers on single paths only where they are learnt from. The paths are disjoint.

        The kernel alone decides what goes where, as in the paper.
        """
        sizes = (self.transfer_bytes, self.probe_bytes)
        return Task(PATHS, *sizes, self.control, alone=not unseen, at_once=True, plain=True)

    def drawn(self, index: int) -> Setting:
        """The setting of round `index`; the unseen rounds follow the training rounds."""
        generator = random.Random(f"pathcast demo {self.seed} {index}")  # a str seeds by SHA-512: the same everywhere
        rtts = tuple(round(generator.uniform(*self.rtt_range_s), 4) for _ in PATHS)
        low, high = self.rate_range_bps
        # drawn in every case, so that --vary-rate changes nothing else
        rates = tuple(int(round(low * (high / low) ** generator.random(), -3)) for _ in PATHS)
        return Setting(rtts, rates if self.vary_rate else (self.rate_bps,) * len(PATHS))

    def fixed(self, rtts_s: tuple[float, float]) -> Setting:
        """A setting with given round trip times on the plan's lines."""
        return Setting(rtts_s, (self.rate_bps,) * len(PATHS))

    def topology(self) -> str:
        """The two-path WAN as a scenario."""
        switched = self.steer == "openflow"
        ends = [(f"left:{at}", f"right:{at}") if switched else ("client", "server") for at in (2, 3)]
        outer = ("client-left", "right-server") if switched else ("", "")
        chains = [", ".join(f'"{name}"' for name in (outer[0], link, outer[1]) if name) for link in LINKS]
        links = "".join(
            f'[[link]]\nname = "{link}"\na = "{a}"\nb = "{b}"\nrate = "{self.rate_bps}bit"\ndelay = "50ms"\n'
            f'chunk = "{self.chunk}"\nqueue = "{self.queue_packets} packets"\n\n'
            f'[[path]]\nname = "{path}"\nlinks = [{chain}]\n\n'
            for link, path, (a, b), chain in zip(LINKS, PATHS, ends, chains, strict=True)
        )
        if switched:
            links += "".join(f'[[switch]]\nname = "{name}"\nports = 3\n\n' for name in ("left", "right"))
            links += f'[[link]]\nname = "{outer[0]}"\na = "client"\nb = "left:1"\nchunk = "{self.chunk}"\n\n'
            links += f'[[link]]\nname = "{outer[1]}"\na = "right:1"\nb = "server"\nchunk = "{self.chunk}"\n\n'
        return f'name = "demo"\nseed = {self.seed}\n\n{links}'


@dataclass(frozen=True)
class Setting:
    """What is set before a round: by path, round trip time [s] and line rate [bit/s]."""

    rtt_s: tuple[float, ...]
    rate_bps: tuple[int, ...]

    def changes(self) -> list[tuple[str, dict[str, str]]]:
        """The changes of each link."""
        pairs = zip(LINKS, self.rtt_s, self.rate_bps, strict=True)
        return [(link, {"delay": f"{rtt / 2 * 1e6:.0f}us", "rate": f"{rate}bit"}) for link, rtt, rate in pairs]
