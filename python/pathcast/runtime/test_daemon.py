"""The side of a part that answers."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from pathcast.errors import PathcastError
from pathcast.runtime import daemon


class _Part(daemon.Part):
    kind = "serve"

    def __init__(self, fails):
        super().__init__({})
        self._fails = fails

    def ending(self, asker):
        if self._fails:
            raise PathcastError("gone", "it cannot be said")
        return ["not removed: something"]


class _End:
    """As where the process is gone at once."""

    def __init__(self, connection):
        self._connection, self.is_set = connection, False

    def set(self):
        self.is_set = True
        self._connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(("fails", "key"), [(False, "result"), (True, "error")])
def test_what_down_leaves_is_told_before_the_process_ends(fails, key):
    here, there = socket.socketpair()
    end = _End(there)
    here.sendall(b'{"verb": "down"}\n')
    daemon._answer(_Part(fails), there, threading.Lock(), end)
    with here, here.makefile() as lines:
        assert key in json.loads(lines.readline())
    assert end.is_set


def test_who_is_gone_before_the_answer_ends_it_all_the_same():
    here, there = socket.socketpair()
    end = _End(there)
    end.set = lambda: setattr(end, "is_set", True)
    here.sendall(b'{"verb": "down"}\n')
    here.close()
    daemon._answer(_Part(False), there, threading.Lock(), end)
    assert end.is_set
