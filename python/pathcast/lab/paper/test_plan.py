"""The demo's plan: everything is drawn from the seed, within its ranges."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.lab.paper.plan import LINKS, PATHS, Plan, Setting
from pathcast.worlds.emu import Topology

MANY = range(300)


def test_the_same_seed_draws_the_same():
    assert [Plan(seed=5).drawn(i) for i in MANY] == [Plan(seed=5).drawn(i) for i in MANY]


def test_it_draws_what_it_always_drew():
    """The results of an old seed stay comparable; Python's own generator is stable across versions for this."""
    assert Plan(seed=1).drawn(0).rtt_s == (0.1714, 0.1156)
    assert Plan(seed=1).drawn(17).rtt_s == (0.1617, 0.0882)


def test_other_seeds_and_rounds_draw_otherwise():
    settings = {Plan(seed=s).drawn(i) for s in range(20) for i in range(20)}
    assert len(settings) == 400


def test_a_round_does_not_depend_on_how_many_there_are():
    assert Plan(rounds=10).drawn(12) == Plan(rounds=1000, control="reno").drawn(12)


def test_values_lie_in_their_ranges_and_fill_them():
    plan = Plan(vary_rate=True)
    rtts = [r for i in MANY for r in plan.drawn(i).rtt_s]
    rates = [r for i in MANY for r in plan.drawn(i).rate_bps]
    assert 0.020 <= min(rtts) < 0.025
    assert 0.175 < max(rtts) <= 0.180
    assert 10e6 <= min(rates) < 11e6
    assert 180e6 < max(rates) <= 200e6
    assert all(r % 1000 == 0 for r in rates)


def test_paths_are_drawn_independently():
    pairs = [Plan().drawn(i).rtt_s for i in MANY]
    mean = sum(a for a, _ in pairs) / len(pairs), sum(b for _, b in pairs) / len(pairs)
    cov = sum((a - mean[0]) * (b - mean[1]) for a, b in pairs)
    var = [sum((p[k] - mean[k]) ** 2 for p in pairs) for k in (0, 1)]
    assert abs(cov / (var[0] * var[1]) ** 0.5) < 0.2


def test_varied_rates_change_nothing_else():
    plain, varied = Plan(seed=3), Plan(seed=3, vary_rate=True)
    for i in MANY:
        assert plain.drawn(i).rtt_s == varied.drawn(i).rtt_s
        assert plain.drawn(i).rate_bps == (100_000_000, 100_000_000)
    same = {f.name for f in dataclasses.fields(Plan)} - {"vary_rate"}
    assert {n: getattr(plain, n) for n in same} == {n: getattr(varied, n) for n in same}
    assert plain.topology() == varied.topology()
    assert plain.fixed((0.1, 0.2)) == varied.fixed((0.1, 0.2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rounds": 9}, "--rounds 9: allowed are 10 to 1000"),
        ({"rounds": 1001}, "--rounds 1001"),
        ({"seed": -1}, "--seed -1: allowed are 0 to"),
        ({"seed": 2**63}, "--seed"),
    ],
)
def test_what_no_demo_is_made_of(arguments, words):
    with pytest.raises(PathcastError, match=words) as error:
        Plan(**arguments)
    assert error.value.exit == Exit.USAGE


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_its_topology_is_a_scenario_with_its_paths_and_links(seed):
    scenario = Topology.parse(Plan(seed=seed, rounds=10).topology()).scenario
    assert [p["name"] for p in scenario["paths"]] == list(PATHS)
    assert [link["name"] for link in scenario["links"]] == list(LINKS)
    assert scenario["seed"] == seed


def test_a_setting_as_changes_of_links():
    setting = Setting((0.1714, 0.02), (100_000_000, 12_345_000))
    assert setting.changes() == [
        ("wan1", {"delay": "85700us", "rate": "100000000bit"}),
        ("wan2", {"delay": "10000us", "rate": "12345000bit"}),
    ]


def test_probes_of_a_round():
    assert Plan(probe_bytes=1000).probe_total_bytes == 2000


def test_the_manual_has_the_links_chunk_and_queue():
    text = (Path(__file__).parents[4] / "docs" / "demo.md").read_text()
    assert f'`chunk = "{Plan().chunk}"`' in text
    assert f"queues of {Plan().queue_packets} packets" in text
