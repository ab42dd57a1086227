"""Who looks for controllers makes nothing, and fails for nothing; which of their paths join two hosts."""

from __future__ import annotations

import os

import pytest

from pathcast.runtime import state, steered
from pathcast.runtime.steered import Controlled
from pathcast.steer.client import Client
from pathcast.steer.config import Config
from pathcast.steer.machine import Machine


@pytest.mark.parametrize("there", ["nothing", "a link", "a file", "others may write"])
def test_looking_makes_nothing_and_fails_for_nothing(tmp_path, monkeypatch, there):
    place = tmp_path / "run"
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(place))
    if there == "a link":
        place.symlink_to(tmp_path)
    elif there == "a file":
        place.write_text("")
    elif there == "others may write":
        place.mkdir()
        place.chmod(0o777)
    assert steered.controllers() == []
    assert os.path.lexists(place) == (there != "nothing")


def test_a_record_of_one_that_has_ended_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    state.Record("steer", "steer", os.getpid(), 1).claim()
    assert steered.controllers() == []


def test_the_paths_that_join_two_hosts():
    told = Config.of(
        {
            "switch": [{"name": f"s{n}", "id": n} for n in (1, 2, 3)],
            "host": [{"address": f"10.0.0.{n}", "at": f"s{n}:1"} for n in (1, 2, 3)],
            "link": [{"ends": ["s1:2", "s2:2"]}, {"ends": ["s1:3", "s3:2"]}, {"ends": ["s3:3", "s2:3"]}],
            "path": [
                {"name": "straight", "via": ["s1:2"]},
                {"name": "round", "via": ["s1:3", "s3:3"]},
                {"name": "half", "via": ["s1:3"]},
            ],
        }
    )
    of = Controlled("steer", Client("none"), False, Machine(told, 1, b"k").state())
    assert of.joining("10.0.0.1", "10.0.0.2") == ["straight", "round"]
    assert of.joining("10.0.0.2", "10.0.0.1") == ["straight", "round"]
    assert of.joining("10.0.0.3", "10.0.0.1") == ["half"]
    assert of.joining("10.0.0.2", "10.0.0.3") == []
    assert of.joining("10.0.0.1", "192.0.2.1") == []
