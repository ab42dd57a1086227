"""`pathcast watch` against a far end on loopback: what it refuses, records and tells, and how it ends."""

from __future__ import annotations

import json
import signal
import time
from urllib.request import ProxyHandler, build_opener

import pytest
from conftest import PATIENCE_S, ROOT


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state of its own, without lines."""
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("PATHCAST_HISTORY", raising=False)
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    (tmp_path / "pathcast.toml").write_text("")
    return tmp_path / "state"


@pytest.fixture
def far(start):
    """The address of a far end."""
    process = start("serve", "--port", "0", "--json", "--bind", "127.0.0.1")
    text = ""
    while not text.endswith("\n}\n"):
        text += process.stdout.readline()
    return json.loads(text)["listening"][0]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--max", "0/day"], "allowed is 120.7 KB/day and more"),
        (["--max", "50MB/month"], "allowed are bytes a day"),
        (["--every", "1s"], "allowed are 10s to 24h"),
        (["--alert", "cable.speed < 5Mbit"], "allowed are available, capacity, rtt, queue, loss, down"),
        (["--alert", "*.down", "--alert-run", "nosuchprogram"], "there is no such program"),
        (["--alert-run", "cat"], "go with --alert"),
        (["--alert", "*.down", "--alert-post", "ftp://host/"], "`ftp://host/` is no address"),
        (["--alert", "*.down", "--alert-mail", "-oX"], "`-oX` is no address"),
        (["--metrics", "far:9275"], "allowed are ADDRESS:PORT and PORT"),
        (["FAR"], "named twice"),
    ],
)
def test_wrong_words_are_refused_with_what_is_allowed(options, named, state, capsys):
    from pathcast.cli import runner

    assert runner.run(["watch", "far.example.org", *(word.replace("FAR", "far.example.org") for word in options)]) == 2
    said = capsys.readouterr()
    assert named in said.err
    assert said.out == ""
    assert not state.exists()


@pytest.mark.parametrize(("most", "fresh"), [("100GB", True), ("20MB", False)])
def test_a_round_is_asked_for_within_the_allowance(start, far, state, most, fresh):
    pytest.importorskip("prometheus_client", reason="missing: prometheus_client (no Python package)")
    process = start("watch", far, "--every", "24h", "--max", f"{most}/day", "--metrics", "0")
    lines = iter(process.stderr.readline, "")
    url = next(line.split("metrics: ")[1].strip() for line in lines if "metrics: " in line)
    opener = build_opener(ProxyHandler({}))

    def rounds():
        text = opener.open(url, timeout=PATIENCE_S).read().decode()
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith("pathcast_rounds_total{"))

    until = time.monotonic() + PATIENCE_S
    while rounds() < 1:
        assert time.monotonic() < until
        time.sleep(0.1)
    time.sleep(0.5)  # the share of 100 GB is gone by then
    asked = url.replace("/metrics", f"/probe?target={far}")
    text = opener.open(asked, timeout=PATIENCE_S).read().decode()
    assert "pathcast_probe_success 1.0" in text
    assert f'pathcast_path_up{{path="path1",target="{far}"}} 1.0' in text
    age_s = float(text.split("\npathcast_probe_age_seconds ")[1].split()[0])
    assert (rounds(), age_s == 0) == ((2, True) if fresh else (1, False))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "Traceback" not in err


def test_a_broken_ledger_is_said_and_waited_for(pathcast, start, far, state):
    assert pathcast("watch", far, "--count", "1", "--no-history").returncode == 0
    nobody = pathcast("watch", "127.0.0.1:1", "--count", "1", "--no-history")
    assert nobody.returncode == pathcast("measure", "127.0.0.1:1").returncode == 1
    assert "\npathcast: no connection to 127.0.0.1:1: Connection refused\n" in nobody.stderr
    (state / "watch.json").write_text("{")
    process = start("watch", far, "--count", "1")
    said = [process.stderr.readline() for _ in range(2)]
    assert "was broken" in said[0]
    assert "50 MB count as spent" in said[0]
    assert "50 MB are gone: it begins in 24 h" in said[1]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert json.loads((state / "watch.json").read_text())["spent"] == [[pytest.approx(0, abs=60), 50_000_000]]


def test_an_alert_on_no_path_is_refused_with_those_that_there_are(pathcast, far, state):
    done = pathcast("watch", far, "--alert", "cabel.down for 5m")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no path `cabel`; allowed are path1, *" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_records_tells_and_ends_cleanly(pathcast, start, far, state, tmp_path, number):
    out = tmp_path / "told"
    run = f"sh -c 'cat >{out}.new && mv {out}.new {out}'"
    alert = "path1.rtt > 1ns"
    process = start(
        "watch",
        far,
        "--every",
        "10s",
        "--max",
        "500MB/day",
        "--jsonl",
        "--alert",
        alert,
        "--alert-run",
        run,
        "--metrics",
        "0",
    )
    told = json.loads(process.stdout.readline())
    lines = iter(process.stderr.readline, "")
    url = next(line.split("metrics: ")[1].strip() for line in lines if "metrics: " in line)
    metrics = build_opener(ProxyHandler({})).open(url, timeout=PATIENCE_S).read().decode()
    # a busy machine may have come to the second round
    (rounds,) = (line for line in metrics.splitlines() if line.startswith(f'pathcast_rounds_total{{target="{far}"}} '))
    assert float(rounds.split()[-1]) >= 1
    if number == signal.SIGTERM:
        second = pathcast("watch", far)
        assert second.returncode == 1
        assert f"is watched from already, by process {process.pid} (" in second.stderr
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    assert (told["schema"], told["state"], told["path"], told["alert"]) == (
        "pathcast.alert/1",
        "firing",
        "path1",
        alert,
    )
    # its end waits for what hears of it
    assert json.loads(out.read_text()) == told
    measured = pathcast("history", "list", "measurements", "--json").json
    assert {row["name"] for row in measured["rows"]} == {"path1"}
    events = pathcast("history", "list", "events", "--json").json
    assert [row["text"] for row in events["rows"] if row["kind"] == "alert"] == [told["text"]]
    kept = json.loads((state / "watch.json").read_text())
    assert kept["taken"] == 0
    assert sum(bytes for _, bytes in kept["spent"]) > 4_000


def settings(name):
    lines = (ROOT / "packaging" / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_its_unit_has_the_walls_of_the_far_ends():
    serve, watch = settings("pathcast-serve.service"), settings("pathcast-watch.service")
    own = {"Description", "LoadCredential", "ExecStart", "RestartSec"}
    assert {name: value for name, value in serve.items() if name not in own}.items() <= watch.items()
    assert str(128 + signal.SIGTERM) in watch["SuccessExitStatus"].split()
