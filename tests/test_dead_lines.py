"""A client with two lines, one of which is dead before or during a command: it answers for the other one."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import asked, eventually
from test_cli_run import SEND, SINK

pytestmark = pytest.mark.privileged

FAR = "10.77.101.1"


@pytest.mark.parametrize("dead", [1, 2])
def test_a_line_that_swallows_packets_is_named_and_the_other_answers(office, dead, tmp_path):
    living = 3 - dead
    office.silent(dead)
    learn = ("--size", "200kB", "--probe", "20kB", "--rounds", 1, "--model", tmp_path / "model")
    commands = {
        "paths": (),
        "measure": ("--light",),
        "predict": ("--size", "2MB", "--light"),
        "learn": learn,
    }
    with ThreadPoolExecutor() as pool:  # they mostly wait
        done = {verb: pool.submit(asked, office, verb, FAR, "--json", *rest) for verb, rest in commands.items()}
    done = {verb: of.result() for verb, of in done.items()}
    assert {verb: of.returncode for verb, of in done.items()} == dict.fromkeys(commands, 0), done

    found = done["paths"].json["paths"]
    assert [p["name"] for p in found] == ["path1", "path2"]  # a dead line keeps its name
    assert "no answer within" in found[dead - 1]["down"]
    assert found[living - 1]["down"] is None

    by_name = {path["name"]: path for path in done["measure"].json["paths"]}
    assert by_name[f"path{dead}"]["down"]["probes"] > 0
    assert by_name[f"path{living}"]["directions"]["out"]["available_bps"]["value"] > 0
    assert f"path{dead} is down" in done["measure"].stderr

    assert done["predict"].json["chosen"] == [f"path{living}"]
    assert any(f"path{dead} is down" in note for note in done["predict"].json["notes"])

    assert [p["name"] for p in done["learn"].json["model"]["paths"]] == [f"path{living}"]
    assert any(f"path{dead} is down" in warning for warning in done["learn"].json["warnings"])

    office.silent(dead, loss=0)
    assert [p["down"] for p in office("paths", FAR, "--json").json["paths"]] == [None, None]


def test_a_far_end_that_dies_while_it_is_measured_is_no_dead_line_but_an_error(office):
    asking = office.begin("predict", FAR, "--size", "200MB", "--fresh", "--json")
    assert "cost" in asking.stderr.readline()
    time.sleep(1.5)  # of some 4 s
    office.far_end.kill()
    told = json.loads(asking.communicate(timeout=60)[0])
    assert (asking.returncode, told["error"]["code"]) == (1, "no-answer")
    assert "the far end has gone: it answers over no path at" in told["error"]["message"]
    assert "path1: Connection refused" in told["error"]["message"]


def test_repeated_rounds_outlive_an_unplugged_line_and_take_it_back(office, tmp_path):
    history = tmp_path / "history.db"
    running = office.begin("measure", FAR, "--light", "--repeat", "1s", "--jsonl", "--history", history)

    def until(condition):
        for line in running.stdout:
            if condition(document := json.loads(line)):
                return document
        raise AssertionError(running.stderr.read())

    def measured(*names):
        alive = lambda d: [p["name"] for p in d.get("paths", []) if p["down"] is None]  # noqa: E731
        return lambda document: alive(document) == list(names)

    until(measured("path1", "path2"))
    office.unplug(1)
    gone = [{"path": "path1", "reason": "p1 is down"}]
    until(lambda document: measured("path2")(document) and document["away"] == gone)
    office.plug(1)
    until(measured("path1", "path2"))
    running.terminate()
    assert "history" not in running.communicate(timeout=30)[1]
    assert history.stat().st_size > 0


def test_a_command_says_which_line_is_unplugged(office):
    office.unplug(1)
    assert f"not usable: 10.77.1.2 to {FAR}: p1 is down" in office("paths", FAR).stdout
    measured = asked(office, "measure", FAR, "--light")
    assert measured.returncode == 0
    assert "the line of 10.77.1.2 is down: p1 is down" in measured.stderr


def test_a_run_whose_last_line_dies_says_what_it_waits_for_and_goes_on(office, name, start, tmp_path, monkeypatch):
    lines, report = tmp_path / "lines.toml", tmp_path / "report.json"
    lines.write_text("".join(f'[line.{of}]\nfrom = "10.77.{n}.2"\n' for n, of in ((1, "dsl"), (2, "cable"))))
    monkeypatch.setenv("PATHCAST_CONFIG", str(lines))
    assert office("mptcp", "endpoint", "flush", command="ip").returncode == 0  # the network's own, a user's to the run
    sink = start("net", "exec", name, "server", "--", sys.executable, "-c", SINK, 262, "receive")
    send = (sys.executable, "-c", SEND, FAR, int(sink.stdout.readline()), 30_000_000)
    plan = ("--paths", "auto", "--size", "30MB", "--max", "cable=1kB", "--by", "10m", "--report", report)
    running = office.begin("run", *plan, "--", *send)
    counters = lambda: office("-s", "-j", "link", "show", "dev", "p1", command="ip").stdout  # noqa: E731
    assert eventually(lambda: json.loads(counters())[0]["stats64"]["tx"]["bytes"] > 2_000_000)
    office.silent(1)
    told = []
    for line in running.stderr:
        told.append(line)
        if "nothing gets through" in line:
            break
    assert "dsl does not answer, cable may not be used (the most that it may carry of this job" in told[-1]
    assert "it waits until dsl answers, or is started again with more of a cap" in told[-1]
    assert "; it ends in 9 min " in told[-1]
    office.silent(1, loss=0)
    rest = running.stderr.read()
    assert running.wait(120) == 0, rest
    assert "dsl answers again: it goes on, after" in rest
    document = json.loads(report.read_text())
    [wait] = document["auto"]["waits"]
    assert (wait["lines"], list(wait["barred"])) == (["dsl"], ["cable"])
    assert wait["until_s"] > wait["since_s"] + 5
    assert sum(path["timeouts"] for path in document["paths"]) >= 2
    assert {path["local"] for path in document["paths"] if path["bytes_sent"]} == {"10.77.1.2"}


def test_a_run_whose_only_line_is_dead_as_it_begins_says_so_soon_and_goes_on(
    office, name, start, tmp_path, monkeypatch
):
    lines, report = tmp_path / "lines.toml", tmp_path / "report.json"
    lines.write_text("".join(f'[line.{of}]\nfrom = "10.77.{n}.2"\n' for n, of in ((1, "dsl"), (2, "cable"))))
    monkeypatch.setenv("PATHCAST_CONFIG", str(lines))
    sink = start("net", "exec", name, "server", "--", sys.executable, "-c", SINK, 262, "receive")
    send = (sys.executable, "-c", SEND, FAR, int(sink.stdout.readline()), 6_000_000)
    office.silent(1)
    plan = ("--paths", "auto", "--max", "cable=1kB", "--report", report)
    running = office.begin("run", *plan, "--", *send)
    assert any("over dsl with" in line for line in running.stderr)
    begun = time.monotonic()  # the program is begun
    assert any("nothing gets through" in (told := line) for line in running.stderr)
    assert time.monotonic() - begun < 15
    # it may be the far end as well as the line
    assert f"to {FAR} for " in told
    assert "no answer over dsl, cable may not be used" in told
    office.silent(1, loss=0)
    rest = running.stderr.read()
    assert running.wait(120) == 0, rest
    assert "dsl answers again: it goes on, after" in rest
    document = json.loads(report.read_text())
    assert (document["connections"], document["bytes_sent"]) == (1, 6_000_000)
    assert sum(path["timeouts"] for path in document["paths"]) >= 2


def test_what_only_asked_whether_the_far_end_is_there_is_no_connection_of_the_programs(office, name, start, tmp_path):
    report = tmp_path / "report.json"
    sink = start("net", "exec", name, "server", "--", sys.executable, "-c", SINK, 262, "receive")
    send = (sys.executable, "-c", SEND, FAR, int(sink.stdout.readline()), 200_000)
    office.silent(1)
    paths = ("--mptcp", "--paths", "10.77.1.2,10.77.2.2")
    done = office("run", *paths, "--report", report, "--", *send)
    assert done.returncode == 0
    document = json.loads(report.read_text())
    assert (document["connections"], document["mptcp_connections"], document["bytes_sent"]) == (1, 1, 200_000)
    assert not [note for note in document["notes"] if "fell back" in note]


def test_a_program_whom_nobody_answers_is_said_so(office, tmp_path):
    report = tmp_path / "report.json"
    connect = "import socket; s = socket.socket(); s.settimeout(4); s.connect_ex(('10.77.101.1', 7))"
    office.silent(1)
    done = office("run", "--control", "reno", "--report", report, "--", sys.executable, "-c", connect)
    assert done.returncode == 0
    document = json.loads(report.read_text())
    assert "it made no TCP connection: no answer from 10.77.101.1" in document["notes"]
    assert (document["connections"], document["open"]) == (0, 0)
    [path] = document["paths"]
    assert (path["local"], path["flows"], path["timeouts"] >= 1) == ("10.77.1.2", 0, True)
