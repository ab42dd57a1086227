"""Files that somebody names: no command waits for ever for one, or fills the memory with one."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.files import read_file
from pathcast.forecast.model import Model
from pathcast.lab.plan import Plan
from pathcast.scenario import Scenario


@contextmanager
def soon():
    """What waits for ever ends as a failure."""

    def late(*_):
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


READERS = {"scenario": Scenario.load, "model": Model.load, "plan": Plan.load}


@pytest.mark.parametrize("what", READERS)
def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path, what):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with soon(), pytest.raises(PathcastError, match="it is a pipe, and those are read as /dev/fd/N only"):
        READERS[what](pipe)


@pytest.mark.parametrize("what", READERS)
def test_a_file_without_end_is_refused(what):
    with soon(), pytest.raises(PathcastError, match="larger than"):
        READERS[what](Path("/dev/zero"))


def test_a_pipe_that_the_shell_gives_is_read_to_its_end():
    read, write = os.pipe()
    with subprocess.Popen(["sh", "-c", "echo one; sleep 0.3; echo two"], stdout=write):
        os.close(write)
        with soon():
            assert read_file(Path(f"/dev/fd/{read}"), 8) == b"one\ntwo\n"
    os.close(read)


def test_the_largest_is_read_and_one_byte_more_is_not(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"12345678")
    assert read_file(file, 8) == b"12345678"
    with pytest.raises(OSError, match="larger than 7 bytes"):
        read_file(file, 7)
