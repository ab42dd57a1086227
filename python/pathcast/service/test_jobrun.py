"""What goes wrong around a job's program, and is not the program's."""

from __future__ import annotations

import errno
import os
import sys
from types import SimpleNamespace

import pytest

from pathcast.service import jobs
from pathcast.service.jobrun import ran


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    return tmp_path / "state"


def test_an_end_that_can_neither_be_noted_nor_said_leaves_the_programs_status(state, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(jobs, "_add_line", full)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=full, flush=lambda: None))
    ran("nightly", {}, None)(0, None)
