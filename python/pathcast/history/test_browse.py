"""All paths at a glance: one is shown once, by whatever its far end was known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathcast.history.browse import Browser
from pathcast.history.identity import over, remote_of_address
from pathcast.history.testing import KEY1, KEY2, KEYS, measure, transfer

BY_ADDRESS = replace(KEY1, remote_id=remote_of_address(KEY1.remote))


@pytest.fixture
def paths(journal, at):
    return lambda: Browser(journal.store, at(), "host-1").paths()


@pytest.mark.parametrize("key_first", [False, True])
def test_a_path_that_is_known_by_key_and_by_address_is_one(journal, paths, at, key_first):
    keys = [KEY1, BY_ADDRESS] if key_first else [BY_ADDRESS, KEY1]
    for rate, key in zip((1e6, 2e6), keys, strict=True):
        measure(journal, rate, keys={**KEYS, "path1": key})
        at.passes(60)
    transfer(journal, keys={**KEYS, "path1": BY_ADDRESS})
    measure(journal, 5e6, names=("path2",))
    one = next(of for of in paths() if of.key.line_id == KEY1.line_id)
    assert {of.key for of in paths()} == {KEY1, KEY2}
    assert (one.measurements, one.transfers, one.bytes, one.age_s) == (2, 1, 10_000_000, 0.0)
    # of the last measurement, whatever it was known by
    assert one.available_bps == {"out": 2e6, "in": 4e6}


def test_what_an_address_alone_does_not_tell_stays_apart(journal, paths):
    other, way = replace(KEY1, remote_id="key:other"), replace(KEY2, remote_id=over(KEY2.remote_id, "sw1:2"))
    lone = replace(KEY2, remote_id=remote_of_address(KEY2.remote))
    elsewhere = replace(BY_ADDRESS, remote="198.51.100.9", remote_id=remote_of_address("198.51.100.9"))
    known = {KEY1, other, BY_ADDRESS, way, lone, elsewhere}
    for key in known:
        measure(journal, keys={"path1": key})
    assert {of.key for of in paths()} == known
    assert len(paths()) == len(known)
