"""What Prometheus reads of a watch."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time as clocks
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pathcast.errors import PathcastError
from pathcast.history import place as places
from pathcast.history import testing
from pathcast.history.identity import host_id
from pathcast.history.journal import Journal
from pathcast.history.rows import Origin
from pathcast.history.store import Store
from pathcast.service.metrics import collected, forecasts, probed, serve, where
from pathcast.service.probes import Probed, Probes, Refused
from pathcast.service.test_watching import HOUR_S, PATH_BYTES, Far, Time, watch, worst_day
from pathcast.units import span

PATIENCE_S = 60.0


def forecast(file, target="far", seconds=100.0):
    """A history whose newest forecast to it takes so long."""
    place = places.parse(str(file))
    journal = Journal(place)
    act = journal.act(Origin("host", target, "predict", {}, host_id(), "here"))
    document = testing.forecast_of()
    other = {"paths": ["path2"], "control": "lia", "duration_s": {"value": 1.0, "low": 1.0, "high": 1.0}}
    document["options"][0]["duration_s"] = {"value": seconds, "low": 0.8 * seconds, "high": 1.5 * seconds}
    document["options"].insert(0, other)
    act.forecast(document, {"path1": testing.KEY1}, 10_000_000)
    journal.add(act)
    journal.close()
    return Store(place, read_only=True)


def read(port):
    text = build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    families = list(text_string_to_metric_families(text))
    assert all(of.documentation for of in families)
    return {(one.name, *sorted(one.labels.values())): one.value for of in families for one in of.samples}


def test_metrics_have_base_units_and_what_was_seen():
    time = Time()
    end = Far(time, lines={"cable": lambda s: 17e6 if s < HOUR_S else None, "dsl": lambda _: 9e6})
    made, *_ = watch(time, [end], ["cable.down for 5m"])
    port, stop = serve("127.0.0.1", 0, lambda: collected(made))
    try:
        assert read(port)["pathcast_rounds_total", "far"] == 0
        made.run(3)
        found = read(port)
        assert 16e6 < found["pathcast_path_available_bits_per_second", "cable", "far", "in"] < 18e6
        assert found["pathcast_path_capacity_bits_per_second", "cable", "far", "out"] == 34e6
        assert found["pathcast_path_round_trip_seconds", "cable", "far"] == 0.02
        assert found["pathcast_path_loss_ratio", "cable", "far", "out"] == 0
        assert found["pathcast_path_up", "cable", "far"] == found["pathcast_target_up", "far"] == 1
        assert found["pathcast_alert_firing", "cable", "cable.down for 5m", "far", "out"] == 0
        assert found["pathcast_rounds_total", "far"] == 3
        assert found["pathcast_probe_bytes_total",] == sum(bytes for *_, bytes in end.sent)
        assert found["pathcast_allowance_bytes",] == 50_000_000
        assert found["pathcast_allowance_used_bytes",] == made.ledger.used() > found["pathcast_probe_bytes_total",]
        seen = found["pathcast_path_measured_timestamp_seconds", "cable", "far"]
        assert read(port)["pathcast_path_measured_timestamp_seconds", "cable", "far"] == seen
        for nothing in ("nosuch", "", "probe"):  # it measures nothing here
            with pytest.raises(HTTPError, match="404"):
                build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/{nothing}", timeout=60)
        at_s = time.now().utc_us / 1e6
        assert at_s - 10 < found["pathcast_path_measured_timestamp_seconds", "cable", "far"] <= at_s + 1e-3
        time.wait(2 * HOUR_S)
        made.run(3)
        found = read(port)
        assert ("pathcast_path_available_bits_per_second", "cable", "far", "in") not in found
        assert (found["pathcast_path_up", "cable", "far"], found["pathcast_path_up", "dsl", "far"]) == (0, 1)
        assert found["pathcast_alert_firing", "cable", "cable.down for 5m", "far", "out"] == 1
        with pytest.raises(PathcastError, match=f"cannot listen on 127.0.0.1 port {port}"):
            serve("127.0.0.1", port, lambda: collected(made))
    finally:
        stop()


def test_what_is_used_of_the_allowance_is_of_the_last_24_hours_whatever_becomes_of_rounds():
    time = Time()
    made, *_ = watch(time, [Far(time, away=(HOUR_S, 1e9))])

    def used():
        [family] = [of for of in collected(made) if of.name == "pathcast_allowance_used_bytes"]
        return family.samples[0].value

    made.run(1)
    first = used()
    assert first == made.ledger.used() > 0
    time.wait(2 * HOUR_S)
    made.run(1)  # nobody answers: a session was tried
    assert used() == made.ledger.used() > first
    time.wait(25 * HOUR_S)  # and nobody is asked
    assert used() == 0


def test_before_its_first_round_nothing_is_said_of_a_far_end_and_of_one_that_is_away_it_is():
    time = Time()
    ends = [Far(time, "far", named=("cable",)), Far(time, "gone", away=(0, 1e9), named=("cable",))]
    made, *_ = watch(time, ends, ["*.down"])

    def found(name):
        [family] = [of for of in collected(made) if of.name == f"pathcast_{name}"]
        return {of.labels["target"]: of.value for of in family.samples if of.name.endswith((name, "_total"))}

    seen = ("target_up", "path_up", "path_measured_timestamp_seconds", "path_available_bits_per_second")
    assert [found(name) for name in seen] == [{}] * 4
    assert found("rounds") == {"far": 0, "gone": 0}
    made._open("gone")
    assert found("target_up") == {"gone": 0}
    made._open("far")
    assert found("target_up") == {"gone": 0}
    made._round("far")
    assert found("target_up") == {"far": 1, "gone": 0}


def test_where_it_listens_is_the_loopback_unless_told():
    assert where("9275") == where("127.0.0.1:9275") == ("127.0.0.1", 9275)
    assert where("[::1]:0") == ("::1", 0)
    for wrong in ("", "far.example.org:9275", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", "-1"):
        with pytest.raises(PathcastError, match="allowed are ADDRESS:PORT and PORT") as refused:
            where(wrong)
        assert refused.value.exit == 2


def test_the_newest_forecast_is_told_by_its_quantiles(tmp_path):
    def told(store):
        return {
            (one.name, *sorted(one.labels.values(), reverse=True)): one.value
            for of in forecasts(store, ["far"])
            for one in of.samples
        }

    file = tmp_path / "history.db"
    assert told(Store(places.parse(str(file)), read_only=True)) == {}
    forecast(file)
    forecast(file, "other", 7.0)
    found = told(forecast(file, seconds=200.0))
    name = "pathcast_forecast_duration_seconds"
    assert [found[name, "far", q] for q in ("0.05", "0.5", "0.95")] == [160, 200, 300]
    assert found["pathcast_forecast_size_bytes", "far"] == 10_000_000
    assert abs(found["pathcast_forecast_timestamp_seconds", "far"] - clocks.time()) < 600
    file.write_bytes(b"no history")
    assert told(Store(places.parse(str(file)), read_only=True)) == {}


class Asking:
    """Who asks for `/probe` from threads of their own; `wait` has their answers: status, body, headers."""

    def __init__(self, port, probes):
        self.port, self.probes, self.answers, self.threads = port, probes, [], []

    def __call__(self, query, **more):
        url = f"http://127.0.0.1:{self.port}/probe{query}"
        try:
            with build_opener(ProxyHandler({})).open(Request(url, **more), timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode(), dict(refused.headers)

    def begin(self, *queries):
        for query in queries:
            self.threads.append(threading.Thread(target=lambda query=query: self.answers.append(self(query))))
            self.threads[-1].start()
        end = clocks.monotonic() + PATIENCE_S
        while self.probes.waiting < len(queries):
            assert clocks.monotonic() < end
            clocks.sleep(0.005)

    def wait(self):
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        found, self.answers, self.threads = self.answers, [], []
        return found


@pytest.fixture
def asking():
    """Of a watch one who asks it."""
    ends = []

    def asking(made, probes):
        port, stop = serve("127.0.0.1", 0, lambda: collected(made), probed(made, probes))
        ends.append(stop)
        return Asking(port, probes)

    yield asking
    for stop in ends:
        stop()


def made_with(most=500_000_000, every_s=3600.0, far=None, names=("far",)):
    time, probes = Time(), Probes()
    ends = [far(time) if far else Far(time, name) for name in names]
    made, *_ = watch(time, ends, (), most, every_s, probes=probes)
    made._probes.close = lambda: None  # several runs of one watch follow
    return time, probes, ends, made


def test_requests_for_one_target_share_a_round_and_others_have_their_own(asking):
    time, probes, (a, b), made = made_with(names=("a", "b"))
    ask = asking(made, probes)
    made.run(2)
    time.wait(600)  # both rounds' share of the day
    before = len(a.sent), len(b.sent)
    ask.begin(*["?target=a"] * 5)
    made.run(1)
    answers = ask.wait()
    # one more was the watch's own
    assert (len(a.sent) - before[0], len(b.sent) - before[1]) == (2, 0)
    assert [status for status, *_ in answers] == [200] * 5
    assert len({re.search("duration_seconds ([0-9.]+)", body)[1] for _, body, _ in answers}) == 1
    found = {
        (one.name, *sorted(one.labels.values())): one.value
        for of in text_string_to_metric_families(answers[0][1])
        for one in of.samples
    }
    assert found["pathcast_probe_success",] == 1
    assert found["pathcast_probe_duration_seconds",] > 0
    assert 15e6 < found["pathcast_path_available_bits_per_second", "a", "cable", "out"] < 19e6
    assert not any("b" in key for key in found)


def values(body):
    """Of metrics without labels."""
    return {one.name: one.value for of in text_string_to_metric_families(body) for one in of.samples if not one.labels}


def test_a_used_up_allowance_answers_with_the_newest_round_and_its_age(asking):
    most = 3 * 2 * PATH_BYTES
    time, probes, [far], made = made_with(most, 60.0)
    ask = asking(made, probes)
    made.run(1)
    ended_s, refused = time.now().boot_us / 1e6, 0
    for _ in range(40):
        time.wait(1800)
        before, now_s = len(far.sent), time.now().boot_us / 1e6
        ask.begin("?target=far")
        made._asked()  # as between two rounds of its own
        [(status, body, _)] = ask.wait()
        found = values(body)
        assert (status, found["pathcast_probe_success"]) == (200, 1)
        assert found["pathcast_probe_duration_seconds"] > 0
        assert "pathcast_path_available_bits_per_second{" in body
        if len(far.sent) > before:
            assert found["pathcast_probe_age_seconds"] == 0
            ended_s = time.now().boot_us / 1e6
        else:
            refused += 1
            assert abs(found["pathcast_probe_age_seconds"] - (now_s - ended_s)) < 1e-3
    assert 20 < refused < 40
    assert worst_day(sorted(far.sent)) <= most


def test_before_the_first_round_a_used_up_allowance_answers_when_to_come_again(asking):
    most = 3 * 2 * PATH_BYTES
    _, probes, _, made = made_with(most, 60.0)
    ask = asking(made, probes)
    ask.begin("?target=far")
    probes.refuse(77.2)
    [(status, body, headers)] = ask.wait()
    assert (status, headers["Retry-After"]) == (429, "78")
    assert f"{most} bytes a day" in body


def test_before_the_first_round_of_this_watch_the_pace_is_not_said_to_be_a_lack_of_bytes(asking, tmp_path):
    time, probes, file = Time(), Probes(), tmp_path / "watch.json"
    most = 50_000_000
    watch(time, [Far(time)], most=most, file=file)[0].run(1)
    made, *_ = watch(time, [Far(time)], most=most, file=file, probes=probes)
    ask = asking(made, probes)
    ask.begin("?target=far")
    made._asked()
    [(status, body, headers)] = ask.wait()
    assert status == 429
    left_s = int(headers["Retry-After"])
    assert 30 < left_s < 400
    assert "nothing" not in body
    assert f"{most} bytes a day, the next round may begin in {span(left_s)}" in body


def test_the_newest_round_is_that_of_a_far_end_that_is_away_too(asking):
    time, probes, _, made = made_with(far=lambda time: Far(time, away=(1, 1e9)))
    ask = asking(made, probes)
    made.run(2)
    time.wait(600)
    ask.begin("?target=far")
    probes.refuse(1.0, busy=True)
    [(status, body, _)] = ask.wait()
    found = values(body)
    assert (status, found["pathcast_probe_success"]) == (200, 0)
    assert found["pathcast_probe_age_seconds"] >= 600


def test_a_far_end_that_is_away_is_no_success(asking):
    time, probes, _, made = made_with(far=lambda time: Far(time, away=(1, 1e9)))
    ask = asking(made, probes)
    made.run(1)
    time.wait(600)
    ask.begin("?target=far")
    made.run(1)
    [(status, body, _)] = ask.wait()
    assert status == 200
    assert "pathcast_probe_success 0.0" in body


@pytest.mark.parametrize(
    "query", ["", "?", "?target=", "?target=other", "?target=far:4711", "?target=far&target=far", "?host=far"]
)
def test_only_what_the_command_line_has_named_is_measured(asking, query):
    _, probes, [far], made = made_with()
    status, body, _ = asking(made, probes)(query)
    assert (status, far.sent) == (400, [])
    assert "allowed are far" in body


def test_other_methods_measure_nothing(asking):
    _, probes, _, made = made_with()
    assert asking(made, probes)("?target=far", data=b"")[0] == 405


def test_who_has_no_time_is_told_so_and_nothing_is_measured(asking):
    _, probes, [far], made = made_with()
    ask = asking(made, probes)
    status, _, headers = ask("?target=far", headers={"X-Prometheus-Scrape-Timeout-Seconds": "0.6"})
    assert (status, probes.waiting, probes.next()) == (503, 0, None)
    assert int(headers["Retry-After"]) > 0
    assert far.sent == []


def test_no_more_wait_than_may_and_none_at_the_end():
    probes = Probes(most=1)
    found = []
    thread = threading.Thread(target=lambda: found.append(probes.ask("a", PATIENCE_S)))
    thread.start()
    while not probes.waiting:
        clocks.sleep(0.001)
    assert probes.ask("b", PATIENCE_S) == Refused(10.0, busy=True)
    probes.answer("b", Probed(True, 1.0))
    probes.close()
    thread.join(PATIENCE_S)
    assert found == [Refused(10.0, busy=True)] == [probes.ask("a", PATIENCE_S)]


def test_silent_connections_are_closed_and_are_not_many(monkeypatch, capfd):
    monkeypatch.setattr("pathcast.service.metrics._SILENT_S", 0.3, raising=False)
    monkeypatch.setattr("pathcast.service.metrics._MOST", 4, raising=False)
    time = Time()
    made, *_ = watch(time, [Far(time)])
    before = threading.active_count()
    port, stop = serve("127.0.0.1", 0, lambda: collected(made))
    try:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 10)) for _ in range(12)]
            silent[0].sendall(b"GET /metrics HT")
            assert {one.recv(1) for one in silent} == {b""}
            assert threading.active_count() <= before + 1 + 4
        assert read(port)["pathcast_rounds_total", "far"] == 0
    finally:
        stop()
    assert capfd.readouterr().err == ""
