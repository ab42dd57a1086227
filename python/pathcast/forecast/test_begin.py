"""Over which path a transfer over several begins."""

from __future__ import annotations

from pathcast.forecast.begin import begun, further
from pathcast.forecast.outcome import Outcome
from pathcast.forecast.race import Runner
from pathcast.forecast.twin import Choice

DRAWS = 24


def of(duration_s):
    return Outcome(duration_s, (1.0, 1.0, 1.0), 0.0, 3)


def runner(paths, duration_s, running=True):
    return Runner(Choice(paths, "lia"), [of(duration_s + n / 100) for n in range(DRAWS)], running)


class Network:
    """`took` says by the first path how long a transfer takes; noise is that of the draw."""

    def __init__(self, **took):
        self.took, self.asked = took, []

    def __call__(self, seeds, choice):
        self.asked.append((choice.paths, len(seeds)))
        took = self.took[choice.paths[0]]
        return [None if took is None else of(took + (seed - 1) / 100) for seed in seeds]


def test_a_faster_beginning_replaces_the_usual_one():
    runners = [runner(("a",), 3.0), runner(("a", "b", "c"), 2.0), runner(("a", "b"), 2.5)]
    network = Network(b=1.9, c=1.5)
    found = begun(runners, network)
    assert [one.choice.paths for one in found] == [("a",), ("c", "a", "b"), ("a", "b")]
    assert found[1].durations_s() == [of(1.5 + n / 100).duration_s for n in range(DRAWS)]
    # the others are looked at in a few draws only
    assert network.asked == [(("b", "a", "c"), 8), (("c", "a", "b"), 8), (("c", "a", "b"), DRAWS - 8)]
    assert sum(n for _, n in network.asked) == further(runners)


def test_one_that_is_not_faster_or_does_not_always_end_does_not():
    for slow in (2.0, 2.1, None):
        runners = [runner(("a",), 3.0), runner(("a", "b"), 2.0)]
        network = Network(b=slow)
        assert begun(runners, network) == runners
        assert network.asked == [(("b", "a"), 8)]


def test_nothing_begins_over_a_line_of_which_nothing_is_known():
    runners = [runner(("a", "b"), 2.0)]
    network = Network(b=1.0)
    assert begun(runners, network, ["b"]) == runners
    assert not network.asked


def test_one_path_has_one_beginning_and_what_was_given_up_is_not_begun_anew():
    runners = [runner(("a",), 3.0), runner(("a", "b"), 9.0, running=False)]
    assert begun(runners, Network()) == runners
    assert further([runner(("a",), 3.0)]) == 0
