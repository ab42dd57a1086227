"""The limit of events is that of whoever set it: samples run side by side in threads of a Dask worker."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from pathcast.interruptible import interruptible
from pathcast.lab.paper.rounds import Lanes
from pathcast.limits import EVENTS, events, limited


def test_threads_side_by_side_have_limits_of_their_own():
    both, first_is_over = threading.Barrier(2), threading.Event()

    def first():
        with limited(1000):
            both.wait(30)
            found = events()
        first_is_over.set()
        return found, events()

    def second():
        with limited(7):
            both.wait(30)
            first_is_over.wait(30)
            found = events()
        return found, events()

    with ThreadPoolExecutor(2) as pool:
        found = [future.result() for future in [pool.submit(first), pool.submit(second)]]
    assert found == [(1000, EVENTS), (7, EVENTS)]
    assert events() == EVENTS


def test_threads_that_work_for_a_call_have_its_limit():
    with limited(5):
        assert interruptible(events, lambda: None) == 5
        with Lanes(lambda: nullcontext(), 2) as lanes, limited(6):
            assert lanes.run([lambda _: events()] * 3) == [6, 6, 6]
        with limited(None):
            assert events() == 5
