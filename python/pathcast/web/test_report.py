"""The report of some weeks: its figures are those of the rows, and the page needs nothing from anywhere."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from sqlalchemy import text

from pathcast.cli import runner
from pathcast.errors import PathcastError
from pathcast.history import clock, testing
from pathcast.history import place as places
from pathcast.history.identity import host_id
from pathcast.history.journal import Journal
from pathcast.history.rows import Origin
from pathcast.web.facts import Facts
from pathcast.web.report import gathered, page

DAY_S, HOUR_S = 86_400.0, 3600.0
DAYS = 8


@pytest.fixture(autouse=True)
def _own(tmp_path, monkeypatch):
    for name in ("STATE", "RUN"):
        monkeypatch.setenv(f"PATHCAST_{name}_DIR", str(tmp_path / name))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.delenv("PATHCAST_HISTORY", raising=False)
    (tmp_path / "pathcast.toml").write_text("")


@pytest.fixture
def database(request, tmp_path, postgres_url):
    return str(tmp_path / "history.db") if request.param == "sqlite" else postgres_url


@pytest.fixture
def postgres_url(request):
    if "postgresql" not in request.node.name:
        yield None
        return
    if lacks := testing.Postgres.lacks():
        pytest.skip(lacks)
    server = testing.Postgres()
    try:
        yield server.database("report")
    finally:
        server.remove()


def filled(where):
    """Days of a measurement each half hour: cable loses half of it for six hours a day, and is away for five hours
    once; an alert that is over and one that lasts; forecasts, one of them wrong; one act of the simulator."""
    journal, at = Journal(places.parse(where)), clock.now()

    def act(ago_s, world="host"):
        made = journal.act(Origin(world, "far.example.org", "watch", {}, host_id(), "here"))
        made.at = clock.before(at, ago_s)
        return made

    acts = []
    for number in range(48 * DAYS):
        ago_s = 1800.0 * (48 * DAYS - number) - 900.0
        one = act(ago_s)
        if 30 * HOUR_S < ago_s <= 35 * HOUR_S:
            one.event("failed", "no answer <script>alert(1)</script>", about={"code": "away"})
        else:
            available = 10e6 if number % 48 < 12 else 20e6
            one.measurement(testing.measured(available), testing.KEYS, ("out", "in"))
        acts.append(one)
    for ago_s, path, state in ((5 * HOUR_S, "cable", "firing"), (3 * HOUR_S, "cable", "over"), (60.0, "dsl", "firing")):
        alert = act(ago_s)
        since = clock.iso(alert.at.utc_us)
        about = {"path": path, "alert": f"{path}.down", "state": state, "since": since}
        alert.event("alert", f"{path}: {state} & told", testing.KEY1, about=about)
        acts.append(alert)
    for ago_s, rate_bps in ((7200.0, 24e6), (3600.0, 5e6)):
        forecast = act(ago_s)
        forecast.forecast(testing.forecast_of(), {"path1": testing.KEY1}, 10_000_000)
        sent = act(ago_s - 60.0)
        over = [(testing.KEY1, "path1", 10_000_000, 0)]
        sent.transfer(testing.sent(rate_bps=rate_bps), over, forecast_id=forecast.id)
        acts += [forecast, sent]
    simulated = act(600.0, "sim")
    simulated.measurement(testing.measured(1e6, ("path2",)), testing.KEYS, ("out", "in"))
    acts.append(simulated)
    journal._add_all([one.rows for one in acts])
    journal.close()
    return where


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_its_figures_are_those_of_the_rows(database):
    found = gathered(Facts(places.parse(filled(database))), 28 * DAY_S)
    assert [(way.line_id, way.direction) for way in found.ways] == [("cable", "out"), ("cable", "in")]
    out = found.ways[0].quality
    assert out.usual_bps == 20e6
    # a quarter of the days, and of the rest of the one with the gap
    assert out.share == pytest.approx(0.25, abs=0.02)
    assert found.away_s("cable") == pytest.approx(5 * HOUR_S)
    assert found.away_s("cable", unmeasured=True) == 0
    [spent] = found.spent
    count = 48 * DAYS - 10
    assert (spent.command, spent.measurements, spent.bytes) == ("watch", count, count * 100_000)
    lasting, over = found.alerts
    assert (lasting["path"], lasting["until"]) == ("dsl", None)
    assert over["path"] == "cable"
    assert over["until"] > over["since"]
    [told] = found.sentences()
    assert told.startswith("cable: degraded 2")
    assert told.endswith(", away 5 h")
    # rounds without an answer that make no gap
    rounds = [replace(one, down=n in (3, 4)) for n, one in enumerate(found.ways[0].rounds)]
    short = replace(found, ways=(replace(found.ways[0], rounds=tuple(rounds)),), gaps=())
    assert short.sentences()[0].endswith(f", not away for long: no answer in 2 of {len(rounds)} rounds")
    assert replace(found, gaps=()).sentences()[0].endswith(", never away")
    assert replace(found, gaps=(), gone=frozenset({"cable"})).sentences()[0].endswith(", not away for long")
    # a time in which nothing is has no figures of another
    week = gathered(Facts(places.parse(database)), 7 * DAY_S)
    assert len(week.ways[0].rounds) == 48 * 7 - 10


class Seen(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data + "|"


def test_the_page_has_all_of_it_and_needs_nothing(tmp_path):
    html = page(gathered(Facts(places.parse(filled(str(tmp_path / "history.db")))), 28 * DAY_S))
    seen = Seen(html)
    assert not seen.open
    tags = [tag for tag, _ in seen.tags]
    assert not {"script", "link", "iframe", "form"} & set(tags)
    sources = [value for _, about in seen.tags for name, value in about.items() if name in ("src", "href")]
    assert len(sources) == 1
    assert sources[0].startswith("data:image/svg+xml;base64,")
    assert "url(" not in html
    assert not [about for _, about in seen.tags if any(name.startswith("on") for name in about)]
    assert "no answer <script>alert(1)</script>|" in seen.words
    assert "cable: firing & told" in seen.words
    assert "|5 h|" in seen.words
    assert "1 of 2 transfers came within" in seen.words
    assert "|+400 %|no|" in seen.words
    assert re.search(
        r"degraded 2[45]\.?\d* % of the time \(out\)|degraded 2[45]\.?\d* % of the time \(in\)", seen.words
    )
    hours = re.search(r"(\d\d:00 to \d\d:00 \(5\d\.?\d* %\)(, )?){3}", seen.words)
    assert hours, seen.words
    assert "single hours were degraded" in seen.words


def test_an_alert_that_began_before_the_time_and_one_told_twice(tmp_path):
    where = filled(str(tmp_path / "history.db"))
    # of the alert that is over only its end lies within three and a half hours
    found = gathered(Facts(places.parse(where)), 3.5 * HOUR_S)
    assert [(one["path"], one["until"] is None) for one in found.alerts] == [("dsl", True), ("cable", False)]
    journal = Journal(places.parse(where))
    again = journal.act(Origin("host", "far.example.org", "watch", {}, host_id(), "here"))
    again.event("alert", "again", testing.KEY1, about={"path": "dsl", "alert": "dsl.down", "state": "firing"})
    journal.add(again)
    journal.close()
    assert len(gathered(Facts(places.parse(where)), 3.5 * HOUR_S).alerts) == 2


def test_where_nothing_was_recorded_it_says_so(tmp_path):
    file = tmp_path / "history.db"
    with pytest.raises(PathcastError, match="there is no history"):
        gathered(Facts(places.parse(str(file))), DAY_S)
    journal = Journal(places.parse(filled(str(file))))
    with journal.store.writing() as connection:
        for table in ("measurement", "event", "forecast_path", "forecast"):
            connection.execute(text(f"DELETE FROM {table}"))
    journal.close()
    with pytest.raises(PathcastError, match="nothing was recorded in the last 7 days") as error:
        page(gathered(Facts(places.parse(str(file))), 7 * DAY_S))
    assert error.value.exit == 1


def test_the_command_writes_it(tmp_path, capsys):
    history, html = filled(str(tmp_path / "history.db")), tmp_path / "r.html"
    asked = ["watch", "report", "--weeks", "2", "--html", str(html), "--history", history]
    assert runner.run(asked) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{html}: 2 weeks"
    assert html.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("options", "status", "named"),
    [
        ([], 2, "Missing option '--html'"),
        (["--html", "{}"], 2, "is a directory"),
        (["--html", "{}/no/r.html"], 2, "there is no `"),
        (["--html", "{}/r.html", "--weeks", "0"], 2, "--weeks `0`: it must be greater than or equal to 1"),
        (["--html", "{}/r.html", "--weeks", "4w"], 2, "--weeks `4w`: it must be a valid integer"),
        (["--html", "{}/r.html", "--history", "ftp://there"], 2, "allowed are a FILE"),
        (["--html", "{}/r.html", "--history", "/no/such.db"], 2, "there is no history `/no/such.db`"),
        (["--html", "{}/r.html", "far"], 2, "unexpected extra argument"),
        (["--html", "{}/r.html", "--week", "4"], 2, "did you mean `--weeks`?"),
        (["--html", "{}/r.html"], 1, "there is no history"),
    ],
)
def test_wrong_words_are_refused_with_what_is_allowed(options, status, named, tmp_path, capsys):
    assert runner.run(["watch", "report", *(word.format(tmp_path) for word in options)]) == status
    said = capsys.readouterr()
    assert named in said.err
    assert said.out == ""
    assert not (tmp_path / "r.html").exists()


def test_its_usage_has_no_host(capsys):
    assert runner.run(["watch", "report", "--help"]) == 0
    assert "Usage: pathcast watch report [OPTIONS]" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["report:4711"], ["--", "report"], ["reports"], ["--every", "10s", "report"]])
def test_hosts_that_are_called_so_stay_hosts(words, monkeypatch):
    from pathcast.cli import watch

    asked = []

    def none(host, *_):
        asked.append(host)
        raise PathcastError("no", "enough")

    monkeypatch.setattr(watch, "target", none)
    assert runner.run(["watch", "--no-history", *words] if words[0].startswith("--e") else ["watch", *words]) == 1
    assert asked == [words[-1]]


@pytest.mark.parametrize(
    ("line", "words"),
    [("pathcast watch rep", ["report"]), ("pathcast watch report --we", ["--weeks"]), ("pathcast watch far rep", [])],
)
def test_a_shell_completes_it(line, words, monkeypatch, capsys):
    monkeypatch.setenv(runner.COMPLETE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    with pytest.raises(SystemExit):
        raise SystemExit(runner.run([]))
    assert capsys.readouterr().out.split() == words
