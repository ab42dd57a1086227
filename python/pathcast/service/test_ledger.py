"""What a watch may still send today, on the disc: kills, boots, clocks that are set, and files that are broken."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pathcast.errors import PathcastError
from pathcast.history.testing import Clock
from pathcast.service import ledger as ledgers
from pathcast.service.ledger import Ledger
from pathcast.watch.allowance import DAY_S

HOUR_S = 3600.0


def test_the_ledger_outlives_kills_boots_and_clocks_that_are_set(tmp_path):
    file, time = tmp_path / "watch.json", Clock()
    first = Ledger(file, 1_000_000, time)
    first.take(300_000)
    first.settle(100_000)
    first.take(300_000)
    # killed: of the second one nobody knows how much was sent
    time.passes(60)
    time.is_set(-7200)
    again = Ledger(file, 1_000_000, time)
    assert again.used() == 400_000
    assert 8000 < again.free_in_s(300_000) < 9000  # paced by the first
    time.is_set(7200)
    time.passes(DAY_S / 2)
    time.boots()
    again = Ledger(file, 1_000_000, time)
    assert again.used() == 400_000
    assert again.free_in_s(300_000) == 0
    time.passes(DAY_S / 2 + 120)
    assert Ledger(file, 1_000_000, time).used() == 300_000
    # of a clock before that: nothing is forgotten
    time.is_set(-3 * DAY_S)
    time.boots()
    assert Ledger(file, 1_000_000, time).used() == 400_000
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("whole", [True, False])
def test_the_pace_is_that_of_the_allowance_now(tmp_path, whole):
    file, time = tmp_path / "watch.json", Clock()
    first = Ledger(file, 50_000_000, time)
    first.take(300_000)
    time.passes(4)
    first.settle(200_000)
    if not whole:  # of a version that did not write what paces
        kept = json.loads(file.read_text())
        del kept["paced"]
        file.write_text(json.dumps(kept))
    off_s = 0.01 if whole else 4
    assert Ledger(file, 50_000_000, time).free_in_s(300_000) == pytest.approx(345.6 - 4, abs=0.01)
    assert Ledger(file, 3_000_000_000, time).free_in_s(300_000) == pytest.approx(5.76 - 4, abs=off_s)
    assert Ledger(file, 20_000_000, time).free_in_s(300_000) == pytest.approx(864 - 4, abs=2 * off_s)
    # what it was is not lost by a file that is written meanwhile
    other = Ledger(file, 3_000_000_000, time)
    other.take(4_000)
    other.settle(1_000, paced=False)
    assert Ledger(file, 50_000_000, time).free_in_s(300_000) == pytest.approx(345.6 - 4, abs=off_s)
    # no more than a day
    assert Ledger(file, 100_000, time).free_in_s(1, paced=True) <= DAY_S + 1


BROKEN = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b"null",
    b'{"spent": [], "taken": 0, "paced_s": 0, "most": 1}',
    b'{"at": {"utc_us": 1, "boot_us": 1, "boot": "b"}, "spent": [[1, -5]], "taken": 0, "paced_s": 0, "most": 1}',
    b'{"at": {"utc_us": 1, "boot_us": 1, "boot": "b"}, "spent": [[NaN, 5]], "taken": 0, "paced_s": 0, "most": 1}',
    b'{"at": {"utc_us": 1, "boot_us": 1, "boot": "b"}, "spent": [[-9e9, 5]], "taken": 0, "paced_s": 0, "most": 1}',
    b'{"at": {"utc_us": 1, "boot_us": 1, "boot": "b"}, "spent": [], "taken": "0", "paced_s": 0, "most": 1}',
    b'{"at": {"utc_us": "x", "boot_us": 1, "boot": "b"}, "spent": [], "taken": 0, "paced_s": 0, "most": 1}',
    b'{"at": {"utc_us": 1, "boot_us": 1, "boot": "b"}, "spent": [], "taken": 0, "paced_s": 0, "most": 0}',
    b'{"at": {"utc_us": 1, "boot_us": 1, "boot": "b"}, "spent": [], "taken": 0, "paced_s": 0, "most": 1, "paced": -1}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_ledger_is_said_and_its_day_is_spent(tmp_path, text):
    file, time, said = tmp_path / "watch.json", Clock(), []
    file.write_bytes(text)
    made = Ledger(file, 1_000_000, time, said.append)
    assert made.used() == 1_000_000
    assert DAY_S - 1 < made.free_in_s(1000) < DAY_S + 1
    assert (tmp_path / "watch.broken").read_bytes() == text
    assert len(said) == 1
    assert "was broken" in said[0]
    assert "1 MB count as spent" in said[0]
    # who starts again to be rid of that is not
    again = Ledger(file, 1_000_000, time, said.append)
    assert (again.used(), len(said)) == (1_000_000, 1)
    time.passes(DAY_S + 1)
    assert Ledger(file, 1_000_000, time, said.append).used() == 0


def test_of_a_broken_ledger_the_history_tells_what_was_spent(tmp_path):
    file, time, said = tmp_path / "watch.json", Clock(), []
    file.write_text("{")
    every = [(ago_s, 1000) for ago_s in range(0, int(DAY_S), 300)]
    made = Ledger(file, 1_000_000, time, said.append, lambda: every, 900)
    assert made.used() == 1000 * len(every)
    assert made.free_in_s(1000) < 1
    # of a quarter of the day it knows nothing
    file.write_text("{")
    some = [round for round in every if not 6 * HOUR_S < round[0] <= 12 * HOUR_S]
    made = Ledger(file, 1_000_000, time, said.append, lambda: some, 900)
    assert made.used() == pytest.approx(1000 * len(some) + 250_000, abs=5_000)


def test_a_ledger_that_cannot_be_read_is_not_begun_anew(tmp_path):
    file = tmp_path / "watch.json"
    file.mkdir()
    with pytest.raises(PathcastError, match="cannot read"):
        Ledger(file, 1_000_000, Clock())


def test_the_second_watch_of_a_state_is_refused_and_hears_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    holding = "from pathcast.service.ledger import alone\nwith alone(): print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with (
            pytest.raises(PathcastError, match=f"watched from already, by process {other.pid} \\(") as refused,
            ledgers.alone(),
        ):
            pass
        assert refused.value.code == "busy"
        other.kill()
        other.wait()
    with ledgers.alone() as directory:
        assert (directory, directory.stat().st_mode & 0o777) == (tmp_path / "state", 0o700)
