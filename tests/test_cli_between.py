"""`pathcast doctor --host`: middleboxes of nftables between two namespaces are named, and a clean path has no fault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PATIENCE_S

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


# rewrites TCP timestamps on the router, as firewalls do that hide how long hosts have run: each way's by its own number
SCRAMBLER = """
import fcntl, os, struct
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", b"tun0", 0x1001))
print("listens", flush=True)
def total(data):
    data += b"\\0" * (len(data) % 2)
    value = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while value >> 16:
        value = (value & 0xFFFF) + (value >> 16)
    return value
while True:
    packet = bytearray(os.read(tun, 65536))
    if packet[0] >> 4 == 4 and packet[9] == 6:
        start, out = (packet[0] & 15) * 4, packet[14] == 1
        at, end = start + 20, start + (packet[start + 12] >> 4) * 4
        while at < end and packet[at]:
            if packet[at] == 8:
                value, echo = struct.unpack_from("!2I", packet, at + 2)
                own, theirs = (900_000_000, 1_700_000_000) if out else (1_700_000_000, 900_000_000)
                echo = (echo - theirs) % 2**32 if packet[start + 13] & 16 else echo
                struct.pack_into("!2I", packet, at + 2, (value + own) % 2**32, echo)
            at += 1 if packet[at] == 1 else max(packet[at + 1], 2)
        packet[start + 16 : start + 18] = bytes(2)
        pseudo = bytes(packet[12:20]) + struct.pack("!2H", 6, len(packet) - start)
        struct.pack_into("!H", packet, start + 16, 0xFFFF - total(pseudo + bytes(packet[start:])))
    os.write(tun, packet)
"""


class Line:
    """client .1.1 - router - .2.1 server of 10.94, with a far end at ports 5294 and 5862, and commands in them."""

    def __init__(self, number, pathcast):
        self.names, self._pathcast = {host: f"pcreach{os.getpid()}{host}{number}" for host in "crs"}, pathcast

    def inside(self, host):
        return ("ip", "netns", "exec", self.names[host])

    def run(self, host, *words, **more):
        return subprocess.run([*self.inside(host), *words], check=True, text=True, **more)

    def build(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for host, net in (("c", 1), ("s", 2)):
            peer = ("peer", "name", "eth0", "netns", self.names[host])
            self.run("r", "ip", "link", "add", f"r{net}", "type", "veth", *peer)
            self.run(host, "ip", "addr", "add", f"10.94.{net}.1/24", "dev", "eth0")
            self.run("r", "ip", "addr", "add", f"10.94.{net}.254/24", "dev", f"r{net}")
            for where, device in ((host, "eth0"), (host, "lo"), ("r", f"r{net}")):
                self.run(where, "ip", "link", "set", device, "up")
            self.run(host, "ip", "route", "add", "default", "via", f"10.94.{net}.254")
        self.run("r", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def serve(self, far, start):
        options = ("--port", 5294, "--stamp-port", 5862, "--json", "--open")
        self.server = start(*options, command=(*self.inside("s"), far))
        told = ""
        for text in iter(self.server.stdout.readline, ""):
            told += text
            if text.startswith("}"):
                break
        self.told = json.loads(told)

    def remove(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def faults(self, *rules, host="10.94.2.1:5294", inside=(), patience="1s"):
        """What is not in order under such rules of nftables, by name."""
        self.run("r", "nft", "-f", "-", input="flush ruleset\n" + "\n".join(rules))
        words = ("doctor", "--host", host, "--json", "--patience", patience)
        where = {"prefix": (*self.inside("c"), *inside)} if inside else {"inside": self.names["c"]}
        done = self._pathcast(*words, **where)
        assert "findings" in done.json, done.stdout + done.stderr
        found = [one for one in done.json["findings"] if one["status"] != "ok"]
        print(*rules, *found, sep="\n  ")
        assert done.json["faults"] == sum(one["status"] == "fault" for one in found)
        assert done.returncode == (1 if done.json["faults"] else 0)
        return {one["name"]: one for one in found}


@pytest.fixture
def side_by_side(pathcast, far, start):
    """Runs cases at once, each over a line of its own: they mostly wait for what does not come."""
    lines = []

    def run(*cases):
        lines.extend(Line(number, pathcast) for number in range(len(cases)))
        for line in lines:
            line.build()
            line.serve(far, start)
        with ThreadPoolExecutor() as threads:
            begun = [threads.submit(case, line) for case, line in zip(cases, lines, strict=True)]
        for case in begun:
            case.result()

    yield run
    for line in lines:
        line.remove()


def forward(*rules):
    """Of packets that the router forwards."""
    return f"table ip m {{ chain f {{ type filter hook forward priority 0; {'; '.join(rules)}; }}; }}"


def nat(hook, priority, rule):
    return f"table ip n {{ chain p {{ type nat hook {hook} priority {priority}; {rule}; }}; }}"


def test_options_that_middleboxes_take_out_and_a_clean_path(side_by_side):
    def options(line):
        found = line.faults(
            forward(
                "reset tcp option mptcp",
                "tcp flags & (syn|ack) == syn reset tcp option sack-perm",
                "tcp flags & (syn|ack) == (syn|ack) reset tcp option timestamp",
                "udp dport 5294 drop",
            )
        )
        assert found.keys() == {"mptcp", "sack", "timestamps", "udp port"}
        assert "fall back to plain TCP" in found["mptcp"]["detail"]
        assert "out of SYNs" in found["sack"]["detail"]
        assert "on the way back" in found["timestamps"]["detail"]

    def values(line):
        found = line.faults(
            forward(
                "tcp flags & ack == ack reset tcp option mptcp",
                "tcp flags syn reset tcp option window",
                "tcp flags syn tcp option maxseg size set 1200",
                "iifname r1 ip ecn set not-ect",
                "iifname r2 ip dscp ef ip dscp set cs0",
            )
        )
        assert found.keys() == {"mptcp", "window scaling", "segments", "ecn", "dscp"}
        assert [found[name]["status"] for name in ("segments", "ecn", "dscp")] == ["noted"] * 3
        assert "direction out: a router rewrites marks: ECT(0), ECT(1) and CE become unmarked" in found["ecn"]["detail"]
        assert "direction in: a router rewrites marks: EF becomes the default" in found["dscp"]["detail"]

    def clean(line):
        assert line.faults() == {}
        line.run("c", "ip", "link", "set", "eth0", "mtu", "1400")
        line.run("s", "sh", "-c", "echo 0 | tee /proc/sys/net/ipv4/tcp_sack /proc/sys/net/ipv4/tcp_ecn")
        without = line.faults()
        assert {name: one["status"] for name, one in without.items()} == {"sack": "noted", "tcp ecn": "noted"}, (
            "MTU is known"
        )
        assert "the far end has SACK switched off" in without["sack"]["detail"]
        assert "the far end has ECN switched off" in without["tcp ecn"]["detail"]

    side_by_side(options, values, clean)


def test_what_vanishes_by_size_mark_or_option_and_timestamps_that_are_rewritten(side_by_side, start):
    def dropped(line):
        found = line.faults(
            forward(
                "iifname r1 meta length > 1400 drop",
                "tcp option mptcp subtype 1 drop",
                "iifname r1 ip ecn ect0 drop",
                "iifname r2 ip dscp lephb drop",
                "tcp flags & (syn|ack|ecn) == syn|ecn drop",
                "udp dport 5862 drop",
            )
        )
        assert found.keys() == {"mtu", "mptcp join", "ecn", "dscp", "tcp ecn", "stamp port"}
        assert all(one["status"] == "fault" for one in found.values())
        assert "direction out: packets of up to 1400 B pass" in found["mtu"]["detail"]
        assert "has no answer" in found["mptcp join"]["detail"]
        assert "direction out: packets marked ECT(0) vanish" in found["ecn"]["detail"]
        assert "direction in: packets marked LE vanish" in found["dscp"]["detail"]

    def refused(line):
        found = line.faults(
            forward(
                "iifname r2 meta length > 1333 drop",
                "tcp option mptcp subtype 1 reject with tcp reset",
                "tcp flags & (syn|ack|ecn|cwr) == syn|ecn|cwr tcp flags set syn",
                "tcp flags syn tcp option maxseg size set 1452",
            )
        )
        assert found.keys() == {"mtu", "mptcp join", "tcp ecn", "segments"}, "the clamp is PPPoE's"
        assert "direction in: packets of up to 1333 B pass" in found["mtu"]["detail"]
        assert "is refused" in found["mptcp join"]["detail"]
        assert found["tcp ecn"]["status"] == "noted"

    def rewritten(line):
        scrambler = start(command=("ip", "netns", "exec", line.names["r"], sys.executable, "-c", SCRAMBLER))
        assert scrambler.stdout.readline() == "listens\n"
        line.run("r", "ip", "link", "set", "tun0", "up")
        line.run("r", "ip", "route", "add", "default", "dev", "tun0", "table", "94")
        for net in (1, 2):
            line.run("r", "ip", "rule", "add", "iif", f"r{net}", "table", "94")
        found = line.faults()
        assert found.keys() == {"timestamps"}
        assert "direction in: a middlebox rewrites TCP timestamps" in found["timestamps"]["detail"]
        for net in (1, 2):
            line.run("r", "ip", "rule", "del", "iif", f"r{net}")
        # a router that says so is no black hole
        for net in (1, 2):
            line.run("r", "ip", "route", "change", f"10.94.{net}.0/24", "dev", f"r{net}", "mtu", "lock", "1380")
        found = line.faults(nat("postrouting", 100, "oifname r2 masquerade"))
        assert {name: one["status"] for name, one in found.items()} == {"nat here": "noted", "mtu": "noted"}
        assert "direction in: the path takes 1380 B, as routers say" in found["mtu"]["detail"]

    side_by_side(dropped, refused, rewritten)


def test_a_kernel_that_holds_mptcp_back_and_a_path_mtu_that_it_keeps_are_no_middlebox(side_by_side):
    def held_back(line):
        found = line.faults(forward("tcp flags & (syn|ack) == syn tcp option mptcp exists drop"), patience="5s")
        assert {name: one["status"] for name, one in found.items()} == {"mptcp": "fault"}
        assert "SYNs with MPTCP are dropped" in found["mptcp"]["detail"]
        found = line.faults()
        assert {name: one["status"] for name, one in found.items()} == {"mptcp": "unseen"}
        assert "blackhole detection" in found["mptcp"]["detail"]
        command = found["mptcp"]["mend"].partition(": ")[2]
        assert command.startswith("sysctl -w net.mptcp.blackhole_timeout=0 ")
        names = [word.split("=") for word in command.split()[2:]]
        line.run(
            "c", "sh", "-c", "; ".join(f"echo {value} > /proc/sys/{name.replace('.', '/')}" for name, value in names)
        )
        assert line.faults() == {}

    def kept(line):
        line.run("r", "ip", "route", "change", "10.94.2.0/24", "dev", "r2", "mtu", "lock", "1380")
        first, second = line.faults(), line.faults()
        assert {name: one["status"] for name, one in (first | second).items()} == {"mtu": "noted"}
        assert "direction out: the path takes 1380 B, as routers say" in first["mtu"]["detail"]
        assert "this kernel keeps that" in second["mtu"]["detail"]

    side_by_side(held_back, kept)


def test_losses_and_rejections_are_no_filters(side_by_side):
    def lossy(line):
        found = line.faults(forward("meta l4proto udp numgen random mod 10 < 4 drop"), patience="4s")
        assert {one["status"] for one in found.values()} <= {"noted", "unseen"}, found
        assert found["loss"]["status"] == "noted"
        assert "small packets or their answers were lost" in found["loss"]["detail"]

    def rejected(line):
        reject = "reject with icmp"
        found = line.faults(
            forward(
                f"udp dport 5294 {reject} admin-prohibited",
                f"udp dport 5862 {reject} port-unreachable",
                f"tcp flags & (syn|ack|ecn) == syn|ecn {reject} port-unreachable",
            )
        )
        assert found.keys() == {"udp port", "stamp port", "tcp ecn"}
        assert "10.94.1.254 says: administratively prohibited" in found["udp port"]["detail"]
        assert "UDP port 5294" in found["udp port"]["mend"]
        assert "10.94.1.254 says: port unreachable" in found["stamp port"]["detail"]
        assert "is refused" in found["tcp ecn"]["detail"]
        # routers say it once a second
        found = line.faults(forward(f"tcp dport 5294 {reject} prot-unreachable"), patience="4s")
        assert "is unreachable: 10.94.1.254 says: protocol unreachable" in found["tcp port"]["detail"]

    def dead(line):
        # nobody at that address
        found = line.faults(host="10.94.1.7", patience="4s")
        assert "no host answers for that address, or its gateway's, on the line here" in found["tcp port"]["detail"]
        # a dead line
        line.run("r", "ip", "link", "set", "r2", "down")
        line.run("r", "ip", "route", "add", "blackhole", "10.94.2.0/24")
        found = line.faults(forward("iifname r1 drop"))
        assert "nothing answers, no host and no router" in found["tcp port"]["detail"]
        assert "TCP port 5294" in found["tcp port"]["mend"]

    side_by_side(lossy, rejected, dead)


def test_ports_that_are_closed_translated_or_somebody_elses(side_by_side, start, tmp_path):
    def translated(line):
        there = line.faults(
            nat("prerouting", -100, "ip daddr 10.94.1.254 tcp dport 6000 dnat to 10.94.2.1:5294"),
            host="10.94.1.254:6000",
        )
        assert "10.94.2.1:5294" in there["nat there"]["mend"]
        assert there["udp port"]["status"] == "fault"
        assert line.told["forward"] == {"addresses": ["10.94.2.1"], "tcp": [5294], "udp": [5294, 5862]}
        line.server.terminate()
        notes = line.server.communicate(timeout=PATIENCE_S)[1]
        assert "let it forward TCP 5294 and UDP 5294 and 5862 to 10.94.2.1" in notes
        assert "a client has come by 10.94.1.254:6000, which a translator (NAT) leads to 10.94.2.1:5294" in notes

    def closed(line):
        words = {6001: "silent", 6002: "refused", 6003: "unreachable", 6004: "refused"}
        rules = forward(
            "tcp dport 6001 drop",
            "tcp dport 6002 reject with tcp reset",
            "tcp dport 6003 reject with icmp host-unreachable",
        )
        with ThreadPoolExecutor() as threads:
            for port, blocked in threads.map(lambda port: (port, line.faults(rules, host=f"10.94.2.1:{port}")), words):
                assert blocked.keys() == {"tcp port"}
                assert f"is {words[port]}" in blocked["tcp port"]["detail"]

    def others(line):
        # two families of one name, of which one leads nowhere
        for host, net in (("c", 1), ("s", 2)):
            line.run(host, "ip", "addr", "add", f"fd94:{net}::1/64", "dev", "eth0", "nodad")
            line.run(host, "ip", "-6", "route", "add", "default", "dev", "eth0")
        hosts = tmp_path / "hosts"
        hosts.write_text("10.94.2.1 far.test\nfd94:2::1 far.test\n")
        bound = f'mount --bind {hosts} /etc/hosts && exec "$@"'
        found = line.faults(host="far.test:5294", inside=("unshare", "-m", "sh", "-c", bound, "sh"))
        # the far end tells of its new address, to which no path leads either
        assert found.keys() == {"address", "tcp port"}
        assert (found["tcp port"]["path"], "is silent" in found["tcp port"]["detail"]) == ("path2", True)
        assert "fd94:2::1" in found["address"]["detail"]
        assert "10.94.2.1 of the same name is answered" in found["address"]["detail"]
        proxy = start(command=("ip", "netns", "exec", line.names["r"], sys.executable, "-c", PROXY))
        assert proxy.stdout.readline() == "listens\n"
        assert line.faults(host="10.94.1.254:6001").keys() >= {"proxy", "nat here", "nat there", "mptcp"}

    side_by_side(translated, closed, others)
