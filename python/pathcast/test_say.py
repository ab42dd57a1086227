"""Words that nobody can write, and those that come again."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from pathcast.say import Once, say


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


def test_what_is_found_at_every_look_is_told_once_until_it_has_passed():
    told = []
    once = Once(told.append)
    for found in (["a"], ["a", "b", "b"], ["b"], [], ["b"]):
        for one in found:
            once(one)
        once.looked()
    assert told == ["a", "b", "b"]
