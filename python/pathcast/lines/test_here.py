"""What iproute2 tells, and a program `ip` that tells nothing."""

from __future__ import annotations

import subprocess

import pytest

from pathcast.errors import PathcastError
from pathcast.lines import here


def test_one_that_does_not_answer_is_an_error_that_can_be_told(monkeypatch):
    def hangs(words, timeout, **_):
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(PathcastError, match="`ip -j addr show` has not answered within 10 s"):
        here.addresses()
