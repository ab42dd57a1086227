"""What programs sent and reflectors answered is in the history, too, and nothing that is nobody's business."""

from __future__ import annotations

import pytest

from pathcast import codec
from pathcast.forecast import foreign
from pathcast.forecast.record import Recorder
from pathcast.history import place
from pathcast.history.browse import Browser
from pathcast.history.identity import PathKey
from pathcast.history.testing import forecast_of
from pathcast.plan.terms import OVERHEAD
from pathcast.worlds.measurement import PathMeasured


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(place.parse(str(tmp_path / "history.db")), "test")
    yield made
    made.close()


def report(sent=3_000_000, received=1_000, elapsed_s=8.0, resent=0, **more):
    path = {"local": "127.0.0.1", "remote": "127.0.0.2", "bytes_sent": sent, "bytes_received": received, "share": 1.0}
    path["bytes_retransmitted"] = resent
    rates = {"sent_bps": sent * 8 / elapsed_s, "received_bps": received * 8 / elapsed_s}
    about = {"command": ["/usr/bin/rsync", "--password=secret"], "status": 0, "counted": True, "mptcp_connections": 1}
    sums = {"bytes_sent": sent, "bytes_received": received, "elapsed_s": elapsed_s, "control": "lia"}
    sums["acked_s"] = elapsed_s
    return {**about, **sums, **rates, "paths": [path], **more}


def test_a_run_is_a_transfer_of_its_program(recorder, tmp_path):
    id = foreign.ran(recorder, report(), "nightly")
    [found] = Browser(recorder.journal.store).transfers_of(None, 10)
    assert (found.id, found.kind, found.direction, found.bytes) == (id, "run", "out", 3_000_000)
    assert (found.throughput_bps, found.control, found.protocol) == (3_000_000, "lia", "mptcp")
    assert found.job == "nightly"
    assert found.keys[0].remote_id == "address:127.0.0.2"
    assert found.circumstances["program"] == "rsync"
    assert found.age_s >= 8  # it began then
    assert b"secret" not in (tmp_path / "history.db").read_bytes()


@pytest.mark.parametrize(
    ("sent", "received", "resent"),
    [(3_000_000, 1_000, 0), (3_000_000, 1_000, 300_000), (100, 4_000_000, 50), (4_000_000, 2_000_000, 10)],
)
def test_what_a_run_used_of_a_line_is_as_its_provider_counts(recorder, sent, received, resent):
    """IP bytes, both ways, with acknowledgements and what was sent again."""
    foreign.ran(recorder, report(sent, received, resent=resent))
    [hour] = Browser(recorder.journal.store).usage()
    assert hour.bytes_out + hour.bytes_in == pytest.approx((sent + resent + received) * OVERHEAD, abs=4)
    assert hour.bytes_out == pytest.approx(((sent + resent) * 1500 + received * 46) / 1408, abs=2)
    [found] = Browser(recorder.journal.store).transfers_of(None, 10)
    assert found.bytes == max(sent, received)


def test_what_a_run_used_of_a_line_is_of_all_the_hours_that_it_took(recorder):
    paths = [{**report(3_000_000)["paths"][0], "remote": f"127.0.0.{number}"} for number in range(2, 22)]
    foreign.ran(recorder, report(60_000_000, elapsed_s=10 * 3600.0, paths=paths))
    hours = Browser(recorder.journal.store).usage()
    assert sum(of.bytes_out for of in hours) == pytest.approx(
        20 * (3_000_000 + 1_000 / 1408 * 46) * 1500 / 1408, rel=1e-3
    )
    inner = [of.bytes_out for of in hours[1:-1]]
    assert len(inner) == 9
    assert inner == pytest.approx([sum(of.bytes_out for of in hours) / 10] * 9, abs=2)


def test_the_paths_of_a_run_are_called_as_their_lines(recorder, tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    (tmp_path / "pathcast.toml").write_text('[line.cable]\nfrom = "127.0.0.1"\nid = "1234"\n')
    unnamed = {**report()["paths"][0], "local": "127.0.0.3"}
    foreign.ran(recorder, report(paths=[*report()["paths"], unnamed]))
    [found] = Browser(recorder.journal.store).transfers_of(None, 10)
    assert (found.keys[0].line_id, found.names) == ("1234", ("cable", None))


def test_a_run_that_downloads_is_a_transfer_in(recorder):
    foreign.ran(recorder, report(sent=100, received=4_000_000))
    [found] = Browser(recorder.journal.store).transfers_of(None, 10)
    assert (found.direction, found.bytes, found.bytes_by_path) == ("in", 4_000_000, (4_000_000,))


def test_a_run_takes_as_long_as_what_it_wrote_is_on_its_way(recorder):
    # the program had ended after 6.6 s, what the kernel had taken from it was through after 7.4
    of = report(sent=21_100_000, elapsed_s=6.6) | {"acked_s": 7.4, "sent_bps": 21_100_000 * 8 / 7.4}
    foreign.ran(recorder, of)
    foreign.ran(recorder, of | {"bytes_received": 10**9})
    found = {one.direction: one for one in Browser(recorder.journal.store).transfers_of(None, 10)}
    assert found["out"].elapsed_s == 7.4
    assert found["out"].throughput_bps == pytest.approx(found["out"].bytes * 8 / found["out"].elapsed_s)
    assert found["in"].elapsed_s == 6.6


def test_a_short_run_waits_for_the_next_act_and_is_not_slowed(recorder):
    foreign.ran(recorder, report(elapsed_s=0.1))
    assert len(recorder.journal.spool) == 1
    foreign.ran(recorder, report())
    assert len(recorder.journal.spool) == 0
    assert len(Browser(recorder.journal.store).transfers_of(None, 10)) == 2


def test_a_run_without_connections_is_nothing(recorder):
    assert foreign.ran(recorder, report(paths=[])) is None
    assert foreign.ran(recorder, report(counted=False)) is None


def test_a_run_counts_for_what_is_forecast_with_the_key_later(recorder, monkeypatch):
    monkeypatch.setattr(foreign, "_SHORT_S", 0.0)
    line = foreign._lines(("127.0.0.1",))["127.0.0.1"]
    keys = {"cable": PathKey(line, "key:far", "127.0.0.1", "127.0.0.2")}
    recorder.forecast("host", forecast_of(3_000_000, ("cable",), "lia", 3e6), keys)
    foreign.ran(recorder, report(elapsed_s=8.0) | {"elapsed_s": 0.0, "acked_s": 8.0})
    past = recorder.past(keys)
    [judged], [carried] = past.judged, past.carried
    assert (judged.carried, judged.size_bytes, judged.option["throughput_bps"]["value"]) == (carried, 3_000_000, 3e6)
    assert (carried.paths, carried.control, carried.duration_s) == ({"cable"}, "lia", 8.0)


DSL, BOTH = ({"at_s": 0.0, "lines": lines, "control": "lia"} for lines in (["dsl"], ["dsl", "cable"]))


@pytest.mark.parametrize(
    ("auto", "teaches"),
    [
        ({"max_rate_bps": None, "steps": [DSL, {**DSL, "at_s": 3.0}], "waits": []}, True),
        ({"max_rate_bps": 5e6, "steps": [DSL], "waits": []}, False),
        ({"max_rate_bps": None, "steps": [DSL, BOTH], "waits": []}, False),
        ({"max_rate_bps": None, "steps": [DSL, {**DSL, "control": "cubic"}], "waits": []}, False),
        ({"max_rate_bps": None, "steps": [DSL], "waits": [{"since_s": 1.0, "until_s": 3.0}]}, False),
    ],
)
def test_a_run_that_its_plan_held_back_or_changed_teaches_nothing(recorder, monkeypatch, auto, teaches):
    monkeypatch.setattr(foreign, "_SHORT_S", 0.0)
    line = foreign._lines(("127.0.0.1",))["127.0.0.1"]
    keys = {"dsl": PathKey(line, "key:far", "127.0.0.1", "127.0.0.2")}
    recorder.forecast("host", forecast_of(3_000_000, ("dsl",), "lia", 3e6), keys)
    foreign.ran(recorder, report(auto=auto) | {"elapsed_s": 0.0, "acked_s": 8.0})
    past = recorder.past(keys)
    assert (len(past.carried), len(past.judged)) == (teaches, teaches)
    # it is in the history all the same
    assert len(Browser(recorder.journal.store).transfers_of(None, 10)) == 1


STAMP = {
    "remote": "127.0.0.1",
    "port": 862,
    "sent": 100,
    "lost_out": 2,
    "lost_in": 1,
    "warnings": [],
    "round_trip_s": {"minimum": 0.01, "median": 0.02, "p95": 0.03},
    "out_s": {
        "synchronised": True,
        "minimum": 0.004,
        "error": 0.001,
        "median_above_minimum": 0.001,
        "p95_above_minimum": 0.002,
    },
    "in_s": {
        "synchronised": False,
        "minimum": None,
        "error": None,
        "median_above_minimum": 0.0,
        "p95_above_minimum": 0.0,
    },
}


def test_a_reflectors_answers_are_a_measurement(recorder):
    foreign.answered(recorder, STAMP, 2.0)
    [found] = Browser(recorder.journal.store).measurements_of(None, 10)
    path = codec.read(PathMeasured, found.path)
    assert path.rtt_s.value == 0.01
    assert path.directions["out"].delay_s.median.value == pytest.approx(0.005)
    assert path.directions["out"].loss.share == 0.02
    assert path.directions["in"].delay_s.minimum.value is None
    assert found.method == "stamp"


def test_what_counted_nothing_is_kept_too(recorder):
    unknown = {**STAMP, "out_s": None, "in_s": None, "lost_out": None, "lost_in": None, "round_trip_s": None}
    foreign.answered(recorder, unknown, 2.0)
    [found] = Browser(recorder.journal.store).measurements_of(None, 10)
    path = codec.read(PathMeasured, found.path)
    assert path.rtt_s.value is None
    assert [path.directions[way].loss.share for way in ("out", "in")] == [None, None], "not that nothing was lost"


def test_the_device_of_an_address_is_its_line():
    assert foreign._lines(("127.0.0.1",))["127.0.0.1"].endswith("lo")
    assert foreign._lines(("203.0.113.99",))["203.0.113.99"].endswith("203.0.113.99")
