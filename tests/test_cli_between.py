"""`pathcast doctor --host`: middleboxes of nftables between two namespaces are named, and a clean path has no fault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import COMMAND, PATIENCE_S

pytestmark = [
    pytest.mark.privileged,
    pytest.mark.skipif(shutil.which("nft") is None, reason="missing: nftables (no program `nft`)"),
]

# ends TCP on the router, with a small window of its own
PROXY = """
import socket, threading
taken = socket.socket()
taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
taken.bind(("10.94.1.254", 6001))
taken.listen(16)
print("listens", flush=True)
def carry(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
while True:
    near, far = taken.accept()[0], socket.create_connection(("10.94.2.1", 5294))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=carry, args=pair, daemon=True).start()
"""


@pytest.fixture
def line():
    """client 10.94.1.1 - router - 10.94.2.1 server, and what runs a command in one of them."""
    names = {host: f"pcreach{os.getpid()}{host}" for host in "crs"}

    def run(host, *words, **more):
        return subprocess.run(["ip", "netns", "exec", names[host], *words], check=True, text=True, **more)

    try:
        for name in names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for host, net in (("c", 1), ("s", 2)):
            run("r", "ip", "link", "add", f"r{net}", "type", "veth", "peer", "name", "eth0", "netns", names[host])
            run(host, "ip", "addr", "add", f"10.94.{net}.1/24", "dev", "eth0")
            run("r", "ip", "addr", "add", f"10.94.{net}.254/24", "dev", f"r{net}")
            for where, device in ((host, "eth0"), (host, "lo"), ("r", f"r{net}")):
                run(where, "ip", "link", "set", device, "up")
            run(host, "ip", "route", "add", "default", "via", f"10.94.{net}.254")
        run("r", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        yield names, run
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False)


def test_each_middlebox_is_named_and_a_clean_path_is_clean(line, far, start):
    names, run = line
    server = start("--port", 5294, "--json", "--open", command=("ip", "netns", "exec", names["s"], far))
    for text in iter(server.stdout.readline, ""):
        if text.startswith("}"):
            break

    def faults(rules="", host="10.94.2.1:5294"):
        run("r", "nft", "-f", "-", input=f"flush ruleset\n{rules}")
        done = run("c", str(COMMAND), "doctor", "--host", host, "--json", capture_output=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)["findings"]
        print(rules, *(one for one in found if one["status"] != "ok"), sep="\n  ")
        return {one["name"]: one for one in found if one["status"] != "ok"}

    def forward(rule):
        return f"table ip m {{ chain f {{ type filter hook forward priority 0; {rule}; }}; }}"

    for _ in range(3):
        assert faults() == {}
    mptcp = faults(forward("reset tcp option mptcp"))
    assert mptcp.keys() == {"mptcp"}
    assert "fall back to plain TCP" in mptcp["mptcp"]["detail"]
    assert faults(forward("tcp flags & ack == ack reset tcp option mptcp")).keys() == {"mptcp"}
    sack = faults(forward("tcp flags & (syn|ack) == syn reset tcp option sack-perm"))
    assert sack.keys() == {"sack"}
    assert "out of SYNs" in sack["sack"]["detail"]
    back = faults(forward("tcp flags & (syn|ack) == (syn|ack) reset tcp option timestamp"))
    assert back.keys() == {"timestamps"}
    assert "on the way back" in back["timestamps"]["detail"]
    assert faults(forward("tcp flags syn reset tcp option window")).keys() == {"window scaling"}
    clamped = faults(forward("tcp flags syn tcp option maxseg size set 1200"))
    assert (clamped.keys(), clamped["segments"]["status"]) == ({"segments"}, "noted")
    assert faults(forward("tcp flags syn tcp option maxseg size set 1452")).keys() == {"segments"}, "as for PPPoE"
    run("c", "ip", "link", "set", "eth0", "mtu", "1400")
    assert faults() == {}, "both ends know of it"
    run("c", "ip", "link", "set", "eth0", "mtu", "1500")
    run("s", "sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_sack")
    without = faults()
    assert (without.keys(), without["sack"]["status"]) == ({"sack"}, "noted")
    assert "the far end has SACK switched off" in without["sack"]["detail"]
    run("s", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_sack")
    assert faults(forward("udp dport 5294 drop")).keys() == {"udp port"}
    nat = "table ip n {{ chain p {{ type nat hook {} priority {}; {}; }}; }}"
    behind = faults(nat.format("postrouting", 100, "oifname r2 masquerade"))
    assert (behind.keys(), behind["nat here"]["status"]) == ({"nat here"}, "noted")
    there = faults(
        nat.format("prerouting", -100, "ip daddr 10.94.1.254 tcp dport 6000 dnat to 10.94.2.1:5294"),
        "10.94.1.254:6000",
    )
    assert "10.94.2.1:5294" in there["nat there"]["mend"]
    assert there["udp port"]["status"] == "fault"
    blocked = faults(forward("tcp dport 5294 drop"))
    assert blocked.keys() == {"tcp port"}
    assert "is silent" in blocked["tcp port"]["detail"]
    assert "is refused" in faults(forward("tcp dport 5294 reject with tcp reset"))["tcp port"]["detail"]
    assert "is unreachable" in faults(forward("tcp dport 5294 reject with icmp host-unreachable"))["tcp port"]["detail"]
    assert "is refused" in faults(host="10.94.2.1:5295")["tcp port"]["detail"]
    proxy = start(command=("ip", "netns", "exec", names["r"], sys.executable, "-c", PROXY))
    assert proxy.stdout.readline() == "listens\n"
    assert faults(host="10.94.1.254:6001").keys() >= {"proxy", "nat here", "nat there", "mptcp"}
