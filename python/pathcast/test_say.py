"""Words that nobody can write."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from pathcast.say import say


class Refusing:
    """A standard error that takes nothing."""

    def __init__(self, number):
        self.number = number

    def write(self, text):
        raise OSError(self.number, os.strerror(self.number))

    def flush(self):
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE, errno.EIO])
def test_they_end_nothing(monkeypatch, capsys, number):
    with monkeypatch.context() as there:
        there.setattr(sys, "stderr", Refusing(number))
        say("lost")
    say("dsl is down")
    say("dsl is down", "22:00")
    assert capsys.readouterr() == ("", "pathcast: dsl is down\n22:00 dsl is down\n")
