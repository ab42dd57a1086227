"""How long a failover and a change of plan take, and what they lose: prints a table and writes out/bench-steer.json.

Numbered UDP packets of 64 bytes go one way over Open vSwitch's userspace datapath. In each run the flow is moved to
another path, and later the link that it is on is set down. What is told: the time from the request to its answer; the
longest gap between arrivals around each event, and the packets that never came. `benches/steer.py [RUNS [PACKETS/S]]`
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from pathcast.machine import machine, versions
from pathcast.steer.config import Config
from pathcast.steer.controller import Controller
from pathcast.steer.rules import Flow
from pathcast.steer.testing import Bed

SEND = """
import socket, struct, sys, time
port, rate, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("10.9.0.1", port)); s.connect(("10.9.0.2", 5001))
start = time.monotonic(); n = 0
while (now := time.monotonic()) < start + seconds:
    while n < (now - start) * rate:
        s.send(struct.pack("!Qd", n, time.monotonic()).ljust(64)); n += 1
    time.sleep(0.5 / rate)
print(n)
"""
TAKE = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)
s.bind(("10.9.0.2", 5001)); s.settimeout(float(sys.argv[1])); out = []; print("bound", flush=True)
while True:
    try:
        n, sent = struct.unpack_from("!Qd", s.recv(99)); out.append((n, sent, time.monotonic()))
    except TimeoutError:
        break
for one in out:
    print(*one)
"""


def run(bed: Bed, controller: Controller, draw: random.Random, port: int, rate: int) -> dict[str, Any]:
    """One flow that is moved, and whose link then goes down."""
    flow = Flow(bed.CLIENT, bed.SERVER, port, 5001, "udp")
    first, second = draw.sample(["path1", "path2"], 2)
    controller.begin({flow: first})
    take = bed.python(bed.server, TAKE, 2.5)
    assert take.stdout is not None
    take.stdout.readline()
    send = bed.python(bed.client, SEND, port, rate, 3.5)
    time.sleep(1 + draw.random() / 5)
    asked = time.monotonic()
    controller.begin({flow: second})
    answered = time.monotonic()
    time.sleep(1 + draw.random() / 5)
    device = {"path1": "a", "path2": "b"}[second] + draw.choice("12")
    pulled = time.monotonic()
    bed.link(device, "down")
    sent = int(send.communicate()[0])
    rows = [line.split() for line in take.communicate()[0].splitlines()]
    bed.link(device, "up")
    controller.end([flow])
    came = sorted((float(at), float(left), int(n)) for n, left, at in rows)
    when = {n: left for _, left, n in came}
    # one that never came left when the last before it did that came
    last, lost = 0.0, []
    for number in range(sent):
        last = when.get(number, last)
        if number not in when:
            lost.append(last)
    return {
        "change_s": answered - asked,
        "change_gap_s": gap(came, asked, answered + 0.7),
        "change_lost": sum(asked - 0.02 <= at < pulled - 0.02 for at in lost),
        "failover_gap_s": gap(came, pulled - 0.05, pulled + 1.2),
        "failover_lost": sum(at >= pulled - 0.02 for at in lost),
        "lost_before": sum(at < asked - 0.02 for at in lost),
        "sent": sent,
    }


def gap(came: list[tuple[float, float, int]], begin: float, end: float) -> float:
    """The longest time without an arrival."""
    at = [one[0] for one in came if begin <= one[0] <= end]
    return max((b - a for a, b in pairwise(at)), default=end - begin)


def main() -> None:
    runs, rate = (int(text) for text in (*sys.argv[1:], *("20", "3000")[len(sys.argv) - 1 :]))
    draw, found = random.Random(1), []
    with (
        tempfile.TemporaryDirectory() as place,
        Bed(Path(place) / "b") as bed,
        Controller(Config.of(bed.told())) as controller,
    ):
        bed.connect()
        for number in range(runs):
            while [one["stands"] for one in controller.state()["links"]] != [True] * 4:
                time.sleep(0.05)
            time.sleep(0.5)
            found.append(run(bed, controller, draw, 40000 + number, rate))
            print(found[-1], file=sys.stderr)
    Path("out").mkdir(exist_ok=True)
    document = {"versions": versions(), "machine": machine(), "rate": rate, "runs": found}
    Path("out/bench-steer.json").write_text(json.dumps(document, indent=1))
    print(f"{runs} runs, {rate} packets/s: median, 90 %, largest")
    for name in found[0]:
        values = sorted(one[name] for one in found)
        shown = (statistics.median(values), values[int(0.9 * (len(values) - 1))], values[-1])
        print(f"{name:16}" + "".join(f"{value:11.4f}" for value in shown))


if __name__ == "__main__":
    main()
