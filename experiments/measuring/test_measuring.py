"""What measurements are judged by: the truth from ledgers, samples, every claim true and false, what peers printed."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment, Results, Undecided
from pathcast.lab.testing import Verdicts
from pathcast.worlds.measurement import Measurement
from pathcast.worlds.results import Verdict
from pathcast.worlds.test_measurement import direction, document
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SETUP = EXPERIMENT.plan, EXPERIMENT.plan.setup
SAMPLES, NETWORK, MEASURED, PEERS = (EXPERIMENT.module(n) for n in ("samples", "network", "measured", "peers"))
CASES, CLAIMS, ROWS = (EXPERIMENT.module(n) for n in ("cases", "claims", "rows"))


# --- the truth


def link(name, rate, entered, delay="5ms", **more):
    counters = {"cross": {"entered": {"bytes": entered}}}
    return {"name": name, "params": {"rate": rate, "delay": delay, **more}, "counters": counters}


def ledger(at_s, *links):
    return {"groups": [{"since_start_s": at_s, "links": list(links)}]}


def test_the_truth_is_what_cross_traffic_left():
    before = ledger(10.0, link("a/ab", "3Mbit", 0), link("b/ab", "5Mbit", 1000), link("b/ba", "9Mbit", 0))
    after = ledger(12.0, link("a/ab", "3Mbit", 0), link("b/ab", "5Mbit", 751_000), link("b/ba", "9Mbit", 0))
    found = NETWORK.truth(before, after, "out")
    # 3 Mbit/s of 5 are taken, so that the second link leaves less than the first one can carry
    assert (found.available_bps, found.capacity_bps) == (2e6, 3e6)
    assert found.delay_s(1500) == pytest.approx(10e-3 + 12e-3 / 3 + 12e-3 / 5)
    assert NETWORK.truth(before, after, "in").available_bps == 9e6


def test_a_bucket_bounds_the_capacity():
    of = link("a/ab", "100Mbit", 0, bucket={"rate": "5Mbit", "burst": "1600B"})
    assert NETWORK.truth(ledger(0.0, of), ledger(1.0, of), "out").capacity_bps == 5e6


# --- samples

POINTS = {tuple(point[key] for key in point if key != "seed"): point for point in PLAN.points("sim")}


@pytest.mark.parametrize("point", POINTS.values(), ids=lambda point: "-".join(map(str, point.values())))
def test_every_network_is_a_scenario(point):
    about = SAMPLES.scenario({**point, "seed": 7}, SETUP, "sim")
    checked = Topology.parse(about["text"]).scenario
    assert checked["seed"] == about["request"]["seed"] == 7
    if point["grid"] != "random":
        links = SETUP["network"][point["network"]]["links"]
        assert len(checked["paths"][0]["hops"]) == len(links) + 2
        assert len(checked["traffic"]) == bool(point["cross"])


def test_labels_without_a_setup_are_refused():
    point = {"grid": "constant", "network": "5", "budget": "long"}
    with pytest.raises(PathcastError, match=r"no \[setup.budget.long\]"):
        SAMPLES.scenario(point, SETUP, "sim")


def test_links_keep_their_order_and_traffic():
    cross = (NETWORK.Cross("poisson", "1Mbit"), NETWORK.Cross("constant", "1Mbit"))
    text = NETWORK.toml((NETWORK.Link('"3Mbit"'), NETWORK.Link('"5Mbit"', cross=cross)))
    checked = Topology.parse(text).scenario
    assert [traffic["name"] for traffic in checked["traffic"]] == ["l2-0", "l2-1"]


def test_drawn_paths_are_all_scenarios_and_the_same_each_time():
    drawn = [CASES.draw(seed) for seed in range(300)]
    assert drawn == [CASES.draw(seed) for seed in range(300)]
    assert {case.kind for case in drawn} == set(CASES.KINDS)
    for case in drawn:
        Topology.parse(case.text())


def test_a_simulated_sample():
    point = next(p for p in PLAN.points("sim") if p["grid"] == "constant" and p["cross"] == 1.5)
    found = SAMPLES.sample(SAMPLES.scenario(point, SETUP, "sim"), "sim")
    assert found["truth_bps"] == pytest.approx(3.5e6, rel=0.01)
    assert abs(found["relative_error"]) < 0.02
    assert found["capacity_low_bps"] <= found["capacity_truth_bps"] == 5e6
    drawn = SAMPLES.sample(SAMPLES.scenario({"grid": "random", "seed": 10001}, SETUP, "sim"), "sim")
    assert {"kind", "load", "value_bps"} <= set(drawn)


class World:
    """In the place of an emulator: one answer, and a verdict."""

    def __init__(self, found, verdict=None):
        self.found, self.verdict, self.at_s = found, verdict or Verdict(), 0.0

    def __call__(self, topology):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def wait(self, time_s):
        self.at_s += time_s

    def ledger(self):
        self.at_s += 1.0
        ways = (link(f"l1/{way}", "5Mbit", 0) for way in ("ab", "ba"))
        return ledger(self.at_s, *ways)

    @contextmanager
    def judged(self):
        yield self.verdict

    def measure(self, request):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def emulated(monkeypatch):
    def sample(*arguments):
        monkeypatch.setattr("pathcast.worlds.emu.Emu", World(*arguments))
        return SAMPLES.sample(SAMPLES.scenario(next(iter(PLAN.points("emu"))), SETUP, "emu"), "emu")

    return sample


def test_what_the_emulator_was_late_with_is_no_sample_and_no_answer_is_one(emulated):
    found = Measurement.read([{"name": "p", "local": "a", "remote": "b"}], document({"out": direction()}))
    assert emulated(found)["relative_error"] == pytest.approx(-0.2)
    with pytest.raises(PathcastError, match="late"):
        emulated(found, Verdict({"p99_s": 0.002}, 1))
    assert emulated(PathcastError("no-answer", "nothing came")) == {"refused": "no-answer"}
    with pytest.raises(PathcastError, match="gone"):
        emulated(PathcastError("network", "gone"))


# --- claims


def good(point):
    """A run as it should be."""
    about = {"error": None, "key": "k", "tries": 1, **point}
    truth = 4e6
    near = 1.001 + 1e-6 * (point["seed"] % 20)
    found = {
        "value_bps": truth * near,
        "truth_bps": truth,
        "low_bps": 0.98 * truth,
        "high_bps": 1.02 * truth,
    }
    found |= {"capacity_bps": 5.001e6, "capacity_low_bps": 4.9e6, "capacity_high_bps": 5.1e6, "capacity_truth_bps": 5e6}
    found |= {"capacity_error": 2e-4, "delay_s": 0.01001, "delay_truth_s": 0.01, "delay_bound_s": 2e-5, "refused": None}
    found |= {"bytes": 100_000, "seconds": 0.5}
    if point["grid"] == "random":
        n = point["seed"]
        drawn = {"kind": CASES.KINDS[n % 5], "rate_bps": 10.0 ** (5 + n % 4), "rtt_s": 10.0 ** -(1 + n % 3)}
        drawn |= {"queue": 10 * (1 + n % 9), "loss_rate": 0.01 * (n % 2), "second": 1.5 if n % 2 else None}
        # the interval holds in nine of ten
        low = {"low_bps": found["value_bps"] if n % 10 == 0 else (0.98 - 1e-6 * n) * truth}
        return about | found | drawn | low
    return about | found


GOOD = {world: [good(point) for point in PLAN.points(world)] for world in PLAN.worlds}


def results(change=lambda row: {}, world="sim", part=lambda row: True):
    rows = [row for row in GOOD[world] if part(row)]
    return Results([{**row, **change(row)} for row in rows], PLAN, world, False)


def judged(*arguments, **more):
    return Verdicts(EXPERIMENT, results(*arguments, **more))


def test_every_claim_holds_on_good_runs():
    for world in ("sim", "emu"):
        assert {name: one["holds"] for name, one in judged(world=world).items() if one["holds"] is not True} == {}


WORSE = {
    "available": lambda row: {"value_bps": 1.09 * row["truth_bps"]},
    "capacity": lambda row: {"capacity_bps": 1.02 * row["capacity_truth_bps"]},
    "delay": lambda row: {"delay_s": row["delay_truth_s"] + 60e-6},
}


@pytest.mark.parametrize("claim", [c for c in PLAN.claims if "quantity" in c.threshold], ids=lambda claim: claim.id)
def test_one_bad_run_or_none_or_too_dear_a_one_makes_a_bar_false(claim):
    quantity, grid = claim.threshold["quantity"], claim.threshold["grid"]

    def found(change, of=range(1, 21)):
        """With a change in the last run of each network."""
        rows = results(
            lambda row: change if row["seed"] == 20 else {}, part=lambda r: r["grid"] == grid and r["seed"] in of
        )
        return CLAIMS.bar(rows, claim)

    assert found({}).holds is True
    worse = WORSE[quantity](GOOD["sim"][0])
    assert found(worse).holds is False
    nothing = found({ROWS.COLUMNS[quantity][0]: None})
    assert (nothing.holds, "no value" in nothing.reason) == (False, True)
    for bar, column in (("bytes", "bytes"), ("time_s", "seconds")):
        if bar in claim.threshold:
            assert found({column: 1.01 * claim.threshold[bar]}).holds is False
    assert found({"error": "late: by 2 ms"}).holds is None
    # a part of the runs can show that it does not hold, only all that it does
    assert found(worse, of=(1, 20)).holds is False
    assert found({}, of=(1, 20)).holds is None
    with pytest.raises(Undecided):
        found({}, of=())


def test_runs_that_are_all_the_same_are_told_as_one_and_still_decide_a_bar():
    def idle(value):
        return lambda row: {"value_bps": value * row["truth_bps"]} if row.get("cross") == 0 else {}

    found = judged(idle(1.01))["constant"]
    assert (found["holds"], found["ours"]) == (True, "+1.00 % at worst; 1 of 4 rows without spread")
    assert found["details"][0] == "5: +1.00 % at worst, the same in all 20 runs"
    assert found["details"][1] == "5, constant 0.5: +0.10 % at worst, 20 runs"
    assert judged(idle(1.03))["constant"]["holds"] is False
    row = EXPERIMENT.module("show").bars(results(idle(1.01)))[1][0]
    assert row[5] == "20/20, all the same"


def test_a_network_that_was_not_run_leaves_a_bar_undecided():
    found = judged(part=lambda point: point.get("cross") != 0.5)["constant"]
    assert (found["holds"], found["reason"]) == (None, "not run: 1 networks")


def test_claims_about_random_paths():
    def random(change):
        return lambda row: change(row) if row["grid"] == "random" else {}

    few = judged(random(lambda row: {"low_bps": row["value_bps"]} if row["seed"] % 5 < 2 else {}))["random-inside"]
    assert (few["holds"], few["ours"][:5]) == (False, "60.0 ")
    all_ = judged(random(lambda row: {"low_bps": 0.9 * row["truth_bps"]}))["random-inside"]
    assert all_["holds"] is False
    near = judged(random(lambda row: {"low_bps": (1.01 if row["seed"] % 100 < 15 else 0.98) * row["truth_bps"]}))
    assert near["random-inside"]["holds"] is None
    wide = judged(random(lambda row: {"high_bps": 1.3 * row["truth_bps"]}))
    assert [wide[name]["holds"] for name in ("random-constant", "random-bursts")] == [False, False]
    swapped = judged(random(lambda row: {"high_bps": (1.03 if row["kind"] == "tcp" else 1.02) * row["truth_bps"]}))
    assert swapped["random-constant"]["holds"] is True
    assert (
        judged(random(lambda row: {"delay_s": 0.02} if row["seed"] == 10001 else {}))["random-delay"]["holds"] is False
    )


def test_labels_of_kinds_swapped_make_the_claim_about_constant_traffic_false():
    def wide(row):
        return {"high_bps": 1.3 * row["truth_bps"]} if row["grid"] == "random" and row["kind"] == "tcp" else {}

    rows = results(wide)
    holds = lambda of: {one["id"]: one["holds"] for one in EXPERIMENT.findings(of)}["random-constant"]  # noqa: E731
    assert holds(rows) is True
    assert holds(rows.swapped("kind", "tcp", "constant")) is False


def test_tables_and_figures():
    import matplotlib.pyplot as plt

    show = EXPERIMENT.module("show")
    whole, empty = results(), Results([], PLAN, "sim", False)
    for of in (whole, empty):
        for name, make in show.TABLES.items():
            header, rows = make(of)
            assert {len(row) for row in rows} <= {len(header)}, name
        for draw in show.FIGURES.values():
            plt.close(draw(of))
    header, rows = show.bars(whole)
    assert rows[1] == (
        "5, constant 0.5", "available", "2.00 %", "+0.10 %", "+0.10 %", "20/20", "1.6 %", "100 kB", "0.50 s", "held"
    )  # fmt: skip
    assert [row[-1] for row in rows if row[0].startswith("1 and 24")] == ["reported"] * 2
    assert [row[-1] for row in show.bars(results(world="emu"))[1] if row[0].startswith("1000")] == ["reported"]
    _, rows = show.bars(results(lambda row: {"value_bps": None} if row["seed"] == 1 else {}))
    assert (rows[0][3], rows[0][-1]) == ("+0.10 %, 1 refused", "**missed**")
    _, rows = show.random(whole)
    assert rows[0][:3] == ("all", "3000", "0")


# --- other tools


def test_what_peers_print():
    said = PEERS.pathload("Available bandwidth range : 4.55 - 4.70 (Mbps)\nMeasurements finished\n")
    assert (said.low, said.high, said.value) == (4.55e6, 4.70e6, pytest.approx(4.625e6))
    assert PEERS.pathload("Available bandwidth range : 43.31 - 19.00 (Mbps)").low == 19e6
    assert PEERS.pathload("terminated due to frequent CS @ sender") is None
    assert PEERS.iperf3('{"end": {"sum_received": {"bits_per_second": 4781000.0}}}').value == 4.781e6
    assert PEERS.iperf3('{"error": "unable to connect"}') is None
    assert PEERS.iperf3("") is None
    assert PEERS.nuttcp("    5.9973 MB /  10.52 sec =    4.7837 Mbps 0 %TX 1 %RX").value == 4.7837e6
    assert PEERS.nuttcp("    0.0000 MB /   5.00 sec =    0.0000 Mbps") is None


def test_stored_figures():
    rows = PEERS.stored()
    assert {row["capacity_mbps"] for row in rows} == {0.1, 5.0, 100.0}
    worst = max(abs(row["low_mbps"] / row["true_mbps"] - 1) for row in rows if row["tool"] == "PTR 2.2")
    assert worst > 0.2
