"""Measures every path of a network, both ways, and says what was found with its interval.

Between hosts of your own: `pathcast.measure("far.example.org", key_file="far.key")`. Here the network is simulated, so
that it runs anywhere; in place of `Sim` write `Emu` (as root) for the real kernel. Run it: python examples/measure.py
"""

from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

OFFICE = """
name = "office"
seed = 1

[[link]]
name = "dsl"
a = "client"
b = "server"
rate = { ab = "10Mbit", ba = "50Mbit" }
delay = "15ms"
queue = "100 packets"

[[link]]
name = "cable"
a = "client"
b = "server"
rate = { ab = "20Mbit", ba = "200Mbit" }
delay = "8ms"
queue = "200 packets"

[[path]]
name = "dsl"
links = ["dsl"]

[[path]]
name = "cable"
links = ["cable"]

[[traffic]]
kind = "poisson"
link = "cable"
direction = "ab"
rate = "6Mbit"
packet = "1200B"
"""


def main() -> None:
    with Sim(Topology.parse(OFFICE)) as world:
        for path in world.measure().paths:
            for direction, found in path.directions.items():
                free, capacity = found.available_bps, found.capacity_bps
                if free.value is None or capacity.value is None:
                    print(f"{path.name} {direction}: nothing to be trusted: {free.why or capacity.why}")
                    continue
                print(
                    f"{path.name} {direction}: {free.value / 1e6:.1f} ({free.low / 1e6:.1f} to {free.high / 1e6:.1f}) "
                    f"of {capacity.value / 1e6:.1f} Mbit/s, one way {(found.delay_s.minimum.value or 0) * 1e3:.1f} ms"
                )


if __name__ == "__main__":
    main()
