"""When a line was away: from its first failure on, and not while anything came over it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathcast.history.browse import Browser
from pathcast.history.testing import KEY1, KEY2, measured, origin, sent
from pathcast.history.trend import SILENT, UNMEASURED, gaps

MINUTE_S = 60.0
# what `run` knows a path by
RUN1, RUN2 = (replace(key, remote_id=f"address:{key.remote}") for key in (KEY1, KEY2))


@pytest.fixture
def line(journal, at):
    """A day of acts in minutes since its begin, and the gaps [minutes] of `cable` at the end of it."""
    start, acts = at(), []

    class Line:
        def _act(self, minute):
            at.at = start
            at.passes(minute * MINUTE_S)
            acts.append(journal.act(origin()))
            return acts[-1]

        def good(self, *minutes):
            for minute in minutes:
                self._act(minute).measurement(measured(), {"path1": KEY1}, ("out", "in"))

        def down(self, *minutes):
            for minute in minutes:
                found = measured()
                found["paths"][0] |= {"directions": {}, "down": {"probes": 9, "seconds": 5}}
                self._act(minute).measurement(found, {"path1": KEY1}, ("out", "in"))

        def failed(self, minute, key=None):
            self._act(minute).event("failed", "no answer", key)

        def sent(self, minute, until, over=(RUN1,), kind="run"):
            document = sent(rate_bps=80e6 / ((until - minute) * MINUTE_S))
            self._act(minute).transfer(document, [(key, None, 10_000_000, 0) for key in over], kind)

        def gaps(self, minute):
            self._act(minute)
            journal._add_all([act.rows for act in acts])
            browser = Browser(journal.store, at(), "host-1")
            found = gaps(browser, 86_400.0, browser.events(86_400.0))
            begin_s = start.utc_us / 1e6

            def of(at_s):
                return None if at_s is None else pytest.approx((at_s - begin_s) / MINUTE_S)

            return [(of(gap.from_s), of(gap.until_s), gap.why) for gap in found if gap.line_id == KEY1.line_id]

    return Line()


def test_it_is_away_from_the_first_failure_on(line):
    line.good(0, 1, 2, 3)
    line.down(4, 5, 6, 7, 8)
    line.good(9, 10)
    assert line.gaps(11) == [(4, 9, SILENT)]


def test_the_time_before_the_first_failure_was_not_measured(line):
    line.good(0, 1, 2, 3)
    line.down(30, 31, 32)
    line.good(33, 34)
    assert line.gaps(35) == [(30, 33, SILENT), (3, 30, UNMEASURED)]


def test_while_a_transfer_went_over_it_it_was_there(line):
    line.good(0, 1, 2, 3)
    line.sent(10, 20)
    line.down(26, 27, 28)
    line.good(29, 30)
    assert line.gaps(31) == [(26, 29, SILENT), (20, 26, UNMEASURED), (3, 10, UNMEASURED)]


def test_a_transfer_over_several_lines_may_have_lost_this_one(line):
    line.good(0, 1, 2, 3)
    line.sent(4, 30, (RUN1, RUN2))
    line.down(20, 21, 31)
    line.good(35)
    assert line.gaps(36) == [(20, 35, SILENT)]


def test_a_transfer_over_it_alone_was_through_at_its_end(line):
    line.good(0, 1, 2, 3)
    line.sent(4, 30)
    line.down(20)
    line.good(31, 32)
    assert line.gaps(33) == []


def test_what_went_over_other_lines_says_nothing_of_it(line):
    line.good(0, 1, 2, 3)
    line.sent(10, 20, (RUN2,))
    line.failed(24, KEY2)
    line.failed(25)
    line.good(30, 31)
    assert line.gaps(32) == [(25, 30, "no answer"), (3, 25, UNMEASURED)]


def test_a_line_that_is_away_from_the_start_and_one_that_still_is(line):
    line.down(0, 1, 2, 3, 4)
    line.good(5, 6, 7)
    line.down(8, 9, 10, 11)
    assert line.gaps(12) == [(8, None, SILENT), (0, 5, SILENT)]
