"""The background experiment: scenarios, times, a simulated sample, shares, every claim true, false, and swapped."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SETUP = EXPERIMENT.plan, EXPERIMENT.plan.setup
SAMPLES, CELLS, CLAIMS, SHOW = (EXPERIMENT.module(name) for name in ("samples", "cells", "claims", "show"))
POINT = {"grid": "pairs", "role": "beside", "control": "nice", "rate_mbit": 20, "rtt_ms": 100, "buffer": 1.0}
POINT |= {"foreground": "reno", "seed": 3}


def about(world="sim", **other):
    return SAMPLES.scenario({**POINT, **other}, SETUP, world)


# --- scenarios


def test_scenarios_say_the_cell():
    text = about(role="rest")["text"]
    path = ('rate = "20Mbit"', 'delay = "50000us"', 'queue = "167 packets"', 'rate = "10000kbit"')
    for part in (*path, "seed = 3", 'control = "nice"'):
        assert part in text
    assert [flow["control"] for flow in Topology.parse(about()["text"]).scenario["flows"]] == ["reno", "nice"]
    lower = {"control": "ledbatpp/target_us=10000"}
    assert "[control.ledbatpp]\ntarget_us = 10000\n" in about(role="unopposed", **lower)["text"]
    assert "[control" not in about(role="alone", **lower)["text"]
    with pytest.raises(PathcastError, match=r"setup.control.lpp"):
        about(control="lpp")


def test_runs_of_several_pairs_are_the_same():
    assert about(role="alone") == about(role="alone", control="lp")
    for role in ("unopposed", "rest"):
        assert about(role=role) == about(role=role, foreground="cubic")


def test_times_are_drawn_from_seed_and_path_alone():
    orders = set()
    for seed in range(1, 21):
        of = about("emu", seed=seed)
        first, second = SAMPLES.starts({**POINT, "seed": seed}, of["to_s"])
        assert (first, second) == SAMPLES.starts({**POINT, "seed": seed, "control": "lp", "foreground": "cubic"}, 40.0)
        assert max(first, second) < of["from_s"] < of["to_s"] == 40
        orders.add(first < second)
    assert orders == {True, False}
    assert about("sim")["to_s"] == pytest.approx(3 * 20e3 * 100 / 8 / 1500 * 0.15, rel=1e-3)
    assert about("sim", grid="short")["to_s"] == 40


def test_the_simulator_counts_an_interval():
    run = about(rtt_ms=20, grid="short", control="imtcp_bg")
    spans = ((4, 12), (4, 8), (8, 12))
    whole, early, late = (SAMPLES.sample({**run, "from_s": a, "to_s": b}, "sim") for a, b in spans)
    names = ("foreground_bytes", "background_bytes")
    assert all(whole[name] == early[name] + late[name] > 0 for name in names)
    assert whole["span_s"] == 8
    # 8 s of 20 Mbit/s, payload
    assert sum(whole[name] for name in names) == pytest.approx(20e6 * 1448 / 1500, rel=0.02)


# --- claims

# what the foreground keeps, and the background's shares
GOOD = {"kept": 0.97, "unopposed": 0.95, "rest": 0.85}


def results(change=lambda row: {}, world="sim", part=lambda point: True):
    def good(point):
        carried = point["rate_mbit"] * 1e6 * 1448 / 1500 * 40 / 8
        row = {**point, "span_s": 40.0, "error": None, "key": "k", "tries": 1}
        fore = carried * {"beside": GOOD["kept"] + 1e-3 * point["seed"]}.get(point["role"], 1.0)
        back = carried * {"unopposed": GOOD["unopposed"], "rest": GOOD["rest"] / 2}.get(point["role"], 0.01)
        flows = SAMPLES.ROLES[point["role"]]
        row["foreground_bytes"] = fore if "foreground" in flows else None
        row["background_bytes"] = back * (1 + 1e-3 * point["seed"]) if "background" in flows else None
        return {**row, **change(row)}

    return Results([good(point) for point in PLAN.points(world) if part(point)], PLAN, world, False)


def judged(of):
    return Verdicts(EXPERIMENT, of)


def less(share, **where):
    """Less of one thing in some cells."""
    role, name = {"kept": ("beside", "foreground_bytes"), "alone": ("unopposed", "background_bytes")}.get(
        share, ("rest", "background_bytes")
    )

    def change(row):
        here = row["role"] == role and all(row[key] == value for key, value in where.items())
        return {name: 0.5 * row[name]} if here else {}

    return change


def test_every_claim_holds_on_good_pairs():
    for world in PLAN.worlds:
        found = judged(results(world=world))
        assert {one["holds"] for one in found.values()} == {True}
        assert len(found) == (16 if world == "sim" else 11)


@pytest.mark.parametrize("claim", PLAN.claims, ids=lambda claim: claim.id)
def test_one_bad_cell_makes_a_claim_false_and_labels_swapped_too(claim):
    control, share = claim.threshold["control"], claim.threshold["share"]

    def found(of):
        return CLAIMS.share(of, claim)

    one = results(less(share, control=control, rate_mbit=100, rtt_ms=20, buffer=4.0))
    assert found(one).holds is False
    assert "100 Mbit/s, 20 ms, 4 BDP" in found(one).reason
    # below 1 BDP nothing is judged
    assert found(results(less(share, control=control, buffer=0.25))).holds is True
    other = "nice" if control != "nice" else "lp"
    bad = results(less(share, control=other))
    assert found(bad).holds is True
    assert found(bad.swapped("control", control, other)).holds is False
    assert found(results(part=lambda point: point["buffer"] < 4)).holds is None


def test_a_foreground_of_either_kind_counts():
    assert judged(results(less("kept", control="nice", foreground="cubic")))["nice-kept"]["holds"] is False


def test_a_pair_without_one_of_its_runs_is_left_out():
    def late(row):
        return {"error": "late: by 2 ms"} if (row["role"], row["seed"]) == ("alone", 1) else {}

    found = CELLS.shares(results(late), "pairs")
    assert {len(by_seed) for (*_, quantity), by_seed in found.items() if quantity == "kept"} == {4}
    assert {len(by_seed) for (*_, quantity), by_seed in found.items() if quantity == "rest"} == {5}


def test_tables():
    for of in (results(), Results([], PLAN, "sim", False)):
        for make in SHOW.TABLES.values():
            header, rows = make(of)
            assert {len(row) for row in rows} <= {len(header)}
    bad = results(less("kept", control="lp", buffer=1.0, foreground="reno"))
    rows = {row[0]: row for row in SHOW.TABLES["summary"](bad)[1]}
    assert rows["lp"] == ("lp", "16", "12 (of 0.95)", "16 (of 0.9)", "16 (of 0.5)")
    assert rows["ledbatpp"][-1] == "no bar"
    cells = {row[:4]: row for row in SHOW.TABLES["cells"](bad)[1]}
    assert cells["lp", "20", "20", "1"][4:] == ("0.49", "0.97 (0.97 to 0.98)", "0.95", "0.85", "kept")
    assert cells["lp", "20", "20", "0.25"][-1] == "not judged"
    assert SHOW.spread([]) == "-"
