"""Switches in emulated networks: one address pair, several paths, and the controller that steers flows over them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import COMMAND, ROOT, eventually

from pathcast.errors import Exit, PathcastError
from pathcast.lab.experiment import Experiment
from pathcast.runtime.switched import config
from pathcast.steer import ovs
from pathcast.steer.client import Client
from pathcast.steer.rules import Flow
from pathcast.worlds.emu import Emu, Topology
from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim

SETS = [
    f"link.wan{n}.{key}={value}"
    for n, delay in ((1, "5ms"), (2, "15ms"))
    for key, value in (("rate", "50Mbit"), ("delay", delay), ("queue", "400 packets"), ("jitter", ""))
]
MB = 1_000_000
BOTH = ["path1", "path2"]
# a link lets a packet leave up to half of its chunk early (docs/emulator.md) [s]
EARLY = 24e-6

needs_switches = pytest.mark.skipif(bool(ovs.lacking()), reason=f"missing: openvswitch ({', '.join(ovs.lacking())})")


def topology(*more: str) -> Topology:
    return Topology.load("openflow", [*SETS, *more])


@pytest.fixture(scope="module")
def world():
    with Emu(topology()) as world:
        yield world


def carried(world):
    """Packets over each link in its first direction."""
    links = [link for group in world.ledger()["groups"] for link in group["links"]]
    return {link["name"]: link["counters"]["carried"]["packets"] for link in links}


@pytest.mark.privileged
@needs_switches
def test_each_subflow_takes_its_path(world):
    for paths, own, other in ((["path1"], "wan1", "wan2"), (["path2"], "wan2", "wan1")):
        before = carried(world)
        probe = world.tcp_probe(paths[0], MB)
        assert [one.path for one in probe.subflows] == paths
        after = carried(world)
        assert after[f"{own}/ab"] - before[f"{own}/ab"] > 600
        # what is the controller's own: a packet a second
        assert after[f"{other}/ab"] - before[f"{other}/ab"] < 100
    for paths in (BOTH, BOTH[::-1]):
        before = carried(world)
        sent = world.transfer(paths, 6 * MB, plain=True)
        sent.check(subflows=2)
        assert [one.path for one in sent.subflows] == paths
        assert {(one.local, one.remote) for one in sent.subflows} == {("10.77.1.2", "10.77.1.1")}
        # the delays are those of the paths
        by_path = {one.path: one.min_rtt_s for one in sent.subflows}
        assert by_path["path1"] >= 0.010 - 2 * EARLY
        assert by_path["path2"] >= 0.030 - 2 * EARLY
        after = carried(world)
        assert all(after[f"wan{n}/ab"] - before[f"wan{n}/ab"] > 500 for n in (1, 2))
    assert not [d for d in world.ledger()["devices"] if d["dropped"]]
    # every flow is ended: nothing is left at the controller
    assert world._net.ask("describe")["steer"]["flows"] == []


@pytest.mark.privileged
@needs_switches
def test_probes_measure_the_path_that_they_are_asked_for_and_switches_count_them(world):
    before = carried(world)
    found = world.measure(BOTH, Request(directions=("out",), effort="light", seed=1))
    after = carried(world)
    for path, link in zip(BOTH, ("wan1", "wan2"), strict=True):
        left, right = found.path(path).switches
        assert (left.switch, right.switch) == ("left", "right")
        # nothing was lost between them; the link itself counted the same, and the controller's packet a second
        assert (left.out_packets, left.in_packets) == (right.out_packets, right.in_packets)
        assert (left.out_bytes, left.in_bytes) == (right.out_bytes, right.in_bytes)
        assert left.out_packets >= found.path(path).directions["out"].loss.packets
        over = after[f"{link}/ab"] - before[f"{link}/ab"]
        assert left.out_packets <= over < left.out_packets + 60
        assert left.out_bytes > 14 * left.out_packets
    assert found.notes == ()
    least = [found.path(path).directions["out"].delay_s.minimum.value for path in BOTH]
    assert 0.005 - EARLY <= least[0] < least[1]
    assert least[1] >= 0.015 - EARLY


@pytest.mark.privileged
@needs_switches
def test_a_path_that_is_down_or_not_there_is_said(world, sink, tmp_path):
    def port(state):
        switch = world._net.record.about["hosts"]["switch"]
        subprocess.run(["ip", "-n", switch, "link", "set", "sw1p3", state], check=True)
        paths = lambda: {path["name"]: path["stands"] for path in world._net.ask("describe")["steer"]["paths"]}  # noqa: E731
        assert eventually(lambda: paths()["path2"] == (state == "up"))

    port("down")
    with pytest.raises(PathcastError, match="path `path2` is down; the switches would take `path1`"):
        world.tcp_probe("path2", MB)
    sent = world.transfer(BOTH, MB, plain=True)
    assert [one.note and "is down" in one.note for one in sent.subflows] == [None, True]
    told, done = run(world, tmp_path / "report")
    assert (done.stdout, [one["subflows"] for one in told]) == ("20000000\n", [1, 0])
    assert "a subflow over path2 failed: path `path2` is down" in done.stderr
    port("up")
    world.tcp_probe("path2", MB)
    with pytest.raises(PathcastError, match="no path `path9`"):
        world.transfer(["path9"], MB)
    # any sender may tell the network's controller of its flows
    controller = Client(world._net.record.socket)
    flow = Flow("10.77.1.2", "10.77.1.1", 40_000, 5275)
    assert controller.begin({flow: "path2"}) == {flow: "path2"}
    controller.end([flow])
    with pytest.raises(PathcastError, match="there is no path `path9`") as caught:
        controller.begin({flow: "path9"})
    assert caught.value.exit == Exit.USAGE


SINK = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.bind(("10.77.1.1", 7001)); s.listen(); print("bound", flush=True)
while True:
    c, _ = s.accept()
    n = 0
    while data := c.recv(1 << 16):
        n += len(data)
    c.sendall(b"%d" % n); c.close()
"""
# any program: it knows of no path; sends for so long that a second subflow joins also where all is busy
SEND = """
import socket
s = socket.create_connection(("10.77.1.1", 7001))
s.sendall(bytes(20_000_000)); s.shutdown(socket.SHUT_WR)
print(s.recv(99).decode())
"""


@pytest.fixture(scope="module")
def sink(world):
    command = ["ip", "netns", "exec", world._net.record.about["hosts"]["server"], sys.executable, "-c", SINK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sink:
        assert sink.stdout.readline() == "bound\n"
        yield
        sink.kill()


def started(world, report, *asked, program):
    """A program on the client, under `run`."""
    inside = [COMMAND, "net", "exec", world.name, "client", "--"]
    command = [COMMAND, "run", "--mptcp", *asked, "--no-history", "--report", report, "--user", "root"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*inside, *command, "--", sys.executable, "-c", program], text=True, **pipes)


def run(world, report, *asked):
    """One that sends 20 MB to the sink: what became of its subflows, its status, and what it wrote."""
    process = started(world, report, *asked, program=SEND)
    out, err = process.communicate()
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    return json.loads(report.read_text())["steered"], done


@pytest.mark.privileged
@needs_switches
@pytest.mark.parametrize(
    ("asked", "share"), [([], (500, 500)), (["--paths", "path2,path1"], (500, 500)), (["--paths", "path2"], (0, 500))]
)
def test_any_program_gets_a_subflow_over_every_path(world, sink, tmp_path, asked, share):
    before = carried(world)
    told, done = run(world, tmp_path / "report", *asked)
    assert (done.returncode, done.stdout) == (0, "20000000\n"), done.stderr
    names = asked[1].split(",") if asked else BOTH
    assert told == [{"path": name, "subflows": 1, "failed": None} for name in names]
    after = carried(world)
    for link, least in zip(("wan1/ab", "wan2/ab"), share, strict=True):
        assert after[link] - before[link] > least or least == 0
        # what is the controller's own: a packet a second
        assert least or after[link] - before[link] < 60
    assert world._net.ask("describe")["steer"]["flows"] == []
    inside = [COMMAND, "net", "exec", world.name, "client", "--"]
    setting = subprocess.run([*inside, "sysctl", "-n", "net.mptcp.pm_type"], capture_output=True, text=True)
    assert setting.stdout == "0\n"


# one end of plain TCP, and a port that nobody listens at; it lives on then
MANY = """
import socket, sys
refused = 0
for n in range(40):
    try:
        with socket.create_connection(("10.77.1.1", 7002 + n % 2)) as s:
            s.sendall(bytes(1000)); s.shutdown(socket.SHUT_WR); s.recv(9)
    except ConnectionRefusedError:
        refused += 1
print(refused, flush=True)
sys.stdin.read()
"""


@pytest.mark.privileged
@needs_switches
def test_also_what_stays_tcp_and_what_is_refused_goes_over_its_path_from_the_first_packet_on(world, tmp_path):
    far = world._net.record.about["hosts"]["server"]
    listen = SINK.replace("SOCK_STREAM, 262", "SOCK_STREAM").replace("7001", "7002")
    inside = ["ip", "netns", "exec", far, sys.executable, "-c", listen]
    with subprocess.Popen(inside, stdout=subprocess.PIPE, text=True) as sink:
        assert sink.stdout.readline() == "bound\n"
        before = carried(world)
        with started(world, tmp_path / "report", "--paths", "path2", program=MANY) as process:
            assert process.stdout.readline() == "20\n"
            after = carried(world)
            # those that are over, or never began, are taken out while it lives
            assert eventually(lambda: world._net.ask("describe")["steer"]["flows"] == [])
            err = process.communicate()[1]
        sink.kill()
    assert process.returncode == 0, err
    assert "failed" not in err
    told = json.loads((tmp_path / "report").read_text())["steered"]
    assert told == [{"path": "path2", "subflows": 0, "failed": None}], "MPTCP has no subflow there"
    assert after["wan2/ab"] - before["wan2/ab"] > 20 * 5
    assert after["wan1/ab"] - before["wan1/ab"] < 60


@pytest.mark.privileged
@needs_switches
def test_measure_from_a_steered_host_goes_over_the_controllers_paths(world, tmp_path):
    (tmp_path / "key").write_text(f"emu {world._session[4]}\n")
    (tmp_path / "key").chmod(0o600)
    asked = ["measure", "10.77.1.1", "--key-file", tmp_path / "key", "--light", "--direction", "out", "--no-history"]
    client = [COMMAND, "net", "exec", world.name, "client", "--", COMMAND]
    inside, listing = [*client, *asked], [*client, "paths", *asked[1:4], "--json"]
    listed = json.loads(subprocess.run(listing, capture_output=True, text=True).stdout)["paths"]
    assert [(path["name"], path["down"]) for path in listed] == [(name, None) for name in BOTH]
    done = subprocess.run([*inside, "--json"], capture_output=True, text=True)
    assert done.returncode in (Exit.OK, Exit.UNTRUSTWORTHY), done.stderr
    found = {path["name"]: path for path in json.loads(done.stdout)["paths"]}
    assert list(found) == BOTH
    for path in found.values():
        assert [one["switch"] for one in path["switches"]] == ["left", "right"]
        assert path["switches"][1]["out_packets"] >= path["directions"]["out"]["loss"]["packets"] > 0
    least = [path["directions"]["out"]["delay_s"]["minimum"]["value"] for path in found.values()]
    assert least[0] + 0.008 < least[1]
    done = subprocess.run([*inside, "--paths", "path2"], capture_output=True, text=True)
    assert "packets of path2 in the switches: left " in done.stdout
    done = subprocess.run([*inside, "--paths", "path3"], capture_output=True, text=True)
    assert (done.returncode, "allowed: path1, path2" in done.stderr) == (Exit.USAGE, True)


@pytest.mark.privileged
@needs_switches
def test_paths_of_a_steered_network_are_named_rightly(world):
    inside = [COMMAND, "net", "exec", world.name, "client", "--", COMMAND, "run"]
    for asked, told in (
        (["--mptcp", "--paths", "path9"], "the paths of network `[^`]*` are path1, path2"),
        (["--mptcp", "--paths", "path1,path1"], "name each once"),
        (["--paths", "path1"], "no line"),
    ):
        done = subprocess.run([*inside, *asked, "--no-history", "--", "true"], capture_output=True, text=True)
        assert done.returncode == Exit.USAGE
        assert re.search(told, done.stderr), done.stderr


@pytest.mark.privileged
@needs_switches
def test_a_network_of_switches_comes_up_and_goes_without_a_trace(pathcast, site, name):
    file = ROOT / "topologies" / "openflow.toml"
    up = pathcast("net", "up", file, "--name", name, "--json")
    assert (up.returncode, up.json["switch"]) == (0, f"pc-{name}-switch")
    table = ["net", "exec", name, "switch", "--", "ip", "-json", "link"]
    assert {"sw1p1", "sw1p3", "sw2p3"} < {link["ifname"] for link in json.loads(pathcast(*table).stdout)}
    listed = pathcast("net", "list")
    assert "wan2/ba" in listed.stdout
    assert "left" in listed.stdout
    assert pathcast("net", "down", name).returncode == 0
    assert site.empty()
    assert not Path("/run/netns", f"pc-{name}-switch").exists()

    assert pathcast("net", "up", file, "--name", name).returncode == 0
    [owner] = [json.loads(file.read_text())["pid"] for file in site.path.glob("net-*.json")]
    os.kill(owner, signal.SIGKILL)
    assert eventually(lambda: not site.processes())
    undone = pathcast("undo")
    assert undone.returncode == 0
    assert f"pc-{name}-switch" in undone.stdout
    assert site.empty()
    assert not list(site.path.glob("*.ovs"))


@pytest.mark.privileged
@needs_switches
def test_switches_of_another_controller_cannot_be_told_a_path():
    # nobody listens there
    foreign = [f"switch.{name}.controller=tcp:127.0.0.1:6653" for name in ("left", "right")]
    for sets, told in (
        (foreign, "another controller than pathcast's"),
        (foreign[1:], "switch `left` has no controller"),
    ):
        with pytest.raises(PathcastError, match=told) as caught, Emu(topology(*sets)):
            pass
        assert caught.value.exit == Exit.USAGE


@pytest.mark.privileged
@needs_switches
def test_the_first_papers_experiment_runs_over_switches():
    """A sample of its quick subset, with a transfer of 4 MB."""
    experiment = Experiment(ROOT / "experiments" / "mptcp-prediction")
    setup = {**experiment.plan.setup, "steer": "openflow", "probes": ["64KB"], "singles": [], "data": "4MB"}
    point = {"grid": "kernel", "network": "today", "rtt1_ms": 120, "rtt2_ms": 180, "seed": 9}
    module = experiment.module("samples")
    scenario = {**module.scenario(point, setup, "emu"), "control": "cubic"}
    with Emu(Topology.parse(scenario["text"], scenario["sets"])) as net:
        for path in BOTH:
            assert module._sent(net, "64KB", (path,), scenario)[f"tcp{path[-1]}_64KB_connect_s"] >= 0.118
        found = module._sent(net, "4MB", tuple(BOTH), scenario)
    assert 0.3 < found["share_4MB"] < 1


def test_steer_names_what_is_allowed():
    experiment = Experiment(ROOT / "experiments" / "mptcp-prediction")
    scenario = experiment.module("samples").scenario
    point = {"grid": "kernel", "network": "today", "rtt1_ms": 120, "rtt2_ms": 180, "seed": 1}
    for grid in ("kernel", "wan"):
        with pytest.raises(PathcastError, match="allowed are none, openflow"):
            scenario({**point, "grid": grid}, {**experiment.plan.setup, "steer": "ryu"}, "emu")
    made = scenario({**point, "grid": "wan"}, {**experiment.plan.setup, "steer": "openflow"}, "sim")
    drawn = Topology.parse(made["text"], made["sets"]).scenario
    assert [one["name"] for one in drawn["switches"]] == ["left", "right"]
    assert [len(path["hops"]) for path in drawn["paths"]] == [3, 3]


def test_the_same_file_is_simulated_by_its_paths():
    plain = Topology.load("two-gigabit")
    for paths in (["path1"], BOTH):
        found = []
        for one in (plain, Topology.load("openflow")):
            with Sim(one) as world:
                found.append(world.transfer(paths, 2 * MB).elapsed_s)
        # the wires to the hosts take no time
        assert found[0] == pytest.approx(found[1], rel=0.02)


def test_what_the_controller_is_told():
    told = config(topology().scenario, {"client": "10.77.1.2", "server": "10.77.1.1"}, "unix:/x")
    assert told["switch"] == [{"name": "left", "id": 1}, {"name": "right", "id": 2}]
    assert told["host"] == [{"address": "10.77.1.2", "at": "left:1"}, {"address": "10.77.1.1", "at": "right:1"}]
    assert told["link"] == [{"ends": ["left:2", "right:2"]}, {"ends": ["left:3", "right:3"]}]
    assert told["path"] == [{"name": "path1", "via": ["left:2"]}, {"name": "path2", "via": ["left:3"]}]
