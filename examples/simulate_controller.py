"""One congestion controller beside another, at a bottleneck that both share.

The scenario format is docs/scenario.md's; `pathcast control list` has the controllers and their parameters.
Run it: python examples/simulate_controller.py
"""

from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

SHARED = """
seed = 1
end = "30s"
link = [{ name = "wire", a = "client", b = "server", rate = "20Mbit", delay = "20ms", queue = "70 packets" }]
path = [{ name = "path1", links = ["wire"] }]
flow = [
  { name = "foreground", paths = ["path1"], control = "cubic" },
  { name = "background", paths = ["path1"], control = "imtcp_bg" },
]
"""


def main() -> None:
    for background in ("cubic", "nice", "lp", "imtcp_bg"):
        with Sim(Topology.parse(SHARED, [f"flow.background.control={background}"])) as world:
            rates = {flow.name: flow.goodput_bps / 1e6 for flow in world.flows().flows}
        print(f"cubic {rates['foreground']:5.1f} Mbit/s, beside it {background} {rates['background']:5.1f}")


if __name__ == "__main__":
    main()
