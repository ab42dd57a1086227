"""`pathcast history` as its users call it: what the commands record, and every command over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import COMMAND, Done

from pathcast.cli.runner import run

LINE = """
name = "one"
[[link]]
name = "wan"
a = "client"
b = "server"
rate = "20Mbit"
delay = "5ms"
[[path]]
name = "path1"
links = ["wan"]
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    file = tmp_path_factory.mktemp("one") / "one.toml"
    file.write_text(LINE)
    return file


@pytest.fixture(scope="module")
def filled(pathcast, one, tmp_path_factory):
    """A history with a measurement and a forecast in it, made by the commands; the directory that it lies in."""
    home = tmp_path_factory.mktemp("home")
    where = ("--world", "sim", "--topology", one, "--history", home / "h.db", "--json")
    measured = pathcast("measure", *where, "--direction", "out", "--light")
    assert measured.returncode == 0, measured.stderr
    predicted = pathcast("predict", "--fresh", *where, "--size", "1MB", "--control", "lia", "--light")
    assert predicted.returncode == 0, predicted.stderr
    (home / "predicted.json").write_text(predicted.stdout)
    return home


@pytest.fixture
def quick(capfd, monkeypatch):
    """The command in this process: most of the time of another one would go into its imports."""

    def quick(*words, env=None):
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", "200")
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            capfd.readouterr()
            status = run([str(word) for word in words])
        out, told = capfd.readouterr()
        assert "Traceback" not in told
        return Done(words, status, out, told)

    return quick


@pytest.fixture
def history(quick, filled):
    """`pathcast history` over it, `list` of its simulated network."""

    def history(*words):
        world = ("--world", "sim") if words[0] == "list" else ()
        return quick("history", *words, *world, "--history", filled / "h.db")

    return history


def test_what_was_measured_and_forecast_is_listed(history):
    [path] = history("list", "--json").json["rows"]
    assert (path["name"], path["target"], path["world"], path["measurements"]) == ("path1", "one", "sim", 2)
    assert path["available_bps"]["out"] == pytest.approx(20e6, rel=0.15)
    rows = history("list", "measurements", "--json").json["rows"]
    assert len(rows) == 2
    assert {row["effort"] for row in rows} == {"light"}
    assert rows[0]["age_s"] <= rows[1]["age_s"]
    [forecast] = history("list", "forecasts", "--json").json["rows"]
    assert (forecast["size_bytes"], forecast["chosen"], forecast["chosen_control"]) == (1_000_000, ["path1"], "lia")
    assert forecast["made_from"] == [rows[0]["id"]]
    hours = history("list", "usage", "--json").json["rows"]
    assert {hour["source"] for hour in hours} == {"pathcast"}


@pytest.mark.parametrize("what", ["paths", "measurements", "forecasts", "usage"])
def test_tables_are_for_people(history, what):
    done = history("list", what)
    assert done.returncode == 0
    assert ("one" if what == "forecasts" else "sim:one:") in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(("what", "number"), [("paths", 1), ("measurements", 2), ("forecasts", 1)])
def test_toy_lines_do_not_stand_among_the_real_ones(quick, filled, what, number):
    words = ("history", "list", what, "--history", filled / "h.db")
    found = quick(*words, "--json").json
    assert (found["rows"], found["world"], found["elsewhere"]) == ([], "host", {"sim": number})
    done = quick(*words)
    assert done.stdout == ""
    assert f"note: {number} more in world sim: --world sim shows them" in done.stderr
    for world in ("sim", "all"):
        found = quick(*words, "--world", world, "--json").json
        assert (len(found["rows"]), found["elsewhere"]) == (number, {})
    assert quick(*words, "--world", "emu", "--json").json["rows"] == []


def test_toy_lines_are_removed_by_their_world(history, quick, tmp_path):
    history("export", tmp_path / "out", "--format", "csv")
    new = ("--history", tmp_path / "new.db")
    quick("history", "import", tmp_path / "out", *new)
    for words, number in (
        (("emu",), 0),
        (("sim", "--older", "1h"), 0),
        (("sim", "--dry-run"), 3),
        (("sim",), 3),
        (("sim",), 0),
    ):
        rows = quick("history", "prune", "--world", *words, *new, "--json").json["rows"]
        assert rows["measurement"] == number, words
        assert (rows["forecast"] > 0) == (rows["usage"] > 0) == (number > 0)
    for what in ("paths", "measurements", "forecasts", "usage"):
        assert quick("history", "list", what, "--world", "all", *new, "--json").json["rows"] == []


@pytest.mark.parametrize("what", ["transfers", "events"])
def test_where_nothing_is_that_is_said(history, what):
    done = history("list", what)
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing of that is in" in done.stderr


def test_filters(history, tmp_path, monkeypatch):
    assert len(history("list", "measurements", "--limit", 1, "--json").json["rows"]) == 1
    assert len(history("list", "measurements", "--target", "one", "--json").json["rows"]) == 2
    # what is known and has nothing is no mistake
    assert history("list", "transfers", "--target", "one", "--json").json["rows"] == []
    (tmp_path / "lines.toml").write_text('[line.cable]\nid = "0123456789abcdef"\nfrom = "192.0.2.1"\n')
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "lines.toml"))
    assert history("list", "measurements", "--line", "cable", "--json").json["rows"] == []
    assert history("plot", "--line", "cable", "--json").error["code"] == "nothing"
    line = history("list", "--json").json["rows"][0]["key"]["line_id"]
    assert len(history("list", "measurements", "--line", line, "--since", "1d", "--json").json["rows"]) == 2


@pytest.mark.parametrize("what", ["measurements", "transfers", "usage", "plot"])
def test_a_line_that_nobody_knows_is_refused(history, tmp_path, monkeypatch, what):
    (tmp_path / "lines.toml").write_text('[line.cable]\nid = "0123456789abcdef"\nfrom = "192.0.2.1"\n')
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "lines.toml"))
    monkeypatch.chdir(tmp_path)
    words = ("plot",) if what == "plot" else ("list", what)
    done = history(*words, "--line", "cabel")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no line `cabel`" in done.stderr
    assert "did you mean `cable`?" in done.stderr
    assert history(*words, "--line", "nosuch", "--json").error["exit"] == 2


@pytest.mark.parametrize("what", ["measurements", "transfers", "forecasts", "plot"])
def test_a_target_that_was_never_seen_is_refused(history, tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    words = ("plot",) if what == "plot" else ("list", what)
    done = history(*words, "--target", "onne")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no target `onne`" in done.stderr
    assert "did you mean `one`?" in done.stderr


def test_a_key_or_its_beginning_shows_all(history, filled):
    row = history("list", "measurements", "--json").json["rows"][0]
    whole = history("show", row["id"], "--json").json
    assert whole["kind"] == "measurement"
    predicted = json.loads((filled / "predicted.json").read_text())
    assert whole["paths"][0]["path"]["directions"] == predicted["measured"]["paths"][0]["directions"]
    assert whole["paths"][0]["circumstances"]["request"]["effort"] == "light"
    words = history("show", row["id"])
    assert "available" in words.stdout
    assert "pathcast" in words.stdout
    key = history("list", "forecasts", "--json").json["rows"][0]["id"]
    forecast = history("show", key[:16], "--json").json
    assert forecast["kind"] == "forecast"
    assert forecast["answer"]["options"] == predicted["options"]
    assert "no transfer followed" in history("show", key).stdout


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plot(history, tmp_path, suffix):
    file = tmp_path / f"weeks.{suffix}"
    done = history("plot", "--out", file, "--what", "available,rtt,delay,loss,throughput,capacity", "--json")
    assert done.returncode == 0, done.stderr
    assert done.json["points"] == 3
    head = file.read_bytes()
    assert head.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    if suffix == "svg":
        assert b"available [Mbit/s]" in head
        assert b"throughput of transfers" not in head  # there were none


def test_out_and_in(history, quick, tmp_path):
    rows = history("list", "measurements", "--json").json["rows"]
    for format in ("parquet", "csv"):
        out = tmp_path / format
        assert history("export", out, "--format", format, "--json").json["rows"]["forecast"] == 1
        new = tmp_path / f"{format}.db"
        assert quick("history", "import", out, "--history", new, "--json").json["new"]["measurement"] == 3
        again = quick("history", "import", out, "--history", new)
        assert again.stdout == f"{new}: new are nothing\n"
        read = quick("history", "list", "measurements", "--world", "all", "--history", new, "--json").json["rows"]
        # they grow older, and nothing else
        assert [{**row, "age_s": 0} for row in read] == [{**row, "age_s": 0} for row in rows]


def test_prune_and_upgrade(history, quick, tmp_path):
    history("export", tmp_path / "out", "--format", "csv")
    new = ("--history", tmp_path / "new.db")
    quick("history", "import", tmp_path / "out", *new)
    assert quick("history", "prune", "--older", "1d", *new, "--json").json["rows"]["measurement"] == 0
    assert quick("history", "prune", "--dry-run", *new).stdout.startswith("would go: nothing")
    assert quick("history", "upgrade", *new, "--json").json == {
        "schema": "pathcast.history.upgrade/1",
        "history": str(tmp_path / "new.db"),
        "from": "0001",
        "to": "0001",
    }


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("list", "nosuch"), "nosuch"),
        (("list", "--since", "soon"), "soon"),
        (("list", "--limit", "0"), "--limit"),
        (("list", "events", "--target", "x"), "events"),
        (("list", "paths", "--line", "x"), "paths"),
        (("show", "ffffffff"), "ffffffff"),
        (("show", ""), "``"),
        (("show", "0"), "several keys"),
        (("plot", "--what", "colour"), "colour"),
        (("plot", "--out", "weeks.doc"), "weeks.doc"),
        (("plot", "--out", "/nosuch/weeks.svg"), "/nosuch/weeks.svg"),
        (("export", "out", "--format", "xml"), "xml"),
        (("export", "/proc"), "/proc"),
        (("import", "/nosuch"), "/nosuch"),
        (("prune", "--older", "1h"), "1h"),
        (("prune", "--world", "host"), "host"),
        (("prune", "--world", "sim", "--larger", "1GB"), "--larger"),
        (("list", "--world", "moon"), "moon"),
        (("prune", "--larger", "1kB"), "1kB"),
    ],
)
def test_bad_input_is_named_and_exits_with_2(quick, filled, words, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = ("--history", filled / "h.db")
    done = quick("history", *words, *place)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert named in done.stderr
    assert quick("history", *words, *place, "--json").error["exit"] == 2


@pytest.mark.parametrize("place", ["mysql://x/y", "postgresql://host", ""])
def test_a_place_that_is_none_is_refused_before_anything_is_measured(quick, one, place):
    for words in (("history", "list"), ("measure", "--world", "sim", "--topology", one)):
        done = quick(*words, "--history", place, "--json")
        assert done.error["exit"] == 2
        assert "postgresql://[USER@]HOST" in done.error["message"]


def test_a_history_that_cannot_be_one_is_refused_before_anything_is_measured(quick, one, tmp_path):
    diary = tmp_path / "diary"
    diary.write_text("dear diary\n" * 100)
    where = ("--world", "sim", "--topology", one, "--light")
    done = quick("measure", *where, "--history", diary, "--json")
    assert done.error["code"] == "history-corrupt"
    assert diary.read_text() == "dear diary\n" * 100
    # nobody named it here: what was asked for is the measurement
    done = quick("measure", *where, "--json", env={"PATHCAST_HISTORY": str(diary)})
    assert done.returncode == 0
    assert "kept in" in done.stderr


def test_what_is_learnt_and_forecast_of_it_is_recorded(quick, one, tmp_path):
    where = ("--world", "sim", "--topology", one, "--size", "150kB", "--model", tmp_path / "m", "--json")
    place = ("--history", tmp_path / "h.db")
    for delay in ("5ms", "20ms"):
        done = quick("learn", *where, "--rounds", 4, "--probe", "20kB", "--set", f"link.wan.delay={delay}", *place)
        assert done.returncode == 0, done
    predicted = quick("predict", *where, "--set", "link.wan.delay=10ms", *place)
    assert predicted.returncode == 0, predicted
    place += ("--world", "sim")
    sent = quick("history", "list", "transfers", *place, "--json").json["rows"]
    assert sorted(row["bytes"] for row in sent) == [20_000] * 9 + [150_000] * 8
    assert len(quick("history", "list", *place, "--json").json["rows"]) == 3  # three networks
    [forecast] = quick("history", "list", "forecasts", *place, "--json").json["rows"]
    assert forecast["chosen"] == ["path1"]
    assert "Mbit/s" in quick("history", "show", forecast["id"], *place[:2]).stdout


def test_a_far_end_that_is_not_there_is_an_event(quick, tmp_path):
    place = ("--history", tmp_path / "h.db")
    assert quick("measure", "127.0.0.1:9", *place).returncode == 1
    [event] = quick("history", "list", "events", *place, "--json").json["rows"]
    assert (event["kind"], event["target"]) == ("failed", "127.0.0.1:9")
    assert "127.0.0.1" in event["text"]
    assert event["text"] in quick("history", "show", event["id"], *place).stdout
    for world, number in (("host", 1), ("sim", 0), ("all", 1)):
        found = quick("history", "list", "events", "--world", world, *place, "--json").json
        assert (len(found["rows"]), found["elsewhere"]) == (number, {"host": 1} if world == "sim" else {})


def test_a_far_end_over_loopback_is_known_by_its_key(quick, start, tmp_path):
    """Another port, another name of the path: the same far end on the same line."""
    file = tmp_path / "key"
    place = ("--history", tmp_path / "h.db")
    assert quick("serve", "--new-key", file).returncode == 0
    for _ in range(2):
        server = start("serve", "--key-file", file, "--bind", "127.0.0.1", "--port", 0, "--json")
        about = "".join(iter(server.stdout.readline, "}\n")) + "}"
        [where] = json.loads(about)["listening"]
        words = ("measure", where, "--key-file", file, "--light", "--direction", "out", "--json")
        done = quick(*words, *place)
        assert done.returncode in (0, 3), done  # loopback is too fast to be measured well
        server.terminate()
        server.wait()
    measured = quick("history", "list", "measurements", "--json", *place).json
    # a line that gets a name keeps its past, and is called by it
    own = {"PATHCAST_CONFIG": str(tmp_path / "pathcast.toml")}
    (tmp_path / "pathcast.toml").write_text('[line.desk]\nfrom = "127.0.0.1"\nid = "lo"\n')
    [path] = quick("history", "list", "--json", *place, env=own).json["rows"]
    assert "desk" in quick("history", "list", *place, env=own).stdout
    assert len(quick("history", "list", "measurements", "--line", "desk", "--json", *place, env=own).json["rows"]) == 2
    assert "line desk" in quick("history", "show", measured["rows"][0]["id"], *place, env=own).stdout
    assert (path["key"]["line_id"], path["measurements"]) == ("lo", 2)
    assert path["key"]["remote_id"].startswith("key:")
    assert file.read_text().split()[1] not in (tmp_path / "h.db").read_bytes().decode(errors="replace")


def test_what_others_have_said_commands_no_terminal_and_is_no_formula(quick, tmp_path):
    from pathcast.history.identity import PathKey, host_id
    from pathcast.history.journal import Journal
    from pathcast.history.place import parse
    from pathcast.history.rows import Origin
    from pathcast.history.testing import forecast_of, measured

    evil = "\x1b[2J$\\frac{$ [bold] :one:\r"
    key = PathKey(evil, f"key:{evil}", "10.0.0.2", "192.0.2.1")
    journal = Journal(parse(str(tmp_path / "h.db")))
    origin = Origin("host", evil, evil, {"program": evil, "pathcast": evil}, host_id(), evil)
    acts = [journal.act(origin) for _ in range(3)]
    document = measured(keys={"path1": key}, names=("path1",)) | {"notes": [evil], "method": evil}
    document["paths"][0]["name"] = evil
    acts[0].measurement(document, {evil: key}, ("out",))
    acts[1].forecast(forecast_of(names=(evil,), control=evil), {evil: key}, 10**7)
    acts[2].event(evil, evil, key, about=evil)
    for act in acts:
        journal.add(act)
    place = ("--history", tmp_path / "h.db")
    for words in (
        *(("list", what) for what in ("paths", "measurements", "forecasts", "events", "usage")),
        *(("show", act.id) for act in acts),
        ("plot", "--out", tmp_path / "x.svg"),
    ):
        done = quick("history", *words, *place)
        assert done.returncode == 0, done
        assert "\x1b" not in done.stdout + done.stderr
        assert "\r" not in done.stdout


def test_a_forecast_shows_over_which_lines_a_run_came(quick, tmp_path):
    from dataclasses import replace

    from pathcast.history.identity import host_id
    from pathcast.history.journal import Journal
    from pathcast.history.place import parse
    from pathcast.history.rows import Origin
    from pathcast.history.testing import KEY1, forecast_of, sent

    journal = Journal(parse(str(tmp_path / "h.db")))
    forecast, run = (journal.act(Origin("host", host_id=host_id())) for _ in range(2))
    forecast.forecast(forecast_of(), {"path1": KEY1}, 10**7)
    run.transfer(sent(), [(replace(KEY1, remote_id=f"address:{KEY1.remote}"), None, 10**7, 0)], kind="run")
    for act in (forecast, run):
        journal.add(act)
    done = quick("history", "show", forecast.id, "--history", tmp_path / "h.db")
    assert "over cable came 20 Mbit/s; forecast were 25 Mbit/s" in done.stdout


def test_no_history_and_off_record_nothing(quick, one, tmp_path):
    where = ("measure", "--world", "sim", "--topology", one, "--direction", "out", "--light")
    home = {"XDG_STATE_HOME": str(tmp_path / "state"), "PATHCAST_HISTORY": str(tmp_path / "h.db")}
    assert quick(*where, "--no-history", env=home).returncode == 0
    assert quick(*where, "--history", "off", env=home).returncode == 0
    assert list(tmp_path.iterdir()) == []
    done = quick(*where, "--no-history", "--history", "x.db", "--json")
    assert done.error["code"] == "usage"
    done = quick("history", "list", "--json", env={"PATHCAST_HISTORY": "off"})
    assert done.error["message"] == "no history is kept: PATHCAST_HISTORY=off"


def test_without_a_history_there_is_nothing_and_nothing_is_made(quick, tmp_path):
    own = {"PATHCAST_HISTORY": str(tmp_path / "none.db")}
    assert quick("history", "list", "--json", env=own).json["rows"] == []
    assert quick("history", "list", "measurements", "--target", "far", "--json", env=own).json["rows"] == []
    for words in (("export", tmp_path / "out"), ("prune",), ("plot",)):
        done = quick("history", *words, "--json", env=own)
        assert (done.returncode, done.error["code"]) == (1, "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_history_that_is_named_and_is_not_there_is_refused(quick, tmp_path):
    for words in (("list",), ("show", "01"), ("export", tmp_path / "out"), ("prune",), ("plot",)):
        done = quick("history", *words, "--history", tmp_path / "none.db", "--json")
        assert (done.returncode, done.error["code"]) == (2, "usage")
        assert f"there is no history `{tmp_path}/none.db`" in done.error["message"]
    assert list(tmp_path.iterdir()) == []


def test_the_default_place_is_the_users_own_and_closed_to_others(nobody, open_site):
    state = open_site.path / "state"
    ours = ("PATHCAST_HISTORY", "PATHCAST_STATE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    where = ("--world", "sim", "--topology", "two-path", "--light", "--direction", "out")
    command = (*nobody, COMMAND, "measure", *where)
    done = subprocess.run(command, env={**environment, "XDG_STATE_HOME": str(state)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file = state / "pathcast/history.db"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.privileged
def test_a_full_disc_spoils_no_measurement(one, tmp_path):
    """A file system of its own, too small for what comes; where there is room again, it is recorded again."""
    script = f"""
        set -e
        mount -t tmpfs -o size=400k tmpfs {tmp_path}
        measure() {{ {COMMAND} measure --world sim --topology {one} --light --history {tmp_path}/h.db --json; }}
        measure >/dev/null
        head -c 1M /dev/zero >{tmp_path}/fill 2>/dev/null || true
        measure
        rm {tmp_path}/fill
        measure >/dev/null
        {COMMAND} history list measurements --world sim --history {tmp_path}/h.db --json >&2
    """
    process = subprocess.run(["unshare", "--mount", "bash", "-c", script], capture_output=True, text=True, timeout=90)
    out, told = process.stdout, process.stderr
    assert process.returncode == 0, told
    assert json.loads(out)["schema"].startswith("pathcast.measure/")
    assert "no space is left" in told
    rows = json.loads(told[told.index('{\n "schema"') :])["rows"]
    assert len(rows) == 2


def test_a_database_that_is_away_and_comes_back(pathcast, one, tmp_path):
    """The commands say where what they record waits, and the next one that reaches the database takes it there."""
    from pathcast.history.testing import Postgres

    if why := Postgres.lacks():
        pytest.skip(why)
    server = Postgres()
    try:
        url = server.database("weeks")
        state = {"XDG_STATE_HOME": str(tmp_path), "PATHCAST_HISTORY": url}
        where = ("measure", "--world", "sim", "--topology", one, "--direction", "out", "--light", "--json")
        env = {**state, "HOME": str(tmp_path)}
        assert "history" not in pathcast(*where, env=env).stderr
        server.stop()
        done = pathcast(*where, env=env)
        assert done.returncode == 0
        assert "cannot be reached" in done.stderr
        away = pathcast("history", "list", "--json", env=env)
        assert (away.returncode, away.error["code"]) == (1, "history-away")
        server.start()
        assert len(pathcast("history", "list", "measurements", "--world", "sim", "--json", env=env).json["rows"]) == 2
    finally:
        server.remove()


def test_help_of_every_command(quick):
    for command in ("list", "show", "plot", "export", "import", "prune", "upgrade"):
        assert f"pathcast history {command}" in quick("history", command, "--help").stdout


SERVER = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
connection, _ = listening.accept()
while connection.recv(1 << 16):
    pass
"""
SEND = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).sendall(bytes(400_000))"


@pytest.mark.privileged
def test_what_a_program_sends_is_recorded_with_its_status(pathcast, start, tmp_path):
    port = start("-c", SERVER, command=(sys.executable,)).stdout.readline().strip()
    place = ("--history", tmp_path / "h.db")
    script = SEND + "; sys.exit(3)"
    assert pathcast("run", *place, "--", sys.executable, "-c", script, port).returncode == 3
    [sent] = pathcast("history", "list", "transfers", *place, "--json").json["rows"]
    assert (sent["kind"], sent["bytes"], sent["direction"]) == ("run", 400_000, "out")
    assert sent["keys"][0]["line_id"] == "lo"
    whole = pathcast("history", "show", sent["id"], *place, "--json").json
    assert whole["circumstances"]["status"] == 3
    assert "400_000" not in (tmp_path / "h.db").read_bytes().decode(errors="replace")
