"""`run --paths auto` before its program begins: what is asked for, and what of it is left by then."""

from __future__ import annotations

import pytest

from pathcast.cli.auto import prepare
from pathcast.cli.planoptions import Asked
from pathcast.errors import PathcastError
from pathcast.lines import here

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


@pytest.mark.parametrize(("by", "late"), [("1ms", False), ("2026-01-01T06:00", True)])
def test_a_deadline_that_passes_before_the_program_begins_keeps_it_from_nothing(lines, capsys, by, late):
    made = prepare(asked(by, late), None, False, None)
    assert set(made.auto.step.lines) == {"dsl", "cable"}
    assert made.control == "lia"  # at full speed, as a course that is late
    assert made.limit.left_s(None) < 0
    assert "the deadline is past: it goes as fast as it may" in capsys.readouterr().err


def test_who_names_a_time_that_is_past_is_told(lines):
    with pytest.raises(PathcastError, match="is past"):
        prepare(asked("2026-01-01T06:00"), None, False, None)
