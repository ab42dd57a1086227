"""What a far end says while it runs reaches standard error, whatever one write meets."""

from __future__ import annotations

import errno
import os
import threading

from pathcast.cli import serve


class Server:
    """Warns of one thing at each of three looks."""

    def __init__(self):
        self.told = iter([["first"], ["second"], ["third"]])

    def warnings(self):
        return next(self.told)

    def log(self):
        return []


class Over:
    """At the third look."""

    def __init__(self):
        self.looks = iter([False, True])

    def wait(self, _):
        return next(self.looks)


def test_a_write_that_fails_costs_its_line_alone_and_a_short_one_goes_on(monkeypatch):
    written, failures = bytearray(), iter([OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))])

    def write(descriptor, data):
        assert descriptor == 2
        for failure in failures:
            raise failure
        written.extend(data[:4])
        return min(4, len(data))

    monkeypatch.setattr(os, "write", write)
    thread = threading.Thread(target=serve._warn, args=(Server(), Over()))
    thread.start()
    thread.join(60)
    assert bytes(written) == b"note: second\nnote: third\n"
