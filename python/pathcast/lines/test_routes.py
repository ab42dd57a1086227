"""The list of what routes were set: what cannot be read is said, kept, and never taken for nothing."""

from __future__ import annotations

import json

import pytest

from pathcast.cli.runner import run
from pathcast.errors import Exit, PathcastError
from pathcast.lines import routes
from pathcast.lines.config import Line

SET = [{"line": "cable", "namespace": "net:[1]", "command": ["-4", "rule", "add"]}]
WHOLE = json.dumps(SET)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path))
    monkeypatch.setattr(routes, "_ip", lambda words: pytest.fail(f"ip {words}"))
    monkeypatch.setattr(routes.os, "geteuid", lambda: 0)
    return tmp_path / "routes.list"


@pytest.mark.parametrize(
    "text",
    [
        *("", WHOLE[:-1], WHOLE[:20], "{}", "null", "[1]", '[{"line": "cable"}]', "\x00\x00"),
        *(WHOLE.replace('["-4", "rule", "add"]', of) for of in ("[]", '"rule"', '["-4", 7]', '["-4"]')),
    ],
)
def test_a_broken_list_is_told_and_kept(file, text):
    file.write_text(text)
    line = Line(name="cable", id="x", dev="lo")
    for act in (
        routes.recorded,
        routes.remove,
        lambda: routes.remove("cable"),
        lambda: routes.set_up(line, [["-4", "rule", "add", "from", "192.0.2.1", "lookup", "7700"]]),
    ):
        with pytest.raises(PathcastError, match="cannot read") as told:
            act()
        assert str(file) in told.value.message
        assert "7700 to 8699" in told.value.hint
    assert file.read_text() == text


def test_one_that_may_not_be_read_or_is_none(file):
    assert (routes.recorded(), routes.remove()) == ([], [])
    file.mkdir()
    with pytest.raises(PathcastError, match="cannot read"):
        routes.recorded()


def test_undo_goes_on_and_says_it(file, capsys):
    file.write_text(WHOLE[:-1])
    assert run(["undo"]) == Exit.OK
    assert f"not removed: cannot read `{file}`" in capsys.readouterr().out
    assert file.exists()


def test_what_another_namespace_has_set_stays(file):
    file.write_text(WHOLE)
    assert routes.remove() == []
    assert json.loads(file.read_text()) == SET
