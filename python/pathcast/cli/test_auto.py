"""`run --paths auto` before its program begins: what is asked for, and what of it is left by then."""

from __future__ import annotations

import time

import pytest

from pathcast import zone
from pathcast.cli.auto import prepare
from pathcast.cli.planoptions import Asked
from pathcast.errors import Exit, PathcastError
from pathcast.lines import carried, config, here

pytestmark = pytest.mark.usefixtures("own_directories")


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """The file of two lines, each with an address."""
    for name in ("STATE_DIR", "HISTORY"):
        monkeypatch.setenv(f"PATHCAST_{name}", str(tmp_path / name))
    file = tmp_path / "lines.toml"
    monkeypatch.setenv("PATHCAST_CONFIG", str(file))
    file.write_text('[line.dsl]\nfrom = "192.0.2.1"\n\n[line.cable]\nfrom = "192.0.2.2"\n')
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("none0", f"192.0.2.{n}", 24) for n in (1, 2)])
    return file


def asked(by, late=False):
    return Asked("1GB", by, None, None, None, True, True, True, late=late)


def bounded(*most, budget=None):
    return Asked(None, None, list(most), budget, None, False, False, False)


@pytest.mark.parametrize(("by", "late"), [("1ms", False), ("2026-01-01T06:00", True)])
def test_a_deadline_that_passes_before_the_program_begins_keeps_it_from_nothing(lines, capsys, monkeypatch, by, late):
    found = here.addresses()
    monkeypatch.setattr(here, "addresses", lambda: (time.sleep(0.002), found)[1])
    made = prepare(asked(by, late), None, False, None)
    assert set(made.auto.step.lines) == {"dsl", "cable"}
    assert made.control == "lia"  # at full speed, as a course that is late
    assert made.limit.left_s(None) < 0
    assert "the deadline is past: it goes as fast as it may" in capsys.readouterr().err


def test_caps_are_known_until_the_deadline_and_told_further(lines, monkeypatch):
    lines.write_text(lines.read_text().replace('2.2"', '2.2"\ncap = "1TB/month"'))
    made = prepare(asked("200d"), None, False, None)
    [*_, last] = made.auto._course._terms["cable"].allowances
    assert last.end_s == pytest.approx(200 * 86_400, abs=60)
    assert made.auto._further({}) == {}
    monkeypatch.setattr("pathcast.service.terms._FURTHER_S", 0.0)
    made = prepare(asked("200d"), None, False, None)
    [*_, last] = made.auto._further({})["cable"].allowances
    assert last.end_s == pytest.approx(200 * 86_400, abs=60)


def test_who_names_a_time_that_is_past_is_told(lines):
    with pytest.raises(PathcastError, match="is past"):
        prepare(asked("2026-01-01T06:00"), None, False, None)


def test_bounds_that_leave_nothing_are_wrong_words_unless_another_line_may_come(lines, monkeypatch):
    with pytest.raises(PathcastError, match="--max and --budget leave nothing") as refused:
        prepare(bounded("dsl=0B", "cable=10kB"), None, False, None)
    assert refused.value.exit == Exit.USAGE
    lines.write_text(lines.read_text().replace('2.2"', '2.2"\nprice = "0.5/GB"'))
    with pytest.raises(PathcastError, match="--max and --budget leave nothing"):
        prepare(bounded("dsl=0B", budget="0"), None, False, None)
    assert prepare(bounded("dsl=0B", budget="1"), None, False, None).auto.step.lines == ("cable",)
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("none0", "192.0.2.1", 24)])
    with pytest.raises(PathcastError, match="no line may be used now") as refused:
        prepare(bounded("dsl=0B"), None, False, None)
    assert refused.value.exit == Exit.REFUSED


class Running:
    """Each line's address has sent so much."""

    def __init__(self, *sent):
        about = {"remote": "198.51.100.1", "bytes_received": 0, "bytes_retransmitted": 0, "timeouts": 0}
        self.paths = [{**about, "local": f"192.0.2.{n}", "bytes_sent": of} for n, of in enumerate(sent, 1)]

    def seen(self):
        return {"paths": self.paths, "open": {"192.0.2.1": 1}}

    def allow(self, addresses):
        return [], []

    def __getattr__(self, name):
        return lambda *_: []


def test_a_device_that_is_dialled_again_gives_its_line_another_address(lines, monkeypatch):
    lines.write_text('[line.dsl]\nfrom = "192.0.2.1"\n\n[line.cable]\ndev = "none0"\n')
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("none0", "192.0.2.2", 24), *other])
    other = [here.Address("none1", "192.0.2.1", 24)]
    made = prepare(bounded(), None, False, None)
    assert made.lines == {"dsl": ["192.0.2.1"], "cable": ["192.0.2.2"]}
    other += [here.Address("none0", "192.0.2.3", 24), here.Address("none1", "192.0.2.4", 24)]
    made.auto.look(running := Running(0, 0, 3 * 10**6), made.auto._began_s + 1)
    document = made.document({"paths": running.paths, "elapsed_s": 5.0, "bytes_sent": 0})
    assert document["lines"] == {"dsl": ["192.0.2.1"], "cable": ["192.0.2.2", "192.0.2.3"]}
    assert document["sentence"].startswith("cable 3 MB in ")


@pytest.mark.parametrize(("hours", "final"), [("", True), ('use = "{}-{}"\n', False)])
def test_a_run_whose_own_bounds_are_reached_is_done_for_good(lines, hours, final):
    later = [f"{(zone.local().hour + n) % 24:02}:00" for n in (2, 3)]
    lines.write_text(lines.read_text() + hours.format(*later))
    made = prepare(bounded("dsl=40MB", "cable=60MB"), None, False, None)
    for at_s, sent in enumerate((0, 9, 18, 27, 36), 1):
        running = Running(sent * 10**6, 0 if hours else 2 * sent * 10**6)
        made.auto.look(running, made.auto._began_s + at_s)
    document = made.document({"paths": running.paths, "elapsed_s": 5.0, "bytes_sent": 0})
    assert (document["ended"], document["final"]) == (True, final)
    assert ("leave nothing to any line" in document["sentence"]) == final
    assert document["left"]["max_bytes"] == {"dsl": 0, "cable": 0 if final else 60_000_000}


@pytest.fixture
def of_root(lines, tmp_path, monkeypatch):
    """The same lines are root's, and this user has none of his own."""
    lines.write_text(lines.read_text() + 'cap = "1GB/month"\n')
    monkeypatch.setattr(config, "SYSTEM", lines)
    monkeypatch.delenv("PATHCAST_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    return tmp_path / "STATE_DIR/lines.json"


COUNT = "what root's jobs have used of a cap may be missing"


def test_whose_the_count_of_a_cap_is_stands_beside_lines_of_root(of_root, capsys, pathcast, monkeypatch):
    status, listed, _ = pathcast("line", "list", "--json")
    assert status == Exit.OK
    [note] = listed["notes"]
    assert COUNT in note
    assert str(of_root) in note
    assert f"note: {note}\n" in pathcast("line", "list")[2]
    prepare(bounded(), None, False, None)
    assert f"pathcast: {note}\n" in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert pathcast("line", "list", "--json")[1]["notes"] == []


def test_who_counts_where_root_does_or_has_lines_of_his_own_hears_nothing(of_root, lines, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", "/var/lib/pathcast")
    assert carried.apart(config.load()) is None
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(of_root.parent))
    assert carried.apart(config.load()) is not None
    own = config.file()
    own.parent.mkdir(parents=True)
    own.write_text(lines.read_text())
    assert carried.apart(config.load()) is None
    own.unlink()
    lines.write_text(lines.read_text().replace('cap = "1GB/month"\n', ""))
    assert carried.apart(config.load()) is None  # nothing is bounded by it
