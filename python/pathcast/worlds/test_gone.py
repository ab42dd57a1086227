"""A far end that goes while it is measured, and a line that does while another one still answers."""

from __future__ import annotations

from datetime import datetime

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.gone import checked
from pathcast.worlds.test_measurement import NONE, direction, read

ENDED = datetime(2026, 11, 26, 12, 0, 10)


class Asked:
    """A world that hears nothing over these paths."""

    def __init__(self, *silent):
        self.dead, self.asked = silent, []

    def silent(self, paths=None):
        self.asked.append(list(paths))
        return {name: "connection refused" for name in self.dead if name in paths}


def ceased(why="feedback-lost"):
    """A direction of which half was seen."""
    of = direction(why=why)
    return of | {"available_bps": NONE | {"why": why}, "probed_s": [0.1, 0.5]}


def judged(found, world):
    return checked(found, world, lambda: ENDED)


def test_nobody_is_asked_after_a_measurement_that_is_whole_or_lacks_for_another_reason():
    world = Asked("p1", "p2")
    for found in (read({"out": direction()}, {"out": direction()}), read({"out": direction(why="too-few")})):
        assert judged(found, world) is found
    assert world.asked == []


@pytest.mark.parametrize("down", [None, {"probes": 7, "seconds": 5}])
def test_a_far_end_that_has_gone_is_an_error_that_says_since_when(down):
    found = read({"out": ceased(), "in": ceased()} if down is None else {"out": direction()}, {"out": ceased()})
    with pytest.raises(PathcastError, match="far end has gone") as caught:
        judged(found, Asked("p1", "p2"))
    assert (caught.value.code, caught.value.exit) == ("no-answer", Exit.RUNTIME)
    assert "over no path at 12:00:10" in caught.value.message
    # half a second after it began, 1.5 s before the end
    assert "at about 12:00:09" in caught.value.message if down is None else "12:00:08" in caught.value.message
    assert "connection refused" in caught.value.message


def test_a_line_is_down_whose_answers_ceased_where_another_one_answers():
    found = judged(read({"out": direction()}, {"out": ceased(), "in": ceased("no-answer")}), Asked("p2"))
    assert found.path("p1").down is None
    assert (found.path("p2").down.probes, found.path("p2").down.seconds) == (2, 5)
    assert found.missing == ["p2 is down: no answer to 2 probes in 5 s"]


def test_one_whose_answers_take_longer_than_it_is_asked_for_is_not_said_to_be_gone():
    late = {"value": 6.0, "low": None, "high": None, "why": None}
    found = read({"out": ceased()}, rtt_s=late)
    assert judged(found, Asked("p1")) is found


def test_a_line_whose_reports_were_lost_and_that_answers_again_is_not_down():
    found = judged(read({"out": direction()}, {"out": ceased()}), Asked())
    assert found.path("p2").down is None
    assert any("`p2` out: reports of the probes ceased" in one for one in found.missing)
