"""What transfers reach over OpenFlow switches beside what they reach over the same links without, in turn.

    .venv/bin/python benches/switches.py 100Mbit 20MB 10ms 20ms 4 [lia]

Arguments: the links' rate, the size, the links' one-way delays, pairs, Multipath TCP's controller. Then the switches'
own ceiling. A transfer in which the emulator was late is repeated up to three times, and else left out.
"""

from __future__ import annotations

import statistics
import sys

from pathcast import _native
from pathcast.worlds.emu import Emu, Topology
from pathcast.worlds.results import Transfer

NETWORKS = ("openflow", "two-gigabit")
CHOICES = (("path1",), ("path2",), ("path1", "path2"))
TRIES = 4


def sent(world: Emu, paths: tuple[str, ...], size: int, control: str) -> tuple[Transfer, bool]:
    """A transfer, and whether the emulator was in time."""
    for _ in range(TRIES):
        with world.judged() as verdict:
            if len(paths) > 1:
                done = world.transfer(paths, size, control, plain=True)
            else:
                done = world.tcp_probe(paths[0], size, "reno" if control == "lia" else control)
        if verdict.valid:
            break
    return done, verdict.valid


def pair(sets: list[str], size: int, control: str, order: tuple[str, ...]) -> dict[tuple[str, ...], list[float]]:
    """Throughputs over each choice of paths, of NETWORKS in their order [bit/s]; none where the emulator was late."""
    found: dict[tuple[str, ...], dict[str, float]] = {paths: {} for paths in CHOICES}
    for name in order:
        with Emu(Topology.load(name, sets)) as world:
            for paths in CHOICES:
                done, valid = sent(world, paths, size, control)
                if valid:
                    found[paths][name] = done.throughput_bps
    return {paths: [of[name] for name in NETWORKS] for paths, of in found.items() if len(of) == len(NETWORKS)}


def compare(rate: str, size: str, delays: tuple[str, str], pairs: int, control: str) -> None:
    ratios: dict[tuple[str, ...], list[float]] = {paths: [] for paths in CHOICES}
    links = [
        f"link.wan{n}.{key}={value}" for n, d in enumerate(delays, 1) for key, value in (("rate", rate), ("delay", d))
    ]
    for index in range(pairs):
        order = NETWORKS if index % 2 == 0 else NETWORKS[::-1]
        got = pair([f"seed={100 + index}", *links], _native.parse_bytes(size), control, order)
        for paths, (over, without) in got.items():
            ratios[paths].append(over / without)
            print(index, "+".join(paths), f"{over / 1e6:.1f} {without / 1e6:.1f} Mbit/s", flush=True)
    for paths, of in ratios.items():
        if of:
            print(
                "+".join(paths), f"{len(of)} pairs, median {statistics.median(of):.3f}, {min(of):.3f} to {max(of):.3f}"
            )


def ceiling(size: int = 1_000_000_000, runs: int = 3) -> None:
    """Links without a rate, a delay and a jitter."""
    links = [f"link.wan{n}.{item}" for n in (1, 2) for item in ("rate=", "delay=0s", "jitter=")]
    for name in NETWORKS:
        with Emu(Topology.load(name, links)) as world:
            for paths in CHOICES[::2]:
                rates = [sent(world, paths, size, "cubic")[0].throughput_bps / 1e9 for _ in range(runs)]
                print(name, "+".join(paths), " ".join(f"{rate:.2f}" for rate in rates), "Gbit/s", flush=True)


if __name__ == "__main__":
    rate, size, first, second, count, *control = sys.argv[1:]
    compare(rate, size, (first, second), int(count), *(control or ["cubic"]))
    ceiling()
