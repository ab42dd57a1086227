"""What the user changes of a line while a job runs over it is seen, and what is wrong leaves all as it was."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from pathcast import zone
from pathcast.errors import PathcastError
from pathcast.history.identity import host_id
from pathcast.history.journal import Journal
from pathcast.history.place import find
from pathcast.history.rows import Origin
from pathcast.history.testing import Clock
from pathcast.lines import carried, config, counters, edit, here
from pathcast.lines import ids as lines_ids
from pathcast.lines.config import Cap, Line
from pathcast.service import terms as module
from pathcast.service.terms import Changes, account, correct, own_bytes, terms

GB = 10**9


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    path = config.file()
    edit.add(path, "cable", {"from": "192.0.2.1", "cap": "10GB/month"})
    edit.add(path, "dsl", {"from": "192.0.2.2"})
    return path


def test_a_cap_that_is_raised_and_what_the_provider_says_are_seen_once(file):
    changes = Changes(config.load())
    assert changes.look({}) == {}
    edit.change(file, "cable", {"cap": "50GB/month"})
    [(name, found)] = changes.look({}).items()
    assert (name, found.allowances[0].bytes) == ("cable", 50 * GB)
    assert changes.look({}) == {}
    carried.correct(config.load()["cable"], 20 * GB, datetime.now())
    carried.correct(config.load()["dsl"], GB, datetime(2026, 1, 1))
    found = changes.look({})
    assert sorted(found) == ["cable", "dsl"]
    assert found["cable"].allowances[0].bytes <= 30 * GB
    assert changes.look({}) == {}


def test_what_goes_by_the_clock_is_told_anew_once_where_that_was_set(file):
    edit.change(file, "dsl", {"use": "22:00-06:00"})
    edit.add(file, "fibre", {"from": "192.0.2.3"})
    changes = Changes(config.load())
    changes.stepped()
    assert sorted(changes.look({})) == ["cable", "dsl"]
    assert changes.look({}) == {}
    # a file that is wrong is said once, and this is made up for when it is right again
    text = file.read_text()
    file.write_text(text + "[line.")
    changes.stepped()
    with pytest.raises(PathcastError):
        changes.look({})
    assert changes.look({}) == {}
    file.write_text(text)
    assert sorted(changes.look({})) == ["cable", "dsl"]


def test_what_the_job_itself_has_carried_is_not_taken_for_that_of_others(file):
    line = config.load()["cable"]
    changes = Changes({"cable": line})
    carried.correct(line, 4 * GB, datetime.now())
    left = changes.look({"cable": 4 * GB})["cable"].allowances[0].bytes
    assert left == 6 * GB


DAY_S = 86_400.0


def test_hours_and_caps_are_told_as_far_as_is_asked_but_not_without_an_end(file):
    edit.change(file, "cable", {"cap": "1TB/month"})
    edit.change(file, "dsl", {"use": "22:00-06:00", "cap": "1GB/day"})
    now = datetime(2026, 11, 1, tzinfo=UTC)
    known = config.load()
    near = terms(known, known, {}, now)
    assert (near["cable"].allowances[-1].end_s, near["dsl"].hours[-1][1]) == (92 * DAY_S, 92 * DAY_S)
    far = terms(known, known, {}, now, reach_s=200 * DAY_S)
    assert [of.begin_s / DAY_S for of in far["cable"].allowances] == [0, 30, 61, 92, 120, 151, 181]
    assert far["cable"].allowances[-1].end_s == far["dsl"].hours[-1][1] == 200 * DAY_S
    endless = terms(known, known, {}, now, reach_s=1e10)
    assert endless["cable"].allowances[-1].end_s > 33 * 365 * DAY_S
    assert [of.bytes for of in endless["dsl"].allowances] == [GB] * 401
    assert not endless["dsl"].told(401.5 * DAY_S)
    assert 365 * DAY_S < endless["dsl"].hours[-1][1] <= 366 * DAY_S


def test_hours_and_caps_are_told_further_every_week(file, monkeypatch):
    edit.change(file, "dsl", {"use": "22:00-06:00"})
    edit.add(file, "fibre", {"from": "192.0.2.3"})
    monotonic = [0.0]
    changes = Changes(config.load(), reach_s=200 * DAY_S, clock=lambda: monotonic[0])
    for monotonic[0] in (6 * DAY_S, 8 * DAY_S, 14 * DAY_S, 16 * DAY_S, 24 * DAY_S):
        found = changes.further({})
        assert sorted(found) == (["cable", "dsl"] if monotonic[0] in (8 * DAY_S, 16 * DAY_S, 24 * DAY_S) else [])
        if monotonic[0] == 14 * DAY_S:
            edit.remove(file, "cable")
        if monotonic[0] == 16 * DAY_S:
            file.write_text("[line.")
    assert found["cable"].allowances[-1].end_s == 200 * DAY_S
    assert found["dsl"].hours[-1][1] > 199 * DAY_S
    # what goes by the clock is told where that was set, whatever is in the file
    changes.stepped()
    assert sorted(changes.further({})) == ["cable", "dsl"]
    assert changes.further({}) == {}


@pytest.mark.parametrize("counted", [True, False])
def test_what_a_job_carried_in_another_period_is_not_of_this_one(file, monkeypatch, counted):
    """Counters have all of it; else what the job tells is all that is known."""
    device, wall, monotonic = {"lo": (0, 0)}, [at(0).timestamp()], [0.0]
    monkeypatch.setattr(counters, "read", lambda: device if counted else {})
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("lo", "192.0.2.1", 32)])
    monkeypatch.setattr(time, "time", lambda: wall[0])
    monkeypatch.setattr(carried, "_boottime", lambda: wall[0])
    monkeypatch.setattr(module, "datetime", Now(wall))
    edit.change(file, "cable", {"id": "cable", "dev": "lo", "cap": "100GB/month"})
    line = config.load()["cable"]
    carried.look({"cable": line}, wall[0])
    changes = Changes({"cable": line}, clock=lambda: monotonic[0])
    # of the job 5 GB a day, of others 1 GB; until the 3rd of the next period
    for day in range(1, 14):
        wall[0], monotonic[0] = at(24 * day).timestamp(), day * DAY_S
        device["lo"] = (6 * day * GB, 0)
        changes.further({"cable": 5 * day * GB})
    changes.stepped()
    [left, *_] = changes.further({"cable": 65 * GB})["cable"].allowances
    # others need 29 GB for the other 29 days
    assert left.bytes == pytest.approx((100 - 12 - 29 if counted else 100 - 10) * GB, rel=1e-3)


class Now:
    """`datetime`, at a time that is set."""

    def __init__(self, wall):
        self._wall = wall

    def now(self, tz):
        return datetime.fromtimestamp(self._wall[0], tz)

    def __getattr__(self, name):
        return getattr(datetime, name)


def test_a_file_that_is_wrong_and_a_line_that_is_gone_leave_what_was(file):
    changes = Changes(config.load())
    text = file.read_text()
    file.write_text(text + "[line.")
    with pytest.raises(PathcastError):
        changes.look({})
    assert changes.look({}) == {}
    file.write_text(text)
    edit.remove(file, "cable")
    assert changes.look({}) == {}
    file.unlink()
    assert changes.look({}) == {}


def test_a_line_that_is_gone_is_said_once_and_one_that_has_another_name_is_the_same(file):
    said = []
    changes = Changes(config.load(), said.append)
    text = file.read_text()
    edit.remove(file, "cable")
    assert changes.look({}) == {}
    edit.change(file, "dsl", {"prefer": 1})
    assert set(changes.look({})) == {"dsl"}
    assert said == ["cable is no line any more: until this ends its terms stay as they were"]
    # it comes back, then under another name, with its old terms and with new ones
    file.write_text(text)
    assert set(changes.look({})) == {"dsl"}
    file.write_text(text.replace("line.cable", "line.coax"))
    assert changes.look({}) == {}
    file.write_text(text.replace("line.cable", "line.coax").replace("10GB", "50GB"))
    [(name, found)] = changes.look({}).items()
    assert (name, found.name, found.allowances[0].bytes) == ("cable", "cable", 50 * GB)
    assert len(said) == 1
    edit.remove(file, "coax")
    assert changes.look({}) == {}
    assert len(said) == 2


def test_hours_and_periods_are_the_machines_whatever_a_command_was_told(file, tmp_path, monkeypatch):
    edit.change(file, "cable", {"use": "22:00-06:00"})
    monkeypatch.setattr(zone, "FILE", tmp_path / "localtime")  # without it: UTC
    late, found = datetime(2026, 11, 29, 23, tzinfo=UTC).timestamp(), []
    try:
        for name in ("UTC", "Asia/Tokyo", "America/New_York"):
            with monkeypatch.context() as patch:
                patch.setenv("TZ", name)
                time.tzset()
                found.append(terms(["cable"], config.load(), {}, datetime.fromtimestamp(late).astimezone())["cable"])
    finally:
        time.tzset()
    assert found[0].hours[0] == (0.0, 7 * 3600.0)
    assert found[0].allowances[0].end_s == 25 * 3600.0
    assert found[0] == found[1] == found[2]


def test_where_nothing_is_counted_a_cap_has_what_pathcast_itself_carried(file, monkeypatch):
    line, now = config.load()["cable"], datetime.now(UTC)
    assert account(line, now).sentence() == "0 B of 10 GB; nothing is counted yet"
    monkeypatch.setattr(module, "own_bytes", lambda *_: 4 * GB)
    told = "4 GB of 10 GB; only what pathcast itself carried is counted yet"
    assert account(line, now).sentence() == told
    left = [terms(["cable"], {"cable": line}, {}, now, own)["cable"].allowances[0].bytes for own in ({}, {"cable": GB})]
    assert left == [6 * GB, 5 * GB]
    correct(line, GB, now)
    assert account(line, now).bytes == GB


@pytest.fixture
def history(monkeypatch):
    """Of this user, nothing in it yet; adds what a run has sent over cable, by when it began and ended."""
    monkeypatch.delenv("PATHCAST_HISTORY", raising=False)
    times = Clock()
    times.is_set(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp() - times.at.utc_us / 1e6)
    journal = Journal(find(), times)

    def sent(bytes, began_s=0.0, line="cable"):
        act = journal.act(Origin("host", None, "run", {}, host_id(), "here"), -began_s)
        act.usage(line, bytes, 0, elapsed_s=max(0.0, -began_s))
        journal.add(act)

    sent.times = times
    yield sent
    journal.close()


def at(hour):
    """Of the day on which the history's clock stands at noon."""
    return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=hour)


def test_what_pathcast_carries_after_the_providers_word_counts_where_counters_cannot_be_read(file, history):
    edit.change(file, "cable", {"id": "cable"})
    line = config.load()["cable"]
    history(2 * GB)
    correct(line, 5 * GB, at(12.5))
    assert account(line, at(12.6)).bytes == 5 * GB
    history(GB, began_s=7200.0)
    # one that began before: how much of it was sent by then nobody has noted
    history(GB, began_s=-3600.0)
    history(4 * GB, line="dsl")
    found = account(line, at(20))
    told = "7 GB of 10 GB (2 GB of it only what pathcast itself carried), full on the"
    assert (found.bytes, found.own, found.sentence()[: len(told)]) == (7 * GB, 2 * GB, told)
    [left] = [of.bytes for of in terms(["cable"], {"cable": line}, {}, at(20))["cable"].allowances[:1]]
    assert left <= 3 * GB
    # what a job carries meanwhile is not in the history yet
    of_job = terms(["cable"], {"cable": line}, {}, at(20), {"cable": GB})["cable"].allowances[0].bytes
    assert of_job == pytest.approx(left - GB, abs=0.1 * GB)
    # the provider says it again; a month ends
    correct(line, 8 * GB, at(21))
    assert account(line, at(22)).bytes == 8 * GB
    assert account(line, at(24 * 30)).bytes == 0


def test_a_run_over_a_reset_is_of_both_periods_and_nobody_elses(file, history, monkeypatch):
    monkeypatch.setattr(carried, "look", lambda *_: {})
    edit.change(file, "cable", {"id": "cable", "cap": "1TB/month"})
    line = config.load()["cable"]
    # from 22:00 to 06:00 of the 1st 100 GB, three quarters of them after midnight
    first = 11 * 24
    history.times.is_set((first + 6 - 12) * 3600)
    history(100 * GB, began_s=-8 * 3600.0)
    assert own_bytes(line, at(first).date()) == pytest.approx(75 * GB, abs=2)
    # where nothing is counted it is all that is known
    assert account(line, at(first + 22)).bytes == pytest.approx(75 * GB, abs=2)
    correct(line, 75 * GB, at(first + 6))
    [left, *_] = terms(["cable"], {"cable": line}, {}, at(first + 22))["cable"].allowances
    assert left.bytes == pytest.approx(925 * GB, rel=1e-3)


def test_the_first_hours_of_a_period_are_no_pace_of_all_of_it(file, history, monkeypatch):
    monkeypatch.setattr(carried, "look", lambda *_: {})
    edit.change(file, "cable", {"id": "cable", "cap": "1TB/month"})
    line, now = config.load()["cable"], at(11 * 24 + 1.1)
    # of November 5 GB a day by others, and 15 by pathcast
    with carried._open() as books:
        books["cable"] = {"days": {f"2026-11-{day:02}": 20 * GB for day in range(1, 31)}}
    for day in range(11):
        history.times.is_set((24 * day - (0 if day == 0 else 24 * (day - 1))) * 3600)
        history(15 * GB)
    correct(line, 5 * GB, now)
    [left, *_] = terms(["cable"], {"cable": line}, {}, now)["cable"].allowances
    assert left.bytes == pytest.approx(850 * GB, rel=0.05)
    assert account(line, now).full is None
    assert account(line, now).by_end == pytest.approx(640 * GB, rel=0.05)
    # where no other day was counted that hour says nothing of a month, and a day does
    carried.file().unlink()
    correct(line, 5 * GB, now)
    assert terms(["cable"], {"cable": line}, {}, now)["cable"].allowances[0].bytes == 995 * GB
    assert account(line, now).by_end is None
    correct(line, 20 * GB, at(11 * 24 + 48))
    left = terms(["cable"], {"cable": line}, {}, at(11 * 24 + 48))["cable"].allowances[0].bytes
    assert left == pytest.approx((1000 - 20 - 29 * 10) * GB, rel=1e-3)


def test_the_first_half_hour_of_a_period_is_in_it_in_every_zone(file, history, monkeypatch):
    for module_of in (module, carried):
        monkeypatch.setattr(module_of, "zone", lambda: ZoneInfo("Asia/Kolkata"))
    monkeypatch.setattr("pathcast.history.rows.zone", lambda: ZoneInfo("Asia/Kolkata"))
    line = replace(config.load()["cable"], id="cable")
    # 18:30 UTC is midnight there
    history.times.is_set(6.75 * 3600)
    history(2 * GB)
    assert own_bytes(line, at(24).date()) == 2 * GB
    history(4 * GB, began_s=-1800.0)
    assert own_bytes(line, at(24).date()) == 4 * GB


@pytest.mark.parametrize(
    ("other", "id"),
    [
        (here.Address("eth1", "2001:db8::9", 64), "eth1"),
        # a device that two lines share
        (here.Address("eth1", "192.0.2.9", 24), "eth1/192.0.2.1"),
    ],
)
def test_a_line_that_was_written_by_hand_has_what_pathcast_carried_over_its_device(
    file, history, monkeypatch, other, id
):
    line = config.load()["cable"]
    monkeypatch.setattr(lines_ids, "namespace_name", lambda _: None)
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("eth1", "192.0.2.1", 24), other])
    history(2 * GB, line=id)
    history(4 * GB, line="eth0")
    history(4 * GB, line="eth1/192.0.2.9")
    assert own_bytes(line, at(0).date()) == 2 * GB
    assert account(line, at(20)).bytes == 2 * GB
    # 10 GB in 20 hours, of which others sent 8: for the 4 that are left of the day they need 1.6
    daily = replace(line, cap=Cap(20 * GB, "day"))
    correct(daily, 10 * GB, at(20))
    monkeypatch.setattr(carried, "look", lambda *_: {})
    [left, *_] = terms(["cable"], {"cable": daily}, {}, at(20))["cable"].allowances
    assert left.bytes == pytest.approx(8.4 * GB, rel=1e-3)


def test_a_line_that_is_down_is_known_by_its_device_or_its_address(file, history, monkeypatch):
    monkeypatch.setattr(lines_ids, "namespace_name", lambda _: None)
    monkeypatch.setattr(here, "addresses", list)
    history(2 * GB, line="eth1")
    history(GB, line="192.0.2.1")
    assert own_bytes(Line("cable", dev="eth1"), at(0).date()) == 2 * GB
    assert own_bytes(Line("cable", ("192.0.2.1",)), at(0).date()) == GB


def test_where_counters_can_be_read_no_more_pathcast_counts_on(file, history, monkeypatch):
    edit.change(file, "cable", {"id": "cable", "dev": "lo"})
    line = config.load()["cable"]
    counted = {"lo": (0, 0)}
    monkeypatch.setattr(counters, "read", lambda: counted)
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("lo", "192.0.2.1", 32)])
    carried.look({"cable": line}, at(10).timestamp())
    counted["lo"] = (3 * GB, 0)
    carried.look({"cable": line}, at(12).timestamp())
    history(2 * GB, began_s=60.0)
    assert account(line, at(12)).bytes == 3 * GB
    del counted["lo"]
    carried.look({"cable": line}, at(20).timestamp())
    assert (account(line, at(20)).bytes, account(line, at(20)).own) == (5 * GB, 2 * GB)
    # they come back, and have counted it, too
    counted["lo"] = (6 * GB, 0)
    carried.look({"cable": line}, at(21).timestamp())
    assert (account(line, at(21)).bytes, account(line, at(21)).own) == (6 * GB, 0)


def test_what_a_job_carried_before_the_providers_word_is_in_it(file):
    changes = Changes(config.load())
    correct(config.load()["cable"], 4 * GB, datetime.now(UTC))
    assert changes.look({"cable": 4 * GB})["cable"].allowances[0].bytes == 6 * GB
    edit.change(file, "cable", {"cap": "20GB/month"})
    assert changes.look({"cable": 7 * GB})["cable"].allowances[0].bytes == pytest.approx(13 * GB, rel=1e-3)


def test_what_devices_carry_never_falls_though_their_counters_begin_anew(monkeypatch):
    reads = iter(
        [
            {"wwan0": (90 * GB, 10 * GB), "eth0": (5, 5)},
            {"wwan0": (94 * GB, 11 * GB), "eth0": (6, 5)},
            # dialled anew: it sends more than ever and has received less; then it is away, and comes back
            {"wwan0": (GB // 2, GB // 2), "eth0": (6, 9)},
            {"eth0": (6, 9)},
            {},
            {"wwan0": (2 * GB, 2 * GB), "eth0": (6, 9), "ppp0": (3, 4)},
        ]
    )
    monkeypatch.setattr(counters, "read", lambda: next(reads))
    monkeypatch.setattr(here, "addresses", list)
    lines = {name: Line(name, dev=dev) for name, dev in (("lte", "wwan0"), ("dsl", "eth0"), ("new", "ppp0"))}
    look = module.passing(lines)
    assert look() == {"lte": 5 * GB, "dsl": 1}
    assert look() == {"lte": 6 * GB, "dsl": 5}
    assert look() == look() == {"lte": 6 * GB, "dsl": 5}
    assert look() == {"lte": 10 * GB, "dsl": 5, "new": 7}


def test_where_counters_could_not_be_read_at_first_they_count_from_then_on(monkeypatch):
    reads = iter([{}, {"eth0": (7 * GB, 0)}, {"eth0": (8 * GB, 1)}])
    monkeypatch.setattr(counters, "read", lambda: next(reads))
    monkeypatch.setattr(here, "addresses", list)
    look = module.passing({"dsl": Line("dsl", dev="eth0")})
    assert (look(), look()) == ({"dsl": 0}, {"dsl": GB + 1})
