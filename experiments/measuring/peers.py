"""Other tools that estimate or fill a path, run over the same emulated links as ours, and what each printed.

A tool is found by its programs in the directories of `$PATHCAST_PEERS` (colons between) or in the PATH. What a tool
says is taken as it says it: iperf3 and nuttcp count payload, Pathload UDP's. Figures of tools that are not here come
from `stored()`: measured once elsewhere, over another emulated link (tbf), on a busy machine with two processors.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# longer than the slowest was ever seen to take
LIMIT_S = 240.0
# from a server's start until it listens
SETTLE_S = 0.3


@dataclass(frozen=True)
class Said:
    """What a tool printed as its answer [bit/s]; a range where it gives one."""

    low: float
    high: float

    @property
    def value(self) -> float:
        """The middle."""
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Peer:
    """A tool that measures from the client towards the server.

    server, client: what runs on either host; `{client}` and `{server}` stand for the addresses. waits: which of both is
    the one that ends by itself and prints the answer.
    """

    name: str
    server: tuple[str, ...]
    client: tuple[str, ...]
    waits: str
    read: Callable[[str], Said | None]

    @property
    def programs(self) -> tuple[str, str]:
        """What has to be there."""
        return self.server[0], self.client[0]


def pathload(text: str) -> Said | None:
    """`Available bandwidth range : 4.55 - 4.70 (Mbps)`; a range upside down is one too."""
    found = re.search(r"Available bandwidth range : +([\d.]+) +- +([\d.]+) +\(Mbps\)", text)
    if found is None:
        return None
    low, high = sorted((float(found[1]) * 1e6, float(found[2]) * 1e6))
    return Said(low, high)


def iperf3(text: str) -> Said | None:
    """What the receiver had, from `--json`."""
    import json

    try:
        rate = json.loads(text)["end"]["sum_received"]["bits_per_second"]
    except (ValueError, KeyError):
        return None
    return Said(rate, rate)


def nuttcp(text: str) -> Said | None:
    """`5.9973 MB /  10.52 sec =    4.7837 Mbps …`; nothing received is no answer."""
    found = re.search(r"=\s+([\d.]+) Mbps", text)
    return Said(float(found[1]) * 1e6, float(found[1]) * 1e6) if found and float(found[1]) else None


# Pathload's sender listens and its receiver asks: the receiver stands where the bytes are to arrive
PEERS = (
    Peer("Pathload", ("pathload_rcv", "-s", "{client}", "-o", "/dev/null"), ("pathload_snd",), "server", pathload),
    Peer("iperf3 TCP", ("iperf3", "-s", "-1"), ("iperf3", "-c", "{server}", "--json"), "client", iperf3),
    Peer("nuttcp TCP", ("nuttcp", "-S", "--nofork"), ("nuttcp", "{server}"), "client", nuttcp),
)


def search_path() -> str:
    """Where programs of peers are looked for."""
    return os.pathsep.join(filter(None, (os.environ.get("PATHCAST_PEERS"), os.environ.get("PATH"))))


def find() -> tuple[list[Peer], list[Peer]]:
    """Those that are here, and the others."""
    here = [peer for peer in PEERS if all(shutil.which(program, path=search_path()) for program in peer.programs)]
    return here, [peer for peer in PEERS if peer not in here]


def run(peer: Peer, hosts: dict[str, str], addresses: dict[str, str]) -> tuple[Said | None, float]:
    """One run between two namespaces: its answer, none if it gave none in `LIMIT_S`, and the time it took [s].

    hosts: the namespace of `client` and `server`. addresses: theirs.
    """

    def start(host: str, words: tuple[str, ...]) -> subprocess.Popen:
        program = shutil.which(words[0], path=search_path())
        command = [program, *(word.format(**addresses) for word in words[1:])]
        out = subprocess.PIPE if host == peer.waits else subprocess.DEVNULL
        prefix = ["ip", "netns", "exec", hosts[host]]
        return subprocess.Popen([*prefix, *command], stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    waits = peer.waits
    other = "client" if waits == "server" else "server"
    parts = {"client": peer.client, "server": peer.server}
    partner = start(other, parts[other])
    try:
        time.sleep(SETTLE_S)
        began = time.monotonic()
        asker = start(waits, parts[waits])
        try:
            text = asker.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            asker.kill()
            text = asker.communicate()[0]
        elapsed = time.monotonic() - began
    finally:
        partner.send_signal(signal.SIGTERM)
        try:
            partner.wait(5)
        except subprocess.TimeoutExpired:
            partner.kill()
            partner.wait()
    return peer.read(text.decode(errors="replace")), elapsed


def stored() -> list[dict[str, Any]]:
    """Stored figures: tool, capacity, true available bandwidth and what it said [Mbit/s], time [s] and data [MB]."""
    with Path(__file__).with_name("stored.csv").open() as file:
        return [
            {key: value if key == "tool" else (float(value) if value else None) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]
