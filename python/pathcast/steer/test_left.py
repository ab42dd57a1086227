"""What is said of entries whose switches are away, and of a controller that fails."""

from __future__ import annotations

import json
import os
from functools import partial

import pytest

from pathcast.cli import runner
from pathcast.errors import PathcastError
from pathcast.service import doctor
from pathcast.steer import left
from pathcast.steer.config import Config
from pathcast.steer.controller import Controller
from pathcast.steer.kept import Kept, place, store


@pytest.fixture
def listen(tmp_path):
    return f"unix:{tmp_path}/of"


def test_nothing_is_removed_of_nobody(tmp_path, listen):
    assert left.remove(tmp_path, []) == []
    store(place(tmp_path, "one"), Kept(listen, 1 << 62))
    assert left.remove(tmp_path, ["one"]) == []
    assert left.remove(tmp_path, []) == ["entries of steer one in no switch"]
    assert left.remove(tmp_path, []) == []


def test_what_cannot_be_removed_is_named_and_kept(tmp_path, listen):
    file = place(tmp_path, "one")
    store(file, Kept(listen, 1 << 62, {"s7": 7}))
    [told] = left.remove(tmp_path, [], 0.1)
    assert told == (
        f"not removed: entries of steer one in s7: not connected to {listen}; if they are no more, remove {file}"
    )
    assert file.exists()
    with Controller(Config(listen=listen)):
        [told] = left.remove(tmp_path, [], 0.1)
    assert "somebody listens at" in told
    file.write_text("{")
    [told] = left.remove(tmp_path, [], 0.1)
    assert told.startswith("not removed: entries of steer one: what the last controller wrote to")
    file.unlink()
    os.mkfifo(file)
    [told] = left.remove(tmp_path, [], 0.1)
    assert "no file" in told
    file.unlink()
    file.symlink_to("/dev/zero")
    [told] = left.remove(tmp_path, [], 0.1)
    assert "cannot be read" in told


def test_undo_fails_where_switches_do_not_come_and_doctor_goes_on_to_show_it(tmp_path, listen, monkeypatch, capsys):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path))
    monkeypatch.setattr(left, "remove", partial(left.remove, patience_s=0.1))
    store(file := place(tmp_path, "one"), Kept(listen, 1 << 62, {"s7": 7}))
    for _ in range(2):  # in a network namespace that the switches do not reach
        assert runner.run(["undo", "--json"]) == 1
        out, err = capsys.readouterr()
        undone = json.loads(out)
        assert undone["removed"] == []
        assert undone["not_removed"][0].startswith("not removed: entries of steer one in s7")
        assert "not removed: entries of steer one in s7: not connected to" in err
        assert file.exists()
        [part] = [part for part in doctor.changed() if part["kind"] == "steer"]
        assert (part["id"], part["alive"], part["made"]) == ("one", False, {"entries": ["entries in s7"]})
    file.write_text("{")
    assert [part["made"] for part in doctor.changed() if part["kind"] == "steer"] == [{"entries": []}]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_in_the_controller_is_told_to_who_asks(listen, monkeypatch):
    controller = Controller(Config(listen=listen))
    monkeypatch.setattr(controller.machine, "count", lambda now: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        controller.counters()  # a request that fails is only that
    monkeypatch.setattr(controller.machine, "tick", lambda now: 1 / 0)
    controller._thread.join(60)
    with pytest.raises(PathcastError, match="ended by a fault of its own: ZeroDivisionError"):
        controller.state()
    controller.close()
    controller.close()
