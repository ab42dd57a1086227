"""`pathcast line`: lines with names, from the file to the paths that are called by them; what they carried; routes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from conftest import asked, calm
from test_cli_run import SEND, SINK

FAR = "10.77.101.1"


@pytest.fixture
def own(monkeypatch, tmp_path):
    """A configuration and books of the test's own."""
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "pathcast.toml"


def loopback_bytes():
    counters = Path("/sys/class/net/lo/statistics")
    return sum(int((counters / name).read_text()) for name in ("rx_bytes", "tx_bytes"))


def test_a_line_is_added_changed_listed_and_forgotten(pathcast, own):
    assert "no line has a name yet" in pathcast("line", "list").stdout
    added = pathcast("line", "add", "cable", "--dev", "lo", "--cap", "1TB/month", "--reset", 5, "--json")
    assert added.returncode == 0, added.stderr
    assert added.json["schema"] == "pathcast.line/1"
    assert added.json["cap"] == {"bytes": 10**12, "period": "month", "reset": 5}
    own.write_text("# mine\n" + own.read_text())
    assert pathcast("line", "set", "cable", "--price", "0.5/GB", "--use", "22:00-06:00", "--prefer", 2).returncode == 0
    before = loopback_bytes()
    assert pathcast("line", "set", "cable", "--used", "300GB", "--without", "reset").returncode == 0
    assert 'line cable: cap = "5"' in pathcast("line", "set", "cable", "--cap", "5").stderr
    [of] = pathcast("line", "list", "--json").json["lines"]
    assert (of["price"], of["use"], of["prefer"]) == ("0.5/GB", ["22:00-06:00"], 2)
    assert of["cap"]["reset"] == 1
    text = pathcast("line", "list").stdout
    # other tests' loopback traffic since then is booked, too
    most = 300e9 + loopback_bytes() - before
    assert 300e9 <= of["carried"]["bytes"] <= most
    assert "cable" in text
    [shown] = re.findall(r"(\d+(?:\.\d+)?) GB of 1 TB", text)
    assert 300 <= float(shown) <= most / 1e9 + 0.1
    assert own.read_text().startswith("# mine\n")
    assert pathcast("line", "remove", "cable").returncode == 0
    assert pathcast("line", "list", "--json").json["lines"] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["add", "cable"], "neither --from nor --dev"),
        (["add", "Cable", "--dev", "lo"], "`Cable` cannot name a line"),
        (["add", "path1", "--dev", "lo"], "`path1` cannot name a line"),
        (["add", "cable", "--from", "nowhere"], 'from = "nowhere"'),
        (["add", "cable", "--dev", "lo", "--cap", "1TB"], 'cap = "1TB"'),
        (["add", "cable", "--dev", "lo", "--reset", "3"], "reset = 3 without a cap"),
        (["add", "cable", "--dev", "lo", "--price", "much"], 'price = "much"'),
        (["add", "cable", "--dev", "lo", "--use", "25:00-26:00"], "25:00-26:00"),
        (["add", "cable", "--dev", "lo", "--used", "many"], "many"),
        (["set", "dsl", "--prefer", "1"], "there is no line `dsl`"),
        (["set", "dsl", "--without", "speed"], "--without speed"),
        (["remove", "dsl"], "there is no line `dsl`; there are: none yet"),
    ],
)
def test_what_is_wrong_is_2_and_names_the_value(pathcast, own, arguments, told):
    done = pathcast("line", *arguments, "--json")
    assert done.returncode == 2
    assert told in done.error["message"]
    assert not own.exists() or "--used" in arguments


def test_a_broken_file_is_named_with_its_line(pathcast, own):
    own.write_text('[line.cable]\ndev = "lo"\nprice = "much"\n')
    for command in (["line", "list"], ["line", "add", "dsl", "--dev", "eth9"]):
        done = pathcast(*command, "--json")
        assert done.returncode == 2
        assert done.error["message"].startswith(f'{own}:3: price = "much"')


@pytest.mark.privileged
def test_paths_are_called_by_their_lines(office, own, tmp_path, monkeypatch):
    history = tmp_path / "history.db"
    monkeypatch.setenv("PATHCAST_HISTORY", str(history))
    for name, rest in (("dsl", ("--from", "10.77.1.2")), ("cable", ("--dev", "p2", "--cap", "1GB/day"))):
        added = office("line", "add", name, *rest, "--json")
        assert added.returncode == 0, added.stderr
        assert added.json["routes_missing"] == []  # the network has them
    found = office("paths", FAR, "--json").json["paths"]
    assert [(p["name"], p["line"]) for p in found] == [("dsl", "dsl"), ("cable", "cable")]

    measured = asked(office, "measure", FAR, "--light", "--json", "--paths", "cable,path1")
    assert measured.returncode == 0, measured.stderr
    assert [p["name"] for p in measured.json["paths"]] == ["cable", "dsl"]
    assert office("measure", FAR, "--light", "--json", "--paths", "10.77.2.2").json["paths"][0]["name"] == "cable"
    wrong = office("measure", FAR, "--paths", "glass", "--json")
    assert (wrong.returncode, "allowed: dsl, cable" in wrong.error["message"]) == (2, True)

    carried = {of["name"]: of["carried"] for of in office("line", "list", "--json").json["lines"]}
    probes = sum(of["bytes"] for of in measured.json["paths"][0]["directions"].values())
    assert carried["cable"]["bytes"] > carried["cable"]["own_bytes"] >= probes > 0

    office.unplug(2)
    # a job with a bound on each of its lines goes on where one is down
    plan = asked(office, "plan", FAR, "--size", "1MB", "--light", "--max", "cable=1MB", "--json")
    assert plan.returncode == 0, plan.stderr
    assert [part["line"] for part in plan.json["parts"]] == ["dsl"]
    wrong = office("plan", FAR, "--size", "1MB", "--light", "--max", "cabel=1MB")
    assert (wrong.returncode, "did you mean `cable`?" in wrong.stderr) == (2, True)
    assert "not usable: cable (10.77.2.2)" in office("paths", FAR).stdout
    assert "cable is down: p2 is down" in office("measure", FAR, "--light").stderr
    run = office("run", "--mptcp", "--paths", "glass", "--", "true")
    assert run.returncode == 2
    assert (
        "--paths `glass` is not an address of this host, such as 192.0.2.1, and no line; lines are dsl, cable"
        in run.stderr
    )
    run = office("run", "--mptcp", "--paths", "dsl,cable", "--", "ip", "-j", "mptcp", "endpoint")
    assert run.returncode == 0, run.stderr
    assert {one["address"] for one in json.loads(run.stdout)} == {"10.77.1.2", "10.77.2.2"}


@pytest.mark.privileged
def test_no_forecast_measures_over_a_line_whose_cap_has_no_room_for_that(office, own):
    assert office("line", "add", "dsl", "--from", "10.77.1.2").returncode == 0
    assert office("line", "add", "cable", "--from", "10.77.2.2", "--cap", "100KB/month").returncode == 0

    def carried():
        counters = office("-s", "-j", "link", "show", "dev", "p2", command="ip").stdout
        return sum(json.loads(counters)[0]["stats64"][way]["bytes"] for way in ("rx", "tx"))

    before, wish = carried(), ("plan", FAR, "--size", "1MB", "--light", "--json")
    plan = asked(office, *wish).json
    assert [part["line"] for part in plan["parts"]] == ["dsl"]
    assert any("cable is not measured: 1" in note or "cable is not measured: 9" in note for note in plan["notes"])
    assert carried() - before < 20_000  # sessions try all addresses
    assert office("line", "set", "dsl", "--cap", "1B/month").returncode == 0
    refused = office(*wish)
    assert (refused.returncode, refused.error["code"]) == (4, "no-line")
    assert asked(office, *wish, "--paths", "cable").returncode == 0  # whoever names it has it


@pytest.mark.privileged
@pytest.mark.parametrize("forecast", [False, True], ids=["guessed", "forecast"])
def test_a_cap_that_is_raised_while_a_run_goes_on_is_used(office, own, name, start, tmp_path, forecast):
    assert office("line", "add", "dsl", "--from", "10.77.1.2").returncode == 0
    assert office("line", "add", "cable", "--from", "10.77.2.2").returncode == 0
    sink = start("net", "exec", name, "server", "--", sys.executable, "-c", SINK, 262, "receive")
    report = tmp_path / "report.json"
    send = (sys.executable, "-c", SEND, FAR, int(sink.stdout.readline()), 40_000_000)
    plan = ("--paths", "auto", "--size", "40MB", *(("--to", FAR) if forecast else ()), "--report", report)

    def raised():
        """What a run said."""
        assert office("line", "set", "cable", "--cap", "1KB/month").returncode == 0
        running = office.begin("run", *plan, "--", *send)
        told = ""
        for line in running.stderr:
            told += line
            if "over dsl with" in line:
                break
        assert office("line", "set", "cable", "--cap", "1GB/month").returncode == 0
        told += running.stderr.read()
        assert running.wait(120) == 0, told
        return told

    # a busy machine may have no forecast to give
    told = calm(raised, lambda told: forecast and "no forecast (" in told)
    assert "cable has new terms: " in told
    document = json.loads(report.read_text())
    assert (document["auto"]["forecast"] is not None) == forecast
    assert min(path["bytes_sent"] for path in document["paths"] if path["flows"]) > 1_000_000, told


@pytest.mark.privileged
def test_routing_that_is_missing_is_told_set_and_undone(office, own):
    """As on a host with two lines and one default route."""
    run = lambda *words: office(*words, command="ip")  # noqa: E731
    assert run("rule", "del", "from", "10.77.2.2").returncode == 0
    assert run("route", "add", "default", "via", "10.77.1.1", "dev", "p1").returncode == 0
    told = office("line", "add", "cable", "--from", "10.77.2.2", "--gateway", "10.77.2.1", "--json").json
    commands = told["routes_missing"]
    assert commands[0] == "ip -4 route replace 10.77.2.0/24 dev p2 src 10.77.2.2 table 7700"
    assert commands[1] == "ip -4 route replace default via 10.77.2.1 dev p2 src 10.77.2.2 table 7700"
    assert commands[2] == "ip -4 rule add from 10.77.2.2 lookup 7700 priority 7700"
    # a link with one other end needs no gateway, an Ethernet does
    assert run("link", "add", "v1", "type", "veth", "peer", "name", "v2").returncode == 0
    run("addr", "add", "10.66.0.2/24", "dev", "v1")
    run("link", "set", "v1", "up")
    told = office("line", "add", "lte", "--dev", "v1", "--routes", "--json")
    assert (told.returncode, told.error["code"], "lte" in own.read_text()) == (2, "gateway", False)
    assert "via GATEWAY dev v1" in office("line", "add", "lte", "--dev", "v1").stdout
    done = office("line", "set", "cable", "--routes")
    assert done.returncode == 0, done.stderr
    assert "set until the next boot, or `pathcast undo`:\n  ip -4 route replace 10.77.2.0/24 dev p2 src" in done.stdout
    assert "set until" not in office("line", "set", "cable", "--routes").stdout
    of = next(of for of in office("line", "list", "--json").json["lines"] if of["name"] == "cable")
    assert of["routes_missing"] == []
    assert "dev p2" in run("route", "get", "192.0.2.1", "from", "10.77.2.2").stdout
    removed = office("undo").stdout
    assert "removed rule of line cable: ip -4 rule add from 10.77.2.2 lookup 7700 priority 7700" in removed
    assert "dev p1" in run("route", "get", "192.0.2.1", "from", "10.77.2.2").stdout
    assert "7700" not in run("rule").stdout + run("route", "show", "table", "all").stdout
    # both families, each by its own router
    assert run("addr", "add", "fd66::2/64", "dev", "v1", "nodad").returncode == 0
    done = office("line", "set", "lte", "--routes", "--gateway", "fd66::1", "--gateway", "10.66.0.1")
    assert done.returncode == 0, done.stderr
    assert "default via 10.66.0.1 dev v1" in run("-4", "route", "show", "table", "7700").stdout
    assert "default via fd66::1 dev v1" in run("-6", "route", "show", "table", "7701").stdout
