"""A model to predict with, and places for the tests' own."""

from __future__ import annotations

import pytest

from pathcast.forecast.testing import World, go


@pytest.fixture(autouse=True)
def _own_run_directory(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "models" / "far.model"  # the directory is made


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A model of 24 rounds, and the world that it was learnt in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))
        file, world = tmp_path_factory.mktemp("model") / "far.model", World()
        done = go(file, world, rounds=24)
    return file, world, done
