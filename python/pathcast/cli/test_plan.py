"""`plan` as a command: what the lines' file and the options say is kept; both outputs; bad words."""

from __future__ import annotations

import re
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from pathcast import zone
from pathcast.cli.plan import clock
from pathcast.cli.schema import SCHEMAS
from pathcast.errors import Exit
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.watch import light_bytes
from pathcast.lines import config
from pathcast.units import size
from pathcast.worlds.testing import two_paths

pytestmark = pytest.mark.usefixtures("own_directories")
HOME = 'name = "home"\n' + two_paths("20Mbit", ("10ms", "20ms"), "100 packets")


@pytest.fixture
def sim(tmp_path, monkeypatch):
    # in the last hours of a month the cap would begin anew before the deadline
    passed, real = datetime(2026, 11, 15, 12).timestamp() - time.time(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + passed)
    monkeypatch.setattr("pathcast.forecast.forecast.effort", lambda *_: Effort(1e9, 4 * 10**6))
    monkeypatch.setattr("pathcast.forecast.forecast.DRAWS", 8)
    file = tmp_path / "home.toml"
    file.write_text(HOME.replace('"path1"', '"cable"').replace('"path2"', '"dsl"'))
    lines = tmp_path / "lines.toml"
    lines.write_text('[line.cable]\ndev = "none0"\ncap = "1GB/month"\nprice = "0.5/GB"\n')
    monkeypatch.setenv("PATHCAST_CONFIG", str(lines))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path))
    return ["--world", "sim", "--topology", str(file), "--light"]


def test_cap_price_and_deadline(pathcast, sim):
    status, document, err = pathcast("plan", *sim, "--size", "20GB", "--by", "2h", "--cheap", "--json")
    assert status == Exit.OK, err  # that it does not fit is an answer
    said = light_bytes(2, 20 * 10**9)
    assert 232_000 < document["forecast"]["probe_bytes"] <= said
    assert f"in all at most {size(said)}" in err
    assert document["schema"] == "pathcast.plan/1"
    assert document["fits"] == "no"
    parts = {part["line"]: part for part in document["parts"]}
    assert 0.999 * 10**9 < parts["cable"]["line_bytes"] <= 10**9
    assert parts["cable"]["left_bytes"] == 10**9 - parts["cable"]["line_bytes"]
    assert parts["dsl"]["left_bytes"] is None
    assert document["money"] == pytest.approx(0.5, rel=1e-3)
    assert {change["what"] for change in document["changes"]} >= {"deadline", "size"}
    schema = SCHEMAS["plan"]()
    assert set(document) == set(schema["properties"])
    assert document["forecast"]["options"]


def test_no_month_of_a_long_plan_is_without_its_cap(pathcast, sim, monkeypatch):
    monkeypatch.setattr("pathcast.cli.plan.controls_of", one_control)
    status, document, err = pathcast("plan", *sim, "--size", "900TB", "--by", "200d", "--json")
    assert status == Exit.OK, err
    parts = {part["line"]: part["line_bytes"] for part in document["parts"]}
    # from the middle of November to the 3rd of June
    assert 0.999 * 8 * 10**9 < parts["cable"] <= 8 * 10**9


def one_control(*_):
    return Controls(("cubic",), ("lia",))


def test_a_plan_says_whose_count_a_cap_of_root_goes_by(pathcast, sim, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "SYSTEM", tmp_path / "lines.toml")
    monkeypatch.delenv("PATHCAST_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    status, document, err = pathcast("plan", *sim, "--size", "2GB", "--json")
    assert status == Exit.OK, err
    assert [str(tmp_path / "lines.json") in note for note in document["notes"] if "root's jobs" in note] == [True]


def test_for_people(pathcast, sim):
    status, out, _ = pathcast("plan", *sim, "--size", "2GB", "--max", "cable=100MB")
    assert status == Exit.OK
    assert out.startswith("Fits: 2 GB in ")
    assert "cable 100 MB" in out
    assert re.search(r"done \d\d:\d\d;", out)


@pytest.mark.parametrize(
    ("planned_s", "after_s", "told"),
    [
        ((10.8, 20.0), 10.8, "21:34:10"),
        ((10.8, None), 0.0, "21:34:00"),
        ((None, 20.0), 45.4, "21:34:45"),
        ((10.8, 30_000.0), 30_000.0, "05:54"),
        ((1200.0, 30_000.0), 20.0, "21:34"),
        ((None, None), 20.0, "21:34"),
        ((10.8, 20.0), 200_000.0, "Fri 05:07"),
    ],
)
def test_plans_of_seconds_are_told_by_the_second(planned_s, after_s, told):
    # what is left of a second would tell the sentence and the table apart
    assert clock(datetime(2026, 3, 3, 21, 34, 0, 900_000), planned_s)(after_s) == told


def test_times_are_the_machines_and_say_so_where_the_process_has_others(monkeypatch):
    now = datetime(2026, 3, 3, 21, 34, tzinfo=ZoneInfo("Asia/Tokyo")).astimezone()
    with monkeypatch.context() as there:
        there.setattr(zone, "zone", lambda: ZoneInfo("Asia/Tokyo"))
        there.setenv("TZ", "America/New_York")
        time.tzset()
        at = clock(now, (1200.0,))
        assert (at(20.0), at(5 * 3600.0), at(86_400.0)) == ("21:34 JST", "02:34 JST", "Wed 21:34 JST")
        there.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert clock(now, (1200.0,))(20.0) == "21:34"
    time.tzset()


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (["--size", "0B"], "0B"),
        (["--max", "cable"], "cable"),
        (["--max", "cable=5XB"], "5XB"),
        (["--max", "fibre=5GB"], "fibre"),
        (["--max", "cable=5GB", "--max", "cable=6GB"], "cable=6GB"),
        (["--budget", "much"], "much"),
        (["--budget", "-1"], "-1"),
        (["--max-rate", "fast"], "fast"),
        (["--max-rate", "0Mbit"], "0Mbit"),
        (["--by", "noon"], "noon"),
        (["--hurry"], "--hurry"),
        (["--light", "--thorough"], "--thorough"),
        (["--paths", ","], ","),
    ],
)
def test_bad_words(pathcast, sim, wrong, names):
    given = wrong if "--size" in wrong else ["--size", "1GB", *wrong]
    status, document, _ = pathcast("plan", *sim, *given, "--json")
    assert status == Exit.USAGE
    assert names in document["error"]["message"]


def test_a_file_of_lines_that_is_wrong_is_said_before_anything_is_sent(pathcast, sim, tmp_path):
    (tmp_path / "lines.toml").write_text('[line.cable]\ndev = "none0"\ncap = "much"\n')
    status, _, err = pathcast("plan", *sim, "--size", "1GB")
    assert status == Exit.USAGE
    assert "much" in err
    assert "cost" not in err
