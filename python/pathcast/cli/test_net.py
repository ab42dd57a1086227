"""What `net list` says for people."""

from __future__ import annotations

from typing import Any

import pytest

from pathcast.cli import runner
from pathcast.runtime import daemon, state


def ledger(**changes: Any) -> dict[str, Any]:
    error = {"n": 0}
    sound = {
        "links": [],
        "realtime": True,
        "processors_kept_awake": True,
        "devices_removed": 0,
        "write_failures": 0,
        "release_error": error,
    }
    devices = [{"host": "client", "name": "p1", "dropped": changes.pop("dropped", 0)}]
    return {"groups": [sound, {**sound, **changes}], "devices": devices}


@pytest.fixture
def lines(capsys, monkeypatch):
    """What is printed of a network with this ledger."""
    about = {"scenario": "one", "client": "c", "server": "s", "paths": []}
    monkeypatch.setattr(state, "clean", lambda: None)
    monkeypatch.setattr(state, "records", lambda _: [state.Record("net", "one", 1, 1)])

    def lines(of: dict[str, Any]) -> list[str]:
        monkeypatch.setattr(daemon.Daemon, "ask", lambda _, verb: {"describe": about, "ledger": of}[verb])
        assert runner.run(["net", "list"]) == 0
        return capsys.readouterr().out.splitlines()

    return lines


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"realtime": False}, "threads without real-time priority: 1 of 2; packets may leave late"),
        (
            {"processors_kept_awake": False},
            "threads that cannot keep the processors awake: 1 of 2; packets may leave late",
        ),
        ({"devices_removed": 2}, "devices that somebody removed: 2; nothing comes by them any more"),
        ({"write_failures": 3}, "packets that a device refused: 3"),
        ({"dropped": 4}, "packets dropped before the emulator could read them: 4"),
    ],
)
def test_the_list_says_what_is_not_as_modelled(lines, changes, told):
    sound = lines(ledger())
    assert lines(ledger(**changes)) == [*sound, told]
