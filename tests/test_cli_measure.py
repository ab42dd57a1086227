"""`pathcast measure`: in the simulator, over emulated links, against a far end on loopback and one started over ssh."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import time

import pytest
from conftest import COMMAND, PATIENCE_S, ROOT, asked

from pathcast.errors import PathcastError

BOTTLENECK = """
name = "narrow"
[[link]]
name = "in"
a = "client"
b = "r"
rate = "100Mbit"
delay = "1ms"
[[link]]
name = "narrow"
a = "r"
b = "server"
rate = { ab = "5Mbit", ba = "20Mbit" }
delay = "9ms"
queue = "50 packets"
[[traffic]]
kind = "constant"
link = "narrow"
direction = "ab"
rate = "2Mbit"
[[path]]
name = "path1"
links = ["in", "narrow"]
"""
RATES = {"out": (5e6, 3e6), "in": (20e6, 20e6)}
DELAY_S = 10e-3


@pytest.fixture(scope="session")
def narrow(tmp_path_factory):
    """5 Mbit/s towards the server, of which cross traffic has 2, and 20 Mbit/s back."""
    file = tmp_path_factory.mktemp("topology", numbered=True) / "narrow.toml"
    file.write_text(BOTTLENECK)
    return file


@pytest.fixture
def key(tmp_path):
    """A key file."""
    file = tmp_path / "key"
    file.write_text(f"site {'5e' * 32}\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def serve(start, key):
    """Starts a far end on loopback: its document, and its process."""

    def serve(*options):
        process = start("serve", "--json", "--key-file", key, "--bind", "127.0.0.1", "--port", 0, *options)
        text = ""
        for line in process.stdout:
            text += line
            with contextlib.suppress(ValueError):
                return json.loads(text), process
        raise AssertionError(process.stderr.read())

    return serve


@pytest.fixture
def far_end(serve, key):
    """A far end on loopback: its host and port, its key file, and its process."""
    about, process = serve()
    return about["listening"][0], key, process


def check(document, share):
    """The fields that were promised, and values within `share` of the truth."""
    assert next(iter(document)) == "schema"
    assert document["schema"] == "pathcast.measure/2"
    assert {"paths", "probe_bytes", "elapsed_s", "method"} <= set(document)
    path = document["paths"][0]
    assert {"local", "remote", "directions"} <= set(path)
    for direction, of in path["directions"].items():
        capacity, available = RATES[direction]
        for key, right in (("capacity_bps", capacity), ("available_bps", available)):
            assert of[key]["low"] <= of[key]["value"] <= of[key]["high"]
            assert of[key]["value"] == pytest.approx(right, rel=share), (direction, key)
        delay = of["delay_s"]
        least, median = delay["minimum"]["value"], delay["median"]["value"]
        assert least <= median
        assert DELAY_S - delay["error"] <= least <= DELAY_S + 5e-3 + delay["error"]
        assert set(delay["clock"]) >= {"synchronised", "offset_s"}
        assert of["loss"]["lost"] < 0.05 * of["loss"]["packets"]


def test_in_the_simulator(pathcast, narrow):
    done = pathcast("measure", "--world", "sim", "--topology", narrow, "--seed", 1, "--json")
    assert done.returncode == 0, done.stderr
    check(done.json, 0.03)
    assert list(done.json["paths"][0]["directions"]) == ["out", "in"]
    assert pathcast("measure", "--world", "sim", "--topology", narrow, "--seed", 1, "--json").json == done.json
    table = pathcast("measure", "--world", "sim", "--topology", narrow, "--direction", "out")
    assert table.returncode == 0
    assert "Mbit/s" in table.stdout
    assert "not synchronised" not in table.stdout


def test_a_budget_is_kept(pathcast, narrow):
    done = pathcast(
        *("measure", "--world", "sim", "--topology", narrow, "--direction", "out"),
        *("--budget", "300kB", "--time", "1.5s", "--json"),
    )
    assert done.returncode == 0
    assert done.json["probe_bytes"] <= 300_000
    assert done.json["elapsed_s"] <= 1.5
    assert list(done.json["paths"][0]["directions"]) == ["out"]


def test_two_limits_are_limits_and_no_more(pathcast, narrow):
    line = ("measure", "--world", "sim", "--topology", narrow, "--direction", "out", "--seed", 1, "--json")
    plain, limited = (pathcast(*line, *more).json for more in ((), ("--budget", "20MB", "--time", "30s")))
    assert limited["probe_bytes"] == plain["probe_bytes"] < 5_000_000
    assert limited["elapsed_s"] == plain["elapsed_s"] < 10


@pytest.mark.parametrize("method", ["replay", "pathtester", "pathtester-old", "slops"])
def test_the_other_methods(pathcast, narrow, method):
    done = pathcast(
        *("measure", "--world", "sim", "--topology", narrow, "--direction", "out", "--method", method),
        *("--budget", "20MB", "--time", "120s", "--seed", 1, "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert done.json["method"] == method
    assert 1e6 < done.json["paths"][0]["directions"]["out"]["available_bps"]["value"] < 6e6


def test_what_finds_nothing_is_3_and_says_why(pathcast, narrow):
    done = pathcast(
        *("measure", "--world", "sim", "--topology", narrow, "--set", "link.narrow.loss=0.95"),
        *("--direction", "out", "--time", "2s", "--json"),
    )
    assert done.returncode in (1, 3)
    assert "Traceback" not in done.stderr
    assert done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--direction", "up"], "out, in, both"),
        (["--method", "guess"], "ride, replay, pathtester, pathtester-old, slops"),
        (["--budget", "1kB"], "10kB"),
        (["--budget", "much"], "much"),
        (["--budget", "10"], "--budget `10` is not a size"),
        (["--budget", "10B"], "--budget 10B: allowed"),
        (["--time", "1ms"], "100ms"),
        (["--time", "1"], "--time `1` is not a duration"),
        (["--time", "1us"], "--time 1 µs: allowed"),
        (["--repeat", "1"], "--repeat `1` is not a duration"),
        (["--dscp", "64"], "0 to 63"),
        (["--paths", "path9"], "path1"),
        (["--light", "--thorough"], "exclude each other"),
        (["--queue", "3s"], "--thorough"),
        (["--thorough", "--queue", "3h"], "10s"),
        (["--thorough", "--method", "slops"], "ride"),
        (["--json", "--jsonl"], "exclude each other"),
        (["--repeat", "10s"], "--jsonl"),
        (["--count", "3"], "--repeat"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_options_are_2(pathcast, narrow, arguments, words):
    json_wanted = [] if "--jsonl" in arguments and "--json" not in arguments else ["--json"]
    done = pathcast("measure", "--world", "sim", "--topology", narrow, *arguments, *json_wanted)
    assert done.returncode == 2
    assert words in done.stderr


def test_again_and_again(pathcast, narrow):
    done = pathcast(
        *("measure", "--world", "sim", "--topology", narrow, "--direction", "out"),
        *("--repeat", "30s", "--count", 3, "--jsonl"),
    )
    assert done.returncode == 0
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["schema"] for line in lines] == ["pathcast.measure/2"] * 3


def test_a_repeated_table_has_times_and_totals(pathcast, narrow):
    done = pathcast(
        *("measure", "--world", "sim", "--topology", narrow, "--direction", "out", "--light"),
        *("--repeat", "5m", "--count", 2),
    )
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if "to narrow," in line]
    assert len(titles) == 2
    assert all(re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", title) for title in titles)
    said = done.stderr.splitlines()
    assert "30 days" in said[0]  # before
    assert "999.6 MB" in said[0]
    assert re.search(r"round 2: .* in all, .* a day", said[-1])


def test_a_light_measurement_costs_no_more_than_it_says(pathcast, narrow):
    done = pathcast("measure", "--world", "sim", "--topology", narrow, "--light", "--json")
    assert done.returncode == 0, done.stderr
    assert "at most 115.7 KB" in done.stderr
    assert 50_000 < done.json["probe_bytes"] <= 115_700
    assert done.json["effort"] == "light"
    back = done.json["paths"][0]["directions"]["in"]
    assert back["capacity_bps"]["value"] == pytest.approx(20e6, rel=0.02)


def test_too_little_to_say_is_no_value(pathcast):
    """200 Mbit/s and 100 kB: once a value and 0 to 249 Mbit/s beside it."""
    line = ("--world", "sim", "--topology", "topologies/two-path.toml", "--set", "link.wan1.rate=200Mbit")
    done = pathcast("measure", *line, "--paths", "path1", "--budget", "100kB", "--json")
    for of in done.json["paths"][0]["directions"].values():
        capacity, available = of["capacity_bps"]["value"], of["available_bps"]
        if available["value"] is None:
            assert available["why"]
        else:
            assert available["high"] - available["low"] < 0.67 * capacity, of


@pytest.mark.parametrize("topology", ["van"])
def test_the_record_has_all_that_a_forecast_reads(pathcast, topology):
    done = pathcast("measure", "--world", "sim", "--topology", topology, "--light", "--json")
    assert done.returncode in (0, 3), done.stderr
    first, second = done.json["paths"]
    assert [shared["path"] for shared in first["shared_with"]] == [second["name"]] * 2
    assert first["rtt_s"]["value"] > 0
    for of in first["directions"].values():
        for group, names in {
            "queue": ("depth_s", "depth_bytes", "fair", "managed"),
            "policer": ("probability", "rate_bps", "burst_bytes"),
            "cross": ("load_bps", "mean_bps", "elastic", "tcp_bps"),
            "rate_variation": ("cv", "scale_s"),
            "loss": ("random",),
        }.items():
            for name in names:
                value = of[group][name]
                assert set(value) == {"value", "low", "high", "why"}
                assert value["value"] is not None or value["why"], (group, name)
        assert "discipline" in of["queue"]


def test_a_path_that_is_down_is_said_and_the_other_is_measured(pathcast):
    line = ("--world", "sim", "--topology", "topologies/two-path.toml", "--set", "link.wan2.loss=1")
    done = pathcast("measure", *line, "--direction", "out", "--json")
    assert done.returncode == 0, done.stderr
    first, second = done.json["paths"]
    assert first["directions"]["out"]["capacity_bps"]["value"]
    assert second["down"]["probes"] > 3
    assert "path2 is down: no answer to" in done.stderr
    assert "--time" not in done.stderr
    alone = pathcast("measure", *line, "--direction", "out", "--paths", "path2", "--json")
    assert alone.returncode in (1, 3)
    assert "--time" not in alone.stderr


def test_over_loopback(pathcast, far_end):
    where, key, process = far_end
    done = pathcast("measure", where, "--key-file", key, "--time", "1s", "--json")
    # loopback is as fast as the host: it may be found too slow to say
    assert done.returncode in (0, 3), done.stderr
    delay = done.json["paths"][0]["directions"]["out"]["delay_s"]
    assert delay["clock"]["synchronised"]  # it is the same clock
    assert 0 < delay["minimum"]["value"] < 0.1
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130


def test_a_wrong_key_is_4(pathcast, far_end, tmp_path):
    where, _, _ = far_end
    other = tmp_path / "other"
    other.write_text(f"site {'00' * 32}\n")
    other.chmod(0o600)
    done = pathcast("measure", where, "--key-file", other, "--json")
    assert done.returncode == 4


def test_limits_of_the_far_end(pathcast, serve, key):
    about, _ = serve("--limit", "bytes=30kB")
    done = pathcast("measure", about["listening"][0], "--key-file", key, "--json")
    assert done.returncode in (0, 3), done.stderr
    assert done.json["probe_bytes"] < 60_000  # the reports and the comparison of the clocks are no probes
    about, _ = serve("--limit", "bytes=20kB")
    done = pathcast("measure", about["listening"][0], "--key-file", key, "--json")
    assert done.returncode == 4, done.stderr
    assert "20KB" in done.error["message"]
    about, _ = serve("--limit", "bytes=100kB")
    done = pathcast("measure", about["listening"][0], "--key-file", key, "--light")
    assert "note: the far end grants 100KB for a measurement (its limit `bytes`), 40KB for each" in done.stderr
    about, _ = serve("--limit", "sessions-per-key=1")
    done = pathcast("measure", about["listening"][0], "--key-file", key, "--json")
    assert done.returncode == 4, done.stderr
    assert "its limit is sessions-per-key=1" in done.error["message"]
    about, _ = serve("--limit", "sessions=0")
    done = pathcast("measure", about["listening"][0], "--key-file", key, "--json")
    assert done.returncode == 4, done.stderr
    assert "sessions" in done.error["message"]


def test_who_waits_for_others_is_told_so_and_waiting_is_no_measuring(pathcast, start, far_end):
    where, key, _ = far_end
    for _ in range(5):
        others = start("measure", where, "--key-file", key, "--thorough", "--time", "3s")
        assert others.stderr.readline().startswith("cost: ")
        time.sleep(1)
        begun = time.monotonic()
        done = pathcast("measure", where, "--key-file", key, "--light", "--json")
        took_s = time.monotonic() - begun
        assert done.returncode in (0, 3), done.stderr
        others.communicate(timeout=PATIENCE_S)
        if "waiting in the far end's queue, place 1" in done.stderr:
            break  # else it was there before the others, or after them
    else:
        pytest.fail(done.stderr)
    assert 0 < done.json["queued_s"] < done.json["elapsed_s"] < took_s


def test_a_link_local_address_of_a_far_end_is_2(pathcast):
    for host in ("fe80::1%lo", "[fe80::1%lo]:5275"):
        done = pathcast("measure", host, "--light", "--json")
        assert (done.returncode, done.error["code"]) == (2, "usage")
        assert "`fe80::1%lo` is a link-local IPv6 address" in done.error["message"]


def test_stamp(pathcast, serve, key):
    about, _ = serve("--stamp-port", 0)
    where = about["stamp"]["listening"][0]
    assert about["stamp"]["mode"] == "authenticated"
    done = pathcast("measure", f"stamp://{where}", "--key-file", key, "--time", "1s", "--json")
    assert done.returncode == 0, done.stderr
    assert done.json["schema"] == "pathcast.stamp/1"
    assert done.json["received"] == done.json["sent"] == 50
    assert 0 < done.json["round_trip_s"]["minimum"] < 0.1
    table = pathcast("measure", f"stamp://{where}", "--key-file", key, "--time", "200ms")
    assert "round trip" in table.stdout
    assert "10 of 10" in table.stdout
    assert pathcast("measure", f"stamp://{where}", "--time", "100ms").returncode == 3, "answered without the key"


def test_stamp_is_open_where_that_is_asked_for(pathcast, serve, key):
    about, _ = serve("--stamp-port", 0, "--stamp-open")
    where = about["stamp"]["listening"][0]
    assert about["stamp"]["mode"] == "open"
    done = pathcast("measure", f"stamp://{where}", "--time", "200ms", "--json")
    assert done.json["received"] == 10
    assert pathcast("measure", f"stamp://{where}", "--key-file", key, "--time", "100ms").returncode == 3


def test_stamp_that_nobody_answers_is_3(pathcast, far_end):
    where, _, _ = far_end  # a far end, but no reflector
    done = pathcast("measure", f"stamp://{where}", "--time", "100ms", "--json")
    assert done.returncode == 3
    assert done.error["code"] == "no-answer"
    for words in (
        *(("--direction", "out"), ("--method", "slops"), ("--seed", 5), ("--ssh", "x"), ("--remote-command", "y")),
    ):
        done = pathcast("measure", f"stamp://{where}", *words, "--json")
        assert (done.returncode, "takes --time, --dscp" in done.error["message"]) == (2, True), words


def test_a_far_end_over_ssh_comes_and_goes(pathcast, tmp_path, site):
    """What stands for ssh runs the command here; it notes what it was asked, and its far end's end."""
    log = tmp_path / "log"
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {log}\nwhile [ "$1" != -- ]; do shift; done\nshift 2\n'
        f'sh -c "$*"\necho $? >> {log}\n'
    )
    ssh.chmod(0o755)
    done = pathcast(
        *("measure", "ssh://me@127.0.0.1:2222", "--ssh", f"{ssh} -q", "--remote-command", COMMAND),
        *("--direction", "out", "--time", "1s", "--json"),
    )
    assert done.returncode in (0, 3), done.stderr
    assert done.json["paths"][0]["remote"] == "127.0.0.1"
    words = log.read_text().splitlines()
    assert words[:4] == ["-q", "-p", "2222", "--"]
    assert words[4] == "me@127.0.0.1"
    assert words[-1] == "0"  # its input closed, and it ended by itself


def test_options_of_ssh_go_with_a_far_end_over_ssh(pathcast, narrow):
    for host in (("127.0.0.1",), ("--world", "sim", "--topology", narrow)):
        for option in ("--ssh", "--remote-command"):
            done = pathcast("measure", *host, option, "x", "--json")
            assert done.returncode == 2
            assert done.error["message"].startswith(f"{option} goes with ssh://USER@HOST")


def test_ssh_that_fails_is_told(pathcast, tmp_path):
    done = pathcast("measure", "ssh://me@127.0.0.1", "--ssh", "false", "--json")
    assert done.returncode == 1
    assert done.error["code"] == "ssh"
    for url in ("ssh://", "ssh://host/path", "ssh://-oProxyCommand=x", "ssh://host:port"):
        done = pathcast("measure", url, "--json")
        assert done.returncode == 2, url
        assert url in done.error["message"]
    assert pathcast("measure", "ssh://h", "--world", "sim", "--json").returncode == 2


@pytest.mark.privileged
def test_over_emulated_links(pathcast, narrow, site):
    done = asked(pathcast, "measure", "--world", "emu", "--topology", narrow, "--json")
    assert done.returncode == 0, done.stderr
    check(done.json, 0.1)
    assert site.empty()


@pytest.mark.privileged
def test_nothing_is_lost_on_an_idle_fast_line(pathcast, site):
    """Packets of trains that left late, one among the next one's, once counted as lost: 2 to 14 % of them."""
    done = asked(pathcast, "measure", "--world", "emu", "--topology", ROOT / "topologies" / "two-path.toml", "--json")
    assert done.returncode == 0, done.stderr
    directions = [way for path in done.json["paths"] for way in path["directions"].values()]
    assert len(directions) == 4
    assert all(way["loss"]["lost"] < 0.001 * way["loss"]["packets"] for way in directions), directions
    assert site.empty()


def test_from_python(far_end, site):
    import pathcast

    where, key, _ = far_end
    found = pathcast.measure(where, key_file=key, directions=["in"], time_s=1)
    assert found.method == "ride"
    assert list(found.paths[0].directions) == ["in"]
    with pytest.raises(PathcastError, match="none"):
        pathcast.measure(where, key_file=key, paths=["none"])


@pytest.mark.parametrize("verb", ["measure", "learn"])
def test_a_limit_of_events_ends_it_and_names_itself(pathcast, narrow, tmp_path, verb):
    more = ("--size", "64MB", "--model", tmp_path / "model") if verb == "learn" else ()
    simulated = ("--world", "sim", "--topology", narrow, "--limit-events", 2000, "--json")
    done = pathcast(verb, *simulated, *more)
    assert done.returncode == 1
    assert done.json["error"]["code"] == "event-limit"
    assert "2000 events of the simulator, the limit" in done.json["error"]["message"]
    assert verb == "learn" or "--limit-events" in done.json["error"]["hint"]
    elsewhere = pathcast(verb, "127.0.0.1", "--limit-events", 2000, *more)
    assert elsewhere.returncode == 2
    assert "--limit-events 2000: it goes with --world sim" in elsewhere.stderr
