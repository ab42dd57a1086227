"""The PathTester experiment: scenarios, samples in both worlds, every claim on the paper's numbers, and swapped."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest

from pathcast.errors import PathcastError
from pathcast.lab import worker
from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts

HERE = Path(__file__).parent
EXPERIMENT = Experiment(HERE)
SAMPLES, SETUP = EXPERIMENT.module("samples"), EXPERIMENT.plan.setup
POINT = {"network": "emulator", "direction": "out", "kind": "constant", "cross": 1.5, "method": "new", "seed": 7}
CORE = tuple(f"core-table5-{cross}" for cross in ("0", "0.5", "1.5", "3"))


def judged(rows, world="sim", quick=False):
    return Verdicts(EXPERIMENT, Results(rows, EXPERIMENT.plan, world, quick))


def finding(results, name):
    """Of one claim alone."""
    (claim,) = (one for one in EXPERIMENT.plan.claims if one.id == name)
    return EXPERIMENT.module("claims").CLAIMS[name](results, claim)


# --- claims: on numbers like the paper's, and what is hoped for where it has none

TRUTH = {"adsl24": (1.0, 24.0), "adsl12": (1.0, 12.0), "narrow": (0.1, 100.0)}
ERRORS = {
    "slops": {0.0: -0.464, 0.5: -0.593, 1.5: -0.474, 3.0: -0.565},
    "improved": {0.0: -0.104, 0.5: -0.213, 1.5: -0.243, 3.0: -0.32},
    "old": {0.0: -0.55, 0.5: -0.5, 1.5: -0.45, 3.0: -0.6},
}
SECONDS = {
    "slops": {0.0: 34.4, 0.5: 76.0, 1.5: 75.6, 3.0: 129.2},
    "old-17": 52,
    "old-18": 54,
    "old-19": 61,
    "improved": 20,
}


def like_the_paper(point):
    """A run as the paper has it."""
    network, method, cross = point["network"], point["method"], point.get("cross", 0.0)
    out = point["direction"] == "out"
    capacity = TRUTH[network][0 if out else 1] if network in TRUTH else 5.0
    if "out" in point:
        capacity = {"kbit": 1e-3, "Mbit": 1.0}[point["out"][-4:]] * float(point["out"][:-4])
    error = {"improved": -0.05, "old": -0.2}.get(method, 0.001)
    if point["grid"].startswith("table-5"):
        error = ERRORS.get(method, {}).get(cross, error)
    elif point["grid"] == "queue" and method == "improved":
        error = ERRORS["improved"][cross] - 0.1
    elif method.startswith("old-"):
        error = -0.1
    nothing = (network == "narrow" and out and method in ("old", "old-16", "old-20")) or (
        point["grid"] == "slow" and method == "old" and capacity <= 0.5
    )
    seconds = SECONDS.get(method, 92 if method.startswith("old") else 2)
    if point["grid"] == "table-5" and method == "improved":
        seconds = 69
    truth = (capacity - cross) * 1e6
    # by how much seeds differ is a row's own
    own = 1 + crc32(f"{point['grid']} {method} {cross}".encode()) % 1009 / 1009
    value = None if nothing else truth * (1 + error + 1e-4 * own * point["seed"])
    width = {"improved": 0.197, "old": 0.01}.get(method, 0.01) * capacity * (1e6 + 10 * own * point["seed"])
    far = {"improved": 5.0, "old": 1.1}.get(method, 1.0)
    clusters = 0.1 if method == "improved" else 0.001
    return {
        **point,
        "value_bps": value,
        "low_bps": value and value - width,
        "high_bps": value and value + width,
        "truth_bps": truth,
        "relative_error": None if nothing else value / truth - 1,
        "refused": "inconsistent" if nothing else None,
        "capacity_bps": capacity * (1e6 + own * point["seed"]),
        "capacity_truth_bps": capacity * 1e6,
        "capacity_error": (7.0 if network == "narrow" and method.startswith("old") else clusters)
        + 1e-5 * own * point["seed"],
        "delay_s": 0.018 * far + 3e-6 * own * point["seed"],
        "delay_truth_s": 0.018,
        "delay_bound_s": 0.0,
        "loss": 0.1 if method == "improved" else 0.0,
        "seconds": (seconds[cross] if isinstance(seconds, dict) else seconds) + 0.01 * own * point["seed"],
        "bytes": {"new": 290_000, "new-300kB": 295_000}.get(method, 301_000) + round(own * point["seed"]),
        "rtt_small_s": 0.036,
        "rtt_large_s": 0.047,
        "error": None,
        "key": "-",
    }


@pytest.fixture(scope="module")
def paper():
    return [like_the_paper(point) for point in EXPERIMENT.plan.points("sim")]


def test_every_claim_holds_on_numbers_like_the_papers(paper):
    found = judged(paper)
    assert {name: one["reason"] for name, one in found.items()} == dict.fromkeys(LABELS)
    assert {one["holds"] for one in found.values()} == {True}
    assert all(any(c.isdigit() for c in one["ours"]) for one in found.values())


# for each claim two labels without whose difference it would say nothing
LABELS = {
    **dict.fromkeys(CORE, ("new", "improved")),
    "new-old": ("new", "old"),
    "equal-bytes": ("new-300kB", "improved"),
    "new-bytes": ("new", "improved"),
    "improved-error": ("improved", "old"),
    "improved-time": ("improved", "old"),
    "table-1-range": ("old-17", "old"),
    "table-1-widest": ("old-20", "old-19"),
    "table-1-capacity": ("old-17", "new"),
    "old-slow": ("old", "improved"),
    "improved-range": ("improved", "old"),
    "improved-load": ("improved", "old"),
    "improved-low": ("improved", "new"),
    "cause-queue": ("improved", "new"),
    # the old one's interval is too narrow
    "improved-interval": ("improved", "old"),
    "new-interval": ("new", "improved"),
    "pathload-error": ("improved", "slops"),
    "pathload-time": ("improved", "slops"),
    "pathload-idle": ("improved", "slops"),
    "delay-improved": ("improved", "old"),
    "open-1": ("new", "improved"),
    "open-2": ("new", "improved"),
    "open-3": ("new", "old"),
}


@pytest.mark.parametrize(("claim", "labels"), LABELS.items())
def test_a_claim_is_false_with_the_methods_swapped(paper, claim, labels):
    swapped = Results(paper, EXPERIMENT.plan, "sim", False).swapped("method", *labels)
    found = finding(swapped, claim)
    assert found.holds is False
    assert found.reason


def test_every_claim_has_such_a_test_and_without_samples_all_are_undecided():
    assert {claim.id for claim in EXPERIMENT.plan.claims} == set(LABELS)
    for world in ("sim", "emu"):
        assert {one["holds"] for one in judged([], world).values()} == {None}


def test_a_refusal_is_a_miss(paper):
    def without_value(row):
        one = row["grid"] == "table-5" and row["method"] == "new" and (row["cross"], row["seed"]) == (1.5, 2)
        return {**row, "value_bps": None, "relative_error": None, "refused": "too-few"} if one else row

    results = Results([without_value(row) for row in paper], EXPERIMENT.plan, "sim", False)
    found = finding(results, "core-table5-1.5")
    # 100 % off, in the mean of 20
    assert found.ours.startswith("5.29 % off")
    assert float(finding(results, "core-table5-0.5").ours.split()[0]) < 0.4


def test_runs_that_are_all_the_same_are_one_which_says_no_and_not_yes(paper):
    """As the simulator's are over an idle line, but for their times."""

    def idle(row):
        changed = ("value_bps", "low_bps", "high_bps", "relative_error", "capacity_bps", "capacity_error", "delay_s")
        first = next(
            one
            for one in paper
            if all(one.get(k) == row.get(k) for k in ("grid", "method", "network", "direction", "cross", "out"))
        )
        still = not row.get("cross") and row["grid"] not in ("distance", "queue")
        return {**row, **{name: first[name] for name in changed}} if still else row

    rows = [idle(row) for row in paper]
    found = judged(rows)
    undecided = {name for name, one in found.items() if one["holds"] is None}
    assert undecided >= {
        "core-table5-0",
        "table-1-range",
        "table-1-widest",
        "table-1-capacity",
        "old-slow",
        "improved-range",
    }
    assert {one["holds"] for one in found.values()} == {True, None}
    assert "the same in all 20 runs" in found["core-table5-0"]["ours"]
    assert "0-17: 0.090 Mbit/s, the same in all 20 runs, 52 s" in found["table-1-range"]["details"]
    # of 80 runs of table 5 twenty are one
    assert found["new-interval"]["ours"].startswith("100.0 % of 61,")
    assert "± 0.0 " not in " ".join(one["ours"] for one in found.values())
    results = Results(rows, EXPERIMENT.plan, "sim", False)
    for name in ("core-table5-0", "table-1-range", "table-1-widest", "table-1-capacity", "old-slow", "improved-range"):
        assert finding(results.swapped("method", *LABELS[name]), name).holds is False
    _, shown = EXPERIMENT.module("show").TABLES["table-5-runs"](results)
    (idle_new,) = (row for row in shown if row[:2] == ("cross 0", "new"))
    assert (idle_new[5], idle_new[6]) == ("+0.12 % (all the same)", "20 of 20, all the same")


def test_seeds_that_do_not_suffice_decide_nothing(paper):
    found = judged([row for row in paper if row["seed"] == 1])
    assert found["core-table5-0.5"]["holds"] is None
    assert "fewer than two seeds" in found["core-table5-0.5"]["reason"]

    def nearly_right(row):
        one = row["grid"] == "table-5" and row["method"] == "improved" and row["seed"] > 1
        return {**row, "relative_error": 0.0005} if one else row

    # about as exact as the new method, of which some seeds are a little better: not for certain
    found = finding(Results([nearly_right(row) for row in paper], EXPERIMENT.plan, "sim", False), "core-table5-0.5")
    assert found.holds is None
    assert "no more exact than the improved tool here" in found.reason


@pytest.mark.parametrize(
    ("claim", "of", "grid", "column", "told"),
    [
        ("table-1-range", ("old-18", "old-19"), "table-1", "method", "not run: 0-18, 0-19"),
        ("table-1-range", ("old-16",), "table-1", "method", "not run: 0-16"),
        ("table-1-capacity", ("old", "old-20"), "table-1-in", "method", "not run: 0-15, 0-20"),
        ("old-slow", ("600kbit", "1Mbit"), "slow", "out", "not run: 600kbit, 1Mbit"),
        ("old-slow", ("400kbit",), "slow", "out", "not run: 400kbit"),
    ],
)
def test_what_was_not_run_is_not_decided(paper, claim, of, grid, column, told):
    rows = [row for row in paper if row["grid"] != grid or row[column] not in of]
    assert len(rows) < len(paper)
    found = finding(Results(rows, EXPERIMENT.plan, "emu", False), claim)
    assert (found.holds, found.reason) == (None, told)


def test_what_was_run_can_be_enough_to_say_no(paper):
    rows = [
        {**row, "value_bps": 4e5, "refused": None} if row.get("out") == "500kbit" and row["method"] == "old" else row
        for row in paper
        if row.get("out") != "400kbit"
    ]
    found = finding(Results(rows, EXPERIMENT.plan, "emu", False), "old-slow")
    assert found.holds is False
    assert found.reason == "something at 500kbit"


# --- samples in the simulator


@pytest.fixture(scope="module")
def simulated():
    """Two seeds of everything: a second."""
    rows = []
    for point in EXPERIMENT.plan.points("sim"):
        if point["seed"] <= 2:
            _, outcome = worker.compute(str(HERE), EXPERIMENT.code, "sim", "-", SAMPLES.scenario(point, SETUP, "sim"))
            assert outcome["error"] is None
            rows.append({**point, **outcome["values"], "error": None, "key": "-"})
    return rows


# without cross traffic the improved tool is the more exact one by a hundredth of a percent: no tolerance hides that
CORE_HOLD = tuple(name for name in CORE if name != "core-table5-0")
HOLD = (*CORE_HOLD, "improved-time")
# of some rows of theirs, which are idle, there is one run
ONE_RUN = ("new-old", "improved-error", "improved-range", "table-1-range", "open-1", "open-2", "open-3")


def test_what_holds_in_the_simulator(simulated):
    found = judged(simulated, quick=True)
    assert {name: found[name]["reason"] for name in HOLD} == dict.fromkeys(HOLD)
    assert {name: found[name]["holds"] for name in ONE_RUN} == dict.fromkeys(ONE_RUN)
    # where the paper's tool differs from ours the reason is told
    differ = [one for one in found.values() if not one["holds"]]
    assert {"core-table5-0", "equal-bytes", "improved-low", "table-1-capacity"} <= {one["id"] for one in differ}
    assert all(one["reason"] for one in differ)


@pytest.mark.parametrize("claim", [*CORE_HOLD, "new-old"])
def test_core_claims_are_false_on_simulated_runs_with_the_methods_swapped(simulated, claim):
    swapped = Results(simulated, EXPERIMENT.plan, "sim", False).swapped("method", *LABELS[claim])
    assert finding(swapped, claim).holds is False


def test_quick_is_part_of_the_whole_and_decides_the_core():
    for world in ("sim", "emu"):
        whole, quick = ({tuple(p.items()) for p in EXPERIMENT.plan.points(world, q)} for q in (False, True))
        assert quick < whole
    rows = [like_the_paper(point) for point in EXPERIMENT.plan.points("emu", quick=True)]
    found = judged(rows, "emu", quick=True)
    assert {found[name]["holds"] for name in CORE} == {True}


def test_a_scenario_says_the_network_and_what_is_asked_for():
    made = SAMPLES.scenario(POINT, SETUP, "sim")
    assert 'rate = { ab = "5Mbit", ba = "100Mbit" }' in made["text"]
    assert 'rate = "1.5Mbit"' in made["text"]
    assert made["request"] == {"method": "ride", "seed": 7}
    # the same network for every method: seeds are compared in pairs
    other = SAMPLES.scenario({**POINT, "method": "new-300kB"}, SETUP, "sim")
    assert other["text"] == made["text"]
    assert other["request"] == {"method": "ride", "bytes": 300_000, "time_s": 1.5, "whole": True, "seed": 7}
    own = SAMPLES.scenario({**POINT, "queue": "4 packets", "delay": "1ms", "out": "1Mbit"}, SETUP, "sim")["text"]
    assert all(text in own for text in ('queue = "4 packets"', 'delay = "1ms"', 'ab = "1Mbit"'))
    back = SAMPLES.scenario({**POINT, "network": "turned", "direction": "in"}, SETUP, "sim")["text"]
    assert 'direction = "ba"' in back
    assert "[[traffic]]" not in SAMPLES.scenario({**POINT, "cross": 0.0}, SETUP, "sim")["text"]
    for key in ("network", "method"):
        with pytest.raises(PathcastError, match=rf"setup.{key}.nosuch"):
            SAMPLES.scenario({**POINT, key: "nosuch"}, SETUP, "sim")


def test_a_sample_is_judged_by_the_ledger():
    found = SAMPLES.sample(SAMPLES.scenario(POINT, SETUP, "sim"), "sim")
    assert found["truth_bps"] == pytest.approx(3.5e6, rel=0.005)
    assert found["relative_error"] == pytest.approx(found["value_bps"] / found["truth_bps"] - 1)
    assert found["capacity_bps"] == pytest.approx(5e6, rel=1e-3)
    # 7 ms, and 120 octets at 100, 5 and 100 Mbit/s
    assert found["delay_truth_s"] == pytest.approx(0.007 + 960 * (0.2e-6 + 0.02e-6))
    assert found["rtt_small_s"] == pytest.approx(2 * 0.007 + 960 * (0.2e-6 + 0.02e-6 + 0.03e-6))
    assert found["refused"] is None
    narrow = {**POINT, "network": "narrow", "cross": 0.0, "method": "old"}
    nothing = SAMPLES.sample(SAMPLES.scenario(narrow, SETUP, "sim"), "sim")
    assert (nothing["value_bps"], nothing["relative_error"], nothing["refused"]) == (None, None, "inconsistent")


# --- tables and figures


def test_tables_and_figures(paper):
    import matplotlib.pyplot as plt

    from pathcast.results.style import style

    show = EXPERIMENT.module("show")
    results, empty = (Results(rows, EXPERIMENT.plan, "sim", False) for rows in (paper, []))
    for of in (results, empty):
        for name, make in show.TABLES.items():
            header, rows = make(of)
            assert {len(row) for row in rows} <= {len(header)}, name
        with style():
            for draw in show.FIGURES.values():
                plt.close(draw(of))
    header, rows = show.TABLES["table-5"](results)
    assert rows[1][2:4] == ["1.83 in 76.0 s", "3.54 in 69.1 s"]
    assert rows[1][-2:] == ["3.55 in 69.2 s", "4.51 in 2.2 s"]
    header, rows = show.TABLES["table-1"](results)
    assert [row[5] for row in rows[:3]] == ["none (inconsistent)", "none (inconsistent)", "0.0901"]
    header, rows = show.TABLES["peers"](empty)
    assert ["Pathload 1.3.2", *("5.14 for 5.00 (22 s, 1.9 MB)",)] == list(rows[0][:2])
