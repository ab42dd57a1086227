"""Learns the paths of a network by rounds of probes and transfers, then predicts a transfer before it is sent.

A round is a small TCP probe on every path and the transfers that it is to predict; from round to round the ways to the
other end are longer or shorter. The network is simulated, so that it runs anywhere. Between hosts of your own
`pathcast learn` and `pathcast predict` do the same. Run it: python examples/forecast.py
"""

import random

from pathcast.forecast.model import Model, ModelPath
from pathcast.forecast.rounds import Task, measure, probe, send
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

HOME = """
seed = 1
link = [
  { name = "cable", a = "client", b = "server", rate = "40Mbit", delay = "15ms", queue = "300KB" },
  { name = "dsl", a = "client", b = "server", rate = "20Mbit", delay = "20ms", queue = "200KB" },
]
path = [{ name = "cable", links = ["cable"] }, { name = "dsl", links = ["dsl"] }]
"""
PATHS = ("cable", "dsl")
TASK = Task(PATHS, bytes=8_000_000, probe_bytes=64_000)


def reroute(world: Sim, draw: random.Random) -> None:
    """Both ways as long as they are at some other time."""
    for link in PATHS:
        world.set(link, delay=f"{draw.uniform(10, 80):.1f}ms")


def main() -> None:
    draw = random.Random(1)
    with Sim(Topology.parse(HOME)) as world:
        model = Model("sim", "home", tuple(ModelPath(p, p, "server") for p in PATHS), TASK.probe_bytes)
        for number in range(16):
            world.fresh(number)
            reroute(world, draw)
            model.rounds.append(measure(world, {p: p for p in PATHS}, TASK))
        predictors = model.fit(TASK.bytes)

        reroute(world, draw)
        probes, _ = probe(world, PATHS, TASK.probe_bytes, None)
        options = predictors.predict({p: sent.throughput_bps for p, sent in zip(PATHS, probes, strict=True)})
        for option in options:
            sent = send(world, option["paths"], TASK.bytes)
            print(
                f"{'+'.join(option['paths'])}: predicted {option['predicted_bps'] / 1e6:.1f} Mbit/s, "
                f"sent at {sent.throughput_bps / 1e6:.1f}"
            )


if __name__ == "__main__":
    main()
