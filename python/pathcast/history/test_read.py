"""What was added is read again: by what a path is, not by what it is called; in SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from pathcast.history.alerts import last_told
from pathcast.history.browse import Browser
from pathcast.history.clock import iso
from pathcast.history.identity import PathKey
from pathcast.history.journal import Journal
from pathcast.history.testing import KEY1, KEY2, KEYS, forecast, measure, measured, origin, sent, transfer
from pathcast.overhead import ip_bytes


def test_a_measurement_comes_back_whole_with_its_age(journal, reader, at):
    act = measure(journal, 20e6, load=[0.5])
    at.passes(90)
    [found] = reader().measurements(KEY1)
    assert (found.id, found.name, found.key, found.age_s, found.renumbered) == (act, "path1", KEY1, 90.0, False)
    assert found.path["directions"]["out"]["available_bps"]["value"] == 20e6
    assert found.path["directions"]["in"]["available_bps"]["value"] == 40e6
    assert found.path["rtt_s"]["value"] == 0.03
    assert (found.path["local"], found.path["remote"]) == (KEY1.local, KEY1.remote)
    assert found.circumstances == {"load": [0.5]}
    assert found.at.endswith("Z")


def test_the_newest_come_first_and_old_ones_can_be_left_out(journal, reader, at):
    for number in range(5):
        measure(journal, (number + 1) * 1e6)
        at.passes(60)
    rates = [of.path["directions"]["out"]["available_bps"]["value"] for of in reader().measurements(KEY1, limit=3)]
    assert rates == [5e6, 4e6, 3e6]
    assert len(reader().measurements(KEY1, newer_than_s=125)) == 2


def test_a_path_with_several_directions_counts_once(journal, reader):
    measure(journal, names=("path1", "path2"))
    assert len(reader().measurements(KEY1, limit=1)[0].path["directions"]) == 2
    assert [of.name for of in reader().measurements(KEY2)] == ["path2"]


def test_names_are_labels(journal, reader, at):
    measure(journal, 1e6)
    at.passes(10)
    # the routes came up in another order
    measure(journal, 2e6, names=("path1", "path2"), keys={"path1": KEY2, "path2": KEY1})
    rates = [of.path["directions"]["out"]["available_bps"]["value"] for of in reader().measurements(KEY1)]
    assert rates == [2e6, 1e6]
    assert [of.name for of in reader().measurements(KEY1)] == ["path2", "path1"]
    assert len(reader().measurements(KEY2)) == 1


def test_a_renumbered_line_keeps_its_history(journal, reader):
    measure(journal, 1e6)
    now = replace(KEY1, local="10.0.0.77")
    [found] = reader().measurements(now)
    assert found.renumbered
    assert found.key == KEY1
    moved = replace(KEY1, remote="198.51.100.9")
    assert reader().measurements(moved)[0].renumbered


def test_another_line_far_end_or_family_is_another_path(journal, reader):
    measure(journal)
    assert not reader().measurements(replace(KEY1, line_id="satellite"))
    assert not reader().measurements(replace(KEY1, remote_id="key:other"))
    assert not reader().measurements(replace(KEY1, local="2001:db8::2", remote="2001:db8::1"))
    # a second address of the far end that is a path of today has nothing to do with the first one's past
    other = replace(KEY1, remote="192.0.2.2")
    assert not reader().measurements(other, others=[(KEY1.local, KEY1.remote)])


def test_without_a_key_a_far_end_is_its_address(journal, reader):
    """So it is not followed to another one; but what `run` knows by address belongs to the path with the key."""
    by_address = replace(KEY1, remote_id="address:192.0.2.1")
    measure(journal, keys={"path1": by_address})
    assert reader().measurements(KEY1)[0].key == by_address
    assert not reader().measurements(replace(by_address, remote="192.0.2.9", remote_id="address:192.0.2.9"))


def test_another_host_is_another_history(journal, reader):
    measure(journal)
    assert not reader("host-2").measurements(KEY1)


def test_transfers_over_any_of_the_paths(journal, reader, at):
    alone = transfer(journal, ("path1",))
    at.passes(5)
    both = transfer(journal, ("path1", "path2"))
    at.passes(5)
    assert [of.id for of in reader().transfers([KEY1])] == [alone]
    assert [of.id for of in reader().transfers([KEY1, KEY2])] == [both, alone]
    found = reader().transfers([KEY1, KEY2], limit=1)[0]
    assert (found.keys, found.names, found.bytes_by_path) == ((KEY1, KEY2), ("path1", "path2"), (5_000_000, 5_000_000))
    assert (found.throughput_bps, found.control, found.age_s) == (20e6, "cubic", 5.0)
    renumbered = replace(KEY1, local="10.0.0.99")
    assert [of.id for of in reader().transfers([renumbered])] == [alone]


def test_what_was_held_to_a_rate_is_none_of_a_forecasts(journal, reader):
    forecast(journal)
    for auto, count in (({"max_rate_bps": 5e6}, 0), ({"max_rate_bps": None}, 1), (None, 2)):
        act = journal.act(origin())
        act.transfer({**sent(), "auto": auto}, [(KEY1, None, 10_000_000, 0)], kind="run")
        journal.add(act)
        assert len(reader().forecasts([KEY1])[0].came) == count


def test_a_forecast_and_what_came(journal, reader, at):
    id = forecast(journal, ("path1", "path2"), control="lia")
    at.passes(10)
    came = transfer(journal, ("path2", "path1"), control="lia", rate_bps=22e6)
    [found] = reader().forecasts([KEY1, KEY2])
    assert (found.id, found.chosen, found.chosen_control, found.size_bytes) == (id, ["path1", "path2"], "lia", 10**7)
    [followed] = found.came
    assert followed.sent.id == came
    assert followed.sent.throughput_bps == 22e6
    assert followed.option["throughput_bps"]["value"] == 25e6


def test_a_run_which_knows_addresses_only_is_what_was_forecast_by_the_key(journal, reader, at):
    id = forecast(journal, ("path1", "path2"))
    at.passes(10)
    run = {name: replace(key, remote_id=f"address:{key.remote}") for name, key in KEYS.items()}
    came = transfer(journal, ("path2", "path1"), run)
    [found] = reader().forecasts([KEY1, KEY2])
    assert (found.id, [of.sent.id for of in found.came]) == (id, [came])
    assert found.came[0].option["throughput_bps"]["value"] == 25e6
    assert [of.id for of in reader().transfers([KEY1, KEY2])] == [came]
    # of one of several ways of a pair it says nothing
    over = {"path1": replace(KEY1, remote_id="key:far/over/1")}
    forecast(journal, keys=over)
    transfer(journal, keys=run)
    assert reader().forecasts([over["path1"]])[0].came == ()


def test_another_key_at_an_address_is_another_far_end(journal, reader):
    forecast(journal)
    transfer(journal, keys={"path1": replace(KEY1, remote_id="key:other")})
    assert reader().forecasts([KEY1])[0].came == ()


def test_what_a_run_sent_is_its_lines_past_when_it_is_renumbered(journal, reader):
    measure(journal)
    run = transfer(journal, keys={"path1": replace(KEY1, remote_id=f"address:{KEY1.remote}")})
    elsewhere = replace(KEY1, remote_id="address:203.0.113.1", remote="203.0.113.1")
    transfer(journal, keys={"path1": elsewhere})
    now = replace(KEY1, local="10.0.0.77")
    assert [of.id for of in reader().transfers([now])] == [run]
    assert reader().transfers([replace(now, remote_id=f"address:{KEY1.remote}")]) == []


@pytest.mark.parametrize(
    "about",
    [{"names": ("path1",)}, {"control": "bbr"}, {"bytes": 12_000_000}],
    ids=["other paths", "other controller", "other size"],
)
def test_other_transfers_are_not_what_was_forecast(journal, reader, about):
    forecast(journal, ("path1", "path2"))
    transfer(journal, **{"names": ("path1", "path2"), **about})
    assert reader().forecasts([KEY1, KEY2])[0].came == ()


def test_a_transfer_of_the_next_day_is_not_what_was_forecast(journal, reader, at):
    forecast(journal)
    at.passes(86_400)
    transfer(journal)
    assert reader().forecasts([KEY1])[0].came == ()


def test_ages_hold_when_the_clock_is_set(journal, reader, at):
    measure(journal, 1e6)
    at.passes(60)
    at.is_set(-3600)
    measure(journal, 2e6)
    at.passes(60)
    found = reader().measurements(KEY1)
    assert [of.age_s for of in found] == [60.0, 120.0]
    assert len(reader().measurements(KEY1, newer_than_s=90)) == 1
    [event] = reader().events()
    assert (event.kind, event.about["step_s"]) == ("clock-step", -3600.0)
    measure(journal, 3e6)
    assert len(reader().events()) == 1


def test_what_is_from_the_future_has_no_age(journal, reader, at):
    at.is_set(7200)
    measure(journal)
    at.is_set(-7200)
    at.boots()
    assert reader().measurements(KEY1)[0].age_s is None


def test_a_step_is_noticed_by_the_next_command_too(journal, reader, at, place):
    measure(journal)
    at.passes(5)
    at.is_set(3600)
    later = Journal(place, at)
    measure(later)
    later.close()
    assert [of.about for of in reader().events()] == [{"step_s": 3600.0}]


def test_a_step_is_noticed_whatever_other_hosts_record(journal, reader, at, place):
    measure(journal)
    other = Journal(place, lambda: replace(at(), boot="boot-2"))
    act = other.act(replace(origin(), host_id="host-2"), -1.0)
    act.measurement(measured(), KEYS, ("out",))
    other.add(act)
    other.close()
    at.passes(5)
    at.is_set(3600)
    later = Journal(place, at)
    measure(later)
    later.close()
    assert [of.about for of in reader().events()] == [{"step_s": 3600.0}]


def test_usage_is_booked_by_line_and_hour(journal, reader, at):
    measure(journal, names=("path1", "path2"))
    transfer(journal, ("path1",), bytes=1_000_000)
    at.passes(3600)
    transfer(journal, ("path1",), bytes=500_000)
    booked = {(of.at, of.line_id): (of.bytes_out, of.bytes_in) for of in reader().usage()}
    # of a transfer what its packets had as IP packets, and their acknowledgements
    there, back = ip_bytes(501_000)
    more, less = ip_bytes(1_001_000)
    assert sorted(booked.values()) == [(50_000, 50_000), (there, back), (50_000 + more, 50_000 + less)]
    assert len(reader().usage(["dsl"])) == 1


def test_what_takes_longer_is_booked_over_the_hours_that_it_took(journal, reader, at):
    hour = at().utc_us // 3_600_000_000 * 3_600_000_000
    at.is_set((hour - at().utc_us) / 1e6 + 1800)
    act = journal.act(origin())
    # half an hour, an hour, and half an hour, over one path of two and back again
    act.transfer({**sent(), "elapsed_s": 7200.0}, [(KEYS["path1"], "path1", 8_000_001, 0)] * 2)
    act.measurement({**measured(), "elapsed_s": 3600.0}, KEYS, ("out", "in"))
    journal.add(act)
    found = reader().usage()
    assert [of.at for of in found] == [iso(hour + hours * 3_600_000_000) for hours in range(3)]
    there, back = ip_bytes(8_000_001)
    assert (sum(of.bytes_out for of in found), sum(of.bytes_in for of in found)) == (
        2 * there + 50_000,
        2 * back + 50_000,
    )
    of_transfer = [of.bytes_out - probes for of, probes in zip(found, (25_000, 25_000, 0), strict=True)]
    assert of_transfer == pytest.approx([there / 2, there, there / 2], abs=2)
    # however many paths of a line, an hour has one row of all of them, but of a measurement two
    assert len(act.rows["usage"]) == 3 + 2 * 2


@pytest.mark.parametrize(("name", "minutes"), [("Asia/Kolkata", 30), ("Asia/Kathmandu", 15), ("Europe/Berlin", 0)])
def test_hours_of_usage_are_the_machines(journal, reader, at, monkeypatch, name, minutes):
    """Else those in which its days begin would be of both."""
    monkeypatch.setattr("pathcast.history.rows.zone", lambda: ZoneInfo(name))
    transfer(journal)
    [found] = reader().usage()
    assert datetime.fromisoformat(found.at).minute == minutes


def test_a_path_that_is_down_is_remembered(journal, reader):
    act = journal.act(origin())
    down = {"name": "path1", "local": "10.0.0.2", "remote": "192.0.2.1", "directions": {}}
    found = {"paths": [{**down, "down": {"probes": 9, "seconds": 5}}], "elapsed_s": 5.0, "method": "ride", "notes": []}
    act.measurement(found, KEYS, ("out",))
    journal.add(act)
    [read] = reader().measurements(KEY1)
    assert read.path["down"] == {"probes": 9, "seconds": 5}
    assert read.path["directions"] == {}


def test_what_an_act_has_measured_and_told_have_keys_of_their_own(journal, reader):
    act = journal.act(origin())
    act.measurement(measured(), KEYS, ("out", "in"))
    act.event("failed", "eth1 is down", KEY2)
    journal.add(act)
    [event] = reader().events()
    assert event.id != act.id == reader().measurements(KEY1)[0].id


def test_a_week_is_thinned_and_rounds_without_an_answer_are_none_of_it(journal, reader, at):
    down = {"name": "path1", "local": KEY1.local, "remote": KEY1.remote, "directions": {}}
    lost = {"paths": [{**down, "down": {"probes": 9, "seconds": 5}}], "elapsed_s": 5.0, "method": "ride", "notes": []}
    acts = []
    for number in range(90):
        acts.append(journal.act(origin()))
        acts[-1].measurement(lost if number >= 60 else measured(1e6 * (number + 1)), KEYS, ("out", "in"))
        at.passes(60)
    journal._add_all([act.rows for act in acts])

    def rates(*options, key=KEY1, others=()):
        found = reader().thinned(key, *options, others)
        assert all(set(of.path["directions"]) == {"out", "in"} for of in found)
        return [round(of.path["directions"]["out"]["available_bps"]["value"] / 1e6) for of in found]

    assert rates(86_400.0, 150.0, 1000) == list(range(60, 0, -3))
    assert rates(86_400.0, 150.0, 10) == list(range(60, 0, -6))
    assert rates(3_600.0, 0.0, 1000) == list(range(60, 30, -1))
    # addresses change; but not to those of another path of today
    moved = replace(KEY1, local="10.9.9.9")
    measure(journal, 77e6, keys={"path1": moved})
    assert rates(86_400.0, 150.0, 1000, key=moved)[:2] == [77, 60]
    assert rates(86_400.0, 150.0, 10, key=moved, others=[(KEY1.local, KEY1.remote)]) == [77]


def test_the_newest_of_every_path_and_of_one_kind_are_found_whatever_else_happened(journal, at):
    measure(journal, 1e6, names=("path2",))
    alert = journal.act(origin())
    about = {"path": "path2", "alert": "path2.down", "state": "firing"}
    alert.event("alert", "path2: down", KEY2, about=about)
    journal.add(alert)
    acts = []
    for number in range(70):
        at.passes(60)
        acts.append(journal.act(origin()))
        acts[-1].measurement(measured(2e6 + number), KEYS, ("out", "in"))
        acts[-1].event("failed", "no answer", KEY1)
    journal._add_all([act.rows for act in acts])
    browser = Browser(journal.store, at(), "host-1")
    found = [(of.key, round(of.path["directions"]["in"]["available_bps"]["value"])) for of in browser.newest(86_400.0)]
    assert found == [(KEY1, 4_000_138), (KEY2, 2_000_000)]
    assert [of.key for of in browser.newest(600.0)] == [KEY1]
    assert browser.newest(86_400.0, "sim") == []
    assert [of.text for of in browser.events(None, 1, kind="alert")] == ["path2: down"]
    assert [of.text for of in last_told(browser)] == ["path2: down"]
    over = journal.act(origin())
    over.event("alert", "path2: up", KEY2, about={**about, "state": "over"})
    over.event("alert", "other", KEY2, about={**about, "alert": "*.down"})
    journal.add(over)
    told = {of.text for of in last_told(Browser(journal.store, at(), "host-1"))}
    assert told == {"path2: down", "path2: up", "other"}


def test_odd_names_are_kept_as_far_as_databases_hold_them(journal, reader):
    odd = PathKey("ca\0ble", "key:\udcff", "10.0.0.2", "192.0.2.1")
    measure(journal, keys={"path1": odd}, note="\0\ud800")
    assert reader().measurements(KEY1) == []


def test_what_a_command_has_probed_is_told_round_by_round(journal, reader, at):
    measure(journal, names=("path1", "path2"))
    at.passes(86_400)
    measure(journal)
    at.passes(60)
    # each direction of each path has sent 50 kB, and it took 2 s
    assert reader().probed("measure", 90_000) == [(86_458.0, 200_000), (58.0, 100_000)]
    assert reader().probed("measure", 3600) == [(58.0, 100_000)]
    assert reader().probed("watch", 3600) == []
