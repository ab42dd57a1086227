"""An office's nightly job in small: two lines, one with a cap and a price; a plan; a watch; a job; a line that dies and
returns, and the alert; a cap that is reached; what the history says, its graph and the page.

Of `make evidence`, since it takes minutes; the suite has it in short: test_story.py
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from datetime import datetime
from urllib.request import ProxyHandler, build_opener

import pytest
from conftest import eventually
from test_cli_run import SEND, SINK

pytestmark = pytest.mark.privileged

FAR = "10.77.101.1"
SIZE, CAP = 150_000_000, 220_000_000


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Nothing of this host's own."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(state))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.setenv("PATHCAST_HISTORY", str(state / "history.db"))


def test_a_night(home, office, name, start, tmp_path):
    # the lines, by name
    assert office("line", "add", "dsl", "--from", "10.77.1.2").returncode == 0
    cable = ("--from", "10.77.2.2", "--cap", f"{CAP}B/month", "--price", "0.5/GB")
    assert office("line", "add", "cable", *cable).returncode == 0

    # what fits: what is left of the cap and the price are kept
    asked = ("plan", FAR, "--light", "--json")
    plan = office(*asked, "--size", "1GB", "--by", "5m").json
    parts = {part["line"]: part for part in plan["parts"]}
    assert plan["fits"] == "no"
    assert parts["cable"]["line_bytes"] <= CAP
    assert {"deadline", "cap"} & {change["what"] for change in plan["changes"]}
    plan = office(*asked, "--size", "20MB", "--by", "5m", "--cheap").json
    assert (plan["fits"], plan["money"]) == ("yes", 0)

    # the watch
    asked = ("--every", "10s", "--max", "2GB/day", "--jsonl", "--alert", "dsl.down for 10s")
    watch = office.begin("watch", FAR, *asked)
    told: list[dict] = []
    threading.Thread(target=lambda: told.extend(json.loads(line) for line in watch.stdout), daemon=True).start()

    # the job, by the daemon
    sink = start("net", "exec", name, "server", "--", sys.executable, "-c", SINK, 262, "receive")
    port = int(sink.stdout.readline())
    at, size = f"{datetime.now():%H:%M}", f"{SIZE}B"
    program = (sys.executable, "-c", SEND, FAR, port, SIZE)
    options = ("--at", at, "--by", "10m", "--size", size, "--to", FAR, "--retries", 2)
    added = office("job", "add", "nightly", *options, "--json", "--", *program)
    assert added.returncode == 0, added.stderr
    daemon = office.begin("job", "daemon", "--every", "1")
    assert daemon.stdout.readline() == "ready\n"

    def events():
        return office("job", "log", "nightly", "--json").json["events"]

    def carried():
        counters = office("-s", "-j", "link", "show", "dev", "p1", command="ip").stdout
        return json.loads(counters)[0]["stats64"]["tx"]["bytes"]

    before = carried()
    assert eventually(lambda: [one["event"] for one in events()] == ["begun"])
    assert eventually(lambda: carried() > before + 8_000_000, 120)  # it has begun to send, over this line too
    office.silent(1)  # dsl dies, and nobody says so
    assert office("job", "status", "nightly", "--json").json["running"]
    endpoints = lambda: office("mptcp", "endpoint", "show", command="ip").stdout  # noqa: E731
    assert eventually(lambda: "10.77.1.2" not in endpoints(), 120)
    assert "10.77.2.2" in endpoints()
    assert eventually(lambda: [one["state"] for one in told] == ["firing"], 60), told
    assert told[0]["text"].startswith("dsl: down since ")
    office.silent(1, loss=0)
    assert eventually(lambda: [one["state"] for one in told] == ["firing", "over"], 60), told
    assert eventually(lambda: events()[-1]["event"] == "ended", 400)

    last = events()[-1]
    assert (last["status"], last["attempts"], last["in_time"]) == (0, 1, True)
    assert last["bytes_sent"] >= SIZE
    assert last["expected_s"] > 0
    assert min(last["lines"].values()) > 1_000_000
    account = {of["name"]: of["carried"] for of in office("line", "list", "--json").json["lines"]}
    assert account["cable"]["bytes"] <= CAP
    rows = office("history", "list", "transfers", "--json").json["rows"]
    assert [row["kind"] for row in rows if row["job"] == "nightly"] == ["run"]
    watch.send_signal(signal.SIGTERM)
    assert watch.wait(30) == 128 + signal.SIGTERM

    # the cap is reached
    assert office("line", "set", "cable", "--used", f"{CAP}B").returncode == 0
    account = {of["name"]: of["carried"] for of in office("line", "list", "--json").json["lines"]}
    assert account["cable"]["sentence"].startswith("220 MB of 220 MB, full, until ")
    report = tmp_path / "report.json"
    send = (sys.executable, "-c", SEND, FAR, port, 3_000_000)
    assert office("run", "--paths", "auto", "--report", report, "--", *send).returncode == 0
    document = json.loads(report.read_text())
    assert {p["local"] for p in document["paths"] if p["bytes_sent"]} == {"10.77.1.2"}

    # the graph, the report, the page
    graph, html = tmp_path / "night.svg", tmp_path / "night.html"
    assert office("history", "plot", "--since", "1d", "--out", graph).returncode == 0
    drawn = graph.read_text()
    assert drawn.count("<path") > 20
    said = office("watch", "report", "--html", html)
    assert said.returncode == 0, said.stderr
    assert "dsl: " in said.stdout
    assert "dsl: down since " in html.read_text()
    web = start("web", "--listen", "0")
    url = web.stdout.readline().strip()
    opener = build_opener(ProxyHandler({}))
    now = opener.open(url, timeout=30).read().decode()
    assert all(word in now for word in ("nightly", "of 220 MB", f"to {FAR}"))
    weeks = opener.open(f"{url}weeks?since=1d", timeout=30).read().decode()
    assert "Available, out" in weeks
    assert "dsl: down since " in opener.open(f"{url}events", timeout=30).read().decode()
    assert office("job", "remove", "nightly").returncode == 0
