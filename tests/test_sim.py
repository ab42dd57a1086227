"""`pathcast sim` as users run it: results, every controller, everything that is refused, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import COMMAND, PATIENCE_S, ROOT

from pathcast.cli.schema import SCHEMAS
from pathcast.cli.testing import wrong

SHARED = ROOT / "topologies" / "shared-bottleneck.toml"
COUPLED = ("lia", "olia", "balia", "gsam", "subflow_switch", "lisa", "css", "hystartpp", "adaptive_start")
SINGLE = ("reno", "cubic", "bbr3", "ledbatpp", "imtcp", "imtcp_bg")
# these give way to any queue, also to the delay of an acknowledgement of a single packet
TIMID = ("nice", "lp", "gleaner")
CONTROLS = (*COUPLED, *SINGLE, *TIMID)


# what only some reports have: pages, connections beside the flows, a managed queue, a rate from a file
ALL = """
[[link]]
name = "wire"
a = "client"
b = "server"
rate = "20Mbit"
delay = "5ms"
queue = { kind = "codel", limit = "100 packets" }
[[path]]
name = "p1"
links = ["wire"]
[[traffic]]
kind = "web"
path = "p1"
[[traffic]]
kind = "tcp"
path = "p1"
"""


ENDLESS = """
[[link]]
name = "wire"
a = "client"
b = "server"
rate = "1Gbit"
delay = "20ms"
[[path]]
name = "p1"
links = ["wire"]
"""
GREEDY = '[[flow]]\nname = "bulk"\npaths = ["p1"]\n'


@pytest.mark.parametrize("what", ["all", "starlink"])
def test_rare_members_are_as_the_schema_says(pathcast, tmp_path, what):
    (tmp_path / "all.toml").write_text(ALL + GREEDY)
    file = tmp_path / "all.toml" if what == "all" else ROOT / "topologies" / f"{what}.toml"
    document = pathcast("sim", file, "--set", "end=3s", "--json").json
    assert wrong(document, SCHEMAS["sim"]()) == []
    if what == "all":
        assert {"managed"} <= set(document["links"][0])
        assert any("pages" in one for one in document["traffic"])
    else:
        assert any("trace" in link for link in document["links"])


def test_what_the_result_has(pathcast):
    done = pathcast("sim", SHARED, "--set", "subflows=4", "--set", "control=gsam", "--set", "bytes=750KB", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = done.json
    assert wrong(document, SCHEMAS["sim"]()) == []
    assert next(iter(document)) == "schema"
    assert {"flows", "links", "simulated_s", "packets_forwarded", "wall_s"} <= set(document)
    [flow] = document["flows"]
    named = {"name", "control", "bytes", "completion_s", "goodput_bps", "retransmits", "timeouts", "subflows"}
    assert named <= set(flow)
    assert (flow["name"], flow["control"], flow["bytes"], len(flow["subflows"])) == ("bulk", "gsam", 750_000, 4)
    assert flow["goodput_bps"] == pytest.approx(8 * 750_000 / flow["completion_s"])
    assert all({"path", "bytes", "drops"} <= set(sub) for sub in flow["subflows"])
    assert [link["name"] for link in document["links"][::2]] == ["c-r1", "bottleneck", "r2-s"]
    for link in document["links"]:
        assert {"name", "packets", "drops", "utilisation", "queue_max_packets"} <= set(link)
        assert 0 <= link["utilisation"] <= 1
    assert document["packets_forwarded"] == sum(link["packets"] for link in document["links"])


def test_the_register_has_no_other_controllers():
    from pathcast import _native

    assert sorted(CONTROLS) == sorted(row["name"] for row in json.loads(_native.controllers()))


@pytest.mark.parametrize("subflows", [1, 4])
@pytest.mark.parametrize("control", CONTROLS)
def test_every_controller_runs(control, subflows, capsys):
    from pathcast.cli import runner

    settings = (f"control={control}", f"subflows={subflows}", "bytes=750KB")
    assert runner.run(["sim", str(SHARED), *(w for s in settings for w in ("--set", s)), "--json"]) == 0
    [flow] = json.loads(capsys.readouterr().out)["flows"]
    assert (flow["control"], len(flow["subflows"])) == (control, subflows)
    # no controller is faster than the line, and none stands still
    assert 0 < flow["goodput_bps"] < 5e6
    if control not in TIMID:
        assert flow["bytes"] == 750_000
        assert flow["goodput_bps"] > 1e6


BAD = [
    (["control=nosuch"], ("--set control=nosuch", "no controller `nosuch`", "reno, cubic, lia")),
    (["control.gsam.nosuch=1"], ("--set control.gsam.nosuch=1", "no parameter `nosuch`", "theta")),
    (["control.nosuch.beta=1"], ("--set control.nosuch.beta=1", "no controller `nosuch`")),
    (["control.cubic.beta=99999999"], ("--set control.cubic.beta=99999999", "out of range", "allowed:")),
    (["control.cubic.beta=-1"], ("--set control.cubic.beta=-1", "negative", "whole number")),
    (["link.bottleneck.b=nowhere"], ("nowhere", "r2")),
    (["link.bottleneck.rate=0"], ("rate=0", "at least 1bit")),
    (["link.bottleneck.delay=-1ms"], ("delay=-1ms", "negative")),
    (["link.bottleneck.loss=1.5"], ("loss=1.5", "0 to 1")),
    (["link.bottleneck.loss=-0.1"], ("loss=-0.1", "0 to 1")),
    (["nosuch=1"], ("nosuch",)),
    (["tcp.nosuch=1"], ("nosuch", "initial_window")),
    (["subflows=9"], ("subflows=9", "8")),
    (["end=", "bytes="], ("end",)),
]


@pytest.mark.parametrize(("sets", "words"), BAD, ids=[" ".join(sets) for sets, _ in BAD])
def test_a_refusal_names_key_value_and_what_is_allowed(sets, words, capsys):
    from pathcast.cli import runner

    arguments = ["sim", str(SHARED), *(word for item in sets for word in ("--set", item))]
    assert runner.run(arguments) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert all(word in caught.err for word in words), caught.err
    assert runner.run([*arguments, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["exit"] == 2
    assert all(word in error["message"] for word in words)


def test_the_real_command_refuses_the_same_way(pathcast):
    done = pathcast("sim", SHARED, "--set", "control=nosuch", "--json")
    assert done.returncode == 2
    assert done.error["code"] == "scenario"


def test_a_refusal_in_a_file_names_its_line(pathcast, tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text(ENDLESS + GREEDY + 'bytes = "1MB"\ncontrol = "nosuch"\n')
    line = file.read_text().splitlines().index('control = "nosuch"') + 1
    done = pathcast("sim", file, "--json")
    assert done.returncode == 2
    assert f"{file}, line {line}: flow.bulk.control: there is no controller `nosuch`" in done.error["message"]
    file.write_text(ENDLESS + "[[flow\n")
    done = pathcast("sim", file)
    assert done.returncode == 2
    assert f"{file}, line" in done.stderr


def test_a_scenario_without_an_end_is_refused(pathcast, tmp_path):
    file = tmp_path / "endless.toml"
    for flows, words in ((GREEDY, "end"), ("", "nothing that ends")):
        file.write_text(ENDLESS + flows)
        done = pathcast("sim", file, "--json")
        assert done.returncode == 2
        assert words in done.error["message"]
    file.write_text('end = "1s"\n' + ENDLESS)
    assert pathcast("sim", file).returncode == 0


def test_files_and_directories_that_cannot_be_used(pathcast, tmp_path, nobody):
    for file in (tmp_path / "nosuch.toml", tmp_path):
        done = pathcast("sim", file, "--json")
        assert done.returncode == 2
        assert str(file) in done.error["message"]
    (tmp_path / "file").write_text("x")
    for option in ("--trace", "--plot"):
        done = pathcast("sim", SHARED, option, tmp_path / "file", "--json")
        assert done.returncode == 2
        assert option in done.error["message"]
    done = pathcast("sim", SHARED, "--seeds", "1..2", "--out", tmp_path / "file", "--json")
    assert done.returncode == 2
    closed = tmp_path / "closed"
    closed.mkdir(0o555)
    for place in (closed, closed / "below", "/proc/nosuch"):
        done = pathcast("sim", SHARED, "--trace", place, "--json", prefix=nobody)
        assert done.returncode == 2
        assert f"--trace `{place}`" in done.error["message"]


def test_the_name_is_the_files_where_it_has_none(pathcast, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('end = "100ms"\n' + ENDLESS)
    assert pathcast("sim", file, "--json").json["name"] == "mine"
    assert pathcast("sim", file, "--set", "name=other", "--json").json["name"] == "other"


@pytest.mark.parametrize("json_too", [[], ["--json"]], ids=["plain", "json"])
def test_ctrl_c_ends_a_long_run(start, tmp_path, json_too):
    file = tmp_path / "long.toml"
    file.write_text('end = "1000h"\n' + ENDLESS + GREEDY)
    process = start("sim", file, *json_too)
    _busy(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert (json.loads(out)["error"]["code"] if json_too else out) == ("interrupted" if json_too else "")


def _busy(process: subprocess.Popen) -> None:
    """Waits until the simulation is in its thread, the third: one minds signals."""
    deadline = time.monotonic() + PATIENCE_S
    while len(os.listdir(f"/proc/{process.pid}/task")) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_sweep_interrupted_and_continued(start, pathcast, tmp_path):
    file, out = tmp_path / "two.toml", tmp_path / "out"
    file.write_text(ENDLESS + GREEDY)
    # two that take no time, and two that never end
    arguments = ("sim", file, "--sweep", "end=100ms,200ms,999h,998h", "--jobs", "2", "--out", out)
    process = start(*arguments)
    lines = out / "samples.jsonl"
    deadline = time.monotonic() + PATIENCE_S
    while not lines.exists() or len(lines.read_bytes().splitlines()) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "2 of 4 samples are left" in err
    assert "Traceback" not in err
    before = lines.read_bytes()

    finished = pathcast("sim", file, "--sweep", "end=100ms,200ms,300ms", "--jobs", "2", "--out", out, "--json")
    assert finished.returncode == 0
    assert (finished.json["samples"], finished.json["computed"]) == (3, 1)
    assert lines.read_bytes().startswith(before)


def test_the_command_stays_light():
    """One run needs neither numpy nor what draws."""
    program = (
        "import sys\nfrom pathcast.cli import main\n"
        f"main(['sim', {str(SHARED)!r}, '--json'])\n"
        "heavy = ('numpy', 'pyarrow', 'matplotlib', 'joblib', 'pandas', 'sklearn', 'asyncio')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert COMMAND.exists()


def test_a_shipped_topology_by_its_name(pathcast, tmp_path):
    import hashlib

    done = pathcast("sim", "starlink", "--set", "bytes=5MB", "--plot", tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    digest = hashlib.sha256((ROOT / "topologies" / "starlink-up.csv").read_bytes()).hexdigest()
    assert done.json["links"][0]["trace"]["sha256"] == digest
    recorded = json.loads((tmp_path / "run.json").read_text())
    assert recorded["result"]["links"][0]["trace"]["sha256"] == digest
    # 17 Mbit/s on average, and the losses of the radio
    [flow] = done.json["flows"]
    assert 0.5e6 < flow["goodput_bps"] < 35e6


@pytest.mark.parametrize("name", ["dsl", "cable", "gpon", "lte", "5g", "wifi", "policed", "office", "village"])
def test_every_shipped_line_carries_a_transfer(pathcast, name):
    done = pathcast("sim", name, "--set", "bytes=2MB", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.json["flows"][0]["completion_s"] is not None


def test_a_bad_trace_is_refused_with_its_line(pathcast, tmp_path):
    (tmp_path / "t").write_text("1\n5\n3\n")
    file = tmp_path / "net.toml"
    file.write_text(ENDLESS.replace('rate = "1Gbit"', 'rate = { trace = "t" }') + GREEDY + 'bytes = "1MB"\n')
    refused = pathcast("sim", file, "--json")
    assert refused.returncode == 2
    assert "line 3: `3` comes after 5" in refused.error["message"]
    (tmp_path / "t").write_text("1\n3\n")
    assert pathcast("sim", file, "--json").returncode == 0
