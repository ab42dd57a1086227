"""Rules against a network that carries packets by them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import Exit, PathcastError
from pathcast.steer.rules import COOKIE, Flow, Network, Port, Rule, assign, change, ours, rules, simple, wanted

CLIENT, SERVER = "10.0.0.2", "10.0.1.1"
# switch 1 has the client at port 1, switch 2 the server; two links join them, and a third way leads over switch 3
PAIRS = [(Port(1, 2), Port(2, 2)), (Port(1, 3), Port(2, 3)), (Port(1, 4), Port(3, 1)), (Port(3, 2), Port(2, 4))]
LINKS = {a: b for one, two in PAIRS for a, b in ((one, two), (two, one))}
NETWORK = Network(LINKS, {CLIENT: Port(1, 1)}, {SERVER: Port(2, 1)})
PATHS = {"path1": [Port(1, 2)], "path2": [Port(1, 3)], "path3": [Port(1, 4), Port(3, 2)]}

flows = st.builds(lambda port: Flow(CLIENT, SERVER, port, 5275), st.integers(1, 65535))
plans = st.dictionaries(flows, st.sampled_from(sorted(PATHS)), min_size=1, max_size=6)


def carried(table: set[Rule], flow: Flow, at: Port) -> Port | None:
    """Where a packet that comes in at a port leaves the network by these entries; None: some switch drops it."""
    for _ in range(9):
        match = [r for r in table if (r.switch, r.flow, r.in_port) == (at.switch, flow, at.port)]
        if not match:
            return None
        [rule] = match  # two entries for one match would be one entry
        out = Port(rule.switch, rule.out)
        if out not in LINKS:
            return out
        at = LINKS[out]
    raise AssertionError("a loop")


def over(table: set[Rule], flow: Flow) -> Port | None:
    """The port by which it leaves the first switch."""
    [out] = [r.out for r in table if r.switch == 1 and r.flow == flow and r.in_port == 1]
    return Port(1, out)


@settings(deadline=None)
@given(plans)
def test_every_flow_goes_over_its_path_and_back(plan):
    table = wanted(NETWORK, PATHS, plan)
    for flow, name in plan.items():
        assert over(table, flow) == PATHS[name][0]
        assert carried(table, flow, Port(1, 1)) == Port(2, 1)
        assert carried(table, flow.back(), Port(2, 1)) == Port(1, 1)
    assert carried(table, Flow(CLIENT, SERVER, 1, 1), Port(1, 1)) is None


@settings(deadline=None)
@given(plans, plans)
def test_no_packet_meets_a_switch_without_an_entry_during_a_change(first, second):
    second = {**second, **{flow: second.get(flow, name) for flow, name in first.items()}}
    have, want = wanted(NETWORK, PATHS, first), wanted(NETWORK, PATHS, second)
    # where packets of the old plan can be: at every ingress that it has an entry for
    places = [(r.flow, Port(r.switch, r.in_port)) for r in have]
    steps, table = change(have, want, NETWORK), set(have)
    for step in steps:
        # a switch's entries are changed one by one, and other switches' at any time beside
        for rule in step.add:
            match = (rule.switch, rule.flow, rule.in_port)
            table = {r for r in table if (r.switch, r.flow, r.in_port) != match} | {rule}
            assert all(carried(table, flow, at) is not None for flow, at in places)
        if step.remove:
            assert step is steps[-1]
            assert not step.add
        table -= set(step.remove)
    assert table == want
    assert change(table, want, NETWORK) == []


@settings(deadline=None)
@given(plans, st.sampled_from([port for pair in PAIRS for port in pair]))
def test_a_port_that_is_down_carries_nothing(plan, down):
    left = NETWORK.without({down})
    chosen, lost = assign(left, PATHS, plan)
    assert not lost
    assert set(chosen) == set(plan)
    table = wanted(left, PATHS, chosen)
    assert not {Port(r.switch, port) for r in table for port in (r.in_port, r.out)} & {down, LINKS[down]}
    for flow, name in plan.items():
        if left.stands(PATHS[name], flow):
            assert chosen[flow] == name  # who is not concerned stays


def test_flows_of_a_dead_path_are_shared_out():
    plan = {Flow(CLIENT, SERVER, port, 5275): "path1" for port in (1, 2)}
    chosen, _ = assign(NETWORK.without({Port(2, 2)}), PATHS, plan)
    assert sorted(chosen.values()) == ["path2", "path3"]


def test_who_was_moved_stays_until_its_own_path_is_back():
    ones = [Flow(CLIENT, SERVER, port, 5275) for port in (1, 2)]
    plan = dict.fromkeys(ones, "path1")
    down = NETWORK.without({Port(2, 2)})
    chosen, _ = assign(down, PATHS, plan)
    fewer = {ones[1]: "path1"}
    assert assign(down, PATHS, fewer, chosen)[0] == {ones[1]: chosen[ones[1]]}
    assert assign(NETWORK, PATHS, fewer, chosen)[0] == fewer


def test_a_path_that_refuses_a_flow_is_passed_over():
    flow = Flow(CLIENT, SERVER, 1, 5275)
    assert assign(NETWORK, PATHS, {flow: "path1"}, {}, {(flow, "path1"), (flow, "path2")})[0] == {flow: "path3"}
    assert assign(NETWORK, PATHS, {flow: "path1"}, {}, {(flow, name) for name in PATHS}) == ({}, [flow])


def test_a_path_carries_from_either_end():
    hosts = {CLIENT: Port(1, 1), SERVER: Port(2, 1)}
    network, flow = Network(LINKS, hosts, hosts), Flow(CLIENT, SERVER, 1, 5275)
    for chain in PATHS.values():
        assert set(rules(network, chain, flow.back())) == set(rules(network, chain, flow))


def test_paths_are_found_the_shortest_first():
    assert simple(LINKS, 1, 2, 9) == [tuple(chain) for chain in PATHS.values()]
    assert simple(LINKS, 1, 2, 2) == [tuple(PATHS[name]) for name in ("path1", "path2")]
    assert simple(LINKS, 1, 1, 9) == [()]
    assert simple(LINKS, 1, 7, 9) == []


def test_no_way_left_is_said():
    flow = Flow(CLIENT, SERVER, 1, 5275)
    assert assign(NETWORK.without({Port(2, 1)}), PATHS, {flow: "path1"}) == ({}, [flow])
    with pytest.raises(PathcastError, match="does not reach"):
        rules(NETWORK.without({Port(1, 2)}), PATHS["path1"], flow)


def test_after_a_restart_only_the_difference_is_sent():
    flow, gone = Flow(CLIENT, SERVER, 1, 5275), Flow(CLIENT, SERVER, 2, 5275)
    want = wanted(NETWORK, PATHS, {flow: "path1"})
    left_behind = wanted(NETWORK, PATHS, {flow: "path1", gone: "path2"})
    [step] = change(left_behind, want, NETWORK)
    assert not step.add
    assert set(step.remove) == left_behind - want
    assert {r.switch for one in change(left_behind, [], NETWORK, {2}) for r in one.remove} == {2}


def test_what_says_more_goes_first():
    pair = Rule(1, Flow(CLIENT, SERVER), 1, 2)
    assert pair.priority < Rule(1, Flow(CLIENT, SERVER, 1, 2), 1, 3).priority
    assert ours(COOKIE | 7)
    assert not ours(7)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Flow("10.0.0.1", "fd00::1"), "two IP versions"),
        (lambda: Flow("10.0.0.300", SERVER), "10.0.0.300"),
        (lambda: Flow(CLIENT, SERVER, 65536), "0 to 65535"),
        (lambda: Flow(CLIENT, SERVER, protocol="sctp"), "tcp, udp, ip, arp"),
        (lambda: Flow(CLIENT, SERVER, 1, protocol="ip"), "port 1: allowed are 0 to 0"),
        (lambda: assign(NETWORK, PATHS, {Flow(CLIENT, SERVER): "path9"}), "path1, path2, path3"),
    ],
)
def test_bad_input_is_named(make, told):
    with pytest.raises(PathcastError, match=told) as caught:
        make()
    assert caught.value.exit == Exit.USAGE


def test_a_flow_is_the_same_however_its_addresses_are_written():
    assert Flow("FD00:0::1", "fd00::0:2") == Flow("fd00::1", "fd00::2")


def test_links_lead_both_ways():
    with pytest.raises(PathcastError, match="does not lead where it says"):
        Network({Port(1, 2): Port(2, 2)}, {}, {})
