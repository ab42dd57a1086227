"""An estimator of your own against ours: probes that you send, and the truth that only a simulator knows.

This one takes a TCP transfer of 1 MB for the available bandwidth, as many tools do. A whole estimator, which plans
trains of packets, is a Rust type: crates/estimate/src/lib.rs, trait `Method`. Run it: python examples/own_estimator.py
"""

from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

LINE = """
seed = {seed}
link = [{{ name = "wire", a = "client", b = "server", rate = "20Mbit", delay = "20ms", queue = "100 packets" }}]
path = [{{ name = "path1", links = ["wire"] }}]
traffic = [{{ kind = "poisson", link = "wire", direction = "ab", rate = "{cross}Mbit", packet = "1000B" }}]
"""


def by_transfer(world: Sim) -> float:
    """Your estimator: [bit/s]."""
    return world.tcp_probe("path1", 1_000_000).throughput_bps


def by_measure(world: Sim) -> float:
    """Ours: [bit/s], nan where nothing is to be trusted."""
    value = world.measure(request=Request(seed=1)).path("path1").directions["out"].available_bps.value
    return float("nan") if value is None else value


def main() -> None:
    print("truth    by a transfer    by measure   [Mbit/s]")
    for cross in (2, 8, 14):
        found = []
        for estimator in (by_transfer, by_measure):
            with Sim(Topology.parse(LINE.format(seed=1, cross=cross))) as world:
                found.append(estimator(world) / 1e6)
        print(f"{20 - cross:5.1f}    {found[0]:13.1f}    {found[1]:10.1f}")


if __name__ == "__main__":
    main()
