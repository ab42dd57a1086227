"""`pathcast net`: networks that come up, change, run commands and go; and everything that is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from conftest import COMMAND, ROOT, eventually

from pathcast import _native
from pathcast.errors import PathcastError
from pathcast.processes import start_time

privileged = pytest.mark.privileged


def exists(name):
    return [Path("/run/netns", f"pc-{name}-{host}").exists() for host in ("client", "server")]


@privileged
def test_up_list_down(pathcast, site, name, small):
    up = pathcast("net", "up", small, "--name", name, "--set", "link.wan1.rate=5Mbit", "--json")
    assert up.returncode == 0
    assert list(up.json) == ["schema", "name", "scenario", "client", "server", "paths"]
    assert up.json["schema"] == "pathcast.net/1"
    assert (up.json["name"], up.json["scenario"]) == (name, "small")
    assert [p["name"] for p in up.json["paths"]] == ["path1", "path2"]
    assert exists(name) == [True, True]
    assert len(site.processes()) == 1

    [network] = pathcast("net", "list", "--json").json["networks"]
    assert network["name"] == name
    assert network["pid"] == site.processes()[0]
    links = {link["name"]: link for group in network["groups"] for link in group["links"]}
    assert set(links) == {"wan1/ab", "wan1/ba", "wan2/ab", "wan2/ba"}
    assert "5" in str(links["wan1/ab"]["params"]["rate"])
    table = pathcast("net", "list").stdout
    assert f"network {name}" in table
    assert "wan2/ba" in table

    down = pathcast("net", "down", name, "--json")
    assert down.json == {"schema": "pathcast.net-down/1", "name": name, "ended": []}
    assert exists(name) == [False, False]
    assert site.empty()
    assert pathcast("net", "list").stdout == "no network is up\n"
    assert pathcast("net", "list", "--json").json["networks"] == []


@privileged
def test_up_and_down_for_people(pathcast, site, name):
    up = pathcast("net", "up", ROOT / "topologies" / "three-path.toml", "--name", name)
    assert up.returncode == 0
    assert "path3" in up.stdout
    assert f"pathcast net exec {name} client" in up.stdout
    assert pathcast("net", "down", name).stdout == f"{name} is down\n"
    assert site.empty()


LEFT = """
import signal, subprocess, sys
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
command = {"deaf": [sys.executable, "-c", deaf], "sleep": ["sleep", "600"]}[sys.argv[1]]
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
process = subprocess.Popen(command, start_new_session=True, **quiet)
if sys.argv[1] == "deaf":
    process.stdout.readline()
print(process.pid)
"""


def leave(pathcast, network, host, what="sleep"):
    """A process that a command in the network has left running there."""
    return int(pathcast("net", "exec", network, host, "--", sys.executable, "-c", LEFT, what).stdout)


@pytest.fixture
def bystander():
    """A process in a namespace of its own, which is nobody's business."""
    with subprocess.Popen(["unshare", "--net", "sleep", "600"]) as process:
        yield process
        process.kill()


@privileged
@pytest.mark.parametrize("way", ["down", "undo"])
def test_what_still_runs_in_a_network_is_ended_with_it_and_said(pathcast, net, bystander, way):
    left = [leave(pathcast, net, "server"), leave(pathcast, net, "client"), leave(pathcast, net, "client", "deaf")]
    done = pathcast("net", "down", net) if way == "down" else pathcast("undo", "--all")
    python = Path(sys.executable).name[:15]  # as the kernel has it
    assert f"ended 3 processes that ran in {net}: {python}, sleep (2 times)" in done.stdout.splitlines()
    assert done.returncode == 0
    assert [start_time(pid) for pid in left] == [None] * 3
    assert exists(net) == [False, False]
    assert bystander.poll() is None


@privileged
def test_nor_does_it_outlive_a_network_that_was_killed(pathcast, net, site, bystander):
    left = leave(pathcast, net, "server")
    os.kill(json.loads((site.path / f"net-{net}.json").read_text())["pid"], signal.SIGKILL)
    assert eventually(lambda: f"ended 1 process that ran in {net}: sleep" in pathcast("undo").stdout.splitlines())
    assert start_time(left) is None
    assert bystander.poll() is None


@privileged
def test_who_asks_for_it_from_inside_is_spared(pathcast, net, site):
    left = leave(pathcast, net, "client")
    script = f"{COMMAND} net down {net} --json; echo still here"
    done = pathcast("net", "exec", net, "client", "--", "sh", "-c", script)
    document, _, last = done.stdout.rpartition("}\n")
    assert json.loads(document + "}")["ended"] == [f"ended 1 process that ran in {net}: sleep"]
    assert last == "still here\n"
    assert start_time(left) is None
    assert site.empty()


@privileged
def test_a_network_ends_while_it_is_asked(site, name, small):
    """The last question of a command that ended early is still open when its network goes."""
    network = _native.Network(small.read_text(), [], name)
    over = Event()

    def ask():
        try:
            while not over.is_set():
                network.restart(0)
                network.ledger(False)
        except PathcastError as error:
            return error.code

    with ThreadPoolExecutor(3) as askers:
        asked = [askers.submit(ask) for _ in range(3)]
        try:
            for _ in range(100):
                network.describe()
            network.close()
            assert {one.result(timeout=60) for one in asked} == {"closed"}
        finally:
            over.set()
    assert exists(name) == [False, False]


@privileged
def test_two_networks_side_by_side_with_the_same_addresses(pathcast, net, small, reach):
    other = f"{net}-b"
    assert pathcast("net", "up", small, "--name", other).returncode == 0
    assert [n["name"] for n in pathcast("net", "list", "--json").json["networks"]] == sorted([net, other])
    for n in (net, other):
        assert reach(n, "10.77.1.1")
    assert pathcast("net", "down", other).returncode == 0
    assert exists(net) == [True, True]
    assert reach(net, "10.77.1.1")


@privileged
def test_the_same_name_twice_is_refused_and_harms_nothing(pathcast, net, small, reach):
    again = pathcast("net", "up", small, "--name", net, "--json")
    assert again.returncode == 1
    assert again.error["code"] == "exists"
    assert "--name" in again.error["hint"]
    assert reach(net, "10.77.2.1")


@privileged
def test_nor_does_the_same_name_from_another_run_directory(pathcast, net, small, tmp_path):
    again = pathcast("net", "up", small, "--name", net, "--json", env={"PATHCAST_RUN_DIR": str(tmp_path)})
    assert again.returncode == 1
    assert f"pc-{net}-client" in again.error["message"]
    assert exists(net) == [True, True]
    assert pathcast("undo", env={"PATHCAST_RUN_DIR": str(tmp_path)}).returncode == 0
    assert exists(net) == [True, True]


@privileged
@pytest.mark.parametrize("status", [0, 1, 3, 77, 255])
def test_exec_passes_status_output_and_input_through(pathcast, net, status):
    done = pathcast("net", "exec", net, "client", "--", "sh", "-c", f"echo out; echo err >&2; exit {status}")
    assert (done.returncode, done.stdout, done.stderr) == (status, "out\n", "err\n")


@privileged
def test_exec_is_inside_with_options_and_signals_left_to_the_command(pathcast, net):
    client = pathcast("net", "exec", net, "client", "--", "ip", "-json", "addr")
    assert {"lo", "p1", "p2"} == {device["ifname"] for device in json.loads(client.stdout)}
    assert pathcast("net", "exec", net, "server", "--", "echo", "--json", "--help").stdout == "--json --help\n"
    ended = subprocess.run([COMMAND, "net", "exec", net, "client", "--", "sh", "-c", "kill -PIPE $$; echo alive"])
    assert ended.returncode == -13  # not left ignored, as Python has it
    ended = subprocess.run([COMMAND, "net", "exec", net, "client", "--", "sh", "-c", "kill -TERM $$"])
    assert ended.returncode == -15
    fed = subprocess.run([COMMAND, "net", "exec", net, "client", "--", "cat"], input=b"in", capture_output=True)
    assert fed.stdout == b"in"


@privileged
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch", "client", "--", "true"], "there is no network `nosuch`; running: NAME"),
        (["NAME", "router", "--", "true"], "host `router` is not in NAME; allowed: client, server"),
        (["NAME", "client"], "COMMAND"),
    ],
)
def test_exec_refuses_on_standard_error_only(pathcast, net, arguments, words):
    done = pathcast("net", "exec", *(net if a == "NAME" else a for a in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert words.replace("NAME", net).lower() in done.stderr.lower()


@privileged
@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("no-such-program", 127, "`no-such-program` is no command here"),
        ("/etc/passwd", 126, "`/etc/passwd` cannot be executed"),
        ("/etc", 126, "`/etc` cannot be executed"),
    ],
)
def test_exec_of_what_cannot_be_started_ends_as_in_a_shell(pathcast, net, command, status, words):
    done = pathcast("net", "exec", net, "client", "--", command)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert pathcast("run", "--", command).returncode == status


@privileged
def test_exec_without_the_right_to_enter_is_5(pathcast, net):
    lacks = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")
    done = pathcast("net", "exec", net, "client", "--", "true", prefix=lacks)
    assert (done.returncode, done.stdout) == (5, "")
    assert "no CAP_SYS_ADMIN" in done.stderr


@privileged
def test_what_is_said_of_a_rate_of_zero_fits_the_command(pathcast, net):
    done = pathcast("net", "set", net, "wan1", "rate=0Mbit")
    assert done.returncode == 2
    assert "allowed: at least 1bit; `rate=` for an infinitely fast link" in done.stderr


@privileged
def test_who_may_not_see_roots_networks_is_told_so(pathcast, nobody):
    """An empty answer would look like none."""
    place = Path(tempfile.mkdtemp(prefix="pc-nobody-"))
    place.chmod(0o1777)
    try:
        theirs = {"PATHCAST_RUN_DIR": "", "XDG_RUNTIME_DIR": "", "TMPDIR": str(place), "HOME": "/"}
        pathcast("net", "list", env={"PATHCAST_RUN_DIR": ""})  # whose directory is there then
        for command in (["net", "list"], ["net", "down", "x"], ["control", "show"], ["control", "unload", "reno"]):
            done = pathcast(*command, "--json", prefix=nobody, env=theirs)
            assert done.returncode == 5
            assert "root's" in done.error["message"]
            assert "sudo pathcast" in done.error["hint"]
        done = pathcast("undo", prefix=nobody, env=theirs)
        assert (done.returncode, done.stdout) == (0, "nothing was left behind\n")
        assert "sudo pathcast undo" in done.stderr
    finally:
        shutil.rmtree(place)


@privileged
def test_set_changes_a_link_while_it_runs(pathcast, net, reach):
    done = pathcast("net", "set", net, "wan1", "delay=20ms", "loss=0.5", "--direction", "ab", "--json")
    assert done.json["schema"] == "pathcast.net-set/1"
    assert set(done.json["params"]) == {"ab"}
    [network] = pathcast("net", "list", "--json").json["networks"]
    links = {link["name"]: link["params"] for group in network["groups"] for link in group["links"]}
    assert links["wan1/ab"]["loss"] == 0.5
    assert links["wan1/ba"]["loss"] == 0
    assert links["wan1/ab"]["delay"] != links["wan1/ba"]["delay"]
    assert pathcast("net", "set", net, "wan1", "loss=1").stdout == f"wan1 changed in {net}: loss=1\n"
    assert not reach(net, "10.77.1.1", 2)
    assert reach(net, "10.77.2.1")


@privileged
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch", "wan1", "rate=1Mbit"], ["there is no network `nosuch`", "NAME"]),
        (["NAME", "wan9", "rate=1Mbit"], ["link `wan9`", "allowed: wan1, wan2"]),
        (["NAME", "wan1", "rte=1Mbit"], ["`rte`", "allowed: rate, delay, queue, policer, loss"]),
        (["NAME", "wan1", "rate"], ["`rate` is not KEY=VALUE"]),
        (["NAME", "wan1", "rate=5Mbit", "delay=1ms", "rate=6Mbit"], ["`rate=6Mbit`: rate is given twice"]),
        (["NAME", "wan1", "rate=5"], [": `5` is not a rate: the unit is missing", "5Mbit"]),
        (["NAME", "wan1", "loss=2"], ["loss", "2", "allowed"]),
        (["NAME", "wan1", "delay=-1ms"], ["delay"]),
        (["NAME", "wan1", "queue=lots"], ["queue"]),
        (["NAME", "wan1", "name=x"], ["`name`"]),
        (["NAME", "wan1", "rate=1Mbit", "--direction", "up"], ["`up`", "ab and ba"]),
    ],
)
def test_set_refuses_and_names_what_is_allowed(pathcast, net, arguments, words):
    done = pathcast("net", "set", *(net if a == "NAME" else a for a in arguments), "--json")
    assert done.returncode == 2
    for word in words:
        assert word.replace("NAME", net) in done.error["message"]


def test_down_of_what_is_not_up_is_2(pathcast, site):
    done = pathcast("net", "down", "nosuch", "--json")
    assert done.returncode == 2
    assert done.error["message"] == "there is no network `nosuch`; running: none"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('rate = "40Mbit"', 'rate = "40"'), ["line 7", "40", "unit is missing"]),
        (('delay = "5ms"', 'dely = "5ms"'), ["line 8", "dely", "allowed", "delay"]),
        (('links = ["wan1"]', 'links = ["wan7"]'), ["line 17", "wan7", "allowed"]),
        (('name = "small"', "name = small"), ["line 2", "not TOML"]),
    ],
)
def test_a_malformed_scenario_is_2_with_line_value_and_allowed(pathcast, site, small, tmp_path, change, words):
    bad = tmp_path / "bad.toml"
    text = small.read_text()
    assert change[0] in text
    bad.write_text(text.replace(*change, 1))
    done = pathcast("net", "up", bad, "--json")
    assert done.returncode == 2
    assert done.error["code"] == "scenario"
    for word in words:
        assert word in done.error["message"]
    plain = pathcast("net", "up", bad)
    assert (plain.returncode, plain.stdout) == (2, "")
    assert site.empty()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/no/such.toml"], "cannot read the scenario `/no/such.toml`"),
        (["SMALL", "--name", "Big"], "`Big` is not a name"),
        (["SMALL", "--name", "../x"], "`../x` is not a name"),
        (["SMALL", "--name", "x" * 25], "at most 24"),
        (["SMALL", "--set", "rate"], "is not KEY=VALUE"),
        (["SMALL", "--set", "link.wan9.rate=1Mbit"], "wan9"),
    ],
)
def test_up_refuses_what_cannot_be_meant(pathcast, site, small, arguments, words):
    done = pathcast("net", "up", *(small if a == "SMALL" else a for a in arguments), "--json")
    assert done.returncode == 2
    assert words in done.error["message"]
    assert site.empty()


@privileged
def test_traffic_that_only_a_simulator_makes_is_refused_and_leaves_nothing(pathcast, site, small, tmp_path, name):
    file = tmp_path / "web.toml"
    file.write_text(small.read_text() + '\n[[traffic]]\nkind = "tcp"\npath = "path1"\n')
    done = pathcast("net", "up", file, "--name", name, "--json")
    assert done.returncode == 2
    assert "constant, poisson, pareto-onoff" in done.error["message"]
    assert site.empty()
    assert exists(name) == [False, False]


@privileged
@pytest.mark.parametrize("command", ["net", "demo"])
def test_without_rights_it_is_5_and_names_what_is_missing_and_its_mend(
    pathcast, open_site, nobody, small, name, tmp_path, command
):
    out = open_site.path / "out"
    file = open_site.path / "small.toml"
    file.write_text(small.read_text())
    file.chmod(0o644)
    words = {"net": ["net", "up", file, "--name", name], "demo": ["demo", "--out", out]}[command]
    done = pathcast(*words, "--json", prefix=nobody)
    assert done.returncode == 5
    assert done.error["code"] == "missing"
    assert "network namespaces" in done.error["message"]
    assert "run as root" in done.error["hint"]
    assert open_site.empty()


@privileged
@pytest.mark.parametrize("command", ["net", "demo"])
def test_without_tun_it_is_5_and_leaves_nothing(pathcast, site, small, name, tmp_path, command):
    words = {"net": ["net", "up", small, "--name", name], "demo": ["demo", "--out", tmp_path / "out"]}
    before = set(Path("/run/netns").glob(f"pc-{name}-*"))
    hide = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net; exec "$@"', "sh")
    done = pathcast(*words[command], "--json", prefix=hide)
    assert done.returncode == 5
    assert done.error["message"] == "/dev/net/tun is missing"
    assert "modprobe tun" in done.error["hint"]
    assert site.empty()
    assert set(Path("/run/netns").glob(f"pc-{name}-*")) == before


@privileged
def test_without_the_program_ip_it_is_5(pathcast, site, small, name, tmp_path):
    done = pathcast("net", "up", small, "--name", name, "--json", env={"PATH": str(tmp_path)})
    assert done.returncode == 5
    assert "iproute2" in done.error["hint"]
    assert site.empty()


def test_a_run_directory_without_the_right_to_write_is_5(pathcast, nobody, small, name, open_site):
    site = open_site
    file = site.path / "small.toml"
    file.write_text(small.read_text())
    file.chmod(0o644)
    site.path.chmod(0o555)
    done = pathcast("net", "up", file, "--name", name, "--json", prefix=nobody)
    site.path.chmod(0o755)
    assert done.returncode == 5
    assert "PATHCAST_RUN_DIR" in done.error["hint"]


def test_the_shipped_topologies_are_listed(pathcast):
    done = pathcast("net", "topologies", "--json")
    assert (done.returncode, done.json["schema"]) == (0, "pathcast.net-topologies/1")
    known = {one["name"]: one for one in done.json["topologies"]}
    assert set(known) == {file.stem for file in (ROOT / "topologies").glob("*.toml")}
    assert {"dsl", "cable", "gpon", "lte", "5g", "starlink", "wifi", "policed", "office", "van", "village"} <= set(
        known
    )
    assert all(one["about"].endswith(".") for one in known.values())  # a sentence, however long its line
    [path] = known["dsl"]["paths"]
    assert path == {"name": "path1", "up_bps": 40e6, "down_bps": 100e6, "rtt_s": 0.03}
    assert known["policed"]["paths"][0]["up_bps"] == 20e6
    # the mean of what the file of its rates says
    rows = (ROOT / "topologies" / "starlink-down.csv").read_text().splitlines()[1:]
    mean = sum(float(row.split(",")[1]) for row in rows) / len(rows) * 1e6
    assert known["van"]["paths"][0]["down_bps"] == pytest.approx(mean, rel=1e-9)
    table = pathcast("net", "topologies").stdout
    assert "Starlink and 5G" in table
    assert "100 Mbit/s" in table


def test_an_unknown_name_lists_the_shipped_ones(pathcast):
    refused = pathcast("net", "up", "vann", "--json")
    assert refused.returncode == 2
    assert "vann" in refused.error["message"]
    assert "van," in refused.error["hint"]


@privileged
def test_a_shipped_topology_comes_up_by_its_name_and_its_digest_is_shown(pathcast, site, name):
    import hashlib

    assert pathcast("net", "up", "van", "--name", name).returncode == 0
    [network] = pathcast("net", "list", "--json").json["networks"]
    links = {link["name"]: link for group in network["groups"] for link in group["links"]}
    digest = hashlib.sha256((ROOT / "topologies" / "starlink-up.csv").read_bytes()).hexdigest()
    assert links["starlink/ab"]["params"]["trace"]["sha256"] == digest
    assert links["starlink/ab"]["params"]["loss"]["kind"] == "gilbert-elliott"
    assert "starlink-up.csv" in pathcast("net", "list").stdout
    done = pathcast("net", "set", name, "starlink", "rate=5Mbit", "policer={ rate = '1Mbit', burst = '9KB' }")
    assert done.returncode == 0
    [network] = pathcast("net", "list", "--json").json["networks"]
    links = {link["name"]: link for group in network["groups"] for link in group["links"]}
    assert "trace" not in links["starlink/ab"]["params"]
    assert links["starlink/ba"]["params"]["policer"]["burst"] == "9KB"
    assert pathcast("net", "down", name).returncode == 0
    assert site.empty()
