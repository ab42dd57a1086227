"""How fast the simulator is, beside ns-3 in the same run: prints tables and writes out/bench-simulator.json.

The measure is the link-packet: one packet (data or acknowledgement) carried over one link. CPU time, one thread.
  load A: 8 bulk flows, 100 Mbit/s, RTT 20 ms, 100 packets drop-tail, access links of 1 Gbit/s, 60 s;
          the scenario and the ns-3 program are those of tests/reference/, so both do the same work
  load B: 1000 flows over 10 Gbit/s, RTT 20 ms, 8000 packets
  scaling: 1 to 10,000 flows, each with 10 Mbit/s and 8 packets of the queue
ns-3 runs if PATHCAST_NS3 names the directory that tests/reference/ns3/build wrote; else its stored figure stands here.
It is Debian's package, which has logging compiled in: an optimised build of ns-3.37 was once measured at 0.19 million
link-packets a CPU second on load A, about 1.6 times as fast.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.machine import machine, versions

ROOT = Path(__file__).resolve().parents[1]
LOAD_A = ROOT / "tests" / "reference" / "scenarios" / "dumbbell-8.toml"
STORED = ROOT / "tests" / "reference" / "data" / "dumbbell.jsonl"
COMMAND = Path(sys.executable).with_name("pathcast")
REPETITIONS = 5
# ns-3 takes about a third of a second of CPU for each simulated second of load A
NS3_SECONDS = 10

# flows: simulated seconds, so that every row carries millions of link-packets
SCALE = {1: 600, 10: 600, 100: 60, 1000: 10, 10_000: 2}
LOAD_B = 1000


@dataclass(frozen=True)
class Cost:
    """What one run carried and what it took."""

    link_packets: int
    cpu_s: float
    simulated_s: float

    @property
    def rate(self) -> float:
        """Link-packets per CPU second."""
        return self.link_packets / self.cpu_s

    @property
    def ns(self) -> float:
        """CPU nanoseconds per link-packet."""
        return 1e9 * self.cpu_s / self.link_packets

    @property
    def cpu_per_second(self) -> float:
        """CPU seconds per simulated second."""
        return self.cpu_s / self.simulated_s


def ours(file: Path) -> Cost:
    done = subprocess.run([COMMAND, "sim", file, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"`pathcast sim {file}` exits with {done.returncode}: {done.stderr}")
    document = json.loads(done.stdout)
    return Cost(document["packets_forwarded"], document["cpu_s"], document["simulated_s"])


def theirs(program: Path) -> Cost:
    command = [program, "--flows=8", f"--seconds={NS3_SECONDS}"]
    line = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return Cost(line["link_packets"], line["cpu_s"], line["simulated_s"])


def stored() -> list[Cost]:
    """The runs of ns-3 on load A that the reference data holds."""
    lines = [json.loads(line) for line in STORED.read_text().splitlines()]
    found = [line for line in lines if (line["flows"], line["recovery"]) == (8, "prr")]
    return [Cost(line["link_packets"], line["cpu_s"], line["simulated_s"]) for line in found]


def many(flows: int, seconds: float) -> str:
    """A scenario of greedy flows over one path: 10 Mbit/s and 8 packets of the queue for each."""
    rest = (
        f'[[traffic]]\nkind = "tcp"\npath = "path1"\nto = "server"\ncontrol = "reno"\n'
        f'flows = {flows - 1}\nstagger = "{100_000_000 // flows}ns"\n'
    )
    return (
        f'name = "scale-{flows}"\nseed = 1\nend = "{seconds:g}s"\n\n'
        f'[[link]]\nname = "c-r1"\na = "client"\nb = "r1"\ndelay = "1ms"\n\n'
        f'[[link]]\nname = "bottleneck"\na = "r1"\nb = "r2"\n'
        f'rate = "{10 * flows}Mbit"\ndelay = "8ms"\nqueue = "{8 * flows} packets"\noverhead = "2B"\n\n'
        f'[[link]]\nname = "r2-s"\na = "r2"\nb = "server"\ndelay = "1ms"\n\n'
        f'[[path]]\nname = "path1"\nlinks = ["c-r1", "bottleneck", "r2-s"]\n\n'
        f'[[flow]]\nname = "bulk"\npaths = ["path1"]\ncontrol = "reno"\n\n'
        f'{rest if flows > 1 else ""}\n[tcp]\npreset = "ns3"\n'
    )


def shown(name: str, costs: list[Cost]) -> dict[str, Any]:
    """Prints one line and returns it: medians, and the range of the repetitions."""
    rates = sorted(cost.rate for cost in costs)
    row = {
        "what": name,
        "runs": len(costs),
        "link_packets": costs[0].link_packets,
        "simulated_s": costs[0].simulated_s,
        "link_packets_per_cpu_s": statistics.median(rates),
        "range": [rates[0], rates[-1]],
        "ns_per_link_packet": statistics.median(cost.ns for cost in costs),
        "cpu_s_per_simulated_s": statistics.median(cost.cpu_per_second for cost in costs),
    }
    print(
        f"{name:44} {row['link_packets_per_cpu_s'] / 1e6:9.3f} {rates[0] / 1e6:8.3f} to {rates[-1] / 1e6:8.3f}"
        f" {row['ns_per_link_packet']:9.1f} {row['cpu_s_per_simulated_s']:12.5f} {costs[0].simulated_s:6g}"
        f" {len(costs):5}",
        flush=True,
    )
    return row


def head(title: str) -> None:
    print(f"\n{title}")
    print(f"{'':44} {'M link-packets/CPU s, range':>30} {'ns each':>9} {'CPU s/sim. s':>12} {'sim. s':>6} {'runs':>5}")


def load_a() -> dict[str, Any]:
    """Ours and ns-3 in turn, so that what else the machine does falls on both."""
    directory = os.environ.get("PATHCAST_NS3")
    program = Path(directory, "dumbbell") if directory else None
    if program is not None and not os.access(program, os.X_OK):
        raise SystemExit(f"PATHCAST_NS3={directory}: there is no program `dumbbell`; see tests/reference/ns3/build")
    mine, other = [], []
    for _ in range(REPETITIONS):
        mine.append(ours(LOAD_A))
        if program is not None:
            other.append(theirs(program))
    head("load A: 8 bulk flows, 100 Mbit/s")
    name = f"ns-3, {NS3_SECONDS} s of the same" if program is not None else "ns-3, STORED: another run, another time"
    rows = [shown("pathcast sim", mine), shown(name, other or stored())]
    ratio = rows[0]["link_packets_per_cpu_s"] / rows[1]["link_packets_per_cpu_s"]
    print(f"pathcast sim carries {ratio:.1f} times the link-packets of ns-3 per CPU second")
    return {"rows": rows, "ratio": ratio, "ns3": "measured" if program is not None else "stored"}


def load_b_and_scaling() -> list[dict[str, Any]]:
    rows = []
    head("load B and scaling: flows with 10 Mbit/s and 8 packets of the queue each")
    with tempfile.TemporaryDirectory() as directory:
        for flows, seconds in SCALE.items():
            file = Path(directory, f"scale-{flows}.toml")
            file.write_text(many(flows, seconds))
            name = f"{flows} flow{'s' if flows > 1 else ''}{' (load B)' if flows == LOAD_B else ''}"
            rows.append(shown(name, [ours(file) for _ in range(REPETITIONS)]))
    return rows


def main() -> int:
    document = {"schema": "pathcast.bench-simulator/1", "host": machine(), "versions": versions()}
    print("one link-packet: one packet over one link; medians, and the range of the repetitions")
    document["load_a"] = load_a()
    document["scaling"] = load_b_and_scaling()
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "bench-simulator.json").write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
