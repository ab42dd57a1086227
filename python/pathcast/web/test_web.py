"""The page: what it shows, what it says where there is nothing, and what it refuses."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import runpy
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="missing: starlette (no Python package)")
from starlette.testclient import TestClient

from pathcast.errors import PathcastError
from pathcast.history import clock, testing
from pathcast.history import place as places
from pathcast.history.browse import Browser
from pathcast.history.identity import host_id, remote_of_address
from pathcast.history.journal import Journal
from pathcast.history.read import Reader
from pathcast.history.rows import Origin
from pathcast.history.store import Store
from pathcast.history.trend import gaps, means
from pathcast.web.app import HERE, application
from pathcast.web.facts import SPANS, Facts

PAGES = ["/", "/live", "/weeks?since=28d", "/forecasts", "/events"]


@pytest.fixture(autouse=True)
def _own(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    (tmp_path / "pathcast.toml").write_text('[line.cable]\nfrom = "10.0.0.2"\nid = "cable"\ncap = "1TB/month"\n')


def filled(file):
    """Two days, a measurement each half hour, away for six hours of the first; an alert; a forecast and what came."""
    journal, at = Journal(places.parse(str(file))), clock.now()

    def act(ago_s):
        made = journal.act(Origin("host", "far.example.org", "watch", {}, host_id(), "here"))
        made.at = clock.before(at, ago_s)
        return made

    acts = []
    for number in range(96):
        ago_s = 1800.0 * (96 - number)
        one = act(ago_s)
        if 30 * 3600 < ago_s <= 36 * 3600:
            one.event("failed", "no answer <script>alert(1)</script>", about={"code": "away"})
        else:
            one.measurement(testing.measured(20e6, ("path1", "path2")), testing.KEYS, ("out", "in"))
        acts.append(one.rows)
    journal._add_all(acts)  # in one transaction: quicker
    alert = act(60.0)
    about = {"path": "cable", "alert": "cable.available < 70%", "state": "firing"}
    alert.event("alert", "cable: available 4 of usually 17 Mbit/s", testing.KEY1, about=about)
    journal.add(alert)
    forecast = act(30.0)
    forecast.forecast(testing.forecast_of(), {"path1": testing.KEY1}, 10_000_000)
    journal.add(forecast)
    sent = act(20.0)
    sent.transfer(testing.sent(rate_bps=24e6), [(testing.KEY1, "path1", 10_000_000, 0)])
    journal.add(sent)
    journal.close()
    return file


def client(file, prefix="", **more):
    place = None if file is None else places.parse(str(file))
    return TestClient(application(Facts(place), prefix=prefix), base_url="http://localhost", **more)


@pytest.fixture
def page(tmp_path):
    return client(filled(tmp_path / "history.db"))


def test_it_shows_lines_weeks_forecasts_and_alerts(page):
    now = page.get("/").text
    assert "cable: available 4 of usually 17 Mbit/s" in now
    assert "<td>20 Mbit/s</td><td>40 Mbit/s</td>" in now
    assert "0 B of 1 TB" in now
    weeks = page.get("/weeks?since=7d").text
    data = [json.loads(of) for of in re.findall(r'<script type="application/json">(.*?)</script>', weeks)]
    names = [of["name"] for of in data]
    rates = [f"{name}_bps-{way}" for name in ("available", "capacity") for way in ("out", "in")]
    assert names == [*rates, "rtt_s", "delay_s", "queue_s", "loss"]
    assert [of["label"] for of in data[0]["series"]] == ["cable out", "dsl out"]
    (queue,) = (of for of in data if of["name"] == "queue_s")
    assert queue["series"][0]["values"][0] == pytest.approx(0.002)
    # the hours without an answer are a gap in every series, and stand in words with their reason
    assert all(series["values"].count(None) == 1 for series in data[0]["series"])
    assert "<td>6 h</td>" in weeks
    assert "no answer &lt;script&gt;" in weeks
    assert "<script>alert" not in weeks
    # without a script it is the text that is read
    times = re.findall(r"<time(.*?)>(.*?)</time>", weeks)
    assert len(times) > 100
    for attributes, text in times:
        assert re.fullmatch(r' datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"', attributes)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", text)
    forecasts = page.get("/forecasts").text
    assert "25 Mbit/s" in forecasts
    assert "24 Mbit/s" in forecasts
    assert "<td>yes</td>" in forecasts
    assert "alert" in page.get("/events?since=1d").text


def test_paths_that_were_recorded_without_names_are_called_as_their_lines(tmp_path):
    journal = Journal(places.parse(str(tmp_path / "history.db")))
    run = journal.act(Origin("host", None, "run", {}, host_id(), "here"))
    run.transfer(testing.sent(), [(testing.KEY1, None, 6_000_000, 0), (testing.KEY2, None, 4_000_000, 0)], kind="run")
    journal.add(run)
    journal.close()
    (tmp_path / "pathcast.toml").write_text('[line.home]\nfrom = "10.0.0.2"\nid = "cable"\n')
    assert "home 6 MB, dsl 4 MB" in client(tmp_path / "history.db").get("/forecasts").text


def test_a_line_is_shown_once_by_whatever_its_far_end_was_known(tmp_path):
    journal, at = Journal(places.parse(str(tmp_path / "history.db"))), clock.now()
    by_address = replace(testing.KEY1, remote_id=remote_of_address(testing.KEY1.remote))
    for ago_s, key, rate_bps in ((60.0, by_address, 10e6), (30.0, testing.KEY1, 20e6)):
        act = journal.act(Origin("host", "far.example.org", "measure", {}, host_id(), "here"))
        act.at = clock.before(at, ago_s)
        act.measurement(testing.measured(rate_bps), {"path1": key}, ("out", "in"))
        journal.add(act)
    journal.close()
    [line] = Facts(places.parse(str(tmp_path / "history.db"))).lines()
    assert line["ways"]["out"].available.value == 20e6


def acts_of(file, *acts):
    """Into a history: how long ago, and what fills the act."""
    journal, at, made = Journal(places.parse(str(file))), clock.now(), []
    for ago_s, fill in acts:
        act = journal.act(Origin("host", "far.example.org", "watch", {}, host_id(), "here"))
        act.at = clock.before(at, ago_s)
        fill(act)
        made.append(act.rows)
    journal._add_all(made)
    journal.close()
    return file


def of_path(number, key=None, **more):
    """Fills an act with a measurement."""
    name = f"path{number}"
    keys = testing.KEYS if key is None else {name: key}
    return lambda act: act.measurement(testing.measured(names=(name,), keys=keys, **more), keys, ("out", "in"))


def fails(act, key=None, text="no answer"):
    act.event("failed", text, key, about={"code": "away"})


def test_a_line_that_others_have_overtaken_is_shown_and_is_not_up(tmp_path, monkeypatch):
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)  # it is no older when the page is made
    often = [(30.0 * number, of_path(1)) for number in range(80, 0, -1)]
    file = acts_of(tmp_path / "history.db", (7200.0, of_path(2)), *often)
    lines = {line["line"]: line for line in Facts(places.parse(str(file))).lines()}
    assert {name: line["up"] for name, line in lines.items()} == {"cable": True, "path2": False}
    page = client(file).get("/").text
    assert page.count("Up, measured <time") == 1
    assert len(re.findall(r"Measured (120 min|2 h) ago, <time", page)) == 1


def test_a_line_that_failed_after_it_was_measured_is_not_up(tmp_path):
    acts = [(120.0, of_path(1)), (110.0, of_path(2))]
    file = acts_of(tmp_path / "history.db", *acts, (60.0, lambda act: fails(act, testing.KEY2, "eth1 is down")))
    page = client(file).get("/").text
    assert page.count("Up, measured <time") == 1
    assert page.count("Not reached: eth1 is down; measured <time") == 1
    acts_of(file, (50.0, fails))  # the far end
    assert client(file).get("/").text.count("Not reached: no answer; measured") == 2
    acts_of(file, (5.0, of_path(2)))
    assert client(file).get("/").text.count("Up, measured") == 1


def test_a_line_whose_address_has_changed_is_one(tmp_path):
    old = replace(testing.KEY1, local="10.9.9.9")
    file = acts_of(tmp_path / "history.db", (7200.0, of_path(1, old)), (60.0, of_path(1)))
    assert [line["local"] for line in Facts(places.parse(str(file))).lines()] == [testing.KEY1.local]


@pytest.mark.parametrize(("why", "shown"), [(None, 20e6), ("too-short", 20e6), ("host", None)])
def test_what_something_is_said_against_is_no_fact(tmp_path, why, shown):
    file = acts_of(tmp_path / "history.db", (60.0, of_path(1, why=why)))
    [line] = Facts(places.parse(str(file))).lines()
    assert line["ways"]["out"].available.value == shown
    assert line["ways"]["out"].capacity.value == 40e6


def test_an_alert_lasts_whatever_has_happened_since(tmp_path):
    """Also for a watch that starts anew."""
    from pathcast.cli.watch import _End
    from pathcast.forecast.record import Recorder

    about = {"target": "far.example.org", "path": "cable", "alert": "cable.down", "state": "firing"}

    def fires(act):
        act.event("alert", "cable: down", testing.KEY1, about=about)

    file = acts_of(tmp_path / "history.db", (8 * 86_400.0, fires), *[(9.0, fails)] * 1100)
    place = places.parse(str(file))
    assert [one["text"] for one in Facts(place).firing()] == ["cable: down"]
    recorder = Recorder(place, "watch")
    of = SimpleNamespace(name="far.example.org")
    assert [event.about["state"] for event in _End(of, recorder, frozenset(), False).alerted()] == ["firing"]
    recorder.close()
    text = client(file).get("/events").text
    assert "The newest 200; what is older in this time is not shown." in text
    assert text.count("<tr>") == 201
    about = {**about, "state": "over"}
    acts_of(file, (1.0, fires))
    assert Facts(place).firing() == []


def test_an_alert_that_a_watch_no_longer_asks_for_does_not_fire(tmp_path):
    from pathcast.cli.watch import _End
    from pathcast.forecast.record import Recorder
    from pathcast.service.test_watching import Far, Time, watch

    about = {"target": "far.example.org", "path": "cable", "alert": "cable.down", "state": "firing"}
    told = (60.0, lambda act: act.event("alert", "cable: down", testing.KEY1, about=about))
    place = places.parse(str(acts_of(tmp_path / "history.db", told)))
    recorder, time = Recorder(place, "watch"), Time()
    of = SimpleNamespace(name="far.example.org")
    end = _End(of, replace(recorder, target=of.name), frozenset(), False)
    far = Far(time, of.name)
    far.keep = end.keep
    assert len(Facts(place).firing()) == 1
    made, *_ = watch(time, [far], ["cable.down for 5m"], alerted=end.alerted())
    made.run(1)
    recorder.close()
    assert Facts(place).firing() == []


@pytest.mark.parametrize(
    ("ages_s", "fires"),
    [
        ([1200.0, 900.0, 600.0, 300.0], True),
        ([2400.0, 2100.0, 1800.0, 1500.0], False),
        ([14_400.0, 10_800.0, 7200.0, 3600.0], True),  # one that looks every hour
        ([28_800.0, 25_200.0, 21_600.0, 18_000.0], False),
        ([], False),
    ],
)
@pytest.mark.parametrize("round", [of_path(1), fails])
def test_an_alert_of_a_watch_that_has_ended_does_not_fire_now(tmp_path, ages_s, fires, round):
    about = {"target": "far.example.org", "path": "cable", "alert": "cable.down", "state": "firing"}
    told = (5 * 86_400.0, lambda act: act.event("alert", "cable: down", testing.KEY1, about=about))
    file = acts_of(tmp_path / "history.db", told, *[(age_s, round) for age_s in ages_s])
    [one] = Facts(places.parse(str(file))).firing()
    assert (one["last"] is None) == fires
    page = client(file).get("/").text
    assert "cable: down" in page
    assert ('aria-label="Alerts"' in page, "last known at" in page) == (fires, not fires)


def test_a_watch_that_reaches_nobody_is_told_at_once(tmp_path):
    from pathcast.cli.target import Target
    from pathcast.forecast.record import Recorder

    place = places.parse(str(acts_of(tmp_path / "history.db", (60.0, of_path(1)))))

    def nobody():
        raise PathcastError("no-answer", "nobody answers")

    for lasting in (False, True):
        recorder = Recorder(place, "watch")
        of = Target(
            "host", "far.example.org", "far", None, lambda: contextlib.nullcontext(nobody), dict, recorder, lasting
        )
        with of.open() as make, pytest.raises(PathcastError), make():
            pass
        assert len(Reader(Store(place)).events()) == 2 * lasting


def test_lines_of_networks_that_are_files_are_not_shown(tmp_path):
    journal = Journal(places.parse(str(tmp_path / "history.db")))
    for world, target in (("host", "far.example.org"), ("sim", "toy")):
        made = journal.act(Origin(world, target, "measure", {}, host_id(), "here"))
        made.measurement(testing.measured(20e6, ("path1",)), testing.KEYS, ("out", "in"))
        made.transfer(testing.sent(rate_bps=24e6), [(testing.KEY1, "path1", 10_000_000, 0)])
        journal.add(made)
    journal.close()
    facts = Facts(places.parse(str(tmp_path / "history.db")))
    assert {line["target"] for line in facts.lines()} == {"far.example.org"}
    assert {sent.target for sent in facts.transfers("7d")} == {"far.example.org"}


def test_means_and_gaps_are_those_of_the_rows(tmp_path):
    browser = Browser(Store(places.parse(str(filled(tmp_path / "history.db"))), read_only=True))
    found = means(browser, SPANS["7d"][0], 86_400.0)
    assert sum(of.count for of in found) == 4 * 84
    assert {(of.line_id, of.direction) for of in found} == {(a, b) for a in ("cable", "dsl") for b in ("out", "in")}
    away = gaps(browser, SPANS["7d"][0], browser.events(SPANS["7d"][0]))
    assert [(of.line_id, round(of.until_s - of.from_s)) for of in sorted(away, key=str)] == [
        ("cable", 6 * 3600),
        ("dsl", 6 * 3600),
    ]


def test_a_far_end_that_never_answered_is_no_reason_why_a_line_was_away(tmp_path):
    file = filled(tmp_path / "history.db")
    journal = Journal(places.parse(str(file)))
    for target in ["nowhere.invalid"] * 50:
        made = journal.act(Origin("host", target, "plan", {}, host_id(), "here"))
        made.at = clock.before(clock.now(), 33 * 3600.0)
        made.event("failed", "cannot find the host", about={"code": "resolve"})
        journal.add(made)
    journal.close()
    browser = Browser(Store(places.parse(str(file)), read_only=True))
    away = gaps(browser, SPANS["7d"][0], browser.events(SPANS["7d"][0]))
    assert {gap.why for gap in away} == {"no answer <script>alert(1)</script>"}


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("state", ["none", "absent", "empty", "newer", "foreign", "no file of ours"])
def test_without_a_history_it_says_so(tmp_path, path, state):
    file = tmp_path / "history.db"
    if state == "empty":
        file.touch()
    elif state == "newer":
        filled(file)
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE pathcast_version SET version_num = '9999'")
    elif state == "foreign":
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE other (x)")
    elif state == "no file of ours":
        file.write_bytes(b"text " * 1000)
    before = file.read_bytes() if file.exists() else None
    answer = client(None if state == "none" else file).get(path)
    assert answer.status_code == 200
    if path != "/live":
        words = {
            "none": "no history is kept",
            "absent": "there is no history",
            "empty": "nothing was recorded yet",
            "newer": "does not know",
            "foreign": "holds something else",
            "no file of ours": "is no history",
        }
        assert words[state] in answer.text
    assert "Traceback" not in answer.text
    # and nothing was made or changed
    assert (file.read_bytes() if file.exists() else None) == before


def test_a_writer_does_not_keep_it_from_reading_and_a_lock_is_said(tmp_path):
    file = filled(tmp_path / "history.db")
    with sqlite3.connect(file, isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert "20 Mbit/s" in client(file).get("/").text
        writer.execute("ROLLBACK")
        writer.execute("PRAGMA journal_mode=DELETE")
        writer.execute("BEGIN EXCLUSIVE")
        assert "another command writes to it" in client(file).get("/events").text


def test_a_history_that_may_only_be_read_is_read():
    if os.geteuid() != 0:
        pytest.skip("missing: root")
    directory = Path(tempfile.mkdtemp())
    try:
        filled(directory / "history.db")
        directory.chmod(0o755)
        (directory / "history.db").chmod(0o644)
        code: list[int] = []
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            try:
                found = Browser(Store(places.parse(str(directory / "history.db")), read_only=True)).events(None, 5)
                os._exit(0 if len(found) == 5 else 2)
            except BaseException:
                os._exit(1)
        code.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        assert code == [0]
    finally:
        shutil.rmtree(directory)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::2]"])
def test_another_name_is_refused(page, host):
    answer = page.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "Mbit/s" not in answer.text


@pytest.mark.parametrize("host", ["localhost:9276", "127.0.0.1", "[::1]:9276", "LOCALHOST"])
def test_its_own_names_are_answered(page, host):
    assert page.get("/live", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(page, method):
    assert page.request(method, "/").status_code == 405


@pytest.mark.parametrize("path", [*PAGES, "/assets/page.js", "/nosuch"])
def test_every_answer_has_the_policy(page, path):
    answer = page.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    if path in PAGES:  # nothing that the policy would stop, and nothing from elsewhere
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|https?://", answer.text)


def test_a_prefix_is_before_every_link(tmp_path):
    made = client(filled(tmp_path / "history.db"), "/pathcast")
    text = made.get("/pathcast/weeks").text
    assert all(of.startswith(("/pathcast/", "#", "?")) for of in re.findall(r'(?:href|src)="([^"]*)"', text))
    assert made.get("/pathcast/assets/page.css").status_code == 200
    assert made.get("/weeks").status_code == 404


@pytest.mark.parametrize("path", ["/assets/../app.py", "/assets/%2e%2e/app.py", "/assets/..%2fapp.py", "/assets/"])
def test_no_other_file_is_given(page, path):
    assert page.get(path).status_code == 404


def test_what_is_not_our_own_is_as_its_makers_ship_it():
    told = (HERE / "assets/VENDORED").read_text()
    sums = dict(reversed(line.split()) for line in told.splitlines() if re.match(r"[0-9a-f]{64} ", line))
    assert set(sums) == {path.name for path in (HERE / "assets").glob("uPlot*")}
    for name, digest in sums.items():
        assert hashlib.sha256((HERE / "assets" / name).read_bytes()).hexdigest() == digest


@pytest.fixture
def chromium():
    if (found := shutil.which("chromium")) is None:
        pytest.skip("missing: chromium")
    return found


@contextlib.contextmanager
def served(app):
    """Where it answers."""
    import asyncio
    import socket

    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, ws="none", lifespan="off", log_level="error"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("path", ["", "weeks?since=7d", "forecasts", "events"])
def test_in_a_browser_it_draws(tmp_path, chromium, path):
    app = application(Facts(places.parse(str(filled(tmp_path / "history.db")))), prefix="/p")
    with served(app) as url:
        words = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server"]
        words += [
            f"--user-data-dir={tmp_path / 'browser'}",
            "--virtual-time-budget=4000",
            "--dump-dom",
            f"{url}p/{path}",
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    if path.startswith("weeks"):
        assert done.stdout.count("<canvas") == 8
        assert done.stdout.count('aria-hidden="true"') == 8
    # times are the viewer's
    assert not re.search(r"<time[^>]*>[^<]*UTC", done.stdout)
    assert "Content Security Policy" not in done.stderr


WIDTHS = """[
  document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth, document.querySelectorAll("td").length,
  [...document.querySelectorAll(".scroll")].filter((of) => of.scrollWidth > of.clientWidth).map(of => of.ariaLabel)]"""


def browser_of_ours():
    return runpy.run_path(str(HERE.parents[2] / "scripts" / "browser.py"))["Browser"]()


def test_a_browser_ends_with_all_that_it_started(chromium):
    browser = browser_of_ours()
    assert browser.tells("about:blank", 1200, "innerWidth") == 1200
    processes = browser.processes()
    assert len(processes) > 1
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):  # a renderer may end of itself
            if pid != os.getpgid(pid):
                os.kill(pid, signal.SIGSTOP)  # as slow as a process can be
    browser.close()
    assert browser.processes() == []


def test_on_a_telephone_nothing_is_wider_than_the_screen(tmp_path, chromium, record, monkeypatch):
    """Neither the page nor a table in it, with all that may be there."""
    from pathcast.service import jobs

    command = ("rsync", "-a", "--info=progress2", "/srv/data/with/a/long/path", "far.example.org:/srv/backups/2026/")
    jobs.add(jobs.Job("nightly", ("22:00",), "06:00", (), command, "/"))
    ended = {"event": "ended", "at_s": 1e9, "status": 0, "elapsed_s": 16e3, "expected_s": 15e3, "in_time": True}
    jobs.note("nightly", {**ended, "bytes_sent": 3 * 10**11, "lines": {"dsl": 10**11, "cable": 2 * 10**11}})
    record.tell({"progress": progress_of()})
    flow = {"local": "[2001:db8:1::2]:43210", "remote": "[2001:db8:2::1]:5000", "control": "lia", "phase": "avoidance"}
    flow |= {"rate_bps": 9e6, "rtt_s": 0.02, "available_bps": 1e7, "bytes_acked": 10**9}
    live = Facts.live
    monkeypatch.setattr(Facts, "live", lambda self: {**live(self), "flows": [flow]})
    browser = browser_of_ours()
    try:
        with served(application(Facts(places.parse(str(filled(tmp_path / "history.db")))))) as url:
            for path in ("", "weeks?since=7d", "forecasts", "events"):
                for width in (320, 360, 1200):
                    whole, body, screen, cells, wide = browser.tells(url + path, width, WIDTHS)
                    assert (whole, screen) == (width, width), (path, width)
                    assert body <= width, (path, width)
                    assert cells > 0
                    assert wide == [], (path, width)
    finally:
        browser.close()


def test_jobs_are_shown_with_their_ends_of_whatever_pathcast(tmp_path):
    from pathcast.service import jobs

    for name in ("nightly", "weekly"):
        jobs.add(jobs.Job(name, ("22:00",), "06:00", (), ("rsync", "-a", "<b>"), "/"))
    ended = {"event": "ended", "at_s": 1e9, "status": 0, "elapsed_s": 60.0, "expected_s": 50.0, "in_time": True}
    jobs.note("nightly", {"event": "begun", "at_s": 1e9 - 60, "by": None})
    jobs.note("nightly", {**ended, "bytes_sent": 10**9, "lines": {"dsl": 10**9}})
    jobs.note("weekly", {"event": "ended"})
    (tmp_path / "jobs" / "other.json").write_text("{")
    page = client(None).get("/").text
    assert "dsl 1 GB" in page
    assert '<td><time datetime="2001-09-09T01:46:40.000Z">2001-09-09 01:46 UTC</time></td>' in page
    assert "rsync -a &lt;b&gt;" in page
    assert page.count("<h3>") == 2
    assert "other" in page


def test_a_jobs_file_that_cannot_be_read_is_told_beside_the_others(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "nightly.json").write_text("{")
    page = client(None).get("/").text
    assert "nightly" in page
    assert "There is no job" not in page


@pytest.fixture
def record(tmp_path):
    """A run of the job `nightly`, as one that lives has it."""
    from pathcast.runtime.state import Record

    (tmp_path / "run").mkdir(mode=0o700)
    made = Record.of_this_process("run", "1", {}, {"command": ["rsync"], "control": "lia", "job": "nightly"})
    made.claim()
    return made


def progress_of(done=0.42, end=(1e9, 1e9 - 60, 1e9 + 60), wait=None):
    rates = {"dsl": 9.1e6, "cable": 17e6}
    ends = dict(zip(("value", "low", "high"), end, strict=True))
    return {
        "at_s": 0,
        "done": done,
        "bytes": 1_500_000,
        "control": "lia",
        "rates_bps": rates,
        "end_s": ends,
        "wait": wait,
    }


def test_a_run_shows_how_far_it_is_and_when_it_ends(record, tmp_path):
    from pathcast.service import jobs

    jobs.add(jobs.Job("nightly", ("22:00",), "06:00", (), ("rsync", "-a", "/srv"), "/"))
    page = client(None)
    assert "<progress" not in page.get("/live").text  # it has told nothing yet
    record.tell({"progress": progress_of()})
    for path, count in (("/live", 1), ("/", 2)):  # of the run, and of the job
        text = page.get(path).text
        assert text.count('<progress max="1" value="0.42" aria-label="nightly"></progress> 42 %') == count
        assert text.count("; dsl 9.1 Mbit/s, cable 17 Mbit/s; done <time") == count
        assert text.count('<time datetime="2001-09-09T01:47:40.000Z">2001-09-09 01:47 UTC</time>') == count
    record.tell({"progress": progress_of(end=(None, None, None), wait={"since_s": 1e9, "lines": ["dsl", "cable"]})})
    assert "it waits for dsl or cable" in page.get("/live").text
    record.tell({"progress": progress_of(end=(None, None, None))})
    assert "no end in sight" in page.get("/live").text
    record.tell({"progress": progress_of(done=None, end=(None, None, None))})  # no size
    text = page.get("/live").text
    assert "1.5 MB" in text
    assert " %" not in text
    record.tell({"progress": {"of": "a later version"}})
    assert page.get("/").status_code == 200
    record.forget()
    record.tell({"progress": progress_of()})
    assert "<progress" not in page.get("/").text
    assert not list((tmp_path / "run").glob("*.json"))
    assert not list((tmp_path / "run").glob(".claim*"))
