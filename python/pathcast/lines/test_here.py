"""What iproute2 tells, and a program `ip` that tells nothing."""

from __future__ import annotations

import subprocess

import pytest

from pathcast.errors import PathcastError
from pathcast.lines import here
from pathcast.lines.config import Line


def test_one_that_does_not_answer_is_an_error_that_can_be_told(monkeypatch):
    def hangs(words, timeout, **_):
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(PathcastError, match="`ip -j addr show` has not answered within 10 s"):
        here.addresses()


def test_a_device_is_used_from_its_lasting_addresses(monkeypatch):
    def one(local, **flags):
        return {"local": local, "prefixlen": 64, "scope": "global", **flags}

    told = [
        one("10.77.1.2"),
        one("2001:db8::1"),
        one("2001:db8::a", temporary=True, dynamic=True),
        one("2001:db8::b", temporary=True, deprecated=True),
    ]
    monkeypatch.setattr(here, "ip", lambda *_: [{"ifname": "eth0", "addr_info": told}])
    found = here.addresses()

    def used(line):
        return [one.local for one in here.used(line, found)]

    assert used(Line("dsl", dev="eth0")) == ["10.77.1.2", "2001:db8::1"]
    assert used(Line("dsl", addresses=("2001:db8::a",))) == ["2001:db8::a"]  # as it is named
    assert len(here.of_line(Line("dsl", dev="eth0"), found)) == 4
    told[:2] = []
    found = here.addresses()
    assert used(Line("dsl", dev="eth0")) == ["2001:db8::a", "2001:db8::b"]  # it has no other
