"""`pathcast run`: a program's own output and exit status, its TCP under a controller, and nothing left behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
from conftest import COMMAND, PATIENCE_S, eventually

from pathcast.cli.schema import SCHEMAS
from pathcast.cli.testing import wrong
from pathcast.runtime.state import start_time
from pathcast.units import span

privileged = pytest.mark.privileged

SINK = """
import socket, sys
s = socket.socket(proto=int(sys.argv[1])); s.bind(("", 0)); s.listen(8)
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    if sys.argv[2] == "send":
        try:
            c.sendall(bytes(1 << 20))
        except OSError:
            pass
    else:
        try:
            while c.recv(1 << 16):
                pass
        except OSError: # of one that only asked whether somebody is there
            pass
    c.close()
"""

SEND = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.sendall(bytes(int(sys.argv[3])))
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""

# it leaves the kernel to send, and has no end of an interpreter's to wait for
LEAVE = """
import os, socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, 32, 16_000_000)  # SO_SNDBUFFORCE
s.connect((sys.argv[1], int(sys.argv[2])))
s.sendall(bytes(6_000_000))
os._exit(0)
"""

RECEIVE = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while s.recv(1 << 16):
    pass
"""


class Hosts:
    """The two hosts of a network that is up."""

    def __init__(self, name, start):
        self.client, self.server = (("ip", "netns", "exec", f"pc-{name}-{h}") for h in ("client", "server"))
        self._start = start

    def sink(self, protocol=6, what="receive"):
        """A far end on the server that takes all bytes, or sends a MiB; its port."""
        process = self._start("-c", SINK, protocol, what, command=(*self.server, sys.executable))
        return int(process.stdout.readline())

    def run(self, *arguments):
        """`pathcast run …` on the client."""
        command = [*self.client, str(COMMAND), "run", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)

    def endpoints(self):
        """Addresses that the client's path manager may make subflows from."""
        done = subprocess.run([*self.client, "ip", "mptcp", "endpoint"], capture_output=True, text=True)
        return sorted(line.split()[0] for line in done.stdout.splitlines())


@pytest.fixture
def hosts(net, start):
    return Hosts(net, start)


@pytest.fixture
def left_behind(site):
    """What runs of this test have left: records, and cgroups, which are made below the one of whoever starts a run."""
    [mount] = [p for p in map(Path, ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")) if (p / "cgroup.procs").exists()]
    [line] = [x for x in Path("/proc/self/cgroup").read_text().splitlines() if x.startswith("0::")]
    outer = mount / line.removeprefix("0::/")
    own = outer / f"pc-test-{secrets.token_hex(4)}"
    own.mkdir()
    (own / "cgroup.procs").write_text(str(os.getpid()))
    yield lambda: [p.name for p in own.glob("pathcast-*")] + [r for r in site.records() if not r.startswith("net-")]
    for pid in (own / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (outer / "cgroup.procs").write_text(pid)
    for below in (*own.glob("pathcast-*"), own):  # what is just ending holds it still
        assert eventually(lambda: not (below / "cgroup.procs").read_text())  # noqa: B023
        below.rmdir()


@privileged
def test_in_the_background(hosts, tmp_path, left_behind):
    port, report = hosts.sink(), tmp_path / "report.json"
    done = hosts.run("--background", "--report", report, "--", sys.executable, "-c", SEND, "10.77.1.1", port, 8_000_000)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "pathcast: sent 8 MB at " in done.stderr
    document = json.loads(report.read_text())
    assert document["schema"] == "pathcast.run/1"
    assert (document["control"], document["status"], document["connections"]) == ("gleaner", 0, 1)
    assert abs(document["bytes_sent"] - 8_000_000) < 3  # SYN and FIN count as bytes
    counted = document["controller"]
    assert counted["bytes_acked"] >= 0.99 * document["bytes_sent"]
    assert (counted["counts"]["opened"], counted["counts"]["unstored"]) == (1, 0)
    [path] = document["paths"]
    assert (path["local"], path["remote"], path["control"]) == ("10.77.1.2", "10.77.1.1", document["kernel_name"])
    assert path["available_bps"] is None or path["available_bps"] < 60e6  # on a link of 40 Mbit/s
    assert "gso_max_segs" not in done.stderr  # bunches do no harm
    assert left_behind() == []


@privileged
def test_over_multipath_tcp(hosts, tmp_path, left_behind):
    port, report = hosts.sink(protocol=262), tmp_path / "report.json"
    paths, before = "10.77.1.2,10.77.2.2", hosts.endpoints()
    command = [sys.executable, "-c", SEND, "10.77.1.1", port, 16_000_000]
    done = hosts.run("--control", "lia", "--mptcp", "--paths", paths, "--report", report, "--", *command)
    assert done.returncode == 0, done.stderr
    document = json.loads(report.read_text())
    assert wrong(document, SCHEMAS["run"]()) == []
    assert (document["mptcp_connections"], document["mptcp_sockets"]) == (1, 1)
    assert {p["local"] for p in document["paths"]} == {"10.77.1.2", "10.77.2.2"}
    assert min(p["share"] for p in document["paths"]) > 0.05
    assert abs(sum(p["share"] for p in document["paths"]) - 1) < 1e-9
    assert document["controller"]["counts"]["opened"] == 2
    assert hosts.endpoints() == before
    assert left_behind() == []


@privileged
def test_by_a_plan_a_line_is_dropped_near_its_bound(hosts, tmp_path, left_behind, monkeypatch):
    """The route's line may carry 4 MB: the connection begins there, and goes on over the other."""
    lines = tmp_path / "lines.toml"
    lines.write_text("".join(f'[line.{name}]\nfrom = "10.77.{n}.2"\n' for n, name in ((1, "dsl"), (2, "cable"))))
    monkeypatch.setenv("PATHCAST_CONFIG", str(lines))
    port, report, before = hosts.sink(protocol=262), tmp_path / "report.json", hosts.endpoints()
    size = 16_000_000
    command = [sys.executable, "-c", SEND, "10.77.1.1", port, size]
    plan = ["--paths", "auto", "--control", "auto", "--size", "16MB", "--max", "dsl=4MB", "--max-rate", "24Mbit"]
    done = hosts.run(*plan, "--report", report, "--", *command)
    assert done.returncode == 0, done.stderr
    document = json.loads(report.read_text())
    assert wrong(document, SCHEMAS["run"]()) == []
    sent = {path["local"]: path["bytes_sent"] for path in document["paths"]}
    assert sum(sent.values()) >= size
    assert 0 < sent["10.77.1.2"] * 1.09 <= 4_000_000
    assert document["sent_bps"] < 30e6
    steps = document["auto"]["steps"]
    assert set(steps[0]["lines"]) == {"dsl", "cable"}
    assert steps[-1]["lines"] == ["cable"]
    assert "pathcast: dsl is dropped: the most that it may carry of this job is reached" in done.stderr
    assert document["auto"]["done"] == 1
    assert hosts.endpoints() == before
    assert left_behind() == []


@privileged
def test_a_job_tells_what_another_start_may_yet_use(hosts, tmp_path, left_behind, monkeypatch):
    lines = tmp_path / "lines.toml"
    lines.write_text("".join(f'[line.{name}]\nfrom = "10.77.{n}.2"\n' for n, name in ((1, "dsl"), (2, "cable"))))
    monkeypatch.setenv("PATHCAST_CONFIG", str(lines))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    port, report = hosts.sink(protocol=262), tmp_path / "report.json"
    plan = ["--paths", "auto", "--max", "dsl=30MB", "--max", "cable=30MB", "--max-rate", "24Mbit", "--job", "nightly"]
    send = lambda size: ["--report", report, "--", sys.executable, "-c", SEND, "10.77.1.1", port, size]  # noqa: E731
    done = hosts.run(*plan, *send(8_000_000))
    assert done.returncode == 0, done.stderr
    document = json.loads(report.read_text())
    assert wrong(document, SCHEMAS["run"]()) == []
    sent = {path["local"]: path["bytes_sent"] for path in document["paths"]}
    left = document["auto"]["left"]["max_bytes"]
    for name, local in (("dsl", "10.77.1.2"), ("cable", "10.77.2.2")):
        assert left[name] == pytest.approx(30_000_000 - sent[local] * 1.1, abs=1_000_000)
    assert not document["auto"]["final"]
    [ran] = [json.loads(line) for line in (tmp_path / "state/jobs/nightly.jsonl").read_text().splitlines()]
    kept = json.loads((tmp_path / "state/jobs/nightly.left").read_text())
    for told in (ran["left"], kept):
        assert all(0 <= told["max_bytes"][name] <= of for name, of in left.items()), (told, left)
    # and nothing where they are reached
    plan = [word.replace("30MB", "3MB") for word in plan]
    done = hosts.run(*plan, *send(40_000_000))
    assert done.returncode != 0
    document = json.loads(report.read_text())
    assert (document["auto"]["final"], document["auto"]["left"]["max_bytes"]) == (True, {"dsl": 0, "cable": 0})
    assert "ended, since --max and --budget leave nothing to any line" in done.stderr
    assert left_behind() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--control", "auto"], "--control auto goes with --paths auto"),
        (["--by", "06:00"], "--by goes with --paths auto"),
        (["--paths", "auto", "--by", "06:00"], "--by needs --size"),
        (["--paths", "auto", "--max", "dsl=5XB"], "5XB"),
        (["--paths", "auto", "--max", "fibre=5GB"], "fibre"),
        (["--paths", "auto", "--max-rate", "fast"], "fast"),
        (["--paths", "auto", "--background", "--control", "lp"], "--control lp"),
        (["--paths", "auto", "--set", "delta=3"], "--set"),
        (["--paths", "auto", "--key-file", "k"], "--to HOST"),
    ],
)
def test_words_of_a_plan_that_make_no_sense(pathcast, arguments, words, tmp_path):
    lines = tmp_path / "lines.toml"
    lines.write_text('[line.dsl]\nfrom = "192.0.2.9"\n')
    done = pathcast("run", *arguments, "--", "true", env={"PATHCAST_CONFIG": str(lines)})
    assert done.returncode == 2
    assert words in done.stderr


def test_lines_without_an_address_are_refused_for_now(pathcast, tmp_path):
    """They may get one again, and a job waits for it."""
    lines = tmp_path / "lines.toml"
    lines.write_text('[line.dsl]\nfrom = "192.0.2.9"\n')
    done = pathcast("run", "--paths", "auto", "--", "true", env={"PATHCAST_CONFIG": str(lines)})
    assert done.returncode == 4
    assert "none of the lines has an address now" in done.stderr


@privileged
def test_the_rate_is_of_what_was_acknowledged_by_then(hosts, tmp_path):
    report = tmp_path / "report.json"
    done = hosts.run("--report", report, "--", sys.executable, "-c", LEAVE, "10.77.1.1", hosts.sink())
    assert done.returncode == 0, done.stderr
    document = json.loads(report.read_text())
    assert abs(document["bytes_sent"] - 6_000_000) < 3
    assert document["acked_s"] > document["elapsed_s"] + 0.2
    assert document["sent_bps"] == pytest.approx(document["bytes_sent"] * 8 / document["acked_s"])
    assert document["sent_bps"] < 40e6  # the line's
    assert f"(its last byte was acknowledged after {span(document['acked_s'])})" in done.stderr


@privileged
def test_one_that_receives_is_told_so(hosts):
    port = hosts.sink(what="send")
    done = hosts.run("--control", "nice", "--", sys.executable, "-c", RECEIVE, "10.77.1.1", port)
    assert done.returncode == 0
    assert "received 1.0 MB, sent 0 B: the far end decides; run it there" in done.stderr


@privileged
def test_a_pinned_controller_is_used_by_its_name_in_the_kernel(hosts, pathcast, site, tmp_path):
    try:
        name = pathcast("control", "load", "ledbatpp", "--pin", "--json").json["kernel_name"]
        report = tmp_path / "report.json"
        send = [sys.executable, "-c", SEND, "10.77.1.1", hosts.sink(), 300_000]
        done = hosts.run("--control", name, "--report", report, "--", *send)
        assert done.returncode == 0, done.stderr
        assert json.loads(report.read_text())["paths"][0]["control"] == name
        [shown] = pathcast("control", "show", name, "--json").json["controllers"]
        assert sum(e["bytes_acked"] for e in shown["ended"]) >= 299_000
    finally:
        pathcast("undo")


@privileged
@pytest.mark.parametrize(
    ("script", "status"), [("exit 7", 7), ("kill -TERM $$", 143), ("kill -SEGV $$", 139), ("exit 0", 0)]
)
def test_the_exit_status_is_the_programs(pathcast, script, status, left_behind):
    done = pathcast("run", "--control", "reno", "--", "sh", "-c", f"echo out; echo err >&2; {script}")
    assert done.returncode == status
    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\n")
    assert left_behind() == []


@privileged
def test_signals_pass_through(start, wait_for, left_behind):
    process = start(
        "run", "--background", "--", "sh", "-c", "trap 'echo caught; exit 9' USR1; echo ready; sleep 60 & wait"
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.wait(PATIENCE_S) == 9
    assert process.stdout.readline() == "caught\n"
    assert wait_for(lambda: left_behind() == [])


@privileged
def test_a_killed_run_is_undone(start, pathcast, site, wait_for, hosts, left_behind):
    subprocess.run([*hosts.client, "ip", "mptcp", "endpoint", "flush"], check=True)  # the network's own
    run = ("run", "--mptcp", "--paths", "10.77.2.2", "--control", "lia", "--", "sh", "-c", "echo $$; exec sleep 60")
    process = start(*run, command=(*hosts.client, str(COMMAND)))
    program = int(process.stdout.readline())
    [record] = [json.loads(p.read_text()) for p in site.path.glob("run-*.json")]
    os.kill(record["pid"], signal.SIGKILL)
    process.wait()
    assert hosts.endpoints() == ["10.77.2.2"]
    removed = pathcast("undo", "--json").json["removed"]
    assert f"cgroup {record['made']['cgroups'][0]}" in removed
    assert "endpoint 10.77.2.2" in removed
    assert hosts.endpoints() == []
    os.kill(program, signal.SIGKILL)  # it outlives the run that was killed
    assert wait_for(lambda: left_behind() == [])


# a script that starts two, one of which does not listen to SIGTERM
FAMILY = """
for trap in : "trap '' TERM"; do sh -c "$trap; echo \\$\\$; exec sleep 60" & done
wait
"""


@privileged
@pytest.mark.parametrize("then", ["undo", "job daemon", "run"])
def test_of_a_killed_run_by_a_plan_nothing_goes_on(
    start, pathcast, site, hosts, left_behind, tmp_path, monkeypatch, then
):
    """Nobody would keep it within caps."""
    lines = tmp_path / "lines.toml"
    lines.write_text('[line.dsl]\nfrom = "10.77.1.2"\n')
    monkeypatch.setenv("PATHCAST_CONFIG", str(lines))
    plan = ("run", "--paths", "auto", "--")
    process = start(*plan, "sh", "-c", FAMILY, command=(*hosts.client, str(COMMAND)))
    pids = [int(process.stdout.readline()) for _ in range(2)]
    [record] = [json.loads(p.read_text()) for p in site.path.glob("run-*.json")]
    os.kill(record["pid"], signal.SIGKILL)
    process.wait()
    if then == "undo":
        assert pathcast("undo").returncode == 0
    elif then == "run":
        assert hosts.run(*plan[1:], "true").returncode == 0
    else:
        daemon = start("job", "daemon", "--every", "1")
        assert eventually(lambda: not list(site.path.glob("run-*.json")))
        daemon.terminate()
        daemon.wait()
    assert not [pid for pid in pids if start_time(pid)]
    assert left_behind() == []


@privileged
def test_a_job_whose_run_goes_on_after_a_kill_is_not_begun_again(start, pathcast, hosts, tmp_path, monkeypatch):
    for variable, value in (("CONFIG", tmp_path / "lines.toml"), ("STATE_DIR", tmp_path / "state")):
        monkeypatch.setenv(f"PATHCAST_{variable}", str(value))
    (tmp_path / "lines.toml").write_text('[line.dsl]\nfrom = "10.77.1.2"\n')
    port, go, done = hosts.sink(protocol=262), tmp_path / "go", tmp_path / "done"
    send = f"{sys.executable} -c '{SEND}' 10.77.1.1 {port} 300000"
    script = f"until [ -e {go} ]; do sleep 0.05; done; {send}; echo >> {done}"
    times = [word for at in range(24) for word in ("--at", f"{at:02}:{datetime.now():%M}")]
    added = pathcast("job", "add", "nightly", *times, "--units", tmp_path / "units", "--", "sh", "-c", script)
    assert added.returncode == 0, added.stderr
    job = (*hosts.client, str(COMMAND), "job")
    process = start("run", "nightly", "--due", command=job)
    status = lambda: pathcast("job", "status", "nightly", "--json").json  # noqa: E731
    assert eventually(lambda: list(go.parent.glob("state/jobs/nightly.jsonl")) and status()["running"])
    process.kill()
    process.wait()
    assert status()["last"] is None
    go.touch()
    assert eventually(lambda: not status()["running"])
    last = status()["last"]
    assert (last["status"], last["attempts"]) == (0, 1), last
    assert last["bytes_sent"] >= 300_000
    assert last["lines"].keys() == {"dsl"}
    again = start("run", "nightly", "--due", command=job)
    assert "it has begun already" in again.communicate()[1]
    assert done.read_text() == "\n"
    told = pathcast("job", "log", "nightly").stdout
    assert "ended" in told
    assert "ran" not in told


@privileged
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--control", "vegas_x", "--", "true"], 2, "this kernel has no congestion controller `vegas_x`; it has: "),
        (["--control", "css", "--", "true"], 2, "`css` is for the simulator only; allowed: "),
        (["--control", "lp", "--background", "--", "true"], 2, "--background means --control gleaner"),
        (["--background", "--set", "run=3", "--", "true"], 2, "`gleaner.run` is 3; allowed: 100 to 1000"),
        (["--control", "reno", "--set", "x=1", "--", "true"], 2, "--set needs a --control that pathcast loads"),
        (["--mptcp", "--paths", "10.1.2", "--", "true"], 2, "--paths `10.1.2` is not an address of this host"),
        (["--mptcp", "--paths", "192.0.2.7", "--", "true"], 2, "192.0.2.7"),
        (["--paths", "127.0.0.1", "--", "true"], 2, "--paths needs --mptcp"),
        (["--background", "--user", "no-such-user", "--", "true"], 2, "no-such-user"),
        (["--background", "--report", "/no/such/file", "--", "true"], 2, "cannot write the report to `/no/such/file`"),
        (["--background", "--", "/no/such/program"], 127, "/no/such/program"),
        (["--background", "--", "/etc/passwd"], 126, "/etc/passwd"),
        (["--background"], 2, "Missing argument 'command'"),
    ],
)
def test_refused_before_anything_runs(pathcast, arguments, status, words, left_behind):
    done = pathcast("run", *arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert done.stdout == ""
    assert left_behind() == []


@pytest.mark.parametrize(
    ("report", "to"), [("/dev/stdout", ">"), ("/dev/stderr", "2>"), ("/dev/fd/3", "3>"), ("/dev/stdout", ">>")]
)
def test_a_report_into_an_open_file_comes_after_what_is_there(pathcast, tmp_path, report, to):
    file = tmp_path / "out"
    says = {">": "echo hello", ">>": "echo hello", "2>": "echo hello >&2", "3>": "true"}[to]
    before = {"3>": "echo hello >&3; "}.get(to, "")
    shell = ("bash", "-c", f'exec {to}{file}; {before}"$@"', "bash")
    done = pathcast("run", "--report", report, "--", "sh", "-c", says, prefix=shell)
    assert done.returncode == 0
    first, _, rest = file.read_text().partition("\n")
    document, _ = json.JSONDecoder().raw_decode(rest)
    assert (first, document["schema"]) == ("hello", "pathcast.run/1")


def test_a_report_takes_the_place_of_an_older_one(pathcast, tmp_path):
    report = tmp_path / "report.json"
    report.write_text("x" * 100_000)
    assert pathcast("run", "--report", report, "--", "true").returncode == 0
    assert json.loads(report.read_text())["schema"] == "pathcast.run/1"


def test_without_rights_what_is_missing_is_named(pathcast, open_site, nobody):
    if not nobody:
        pytest.skip("not root: cannot become a user without rights")
    done = pathcast("run", "--background", "--", "true", prefix=nobody)
    assert done.returncode == 5
    assert "hint: " in done.stderr
