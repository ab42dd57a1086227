"""`predict` as a command: options, both outputs, exit codes; in the simulator, over loopback, over emulated links."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from pathcast import zone
from pathcast.cli.deadline import deadline
from pathcast.cli.schema import SCHEMAS
from pathcast.cli.testing import wrong
from pathcast.errors import Exit, PathcastError
from pathcast.forecast.effort import Effort
from pathcast.history.identity import PathKey
from pathcast.service import doctor
from pathcast.worlds.testing import two_paths

HOME = 'name = "home"\n' + two_paths("20Mbit", ("10ms", "20ms"), "100 packets")
SIZE = 4_000_000

pytestmark = pytest.mark.usefixtures("own_directories")


@pytest.fixture(autouse=True)
def _in_no_hurry(monkeypatch):
    """On a busy machine too it is the same number of draws."""
    few = lambda *_: Effort(1e9, 10**9)  # noqa: E731
    monkeypatch.setattr("pathcast.forecast.forecast.effort", few)
    monkeypatch.setattr("pathcast.forecast.forecast.DRAWS", 8)


@pytest.fixture
def sim(tmp_path):
    file = tmp_path / "home.toml"
    file.write_text(HOME)
    return ["--world", "sim", "--topology", str(file)]


def check(document, size, paths):
    """The schema, and what it promises."""
    assert document["schema"] == "pathcast.predict/2"
    assert wrong(document, SCHEMAS["predict"]()) == []
    assert document["size_bytes"] == size
    options = document["options"]
    means = [one["expected_s"] for one in options]
    assert means == sorted(means)
    assert {tuple(sorted(one["paths"])) for one in options} == paths
    for one in options:
        rate, took = one["throughput_bps"], one["duration_s"]
        assert rate["low"] <= rate["value"] <= rate["high"]
        assert took["low"] <= took["value"] <= took["high"]
        assert rate["value"] == pytest.approx(8 * size / took["value"])
        assert len(one["bytes_by_path"]) == len(one["paths"])
        assert sum(one["bytes_by_path"]) >= 0.99 * size
    assert any((one["paths"], one["control"]) == (document["chosen"], document["chosen_control"]) for one in options)
    assert document["probe_bytes"] >= document["measured"]["probe_bytes"] > 0
    assert set(document["loads"]) >= {name for one in options for name in one["paths"]}
    assert document["elapsed_s"] > 0
    assert document["why"].count("\n") == 0


def test_without_any_training(pathcast, sim):
    status, document, err = pathcast("predict", *sim, "--size", "4MB", "--control", "lia", "--json")
    assert (status, document["world"], document["target"]) == (Exit.OK, "sim", "home")
    check(document, SIZE, {("path1",), ("path2",), ("path1", "path2")})
    assert document["chosen"] in (["path1", "path2"], ["path2", "path1"])
    assert document["chosen_control"] == "lia"
    assert "alone would take" in document["why"]
    assert [one["deadline_probability"] for one in document["options"]] == [None] * 3
    assert "cost: " in err
    # no clock is in it, and of idle lines trains of other gaps see the same
    again = pathcast("predict", *sim, "--size", "4MB", "--control", "lia", "--json")[1]
    both = zip(again["options"], document["options"], strict=True)
    assert all(a["expected_s"] == pytest.approx(b["expected_s"], rel=0.01) for a, b in both)

    status, out, err = pathcast("predict", *sim, "--size", "4MB", "--control", "lia")
    assert status == Exit.OK
    assert out.startswith("Path")
    assert "4 MB to home" in out
    assert "(best)" in out


@pytest.mark.parametrize(
    ("size", "effort", "told"), [("1MB", "--fresh", True), ("1MB", "--light", False), ("200MB", "--fresh", False)]
)
def test_where_measuring_takes_more_than_the_job_it_says_so_before_and_after(pathcast, sim, size, effort, told):
    _, document, err = pathcast("predict", *sim, "--size", size, "--control", "lia", effort, "--json")
    assert (document["probe_bytes"] > document["size_bytes"]) == told
    words = "measured with more than the job's 1 MB; --light takes at most 232 KB, and is less sure"
    assert (words in document["notes"]) == told
    assert ("that is more than the job: --light takes at most 232 KB" in err) == told


def test_the_transfer_that_follows_takes_as_long(pathcast, sim):
    """Both lines are idle, so that nothing but the queue is unknown."""
    from pathcast.worlds.sim import Sim
    from pathcast.worlds.topology import Topology

    _, document, _ = pathcast("predict", *sim, "--size", "4MB", "--control", "cubic", "--json")
    with Sim(Topology.load(sim[3])) as world:
        for one in document["options"]:
            sent = world.copy().transfer(one["paths"], SIZE, "cubic")
            assert one["duration_s"]["low"] * 0.9 < sent.elapsed_s < one["duration_s"]["high"] * 1.1


def test_a_deadline(pathcast, sim):
    def asked(by):
        _, document, _ = pathcast("predict", *sim, "--size", "40MB", "--control", "cubic", "--by", by, "--json")
        best = next(one for one in document["options"] if one["paths"] == document["chosen"])
        return document, best["deadline_probability"]

    document, probability = asked("10m")
    assert probability > 0.9
    assert document["why"].startswith("fits: all of it in ")
    assert 590 < document["deadline_s"] < 600
    assert datetime.fromisoformat(document["by"]) > datetime.now(UTC)
    document, probability = asked("8s")
    assert probability < 0.1
    assert document["why"].startswith("does not fit: ")


def test_a_path_is_the_same_by_any_of_its_names(pathcast, sim, tmp_path, monkeypatch):
    from pathcast.worlds.sim import Sim

    def begin(self, sets, begin=Sim._begin):
        begin(self, sets)
        self.paths = tuple(replace(path, also=(path.local[0], f"{path.name}-too")) for path in self.paths)

    monkeypatch.setattr(Sim, "_begin", begin)
    asked = ["predict", *sim, "--size", "4MB", "--control", "cubic", "--history", tmp_path / "h.db", "--json"]
    [one] = pathcast(*asked, "--paths", "path1")[1]["measured"]["paths"]
    for name in ("path1-too", one["local"]):
        _, document, err = pathcast(*asked, "--paths", name)
        assert (document["measured_age_s"] is None, document["chosen"], err) == (False, ["path1"], "")
    status, _, err = pathcast(*asked, "--paths", "path1,path1-too")
    assert status == Exit.USAGE
    assert "--paths path1,path1-too: name each path once" in err


def test_of_several_paths_of_one_line_none_is_taken_for_another(pathcast, sim, tmp_path, monkeypatch):
    """It is the same far end, which has two addresses."""
    keys = lambda world: {path.name: PathKey("cable", "key:far", "10.0.0.2", path.remote) for path in world.paths}  # noqa: E731
    monkeypatch.setattr("pathcast.forecast.pathkeys.of_network", lambda *_: keys)
    asked = ["predict", *sim, "--size", "4MB", "--control", "cubic", "--history", tmp_path / "h.db", "--json"]
    ages = [pathcast(*asked, "--paths", name)[1]["measured_age_s"] for name in ("path2", "path1", "path2")]
    assert [age_s is None for age_s in ages] == [True, True, False]


def test_the_other_way(pathcast, sim):
    slow = [*sim, "--set", "link.wan1.rate.ba=2Mbit", "--size", "1MB", "--paths", "path1", "--json"]
    out = pathcast("predict", *slow)[1]
    back = pathcast("predict", *slow, "--in")[1]
    assert (out["direction"], back["direction"]) == ("out", "in")
    assert back["options"][0]["throughput_bps"]["value"] < 2e6 < out["options"][0]["throughput_bps"]["value"]


def test_controllers(pathcast, sim):
    def tried(*more):
        _, document, _ = pathcast("predict", *sim, "--size", "500KB", *more, "--json")
        return {(len(one["paths"]), one["control"]) for one in document["options"]}

    several = {(2, name) for name in ("cubic", "lia", "olia", "balia")}
    assert tried() == tried("--control", "auto") == {(1, "cubic")} | several
    assert tried("--aggressive") == {(1, "cubic"), (1, "bbr3"), (2, "bbr3")} | several
    assert tried("--control", "bbr3,lia") == {(n, name) for n in (1, 2) for name in ("bbr3", "lia")}
    assert {name for _, name in tried("--background")} == {"nice", "lp", "ledbatpp", "imtcp_bg", "gleaner"}


def test_a_path_that_is_down_is_named_and_the_rest_is_answered(pathcast, sim):
    status, document, _ = pathcast("predict", *sim, "--set", "link.wan2.loss=1", "--size", "1MB", "--json")
    assert status == Exit.OK
    check(document, 1_000_000, {("path1",)})
    assert document["down"] == ["path2"]
    assert any(note.startswith("path2 is down: no answer to ") for note in document["notes"])


def test_where_nothing_can_be_said_it_ends_with_3(pathcast, tmp_path):
    """A line without a rate has no capacity that could be measured."""
    file = tmp_path / "lan.toml"
    file.write_text(
        '[[link]]\nname = "lan"\na = "client"\nb = "server"\ndelay = "1ms"\n[[path]]\nname = "path1"\nlinks = ["lan"]\n'
    )
    arguments = ["--world", "sim", "--topology", file, "--light", "--size", "1MB", "--json"]
    status, document, _ = pathcast("predict", *arguments)
    assert status == document["error"]["exit"] == Exit.UNTRUSTWORTHY
    assert "nothing can be forecast: path1 is left out: no capacity of path `path1`" in document["error"]["message"]


def test_where_nobody_answers_it_ends_with_1(pathcast, sim):
    gone = ["--set", "link.wan1.loss=1", "--set", "link.wan2.loss=1"]
    status, document, _ = pathcast("predict", *sim, *gone, "--size", "1MB", "--json")
    assert status == document["error"]["exit"] == Exit.RUNTIME
    assert "no answer" in document["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", "0B"], "--size 0B: a transfer has at least one byte"),
        (["--size", "4Mbit"], "4Mbit"),
        (["--control", "vegas"], "--control `vegas`: allowed are auto, reno, cubic"),
        (["--control", "lia,lia"], "name each once"),
        (["--control", "auto,lia"], "name each once, or auto alone"),
        (["--control", "lia", "--background"], "does not go with it"),
        (["--control", "lia", "--aggressive"], "--aggressive goes with --control auto"),
        (["--background", "--aggressive"], "--aggressive goes with --control auto"),
        (["--light", "--thorough"], "exclude each other"),
        (["--paths", "path1,path2,path1"], "`path1` is named twice"),
        (["--paths", "path9"], "there is no path `path9`; allowed: path1, path2"),
        (["--by", "2020-01-01T00:00"], "is past: it is "),
        (["--by", "0s"], "that is now"),
        (["--by", "tomorrow"], "--by `tomorrow` is no time; allowed: a time of day (06:00)"),
        (["--by", "25:00"], "is no time"),
        (["--size", "10"], "--size `10` is not a size"),
    ],
)
def test_what_is_refused(pathcast, sim, arguments, words):
    status, document, _ = pathcast("predict", *sim, "--size", "1MB", *arguments, "--json")
    assert status == document["error"]["exit"] == Exit.USAGE
    assert words in document["error"]["message"]


def test_a_host_never_seen(pathcast):
    status, document, _ = pathcast("predict", "127.0.0.1:1", "--size", "1MB", "--json")
    assert status == document["error"]["exit"] == Exit.RUNTIME
    assert "127.0.0.1" in document["error"]["message"]


def test_deadlines_as_people_write_them():
    noon = datetime(2026, 11, 23, 12, 0).astimezone()
    assert deadline("12:30", noon).at - noon == timedelta(minutes=30)
    assert deadline("06:00", noon).at - noon == timedelta(hours=18)
    assert deadline("2026-11-24T12:00", noon).at - noon == timedelta(days=1)
    assert deadline("2026-11-24T12:00Z", noon).at == datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
    assert deadline("8h", noon).left_s(60.0) == 8 * 3600 - 60
    assert 8 * 3600 - 5 < deadline("8h", noon).left_s(None) <= 8 * 3600
    with pytest.raises(PathcastError, match="is past"):
        deadline("2026-11-23T11:59", noon)


@pytest.mark.parametrize(
    ("now", "word", "told", "after_min"),
    [
        ("2027-03-27T22:00+01:00", "06:00", "2027-03-28T06:00:00+02:00", 420),
        ("2026-10-24T22:00+02:00", "06:00", "2026-10-25T06:00:00+01:00", 540),
        # 02:00 to 03:00 is not
        ("2027-03-27T22:00+01:00", "02:30", "2027-03-28T03:30:00+02:00", 270),
        ("2027-03-28T01:30+01:00", "02:30", "2027-03-28T03:30:00+02:00", 60),
        ("2027-03-27T22:00+01:00", "2027-03-28T02:30", "2027-03-28T03:30:00+02:00", 270),
        # 02:00 to 03:00 is twice
        ("2026-10-25T01:30+02:00", "02:30", "2026-10-25T02:30:00+02:00", 60),
        ("2026-10-25T02:50+02:00", "02:30", "2026-10-25T02:30:00+01:00", 40),
        ("2026-10-25T02:30+01:00", "02:45", "2026-10-25T02:45:00+01:00", 15),
        ("2026-10-25T02:50+01:00", "02:30", "2026-10-26T02:30:00+01:00", 1420),
        ("2026-10-24T22:00+02:00", "2026-10-25T02:30", "2026-10-25T02:30:00+02:00", 270),
    ],
)
def test_deadlines_where_the_clock_is_set_to_summer_time_and_back(monkeypatch, now, word, told, after_min):
    with monkeypatch.context() as there:
        there.setattr(zone, "zone", lambda: ZoneInfo("Europe/Berlin"))
        there.setenv("TZ", "America/New_York")  # of the process: the machine's counts
        time.tzset()
        at = datetime.fromisoformat(now)
        found = deadline(word, at)
        assert found.written() == told
        assert found.at - at == timedelta(minutes=after_min)
    time.tzset()


def test_a_clock_that_stepped_is_said(monkeypatch):
    of = deadline("23:59:59")
    assert of.step() is None
    monkeypatch.setattr("time.time", lambda: of.began_s[0] + 3600.0)
    assert of.step().startswith("the clock was set by +3600 s meanwhile")
    assert deadline("8h").step() is None


# --- over loopback, and over emulated links -----------------------------------------------------------------------


def test_over_loopback(pathcast, far_end):
    asked = ("predict", far_end, "--size", "100MB", "--light", "--control", "cubic", "--json")
    status, document, _ = pathcast(*asked)
    give_up_at = time.monotonic() + 60
    # nothing like a line is there: on a busy machine it may find none
    while status == Exit.UNTRUSTWORTHY and time.monotonic() < give_up_at:
        assert "nothing can be forecast" in document["error"]["message"]
        status, document, _ = pathcast(*asked)
    assert status == Exit.OK, document
    check(document, 100_000_000, {("path1",)})


@pytest.mark.privileged
def test_over_an_emulated_network(pathcast, sim, monkeypatch):
    from pathcast.worlds.results import Verdict

    lacking = doctor.missing("privilege", "iproute2", "namespaces", "tun", "mptcp", "path manager")
    if lacking:
        pytest.skip(f"doctor: missing {', '.join(check.name for check in lacking)}")
    # that measurements are judged has its own test; here a busy machine may be late
    monkeypatch.setattr(Verdict, "LIMIT_S", 1.0)
    arguments = ["--world", "emu", *sim[2:], "--size", "1MB", "--light", "--control", "lia"]
    status, document, _ = pathcast("predict", *arguments, "--json")
    assert status == Exit.OK
    check(document, 1_000_000, {("path1",), ("path2",), ("path1", "path2")})
    assert json.dumps(document["measured"]).count('"capacity_bps"') == 4
