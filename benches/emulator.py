"""How fast and how exact the emulated network is: `make bench` prints a table and writes out/bench-emulator.json.

Bars (one run on a quiet machine with two processors):
  one 1 Gbit/s path, 75 ms each way: over 950 Mbit/s TCP goodput; 0.2 core with chunk 250 us, 0.4 with the default;
  release error of the default below 50 us (median) and 200 us (p99), cross-checked by receive stamps;
  forwarding without a rate limit over 8 Gbit/s; two 1 Gbit/s paths, 120..180 ms RTT: 256 MB by MPTCP at 500 Mbit/s;
  no packet lost that the model did not drop; memory bounded by the queues.
Beside each throughput stands that of a plain veth pair on the same machine in the same run.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pathcast import _native
from pathcast.machine import late_share, machine, versions
from pathcast.runtime import daemon
from pathcast.worlds.emu import PORT, Emu, Topology

ROWS: list[dict[str, Any]] = []
SO_TIMESTAMPNS = 35


def row(what: str, value: float, unit: str, bar: str = "", holds: bool | None = None) -> None:
    """Prints one line and keeps it."""
    ROWS.append({"what": what, "value": value, "unit": unit, "bar": bar, "holds": holds})
    mark = {None: "      ", True: "ok    ", False: "FAILED"}[holds]
    print(f"{mark} {what:66} {value:10.4g} {unit:7} {bar}", flush=True)


def topology(paths: int, **link: str) -> Topology:
    """Disjoint links with the given values between client and server."""
    values = "".join(f'{key} = "{value}"\n' for key, value in link.items())
    text = "".join(
        f'[[link]]\nname = "wan{i}"\na = "client"\nb = "server"\n{values}\n'
        f'[[path]]\nname = "path{i}"\nlinks = ["wan{i}"]\n\n'
        for i in range(1, paths + 1)
    )
    return Topology.parse(f'name = "bench"\n{text}')


def inside(namespace: str, work: Callable[[], Any]) -> Any:
    """Runs `work` in a thread inside a namespace."""
    result: list[Any] = []

    def enter() -> None:
        fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(fd)
        result.append(work())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return result[0]


def memory(world: Emu) -> float:
    """The most memory that the emulator's process has used [MB]."""
    status = Path(f"/proc/{world._net.record.pid}/status").read_text()
    line = next(x for x in status.splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3


def steady(world: Emu, path: str, settle_s: float, seconds: float) -> dict[str, float]:
    """A greedy transfer: goodput, cores and release error once it has settled."""
    failed: list[Exception] = []

    def send() -> None:
        try:
            world.tcp_probe(path, 100_000_000_000, "cubic")
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    time.sleep(settle_s)
    world.ledger(reset=True)
    first, begin = world.ledger(), time.monotonic()
    time.sleep(seconds)
    last, end = world.ledger(), time.monotonic()
    world.cancel()
    thread.join()
    world.cancelled = False

    def carried(ledger: dict[str, Any]) -> dict[str, int]:
        [link] = [x for g in ledger["groups"] for x in g["links"] if x["name"].endswith("1/ab")]
        return link["counters"]["carried"]

    packets = carried(last)["packets"] - carried(first)["packets"]
    ip_bytes = carried(last)["bytes"] - carried(first)["bytes"]
    span = end - begin
    return {
        "goodput_bps": (ip_bytes - 52 * packets) * 8 / span,
        "cores": (last["groups"][0]["cpu_s"] - first["groups"][0]["cpu_s"]) / span,
        **{k: v for k, v in last["groups"][0]["release_error"].items() if k != "n"},
        "lost": sum(d["dropped"] for d in last["devices"]) + sum(g["write_failures"] for g in last["groups"]),
    }


def stamped_delays(world: Emu, count: int, gap_s: float) -> list[float]:
    """One-way delays of small datagrams by the receiver's kernel stamps [s]: both ends have this machine's clock."""
    hosts = world._net.record.about["hosts"]
    pair = world.paths[0].pair()
    receiver = inside(hosts["server"], lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind((pair["remote"], 0))
    receiver.settimeout(1)
    sender = inside(hosts["client"], lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sender.bind((pair["local"], 0))
    sender.connect(receiver.getsockname())

    def send() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
        due = time.monotonic()
        for _ in range(count):
            due += gap_s
            time.sleep(max(0.0, due - time.monotonic()))
            sender.send(struct.pack("!Q", time.clock_gettime_ns(time.CLOCK_REALTIME)) + bytes(36))

    threading.Thread(target=send).start()
    delays = []
    for _ in range(count):
        data, ancillary, *_ = receiver.recvmsg(100, 100)
        seconds, nanos = struct.unpack("qq", ancillary[0][2])
        delays.append((seconds * 1_000_000_000 + nanos - struct.unpack("!Q", data[:8])[0]) / 1e9)
    return delays


@contextmanager
def veth() -> Iterator[Callable[[int], float]]:
    """A plain veth pair: the same transfer without an emulator, as throughput [bit/s] of so many bytes."""
    names = [f"pcb{os.getpid()}{end}" for end in "cs"]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        a, b = names
        subprocess.run(
            ["ip", "-n", a, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", b], check=True
        )
        for name, end in ((a, 1), (b, 2)):
            subprocess.run(["ip", "-n", name, "addr", "add", f"10.78.0.{end}/24", "dev", "v0"], check=True)
            for device in ("lo", "v0"):
                subprocess.run(["ip", "-n", name, "link", "set", device, "up"], check=True)
        key = {"id": "bench", "secret": "11" * 32}
        config = {"bind": [], "port": PORT, "keys": [key], "addresses": []}
        with daemon.start("serve", {"name": f"bench-{os.getpid()}", "namespace": b, "server": config}):
            client = _native.Client(a, ["10.78.0.2"], PORT, key["id"], key["secret"])
            path = json.dumps({"name": "veth", "local": "10.78.0.1", "remote": "10.78.0.2"})

            def transfer(size: int) -> float:
                return json.loads(client.tcp(_native.Job(), path, size, "cubic"))["throughput_bps"]

            yield transfer
            client.close()
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def one_path() -> None:
    for chunk, cores in (("250us", 0.2), ("48us", 0.4)):
        with Emu(topology(1, rate="1Gbit", delay="75ms", queue="12500 packets", chunk=chunk)) as world:
            s = steady(world, "path1", 12, 6)
            used = memory(world)
        name = f"1 Gbit/s, 75 ms each way, chunk {chunk}:"
        row(f"{name} TCP goodput", s["goodput_bps"] / 1e6, "Mbit/s", "> 950", s["goodput_bps"] > 950e6)
        row(f"{name} emulator", s["cores"], "cores", f"<= {cores}", s["cores"] <= cores)
        exact = chunk == "48us"
        row(
            f"{name} release error, median",
            s["p50_s"] * 1e6,
            "us",
            "< 50" if exact else "",
            s["p50_s"] < 50e-6 if exact else None,
        )
        row(
            f"{name} release error, p99",
            s["p99_s"] * 1e6,
            "us",
            "< 200" if exact else "",
            s["p99_s"] < 200e-6 if exact else None,
        )
        row(f"{name} lost outside the model", s["lost"], "packets", "0", s["lost"] == 0)
        # queue and delay line hold 2 x 12500 packets at most, and the process about 40 MB
        row(f"{name} memory", used, "MB", "< 120", used < 120)


def stamps() -> None:
    with Emu(topology(1, rate="1Gbit", delay="20ms")) as world:
        delays = sorted(stamped_delays(world, 2000, 0.001))
    modelled = 0.020 + (44 + 28) * 8 / 1e9
    name = "receive stamps, 72-byte datagrams:"
    row(f"{name} one-way delay above the model, median", (statistics.median(delays) - modelled) * 1e6, "us")
    row(f"{name} one-way delay above the model, p99", (delays[int(0.99 * len(delays))] - modelled) * 1e6, "us")


def unlimited() -> None:
    with veth() as plain:
        before = plain(4_000_000_000)
        with Emu(topology(1, delay="1ms")) as world:
            s = steady(world, "path1", 3, 5)
        after = plain(4_000_000_000)
    base = (before + after) / 2
    row("no rate limit, 1 ms: forwarding", s["goodput_bps"] / 1e9, "Gbit/s", "> 8", s["goodput_bps"] > 8e9)
    row("no rate limit, 1 ms: emulator", s["cores"], "cores", "<= 1", s["cores"] <= 1)
    row("no rate limit, 1 ms: against a plain veth pair", s["goodput_bps"] / base, "ratio")
    row("plain veth pair", base / 1e9, "Gbit/s")


def two_paths() -> None:
    speeds = []
    for rtts in ((120, 180), (180, 120), (150, 150)):
        with Emu(topology(2, rate="1Gbit", delay="75ms", queue="12500 packets", chunk="250us")) as world:
            for link, rtt in zip(("wan1", "wan2"), rtts, strict=True):
                world.set(link, delay=f"{rtt / 2}ms")
            speeds.append(world.transfer(["path1", "path2"], 256_000_000, "cubic").throughput_bps)
    for rtts, speed in zip(("120/180", "180/120", "150/150"), speeds, strict=True):
        row(f"2 x 1 Gbit/s, RTT {rtts} ms, 256 MB by MPTCP", speed / 1e6, "Mbit/s", ">= 500", speed >= 500e6)


def main() -> int:
    late = late_share(500)
    print(f"real-time wake-ups more than 1 ms late before the run: {100 * late:.1f} % (a quiet machine has none)")
    for part in (one_path, stamps, unlimited, two_paths):
        part()
    late_after = late_share(500)
    print(f"and after it: {100 * late_after:.1f} %")
    out = Path("out")
    out.mkdir(exist_ok=True)
    document = {
        "schema": "pathcast.bench-emulator/1",
        "late_wakeups": [late, late_after],
        "host": machine(),
        "versions": versions(),
        "rows": ROWS,
    }
    (out / "bench-emulator.json").write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
