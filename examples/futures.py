"""Simulates a transfer on many drawn networks at once, and many futures of one network from a common warm-up.

Nobody knows a line exactly: here its rate and its other users are drawn around what was measured, and a transfer over
each choice of paths is simulated in every draw. The spread of the answers is the forecast's.
Run it: python examples/futures.py
"""

import random
import statistics

from pathcast.worlds.many import Draw, Future, draws
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

HOME = """
seed = 1
link = [
  { name = "cable", a = "client", b = "server", rate = "40Mbit", delay = "15ms", queue = "300KB" },
  { name = "dsl", a = "client", b = "server", rate = "20Mbit", delay = "20ms", queue = "200KB" },
]
path = [{ name = "cable", links = ["cable"] }, { name = "dsl", links = ["dsl"] }]
traffic = [{ kind = "poisson", name = "others", link = "cable", direction = "ab", rate = "10Mbit" }]
"""
CHOICES = (("cable", "dsl"), ("cable",), ("dsl",))
SIZE = 8_000_000


def quartiles(values: list[float]) -> str:
    low, middle, high = (value / 1e6 for value in statistics.quantiles(values, n=4))
    return f"{middle:.1f} ({low:.1f} to {high:.1f}) Mbit/s"


def main() -> None:
    draw = random.Random(1)
    topology = Topology.parse(HOME)
    wanted = []
    for seed in range(20):
        rate, others = draw.gauss(40, 2), draw.uniform(5, 15)
        sets = (
            ("seed", str(seed)),
            ("link.cable.rate", f"{rate:.2f}Mbit"),
            ("traffic.others.rate", f"{others:.2f}Mbit"),
        )
        wanted.append(Draw(sets, tuple(Future(paths, SIZE) for paths in CHOICES), wait_s=1.0))
    for paths, found in zip(CHOICES, zip(*draws(topology, wanted), strict=True), strict=True):
        print(f"{'+'.join(paths)}, drawn networks: {quartiles([one.throughput_bps for one in found])}")

    with Sim(topology) as world:
        world.wait(5)
        found = world.futures([Future(("cable",), SIZE, seed=seed, every_s=0.5) for seed in range(20)])
    print(f"cable, this network: {quartiles([one.throughput_bps for one in found])}")
    one = found[0]
    print(f"the first: {one.recoveries} recoveries, {one.timeouts} timeouts, {one.samples[1].bytes} bytes after 1 s")


if __name__ == "__main__":
    main()
