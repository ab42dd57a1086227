"""The drawn scenarios of the worlds experiment: what is drawn, claims true and false, the kernel's file."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts
from pathcast.worlds.results import Subflow, Transfer, Verdict

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SAMPLES, SHOW = EXPERIMENT.plan, EXPERIMENT.module("samples"), EXPERIMENT.module("show")
DRAWN, PAIRS = (import_module(SAMPLES.__name__.replace("samples", name)) for name in ("drawn", "pairs"))
POINTS = [point for point in PLAN.points("sim") if point["grid"] == "drawn"]


def results(ratio=lambda case, seed: 1.0, world="emu", kernel=lambda case, seed: 1e7 * (1 + 0.01 * seed)):
    rows = []
    for point in POINTS:
        about = (point["case"], point["seed"])
        emu, chance = kernel(*about), 1 + 1e-4 * point["seed"] * (point["case"] % 3)
        row = {**point, "error": None, "key": "k", "tries": 1, "digest": f"{about}", "late_s": 1e-4}
        row |= {"sim_bps": [chance * ratio(*about) * emu], "emu_bps": [emu], "sim_again": [0.0], "emu_again": [0.01]}
        row |= {"emu_s": [5.0], "emu_by_path": [1000, 20]}
        rows.append(row)
    return Results(rows, PLAN, world, False)


def holds(of):
    found = Verdicts(EXPERIMENT, of)
    return [found[f"drawn-{name}"]["holds"] for name in ("tcp", "mptcp", "spread")]


def test_two_hundred_scenarios_of_every_class_and_controller_are_what_the_simulator_runs():
    cases = [DRAWN.case(number) for number in DRAWN.CASES]
    assert len(cases) == 200
    assert min(Counter(one.kind for one in cases).values()) >= 5
    assert {one.topology for one in cases if one.topology} == {*DRAWN.SHIPPED, *DRAWN.PAIRS, "three-path"}
    assert Counter(one.multipath for one in cases) == {False: 130, True: 70}
    assert {one.control for one in cases} == {*DRAWN.SINGLE, *DRAWN.COUPLED}
    for point in POINTS[:: len(POINTS) // 20]:
        about = SAMPLES.scenario(point, PLAN.setup, "sim")
        topology = SAMPLES.topology(about)
        assert topology.scenario["seed"] == point["seed"]
        assert set(about["paths"]) <= {path["name"] for path in topology.scenario["paths"]}
    # the same for ever: what is stored of the kernel is found again by it
    assert DRAWN.case(29).bytes == DRAWN.case(29).bytes


def test_a_scenario_has_the_bytes_of_its_traces(tmp_path, monkeypatch):
    point = next(one for one in POINTS if DRAWN.case(one["case"]).kind == "trace")
    before = SAMPLES.scenario(point, PLAN.setup, "sim")
    [(name, digest)] = before["traces"].items()
    assert digest == hashlib.sha256((SAMPLES.TOPOLOGIES / name).read_bytes()).hexdigest()
    (tmp_path / name).write_bytes((SAMPLES.TOPOLOGIES / name).read_bytes() + b"100000,1\n")
    monkeypatch.setattr(SAMPLES, "TOPOLOGIES", tmp_path)
    assert SAMPLES.scenario(point, PLAN.setup, "sim")["traces"] != before["traces"]


def test_what_is_stored_of_the_kernel_is_of_these_scenarios():
    rows = list(csv.DictReader(PAIRS.STORED.open(newline="")))
    assert rows
    assert tuple(rows[0]) == PAIRS.COLUMNS
    for row in rows[:: max(1, len(rows) // 20)]:
        point = {"grid": "drawn", "case": int(row["case"]), "seed": int(row["seed"])}
        assert SAMPLES.digest(SAMPLES.scenario(point, PLAN.setup, "emu")) == row["digest"]


def test_claims_hold_where_the_worlds_agree_and_not_where_a_third_is_off():
    assert holds(results()) == [True, True, True]
    for multipath, off in ((False, 0.93), (True, 1.12)):

        def ratio(n, seed, of, multipath=multipath, off=off):
            return off if DRAWN.case(n).multipath == multipath and n % of == 0 else 1.0

        assert holds(results(lambda n, seed: ratio(n, seed, 3))) == [multipath, not multipath, True]
        # four in five for certain are more than four in five
        assert holds(results(lambda n, seed: ratio(n, seed, 6))) == [
            True if multipath else None,
            None if multipath else True,
            True,
        ]


def test_the_spread_is_judged_both_ways():
    assert holds(results(lambda n, seed: 1 + 0.02 * (seed - 2)))[2] is False
    assert (
        holds(results(kernel=lambda n, seed: 1e7 * (1 + 0.05 * seed), ratio=lambda n, seed: 1 / (1 + 0.05 * seed)))[2]
        is False
    )
    one_run = [row for row in results().rows if row["seed"] == 1]
    assert holds(Results(one_run, PLAN, "emu", False))[2] is None


def test_in_world_sim_the_kernels_part_comes_from_its_file(monkeypatch, tmp_path):
    of = results(lambda n, seed: 1.02)
    header, rows = SHOW.kernel(of)
    file = tmp_path / "emu-kernel.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([header, *rows])
    stored = PAIRS.kernel(file)
    monkeypatch.setattr(PAIRS, "kernel", lambda: stored)
    alone = [{key: value for key, value in row.items() if not key.startswith("emu_")} for row in of.rows]
    found = Results(alone, PLAN, "sim", False)
    assert [one.ratio for one in PAIRS.pairs(found)] == pytest.approx([1.02] * 200, rel=1e-3)
    assert holds(found) == holds(of) == [True, True, True]
    # another scenario by the same number is not compared
    other = Results([{**row, "digest": "other"} for row in alone], PLAN, "sim", False)
    assert PAIRS.pairs(other) == []
    # ... and nothing holds without it: what is left may be what came out well
    some = [{**row, "digest": "" if row["case"] <= 20 else row["digest"]} for row in alone]
    assert sum(not row["digest"] for row in some) == 60
    left = Results(some, PLAN, "sim", False)
    assert holds(left) == [None, True, None]
    assert "not run: 60 of 390 TCP transfers in the kernel" in Verdicts(EXPERIMENT, left)["drawn-tcp"]["reason"]


def test_a_kernels_part_that_a_machine_skipped_is_missing_in_world_emu_too():
    rows = []
    for row in results().rows:
        skipped = DRAWN.case(row["case"]).control == "imtcp"
        kept = {key: value for key, value in row.items() if not (skipped and key.startswith("emu_"))}
        rows.append({**kept, "skipped": "bpf"} if skipped else kept)
    assert holds(Results(rows, PLAN, "emu", False)) == [None, True, None]


def test_tables():
    for of in (results(), Results([], PLAN, "emu", False)):
        for name in ("gaps", "drawn", "kernel"):
            header, rows = SHOW.TABLES[name](of)
            assert {len(row) for row in rows} <= {len(header)}
    gaps = SHOW.gaps(results(lambda n, seed: 1.3 if DRAWN.case(n).kind == "policer" else 1.0))[1]
    assert gaps[0][:4] == ("policer", "5", "0", "1.30")
    assert len(gaps) == len(set(DRAWN.CLASSES))


ABOUT = SAMPLES.scenario(POINTS[0], PLAN.setup, "emu")


def test_simulated_lines_are_as_late_as_the_emulators_but_for_those_with_jitter_of_their_own():
    jitter = next(one for one in POINTS if DRAWN.case(one["case"]).kind == "jitter")
    for point, late in ((POINTS[0], True), (jitter, False)):
        about = SAMPLES.scenario(point, PLAN.setup, "sim")
        emulated, simulated = SAMPLES.topology(about), SAMPLES.simulated(about, 901)
        links = simulated.scenario["links"]
        of = [(link["ab"].get("jitter") or {}).get("amplitude") == SAMPLES.LATE for link in links]
        assert of == [late] * len(links)
        assert (links == emulated.scenario["links"]) is not late
        assert (simulated.scenario["seed"], simulated.scenario["tcp"]["idle_restart"]) == (901, False)


def test_the_simulators_spread_is_a_mean_over_sets_as_large_as_the_kernels():
    one = PAIRS.Pair(1, DRAWN.case(1), [[1.0, 2.0], [1.0, 4.0]], [1.0, math.e], (0.0, 0.0))
    assert one.spreads == pytest.approx((math.log(2) / math.sqrt(2) / 2, 1 / math.sqrt(2)))
    assert one.simulated == 1.5


SUBFLOW = Subflow("path1", "", "", 1000, 1000, 10, 1, 0.1, 0.1, 10, 0.0, True, None)


class _Network:
    """A world in which every transfer has the same throughput, or the kernel lacks something."""

    def __init__(self, bps, missing=None):
        self.bps, self.missing = bps, missing

    def __call__(self, topology):
        return self

    def __enter__(self):
        if self.missing:
            raise self.missing
        return self

    def __exit__(self, *_):
        pass

    def judged(self):
        return nullcontext(Verdict({"p99_s": 2e-4}))

    def wait(self, time_s):
        pass

    def tcp_probe(self, path, bytes, control):
        return Transfer((path,), bytes, bytes * 8 / self.bps, self.bps, 0.1, "tcp", control, None, None, (), (SUBFLOW,))


def test_a_sample_has_both_worlds_and_skips_the_kernels_part_by_name(monkeypatch):
    monkeypatch.setattr("pathcast.worlds.sim.Sim", _Network(2e7))
    monkeypatch.setattr("pathcast.worlds.emu.Emu", _Network(1e7))
    found = SAMPLES.sample(ABOUT, "emu")
    assert (found["ratio"], found["emu_bps"], found["late_s"]) == ([2.0], [1e7], 2e-4)
    assert found["sim_bps"] == [2e7] * SAMPLES.REPEATS
    assert re.fullmatch("[0-9a-f]{16}", found["digest"])
    assert "emu_bps" not in SAMPLES.sample(ABOUT, "sim")
    for code, exit in (("bpf", Exit.MISSING), ("late", Exit.UNTRUSTWORTHY)):
        error = PathcastError(code, "it is not so", None, exit)
        monkeypatch.setattr("pathcast.worlds.emu.Emu", _Network(1e7, error))
        if exit == Exit.MISSING:
            assert SAMPLES.sample(ABOUT, "emu")["skipped"] == "bpf"
        else:
            with pytest.raises(PathcastError, match="it is not so"):
                SAMPLES.sample(ABOUT, "emu")
