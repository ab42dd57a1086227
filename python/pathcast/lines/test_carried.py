"""What a line carried: looks at its counters, days, periods, paces."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from pathcast import zone
from pathcast.cli.runner import run
from pathcast.errors import PathcastError
from pathcast.lines import carried, counters, here
from pathcast.lines.config import Cap, Line
from pathcast.runtime import state

GB = 10**9
BOOT = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
# of /proc/net/dev
HEAD = "Inter-|   Receive |  Transmit\n face |bytes    packets\n    lo:       5       1  0  0  0  0  0  0        5\n"


@pytest.fixture
def device(tmp_path, monkeypatch):
    """A device whose counters are set; looks at given times."""
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("eth1", "10.77.2.2", 24)])
    monkeypatch.setattr(zone, "FILE", tmp_path / "localtime")  # without it: UTC
    monkeypatch.setattr(counters, "FILE", tmp_path / "dev")
    monkeypatch.setattr(socket, "if_nametoindex", {"eth1": 7}.__getitem__)

    def look(line, at, rx, tx=0, boottime=None):
        counters.FILE.write_text(f"{HEAD}  eth1:{rx} 1 0 0 0 0 0 0 {tx} 1 0 0 0 0 0 0\n")
        # the clock was not set since the boot, unless the test says so
        passed_s = at.timestamp() - BOOT if boottime is None else boottime
        monkeypatch.setattr(carried, "_boottime", lambda: passed_s)
        return carried.look({line.name: line}, at.timestamp())

    return look


@pytest.fixture
def told(monkeypatch):
    """Gives the process a `TZ`."""

    def tell(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield tell
    monkeypatch.undo()
    time.tzset()


def at(day, hour=0, month=11):
    return datetime(2026, month, day, hour, tzinfo=UTC)


CABLE = Line("cable", ("10.77.2.2",), cap=Cap(1000 * GB, "month"))


def test_only_what_passes_while_it_is_looked_at_counts_both_ways(device):
    device(CABLE, at(1), 5 * GB, 9 * GB)
    device(CABLE, at(1, 12), 25 * GB, 10 * GB)
    found = carried.account(CABLE, at(1, 12))
    assert (found.bytes, found.since) == (21 * GB, date(2026, 11, 1))


def test_a_pace_says_when_it_is_full(device):
    device(CABLE, at(1), 0)
    device(CABLE, at(8), 412 * GB)
    found = carried.account(CABLE, at(8))
    # 412 GB in 7 days: the other 588 GB in 9.99
    assert found.full == date(2026, 11, 17)
    assert found.sentence() == "412 GB of 1 TB, full on the 17th at this pace"
    wide = Line("cable", ("10.77.2.2",), cap=Cap(5000 * GB, "month"))
    found = carried.account(wide, at(8))
    assert found.full is None
    assert found.by_end == round(412 * GB * 30 / 7)
    assert found.sentence() == "412 GB of 5 TB, 1.766 TB on the 30th at this pace"
    narrow = Line("cable", ("10.77.2.2",), cap=Cap(400 * GB, "month"))
    assert carried.account(narrow, at(8)).sentence() == "412 GB of 400 GB, full, until 2026-12-01"


def test_the_first_day_has_no_pace_where_counting_began_in_it(device):
    device(CABLE, at(20, 22), 0)
    device(CABLE, at(20, 23), 9 * GB)
    found = carried.account(CABLE, at(20, 23))
    assert (found.full, found.by_end) == (None, None)
    assert found.sentence() == "9 GB of 1 TB (counted since 2026-11-20)"
    assert carried.account(CABLE, at(21, 1)).by_end is not None


def test_a_period_that_is_young_has_the_pace_of_the_week(device):
    device(CABLE, at(20, month=10), 0)
    device(CABLE, at(31, month=10), 110 * GB)
    device(CABLE, at(1), 120 * GB)
    device(CABLE, at(1, 2), 125 * GB)
    found = carried.account(CABLE, at(1, 2))
    # seven days of 10 GB, and 5 of this one
    assert (found.bytes, found.paced) == (5 * GB, (date(2026, 10, 25), 75 * GB))
    assert found.by_end == pytest.approx((5 + 75 / (7 + 1 / 12) * (30 - 1 / 12)) * GB)
    device(CABLE, at(12), 235 * GB)
    found = carried.account(CABLE, at(12))
    assert found.paced == (found.begin, found.bytes)
    # days that nobody counted are not taken for idle ones
    book = json.loads(carried.file().read_text())
    del book["cable"]["days"]["2026-10-30"]
    carried.file().write_text(json.dumps(book))
    assert carried.account(CABLE, at(2)).paced[0] == date(2026, 10, 31)


def test_what_passed_between_two_looks_is_spread_over_the_days_between(device):
    device(CABLE, at(30, 12, month=10), 0)
    device(CABLE, at(1, 12), 4 * GB)
    november = carried.account(CABLE, at(1, 12))
    assert november.bytes == 1 * GB
    [book] = json.loads(carried.file().read_text()).values()
    assert book["days"] == {"2026-10-30": GB, "2026-10-31": 2 * GB, "2026-11-01": GB}


def test_a_counter_that_begins_anew_loses_nothing_but_what_it_forgot(device):
    device(CABLE, at(1), 50 * GB)
    device(CABLE, at(2), 60 * GB)
    device(CABLE, at(3), 1 * GB)  # it was reset: what it has now passed since then
    device(CABLE, at(4), 3 * GB)
    assert carried.account(CABLE, at(4)).bytes == 13 * GB


@pytest.mark.parametrize("again", ["reboot", "dial-in"])
def test_a_device_that_is_made_anew_every_night_loses_no_night(device, monkeypatch, again):
    """In the morning its counters have 3 GB of the night, whatever they had in the evening."""
    for day in range(1, 11):
        index, boot = (7 + day, "one") if again == "dial-in" else (7, str(day))
        monkeypatch.setattr(carried, "_counters", counters_of(index, boot))
        device(CABLE, at(day, 6), 3 * GB if day > 1 else 0)
        device(CABLE, at(day, 22), 3 * GB if day > 1 else 0)
    # of each of the nine nights the 3 GB of the new counters
    assert carried.account(CABLE, at(10, 22)).bytes == 27 * GB


@pytest.mark.parametrize(
    ("name", "index", "boot"), [("eth2", 9, "one"), ("eth1", 6, "one")], ids=["another-name", "renamed"]
)
def test_what_another_device_carried_before_is_not_the_lines(device, monkeypatch, name, index, boot):
    monkeypatch.setattr(carried, "_counters", counters_of(7, "one"))
    device(CABLE, at(1), 50 * GB)
    device(CABLE, at(2), 60 * GB)
    monkeypatch.setattr(carried, "_counters", counters_of(index, boot, name))
    device(CABLE, at(3), 80 * GB)
    device(CABLE, at(4), 81 * GB)
    assert carried.account(CABLE, at(4)).bytes == 11 * GB


def counters_of(index, boot, name=None):
    """Of a device of this index and boot."""

    def read(device, counted):
        return {"device": name or device, "index": index, "boot": boot, "rx": counted[0], "tx": counted[1]}

    return read


def test_what_a_run_carried_is_booked_when_it_ends(device, tmp_path, monkeypatch):
    """Its device may be gone before anybody looks again."""
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    (tmp_path / "pathcast.toml").write_text('[line.cable]\nfrom = "10.77.2.2"\n')
    device(CABLE, at(1), 0)

    def launch(*_, **__):
        counters.FILE.write_text(f"{HEAD}  eth1:{3 * GB} 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n")
        return 3, {"counted": False, "connections": 0, "notes": [], "paths": []}

    monkeypatch.setattr("pathcast.control.launch.launch", launch)
    words = ["run", "--no-history", "--mptcp", "--paths"]
    assert run([*words, "cable", "--", "true"]) == 3
    [book] = json.loads(carried.file().read_text()).values()
    assert book["last"]["rx"] == 3 * GB
    # what keeps the books from being written is not the program's
    carried.file().unlink()
    carried.file().mkdir()
    assert run([*words, "10.77.2.2", "--", "true"]) == 3


def test_books_go_by_what_does_not_change(device):
    named = Line("cable", ("10.77.2.2",), id="eth1")
    device(named, at(1), 0)
    device(named, at(2), 7 * GB)
    assert carried.account(Line("glass", ("10.77.2.2",), id="eth1"), at(2)).bytes == 7 * GB


def test_what_the_provider_says_is_taken(device):
    device(CABLE, at(9), 0)
    carried.correct(CABLE, 300 * GB, at(9))
    device(CABLE, at(10), 10 * GB)
    found = carried.account(CABLE, at(10))
    assert (found.bytes, found.since) == (310 * GB, date(2026, 11, 1))


def test_books_that_are_broken_are_put_aside(device, tmp_path):
    device(CABLE, at(1), 0)
    carried.file().write_text("[")
    device(CABLE, at(2), 1)
    assert carried.file().with_suffix(".broken").read_text() == "["
    assert json.loads(carried.file().read_text())["cable"]["days"]


@pytest.mark.parametrize(
    ("cap", "day", "begin", "end"),
    [
        (None, date(2026, 2, 11), date(2026, 2, 1), date(2026, 2, 28)),
        (Cap(1, "month", 15), date(2026, 11, 14), date(2026, 10, 15), date(2026, 11, 14)),
        (Cap(1, "month", 15), date(2026, 12, 15), date(2026, 12, 15), date(2027, 1, 14)),
        (Cap(1, "week", 3), date(2026, 11, 24), date(2026, 11, 18), date(2026, 11, 24)),
        (Cap(1, "week", 3), date(2026, 11, 25), date(2026, 11, 25), date(2026, 12, 1)),
        (Cap(1, "day"), date(2026, 11, 24), date(2026, 11, 24), date(2026, 11, 24)),
    ],
)
def test_periods(cap, day, begin, end):
    assert carried.period(cap, day) == (begin, end)


def test_days_are_the_machines_whatever_a_command_was_told(device, told):
    daily, late = Line("cable", ("10.77.2.2",), cap=Cap(GB, "day")), at(26, 22)
    found = []
    for number, name in enumerate(("UTC", "Asia/Tokyo", "Pacific/Honolulu", "UTC")):
        told(name)
        device(daily, late, number * GB)
        here = datetime.fromtimestamp(late.timestamp()).astimezone()
        found.append(carried.account(daily, here))
    assert [one.bytes for one in found] == [0, GB, 2 * GB, 3 * GB]
    assert {(one.begin, one.end, one.since) for one in found} == {(date(2026, 11, 26),) * 3}
    told("Asia/Tokyo")
    carried.correct(daily, 7 * GB, late)
    [book] = json.loads(carried.file().read_text()).values()
    assert book["days"] == {"2026-11-26": 7 * GB}


def test_a_day_of_the_machine_may_have_23_hours(device, monkeypatch):
    monkeypatch.setattr(carried, "zone", lambda: ZoneInfo("Europe/Berlin"))
    device(CABLE, datetime(2026, 3, 28, 22, tzinfo=UTC), 0)
    device(CABLE, datetime(2026, 3, 29, 23, tzinfo=UTC), 25 * GB)
    [book] = json.loads(carried.file().read_text()).values()
    assert book["days"] == {"2026-03-28": GB, "2026-03-29": 23 * GB, "2026-03-30": GB}


@pytest.mark.parametrize(("kind", "day"), [("month", 26), ("day", 26), ("month", 30)])
def test_what_is_booked_ahead_counts_already(device, kind, day):
    line, tomorrow = Line("cable", ("10.77.2.2",), cap=Cap(1000 * GB, kind)), date.fromordinal(at(day).toordinal() + 1)
    carried.file().parent.mkdir()
    carried.file().write_text(json.dumps({"cable": {"days": {tomorrow.isoformat(): 14}}}))
    found = carried.account(line, at(day, 22))
    assert (found.bytes, found.since) == (14, at(day).date())
    device(line, at(day, 22), 0)
    device(line, at(day, 23), 80)
    assert carried.account(line, at(day, 23)).bytes == 94


def test_a_clock_that_is_set_back_loses_no_bytes(device):
    device(CABLE, at(9, 12), 0)
    device(CABLE, at(9, 13), 5 * GB)
    device(CABLE, at(9, 12), 9 * GB)  # an hour back
    device(CABLE, at(9, 13), 10 * GB)
    assert carried.account(CABLE, at(9, 13)).bytes == 10 * GB
    device(CABLE, at(1), 12 * GB)
    assert carried.account(CABLE, at(9, 13)).bytes == 12 * GB


HOUR_S = 3600.0


def test_a_clock_that_is_set_forward_takes_no_bytes_out_of_their_day(device):
    """A host without a clock of its own boots in the past, and is told the time while a job runs."""
    device(CABLE, at(1), 0, boottime=60.0)
    device(CABLE, at(21, 12), 100 * GB, boottime=60.0 + 2 * HOUR_S)
    assert days() == {"2026-11-21": 100 * GB}
    # back again: it was in these two hours, whatever the clock said
    device(CABLE, at(9, 1), 106 * GB, boottime=60.0 + 4 * HOUR_S)
    assert days() == {"2026-11-08": 3 * GB, "2026-11-09": 3 * GB, "2026-11-21": 100 * GB}


def test_what_passed_since_a_boot_passed_after_it(device, monkeypatch):
    boots = iter(["one", "two", "three"])
    boot = next(boots)
    monkeypatch.setattr(carried, "_boot", lambda: boot)
    device(CABLE, at(1), 0)
    boot = next(boots)
    # it was off for twenty days
    device(CABLE, at(21, 12), 100 * GB, boottime=2 * HOUR_S)
    assert days() == {"2026-11-21": 100 * GB}
    assert carried.account(CABLE, at(21, 12)).since == date(2026, 11, 1)
    # nor before the last look, whatever the time since boot
    boot = next(boots)
    device(CABLE, at(22, 12), 2 * GB, boottime=9 * 24 * HOUR_S)
    assert days() == {"2026-11-21": 101 * GB, "2026-11-22": GB}


def test_books_of_before_are_read_without_the_time_since_boot(device):
    device(CABLE, at(1), 0)
    books = json.loads(carried.file().read_text())
    del books["cable"]["last"]["boottime"]
    carried.file().write_text(json.dumps(books))
    device(CABLE, at(3), 4 * GB, boottime=0.0)
    assert days() == {"2026-11-01": 2 * GB, "2026-11-02": 2 * GB}
    assert json.loads(carried.file().read_text())["cable"]["last"]["boottime"] == 0.0


def days():
    return {day: count for day, count in json.loads(carried.file().read_text())["cable"]["days"].items() if count}


@pytest.mark.parametrize(
    "broken",
    [
        *("7", "[]", '{"days": []}', '{"days": {"x": 1}}', '{"days": {"2026-11-01": "x"}}', "null"),
        *('{"days": {"2026-11-01": -5}}', '{"last": 7}', '{"last": {}}', '{"corrections": "x"}'),
        '{"last": {"rx": 1, "tx": 1, "index": 7, "at": NaN}}',
        '{"last": {"rx": 1, "tx": 1, "index": 7, "at": 1, "boottime": "x"}}',
        '{"last": {"rx": 1, "tx": 1, "index": 7, "at": 1, "boottime": NaN}}',
        *('{"told": 7}', '{"told": {"at": 1, "own": -1, "since": "2026-11-01"}}'),
        *('{"told": {"at": NaN, "own": 1, "since": "2026-11-01"}}', '{"told": {"at": 1, "own": 1, "since": "x"}}'),
    ],
)
def test_what_is_broken_in_the_books_is_put_aside_and_the_rest_goes_on(device, broken, capsys):
    device(CABLE, at(1), 0)
    device(CABLE, at(2), 3 * GB)
    whole = carried.file().read_text()
    text = f'{whole[:-1]}, "dsl": {broken}}}'
    carried.file().write_text(text)
    assert carried.account(Line("dsl", ("10.77.1.2",)), at(2)).bytes == 0
    device(CABLE, at(3), 4 * GB)
    assert carried.account(CABLE, at(3)).bytes == 4 * GB
    assert carried.file().with_suffix(".broken").read_text() == text
    assert "lines that are missing count from now on" in capsys.readouterr().err
    device(CABLE, at(3), 4 * GB)
    assert capsys.readouterr().err == ""


def test_books_that_cannot_be_read_are_not_taken_for_empty_ones(device):
    carried.file().mkdir(parents=True)
    for act in (lambda: carried.account(CABLE, at(1)), lambda: device(CABLE, at(1), 0)):
        with pytest.raises(PathcastError, match=r"cannot read .*lines.json"):
            act()


@pytest.mark.parametrize("text", [None, "", "nonsense\n", f"{HEAD}  eth1: x\n", HEAD])
def test_a_device_that_is_there_without_counters_is_told(device, text):
    lines = {
        "cable": CABLE,
        "gone": Line("gone", dev="eth9", cap=CABLE.cap),
        "free": Line("free", ("10.77.9.9",)),
    }
    if text is not None:
        counters.FILE.write_text(text)
    assert carried.look(lines, at(1).timestamp()) == {"cable": "eth1"}
    assert carried.account(CABLE, at(1)).since is None
    assert device(CABLE, at(1), 0) == {}


def test_counters_are_those_of_this_network_namespace():
    received, sent = counters.read()["lo"]
    assert received == sent >= 0
    assert socket.if_nametoindex("lo") == 1


def test_a_cap_without_counters_says_what_it_counts(device, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.setattr(here, "ip", lambda *_: [])
    note = "note: the counters of eth1 (cable) cannot be read: its cap counts nothing but what pathcast itself"
    for words, notes in (("add cable --dev eth1", 0), ("set cable --cap 1TB/month", 1), ("list", 1)):
        assert run(["line", *words.split()]) == 0
        assert capsys.readouterr().err.count(note) == notes
    device(CABLE, at(1), 0)
    assert run(["line", "list"]) == 0
    assert capsys.readouterr().err == ""


def test_books_that_somebody_holds_are_not_waited_for_without_an_end(device, monkeypatch):
    device(CABLE, at(1), 0)
    monkeypatch.setattr(state, "LOCK_PATIENCE_S", 0.1)
    lock = carried.file().with_suffix(".lock")
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with pytest.raises(PathcastError, match=rf"lines.lock is locked by process {os.getpid()} \(") as busy:
            device(CABLE, at(2), GB)
        assert busy.value.code == "busy"
    device(CABLE, at(2), GB)
    assert carried.account(CABLE, at(2)).bytes == GB


@pytest.mark.parametrize(
    ("umask", "before", "after"),
    [(0o022, None, 0o600), (0o022, 0o644, 0o600), (0o002, None, 0o620), (0o002, 0o664, 0o620)],
    ids=["own", "own-of-old", "shared", "shared-of-old"],
)
def test_only_who_may_write_the_books_can_hold_their_lock(device, umask, before, after):
    """With a umask of 002 a group shares them."""
    lock = carried.file().with_suffix(".lock")
    if before is not None:
        lock.parent.mkdir()
        lock.touch()
        lock.chmod(before)
    mask = os.umask(umask)
    try:
        device(CABLE, at(1), 0)
    finally:
        os.umask(mask)
    assert lock.stat().st_mode & 0o777 == after
    assert carried.file().stat().st_mode & 0o444 == 0o444


def test_books_are_on_the_disc_before_they_replace_the_old_ones(device, monkeypatch):
    """Else a power cut leaves an empty file, and every cap begins anew."""
    device(CABLE, at(1), 0)
    done = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append(os.readlink(f"/proc/self/fd/{fd}")), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda of, to: (done.append("replaced"), replace(of, to)))
    device(CABLE, at(2), GB)
    assert done == [str(carried.file().with_suffix(".new")), "replaced"]
