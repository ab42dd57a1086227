"""Open vSwitch in a namespace of the test's own: it forwards by its flows, without a controller, and leaves nothing."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.service import doctor
from pathcast.steer import ovs
from pathcast.steer.ovs import Switches

pytestmark = pytest.mark.privileged


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def namespaces():
    """A switch's and two hosts', each host by one veth with the switch."""
    if lacking := doctor.missing("privilege", "iproute2", "namespaces", "openvswitch"):
        pytest.skip(", ".join(f"{c.name}: {c.detail}" for c in lacking))
    stem = f"steer-{secrets.token_hex(3)}"
    names = [f"{stem}-{end}" for end in ("sw", "a", "b")]
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for n, name in enumerate(names[1:], 1):
            ip("-n", names[0], "link", "add", f"v{n}", "type", "veth", "peer", "name", "eth", "netns", name)
            ip("-n", names[0], "link", "set", f"v{n}", "up")
            ip("-n", name, "address", "add", f"10.9.0.{n}/24", "dev", "eth")
            ip("-n", name, "link", "set", "eth", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def flow(switches: Switches, *words: str, bridge: str = "s1") -> subprocess.CompletedProcess[str]:
    command = ["ovs-ofctl", "-O", "OpenFlow13", words[0], switches.management(bridge), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True)


def reaches(name: str, looks: int = 80) -> bool:
    """Whether one of so many echo requests is answered, four a second.

    ICMP, because a veth leaves TCP's checksums to a card that is not there.
    """
    ask = (
        "import socket as k;s=k.socket(k.AF_INET,k.SOCK_RAW,k.IPPROTO_ICMP);s.settimeout(0.25)\n"
        f"for n in range({looks}):\n"
        "    s.sendto(bytes((8,0,0xf7,0xff,0,0,0,0)),('10.9.0.2',0))\n"
        "    try:\n"
        # else this host's own word that it finds nobody
        "        if s.recv(99)[20]==0: print('answer');break\n"
        "    except TimeoutError: pass\n"
    )
    done = subprocess.run(
        ["ip", "netns", "exec", name, sys.executable, "-c", ask], capture_output=True, text=True, timeout=60
    )
    assert not done.stderr
    return done.stdout.strip() == "answer"


def test_forwards_by_its_flows_and_leaves_nothing(namespaces, tmp_path):
    switches = Switches(namespaces[0], tmp_path / "o")
    try:
        switches.up()
        switches.add("s1", ["v1", "v2"], number=1)
        assert len(switches.processes()) == 2
        assert not reaches(namespaces[1], 6)  # fail-secure: without a flow nothing passes
        for a, b in ((1, 2), (2, 1)):
            assert flow(switches, "add-flow", f"in_port={a},actions=output:{b}").returncode == 0
        assert reaches(namespaces[1])
    finally:
        pids = switches.processes()
        switches.close()
    assert not (tmp_path / "o").exists()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    switches.close()


def test_refusals(bed):
    switches = bed.switches
    codes = [flow(switches, "add-flow", f"tcp,tp_src={n},actions=drop", bridge="s3") for n in range(5)]
    assert [c.returncode for c in codes] == [0, 0, 0, 0, 1]
    assert "OFPFMFC_TABLE_FULL" in codes[4].stderr
    flow(switches, "del-flows", bridge="s3")
    old = ["ovs-ofctl", "-O", "OpenFlow10", "show", switches.management("s1")]
    assert "version negotiation failed" in subprocess.run(old, capture_output=True, text=True).stderr
    for name, ports, number, told in (
        ("s1", ["v2"], 9, "already"),
        ("s 9", ["v2"], 9, "1 to 15 letters"),
        ("s9", ["v2"], 0, "datapath id 0"),
    ):
        with pytest.raises(PathcastError, match=told) as caught:
            switches.add(name, ports, number=number)
        assert caught.value.exit == Exit.USAGE
    before = list(switches.bridges)
    with pytest.raises(PathcastError, match="`v9`") as caught:
        switches.add("s9", ["v9"], number=9)
    assert caught.value.exit == Exit.RUNTIME
    assert switches.bridges == before
    assert flow(switches, "show", bridge="s9").returncode


def test_its_processes_die_with_whoever_started_them(namespaces, tmp_path):
    work = (
        "import sys,time;from pathlib import Path;from pathcast.steer.ovs import Switches\n"
        "s=Switches(sys.argv[1],Path(sys.argv[2]));s.up();print(*s.processes(),flush=True);time.sleep(600)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", work, namespaces[0], str(tmp_path / "o")], stdout=subprocess.PIPE, text=True
    )
    try:
        pids = owner.stdout.readline().split()
        assert len(pids) == 2
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        deadline = time.monotonic() + 30
        while any(os.path.exists(f"/proc/{pid}") for pid in pids):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()


def test_without_open_vswitch_its_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(ovs, "_PATH", str(tmp_path))
    with pytest.raises(PathcastError, match="no ovsdb-tool, ovsdb-server") as caught:
        Switches("none", tmp_path / "o").up()
    assert caught.value.exit == Exit.MISSING
    assert "openvswitch-switch" in caught.value.hint
    assert not (tmp_path / "o").exists()
