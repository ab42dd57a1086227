"""Many transfers as one call: in order, as one by one, whatever the threads; what fails says which it is."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace

import pytest

from pathcast import limits
from pathcast.errors import Exit, PathcastError
from pathcast.scenario import Scenario
from pathcast.simulation.run import Limits, simulate, simulate_many
from pathcast.worlds.many import Draw, Future, draws
from pathcast.worlds.sim import Sim
from pathcast.worlds.testing import two_paths
from pathcast.worlds.topology import Topology

TWO = 'name = "two"\n' + two_paths("20Mbit", ("10ms", "25ms"), "40 packets")
CROSS = '[[traffic]]\nkind = "pareto-onoff"\nlink = "wan1"\ndirection = "ab"\nrate = "5Mbit"\npeak = "15Mbit"\n'
CROSS += 'on = "50ms"\n'
TOPOLOGY = Topology.parse(TWO + CROSS, ["link.wan2.loss.ab=0.001"])
BOTH = ("path1", "path2")


def plain(transfers):
    """Without the machine's times."""
    return [replace(one, wall_s=None) for one in transfers]


def test_futures_of_a_network_are_those_of_its_copies_and_it_stays_as_it_is():
    wanted = [
        Future(BOTH, 1_000_000, "lia"),
        Future(("path1",), 800_000, seed=7),
        Future(("path2",), 500_000, "reno", every_s=0.05),
        Future(("path1",), 300_000, multipath=True),
    ]
    with Sim(TOPOLOGY) as world:
        world.wait(1.5)
        found = world.futures(wanted)
        assert world.now() == 1.5
        assert plain(world.futures(wanted, threads=1)) == plain(found)
        assert [(one.paths, one.protocol) for one in found] == [
            (BOTH, "mptcp"),
            (("path1",), "tcp"),
            (("path2",), "tcp"),
            (("path1",), "mptcp"),
        ]
        with world.copy() as same, world.copy(seed=7) as other:
            assert plain([same.transfer(BOTH, 1_000_000, "lia")]) == plain(found[:1])
            assert plain([other.tcp_probe("path1", 800_000)]) == plain(found[1:2])
        assert plain([world.transfer(BOTH, 1_000_000, "lia")]) == plain(found[:1])


def test_a_copy_has_what_was_set_and_is_set_by_itself():
    with Sim(TOPOLOGY) as world:
        world.set("wan1", rate="2Mbit")
        with world.copy() as copy:
            copy.set("wan2", rate="1Mbit")
            assert copy.tcp_probe("path1", 100_000).throughput_bps < 2e6
            assert copy.tcp_probe("path2", 100_000).throughput_bps < 1e6
            assert copy.paths == world.paths
        assert world.tcp_probe("path2", 500_000).throughput_bps > 3e6


def test_what_a_transfer_tells_of_its_way():
    with Sim(TOPOLOGY) as world:
        [found] = world.futures([Future(("path1",), 4_000_000, every_s=0.1)])
    assert [one.at_s for one in found.samples] == pytest.approx([0.1 * n for n in range(1, len(found.samples) + 1)])
    assert len(found.samples) == int(found.elapsed_s / 0.1)
    last = found.samples[-1]
    assert 3e6 < last.bytes <= 4e6
    assert last.subflows[0].cwnd_packets > 1
    assert last.subflows[0].srtt_s > 0.02
    assert found.recoveries == found.subflows[0].recoveries > 0
    assert found.timeouts is not None


def test_draws_are_their_networks_one_by_one():
    wanted = [
        Draw(
            (("seed", str(n)), ("link.wan1.rate", f"{10 + n}Mbit")),
            (Future(BOTH, 400_000), Future(("path2",), 200_000)),
            0.5,
        )
        for n in range(5)
    ]
    found = draws(TOPOLOGY, wanted)
    assert [[len(one.paths) for one in each] for each in found] == [[2, 1]] * 5
    assert [plain(each) for each in draws(TOPOLOGY, wanted, threads=1)] == [plain(each) for each in found]
    for draw, each in zip(wanted, found, strict=True):
        text = [f"{key}={value}" for key, value in (*TOPOLOGY.sets, *draw.sets)]
        with Sim(Topology.parse(TOPOLOGY.text, text)) as world:
            world.wait(0.5)
            assert plain([world.transfer(BOTH, 400_000)]) == plain(each[:1])


def test_what_fails_says_which_it_is():
    good = Draw((("seed", "1"),), (Future(("path1",), 1000),))
    bad = Draw((("seed", "2"), ("link.wan1.loss", "3")), (Future(("path1",), 1000),))
    with pytest.raises(PathcastError, match=r"draw 1 \(seed=2, link.wan1.loss=3\).*0 to 1") as caught:
        draws(TOPOLOGY, [good, bad, bad])
    assert caught.value.exit == Exit.USAGE
    [[one], [two]] = draws(TOPOLOGY, [good, bad], keep_errors=True)
    assert one.bytes == 1000
    assert isinstance(two, PathcastError)
    with (
        Sim(TOPOLOGY) as world,
        pytest.raises(PathcastError, match="transfer 1: there is no path `path9`; allowed: path1, path2"),
    ):
        world.futures([Future(("path1",), 1000), Future(("path9",), 1000)])
    with Sim(TOPOLOGY) as world, pytest.raises(PathcastError, match="has 1 client addresses, 2 were asked for"):
        world.futures([Future(("path1", "path1"), 1000)])


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (Future(("path1",), -1), "bytes -1"),
        (Future(("path1",), 1, seed=-1), "seed -1"),
        (Future(("path1",), 1, every_s=0), "every_s 0"),
        (Future(BOTH, 1, multipath=False), "plain TCP takes one"),
        (Future(("path1",), 0), "measures nothing"),
        (Future((), 1), "0 paths"),
        (Future(("path1",), 1, "cubi"), "no controller `cubi`"),
    ],
)
def test_what_is_no_transfer(of, words):
    with Sim(TOPOLOGY) as world, pytest.raises(PathcastError, match=words) as caught:
        world.futures([of])
    assert caught.value.exit == Exit.USAGE
    with Sim(TOPOLOGY) as world, pytest.raises(PathcastError, match="threads 0"):
        world.futures([], threads=0)


def test_a_limit_of_events_ends_every_verb_and_is_named():
    few = {
        "transfer": lambda world: world.tcp_probe("path1", 5_000_000),
        "measurement": lambda world: world.measure(["path1"]),
        "simulated time had not passed": lambda world: world.wait(60),
        "transfer 0": lambda world: world.futures([Future(BOTH, 5_000_000)]),
    }
    greedy = Topology.parse(TWO + '[[traffic]]\nkind = "tcp"\npath = "path2"\n')
    for words, verb in few.items():
        with Sim(greedy, events=2000) as world, pytest.raises(PathcastError, match=words) as caught:
            verb(world)
        assert (caught.value.code, caught.value.exit) == ("event-limit", Exit.RUNTIME)
        assert "2000 events of the simulator, the limit" in caught.value.message
        assert "--limit-events" in caught.value.hint
    flow = '[[flow]]\nname = "f"\npaths = ["path1"]\nbytes = "5MB"\n'
    with Sim(Topology.parse(TWO + flow), events=2000) as world, pytest.raises(PathcastError, match="2000 events"):
        world.flows()
    with limits.limited(3000), Sim(TOPOLOGY) as world, pytest.raises(PathcastError, match="3000 events"):
        world.tcp_probe("path1", 5_000_000)
    with limits.limited(3000), pytest.raises(PathcastError, match="3000 events"):
        simulate(Scenario(TWO + flow))
    with Sim(TOPOLOGY) as world:
        world.tcp_probe("path1", 5_000_000)
    with pytest.raises(PathcastError, match="0 events"):
        Sim(TOPOLOGY, events=0)


FLOW = '[[flow]]\nname = "f"\npaths = ["path1", "path2"]\nbytes = "1MB"\n'


def test_scenarios_at_once_are_their_reports_one_by_one():
    scenario = Scenario(TWO + CROSS + FLOW)
    runs = [(("seed", str(n)), ("flow.f.control", control)) for n in range(3) for control in ("lia", "cubic")]
    machine = ("cpu_s", "wall_s")

    def told(reports):
        return [{key: value for key, value in one.items() if key not in machine} for one in reports]

    alone = [simulate(scenario.over(run))[0] for run in runs]
    for threads in (None, 1, 3):
        assert told(simulate_many(scenario, runs, threads=threads)) == told(alone)
    wrong = [*runs[:2], (("flow.f.control", "cubi"),)]
    with pytest.raises(PathcastError, match=r"run 2 \(flow.f.control=cubi\)"):
        simulate_many(scenario, wrong)
    kept = simulate_many(scenario, wrong, keep_errors=True)
    assert told(kept[:2]) == told(alone[:2])
    assert kept[2].exit == Exit.USAGE
    assert [one["stopped"] for one in simulate_many(scenario, runs[:2], Limits(events=500))] == ["event-limit"] * 2


def test_an_interrupt_ends_them_all():
    wanted = [Draw((("seed", str(n)),), (Future(BOTH, 50_000_000_000),)) for n in range(20)]

    def interrupted():
        threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
        draws(TOPOLOGY, wanted)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    # to their end they would take many minutes
    assert time.monotonic() - began < 30
