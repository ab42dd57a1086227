"""An office's night in half a minute: lines, a job, a line that dies, a cap that is reached, the graph, the page. With
forecasts, a watch and its alert it takes minutes: story_office.py, of `make evidence`."""

from __future__ import annotations

import json
import sys
from urllib.request import ProxyHandler, build_opener

import pytest
from conftest import eventually
from story_office import CAP, FAR, home  # noqa: F401
from test_cli_run import SEND, SINK

pytestmark = pytest.mark.privileged

SIZE = 45_000_000


def test_a_night_in_short(home, office, name, start, tmp_path):  # noqa: F811
    assert office("line", "add", "dsl", "--from", "10.77.1.2").returncode == 0
    cable = ("--from", "10.77.2.2", "--cap", f"{CAP}B/month", "--price", "0.5/GB")
    assert office("line", "add", "cable", *cable).returncode == 0
    sink = start("net", "exec", name, "server", "--", sys.executable, "-c", SINK, 262, "receive")
    port = int(sink.stdout.readline())
    program = (sys.executable, "-c", SEND, FAR, port)
    added = office("job", "add", "nightly", "--at", "22:00", "--by", "10m", "--size", f"{SIZE}B", "--", *program, SIZE)
    assert added.returncode == 0, added.stderr

    # a line dies, and nobody says so
    job = office.begin("job", "run", "nightly")
    endpoints = lambda: office("mptcp", "endpoint", "show", command="ip").stdout  # noqa: E731
    counters = lambda: office("-s", "-j", "link", "show", "dev", "p1", command="ip").stdout  # noqa: E731
    assert eventually(lambda: json.loads(counters())[0]["stats64"]["tx"]["bytes"] > 2_000_000)
    office.silent(1)
    assert office("job", "status", "nightly", "--json").json["running"]
    assert eventually(lambda: "10.77.1.2" not in endpoints())
    assert job.wait(120) == 0
    office.silent(1, loss=0)
    [_, *_, last] = office("job", "log", "nightly", "--json").json["events"]
    assert (last["event"], last["status"], last["attempts"], last["in_time"]) == ("ended", 0, 1, True)
    assert last["bytes_sent"] >= SIZE
    assert last["lines"]["cable"] > last["lines"]["dsl"] > 500_000

    # a cap is reached
    assert office("line", "set", "cable", "--used", f"{CAP}B").returncode == 0
    report = tmp_path / "report.json"
    done = office("run", "--paths", "auto", "--report", report, "--", *program, 2_000_000)
    assert done.returncode == 0, done.stderr
    document = json.loads(report.read_text())
    assert {p["local"] for p in document["paths"] if p["bytes_sent"]} == {"10.77.1.2"}

    # the history, the graph, the page
    rows = office("history", "list", "transfers", "--json").json["rows"]
    assert [row["job"] for row in rows] == [None, "nightly"]
    assert "nightly" in office("history", "list", "transfers").stdout
    graph = tmp_path / "night.svg"
    assert office("history", "plot", "--what", "throughput", "--out", graph).returncode == 0
    assert "<path" in graph.read_text()
    url = start("web", "--listen", "0").stdout.readline().strip()
    now = build_opener(ProxyHandler({})).open(url, timeout=60).read().decode()
    assert all(word in now for word in ("nightly", "220 MB of 220 MB"))
