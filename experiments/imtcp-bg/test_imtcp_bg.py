"""The background experiment: pages, samples, and every claim against results with swapped labels."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment, Results
from pathcast.service import doctor

HERE = Path(__file__).parent
EXPERIMENT = Experiment(HERE)
SAMPLES, CELLS, SHOW = (EXPERIMENT.module(name) for name in ("samples", "cells", "show"))
# what SAMPLES imported
WEB, EMULATED = (sys.modules[f"{SAMPLES.__package__}.{name}"] for name in ("web", "emulated"))
SETUP = EXPERIMENT.plan.setup
POINT = {"network": "10", "connections": 1, "load": 30, "control": "imtcp_bg", "seed": 7}
SEEDS = (1, 2, 3)
CHECKED = ("open-recommended-elsewhere", "small-paths")


# --- results as the slides tell them, and swapped

# of the available bandwidth; growth of page times
E1 = {
    "none": (0, 0),
    "reno": (1.02, 0.5),
    "nice": (0.4, 0.03),
    "lp": (0.5, 0.04),
    "ledbatpp": (0.9, 0.05),
    "imtcp_bg": (0.85, 0.02),
    "recommended": (0.9, 0.02),
    "plain": (0.85, 0.02),
    "unyielding": (0.9, 0.2),
}
# of the available bandwidth by number of connections; spread from bin to bin; weights of the connections
E2 = {
    "none": ((0,) * 5, 0, (1,) * 5),
    "reno": ((1.02,) * 5, 0.3, (1, 4, 1, 6, 1)),
    "nice": ((0.2, 0.3, 0.5, 0.6, 0.7), 0.4, (1,) * 5),
    "lp": ((0.6,) * 5, 0.5, (1,) * 5),
    "ledbatpp": ((0.8,) * 5, 0.5, (1,) * 5),
    "imtcp_bg": ((0.9,) * 5, 0.1, (1,) * 5),
    "recommended": ((0.9,) * 5, 0.1, (1,) * 5),
    "plain": ((0.9,) * 5, 0.1, (1,) * 5),
    "unyielding": ((0.9,) * 5, 0.1, (1,) * 5),
}


def one(network, control, load, seed, about=None):
    used, grown = about or E1[control]
    draw = random.Random(f"{network} {load} {seed}")
    link = SETUP["network"][network]["rate_mbit"] * 1e6
    fg = link * load / 100 * draw.uniform(0.9, 0.95)
    page = (0.1 + load / 500) * draw.uniform(0.9, 1.1) if load else None
    point = {"network": network, "connections": 1, "load": load, "control": control, "seed": seed}
    return {
        **point,
        "bg_bps": (link - fg) * used,
        "fg_bps": fg,
        "page_s": page and page * (1 + grown * draw.uniform(0.99, 1)),
    }


def five(network, control, seed):
    shares, spread, weights = E2[control]
    # seeds differ by a little
    own = 1 + 0.01 * (seed % 3)
    draw = random.Random(f"{network} {control} {seed}")
    spread, weights = own * spread, [of * draw.uniform(0.97, 1.03) for of in weights]
    link, step = SETUP["network"][network]["rate_mbit"] * 1e3, SETUP["network"][network]["several"]["step_s"]
    rates = [[0.0] * (9 * step) for _ in range(5)]
    for phase in range(9):
        there = [n for n in range(5) if n <= phase < n + 5]
        whole = own * 0.7 * link * shares[len(there) - 1] / sum(weights[n] for n in there)
        for bin in range(phase * step, (phase + 1) * step, 5):
            for n in there:
                slow = 0.2 if control == "lp" and n == phase and bin < phase * step + 20 else 1
                rate = whole * weights[n] * slow * (1 + spread * (-1) ** (bin // 5))
                rates[n][bin : bin + 5] = [rate] * 5
    row = one(network, control, 30, seed)
    lost = 9 if control == "lp" else 0
    return {
        **row,
        "connections": 5,
        "bg_bps": own * link * 1e3 * shares[2],
        "carried_kbps": [0.3 * link] * (9 * step),
        "bg_kbps": rates if control != "none" else [],
        "drops_before": [0] * 4,
        "drops_after": [0 if seed == 1 else 9, *[lost + seed] * 3] if lost else [0] * 4,
    }


def like_the_slides():
    rows = [one(*of) for of in itertools.product(("10", "20", "100", "10, ns-2"), E1, (0, 30, 90), SEEDS)]
    rows += [five(*of) for of in itertools.product(("10", "100", "10, ns-2"), E2, SEEDS)]
    rows += [one(*of) for of in itertools.product(("10",), E1, (15, 75), (21, 22, 23))]
    rows += [five(*of) for of in itertools.product(("10",), E2, (21, 22, 23))]
    plan = SETUP["control"]["recommended"]
    for network, load, seed in itertools.product(("10", "100"), (20, 80), (1001, 1002)):
        rows.append(one(network, "none", load, seed))
        for delta, gamma in itertools.product((plan["delta"], 1200, 2000), {plan["gamma"], 500}):
            ours = (delta, gamma) == (plan["delta"], plan["gamma"])
            about = (0.8, 0.05) if ours else (0.5, 0.05) if delta < 2000 else (1.0, 0.3)
            rows.append({**one(network, "imtcp_bg", load, seed, about), "delta": delta, "gamma": gamma})
    networks = next(c.threshold["networks"] for c in EXPERIMENT.plan.claims if c.id == "open-recommended-elsewhere")
    controls = ("none", "nice", "lp", "imtcp_bg", "recommended")
    rows += [one(*of) for of in itertools.product(networks, controls, (20, 80), (2001, 2002))]
    return [{"error": None, "key": "-", "grid": _grid(row), **row} for row in rows]


def _grid(row):
    """Which grid of the plan has such a run."""
    if row["seed"] > 1000:
        return ("sweep" if "delta" in row else "sweep-none") if row["seed"] < 2000 else "check"
    if row["seed"] > 20:
        return "room" if row["connections"] == 1 else "room-several"
    kind = {"10": "", "20": "-20", "100": "-fast", "10, ns-2": "-ns2"}[row["network"]]
    return ("one" if row["connections"] == 1 else "several") + kind


@pytest.fixture(scope="module")
def slides():
    """Of few seeds and loads, as a quick run."""
    return Results(like_the_slides(), EXPERIMENT.plan, "sim", True)


def verdicts(results):
    return {one["id"]: one for one in EXPERIMENT.findings(results)}


@pytest.fixture(scope="module")
def found(slides):
    return verdicts(slides)


@pytest.mark.parametrize("claim", [claim.id for claim in EXPERIMENT.plan.claims])
def test_every_claim_holds_on_numbers_like_the_slides(found, claim):
    assert found[claim]["holds"] is True, found[claim]["reason"]
    assert any(c.isdigit() for c in found[claim]["ours"])


# for each kind of claim the two labels without whose difference it would say nothing
SWAPS = {
    "core-e1-reno": ("reno", "nice"),
    "core-e1-quiet": ("reno", "imtcp_bg"),
    "core-e1-closest": ("nice", "imtcp_bg"),
    "core-e2-reno": ("reno", "lp"),
    "core-e2-nice": ("nice", "imtcp_bg"),
    "core-e2-lp-losses": ("lp", "imtcp_bg"),
    "core-e2-lp-start": ("lp", "nice"),
    "core-e2-one": ("imtcp_bg", "lp"),
    "core-e2-steady": ("imtcp_bg", "lp"),
    "core-e2-fair": ("imtcp_bg", "reno"),
    "plain-e1-quiet": ("plain", "reno"),
    "plain-e1-closest": ("nice", "plain"),
    "plain-e2-nice": ("nice", "plain"),
    "plain-e2-one": ("plain", "lp"),
    "plain-e2-steady": ("plain", "lp"),
    "plain-e2-fair": ("plain", "reno"),
    "ledbatpp": ("ledbatpp", "reno"),
    "cause-small-one": ("unyielding", "imtcp_bg"),
    "cause-small-several": ("unyielding", "imtcp_bg"),
    "open-recommended-elsewhere": ("recommended", "imtcp_bg"),
    "small-paths": ("imtcp_bg", "nice"),
}


@pytest.fixture(scope="module")
def swapped(slides):
    return functools.cache(lambda column, *labels: slides.swapped(column, *labels))


def judged(results, claim):
    """One claim alone."""
    (stated,) = (one for one in EXPERIMENT.plan.claims if one.id == claim)
    return EXPERIMENT.module("claims").CLAIMS[claim](results, stated)


@pytest.mark.parametrize("claim", [c.id for c in EXPERIMENT.plan.claims if c.id != "open-recommended"])
def test_a_claim_is_false_with_the_controllers_swapped(swapped, claim):
    kind = claim if claim in SWAPS else claim.rpartition("-")[0]
    found = judged(swapped("control", *SWAPS[kind]), claim)
    assert found.holds is False
    assert found.reason


def test_the_recommendation_is_false_with_the_settings_swapped(swapped):
    plan = SETUP["control"]["recommended"]
    found = judged(swapped("delta", plan["delta"], 2000), "open-recommended")
    assert found.holds is False
    assert "the plan has" in found.reason


def test_an_interval_over_the_threshold_is_undecided(slides):
    rows = [
        {**row, "page_s": row["page_s"] * (1.3 if row["seed"] == 1 else 0.8)}
        if (row["network"], row["control"], row["connections"]) == ("10", "lp", 1) and row["page_s"]
        else row
        for row in slides.rows
    ]
    found = judged(Results(rows, EXPERIMENT.plan, "sim", False), "core-e1-quiet-10")
    assert found.holds is None
    assert "LP" in found.reason


def without(slides, **where):
    """Without the runs of one controller that have these values."""
    left = [row for row in slides.rows if not where.items() <= row.items()]
    return Results(left, EXPERIMENT.plan, "sim", True)


def test_a_load_or_a_phase_that_one_seed_lacks_is_told_and_nothing_holds_without_it(slides):
    cell = CELLS.Cell("10", SEEDS)
    lacking = without(slides, network="10", connections=1, control="lp", load=90, seed=2)
    assert [value == value for value in CELLS.apart(lacking, cell, "lp")] == [True, False, True]
    assert len(CELLS.apart(slides, cell, "lp")) == len(CELLS.growth(slides, cell, "lp")) == 3
    rows = [
        {**row, "page_s": None}
        if (row["control"], row["network"], row["load"], row["seed"]) == ("lp", "10", 90, 2)
        else row
        for row in like_the_slides()
    ]
    three = Results(rows, EXPERIMENT.plan, "sim", True)
    found = judged(three, "core-e1-quiet-10")
    assert (found.holds, "(2 of 3 seeds)" in found.reason) == (None, True)
    starved = [
        {**row, "bg_kbps": [[0.0] * 900, *row["bg_kbps"][1:]]}
        if (row["control"], row["network"], row["connections"], row["seed"]) == ("lp", "10", 5, 2)
        else row
        for row in rows
    ]
    found = CELLS.fluctuation(Results(starved, EXPERIMENT.plan, "sim", True), CELLS.Cell("10", SEEDS, 5), "lp")
    assert [value == value for value in found] == [True, False, True]


def test_where_every_join_has_losses_the_seeds_are_counted(slides):
    def found(rows):
        lossy = [{**row, "drops_after": [5 + row["seed"]] * 4} if row.get("drops_after") else row for row in rows]
        return judged(Results(lossy, EXPERIMENT.plan, "sim", True), "core-e2-lp-losses-10")

    few = found(slides.rows)
    assert (few.holds, "losses at 100.0 (29.2 to 100.0) % of the joins" in few.ours) == (None, True)
    more = [five("10", control, seed) for control in ("lp", "none") for seed in range(4, 21)]
    assert found([*slides.rows, *({**row, "error": None, "key": "-", "grid": "several"} for row in more)]).holds is True


def test_a_run_that_is_not_there_holds_up_the_claims_that_it_is_of(slides):
    rows = [
        {**row, "error": "x: y"}
        if (row["control"], row["network"], row["load"], row["seed"]) == ("lp", "10", 90, 2)
        else row
        for row in like_the_slides()
    ]
    found = verdicts(Results(rows, EXPERIMENT.plan, "sim", True))
    assert found["core-e1-closest-10"]["holds"] is None
    assert "2 of 3 seeds complete, 1 of 36 samples missing" in found["core-e1-closest-10"]["ours"]
    assert found["ledbatpp-10"]["holds"] is found["core-e1-closest-20"]["holds"] is True


def test_without_samples_every_claim_is_undecided():
    for world in ("sim", "emu"):
        found = verdicts(Results([], EXPERIMENT.plan, world, False))
        assert {one["holds"] for one in found.values()} == {None}


def test_tables_and_figures(slides):
    import matplotlib.pyplot as plt

    from pathcast.results.style import style

    for results in (slides, Results([], EXPERIMENT.plan, "emu", True)):
        for name, make in SHOW.TABLES.items():
            header, rows = make(results)
            assert {len(row) for row in rows} <= {len(header)}, name
        with style():
            for draw in SHOW.FIGURES.values():
                plt.close(draw(results))
    header, rows = SHOW.TABLES["one-10"](slides)
    assert [row[0] for row in rows] == ["0", "90", "270"]
    assert len(SHOW.TABLES["several"](slides)[1]) == 12


def test_with_pages_only_is_what_remains_without_the_load_of_none(slides):
    networks, seeds, controls = ("10", "100"), SEEDS, ("reno", "nice", "imtcp_bg")
    without = Results([row for row in slides.rows if row["load"]], EXPERIMENT.plan, "sim", False)
    cut, whole = (SHOW.summary(networks, seeds, controls)(of)[1] for of in (without, slides))
    found = SHOW.busy(networks, seeds, controls)(slides)[1]
    assert [(row[2], row[4]) for row in found] == [(row[3], row[4]) for row in cut]
    assert all(row[3] != of[3] for row, of in zip(cut, whole, strict=True))
    assert [row[3] != "" for row in found] == 2 * [True, True, False]
    # the claims' statistic keeps the idle link
    assert judged(slides, "core-e1-closest-10").ours != judged(without, "core-e1-closest-10").ours


def test_in_the_emulator_only_what_was_run_there_is_shown(slides):
    rows = [row for row in slides.rows if row["network"] == "20" and row["load"] and row["seed"] in SEEDS]
    emulated = Results(rows, EXPERIMENT.plan, "emu", False)
    shown = {world: {name for name in SHOW.TABLES if SHOW.ONLY.get(name, world) == world} for world in ("sim", "emu")}
    assert shown == {"sim": set(SHOW.TABLES), "emu": {"summary", "one-20"}}
    assert all(SHOW.TABLES[name](emulated)[1] for name in shown["emu"])
    assert {name for name in SHOW.FIGURES if SHOW.ONLY.get(name, "emu") == "emu"} == {"one-20"}
    text = (HERE / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- lab: emu (?:table|data) ([\w-]+) -->", text)) - {"claims"} == shown["emu"]


def test_jains_index():
    import numpy as np

    assert CELLS.jain(np.array([2.0, 2.0])) == 1
    assert CELLS.jain(np.array([3.0, 0.0, 0.0])) == pytest.approx(1 / 3)


def test_phases_are_those_of_joins_and_leaves(slides):
    found = CELLS.phases(slides, CELLS.Cell("10", SEEDS, 5))
    assert [len(phase.connections) for phase in found] == [1, 2, 3, 4, 5, 4, 3, 2, 1]
    assert (found[5].begin, found[5].end, found[5].connections) == (520, 600, (1, 2, 3, 4))


# --- the plan and its scenarios


def test_quick_is_part_of_the_whole_and_the_sweep_has_seeds_of_its_own():
    for world in ("sim", "emu"):
        whole, quick = ({tuple(p.items()) for p in EXPERIMENT.plan.points(world, q)} for q in (False, True))
        assert quick < whole
    seeds = {grid: set() for grid in ("sweep", "check", "else")}
    for point in EXPERIMENT.plan.points("sim"):
        grid = point["grid"].partition("-")[0]
        seeds[grid if grid in seeds else "else"].add(point["seed"])
    assert not seeds["sweep"] & (seeds["check"] | seeds["else"])
    assert not seeds["check"] & seeds["else"]
    for claim in EXPERIMENT.plan.claims:
        grid = {"open-recommended": "sweep", **dict.fromkeys(CHECKED, "check")}.get(claim.id, "else")
        assert set(claim.seeds) <= seeds[grid]


def test_what_is_drawn_is_the_same_for_every_controller_and_world():
    own, none = (SAMPLES.scenario({**POINT, "control": c}, SETUP, "sim") for c in ("imtcp_bg", "none"))
    other = {"control", "parameters"}
    assert {k: v for k, v in own.items() if k not in other} == {k: v for k, v in none.items() if k not in other}
    assert (own["control"], none["control"], own["nodes"], own["queue_packets"]) == ("imtcp_bg", None, 90, 33)
    assert SAMPLES.scenario({**POINT, "seed": 8}, SETUP, "sim")["draws"] != own["draws"]
    sim, emu = (SAMPLES.scenario({**POINT, "network": "20"}, SETUP, world) for world in ("sim", "emu"))
    assert sim == emu
    swept = SAMPLES.scenario({**POINT, "delta": 1200, "gamma": 250}, SETUP, "sim")
    assert swept["parameters"] == {"delta": 1200, "gamma": 250}
    with pytest.raises(PathcastError, match=r"setup.control.nosuch"):
        SAMPLES.scenario({**POINT, "control": "nosuch"}, SETUP, "sim")


def test_pages_have_the_mean_and_the_shape_and_the_same_sizes_in_every_run():
    first, second = (WEB.pages(2000, 100.0, 60_000, 1.2, about) for about in ("a", "b"))
    assert first != second
    sizes = sorted(size for _, size in first)
    assert sizes == sorted(size for _, size in second)
    assert sum(sizes) / 2000 == pytest.approx(60_000, rel=1e-3)
    # Pareto: half of the pages are larger than 2^(1/1.2) times the least, a hundredth than 100^(1/1.2)
    assert sizes[1000] / sizes[0] == pytest.approx(2 ** (1 / 1.2), rel=0.02)
    assert sizes[1980] / sizes[0] == pytest.approx(100 ** (1 / 1.2), rel=0.05)
    assert [at for at, _ in first] == sorted(at for at, _ in first)
    assert WEB.pages(0, 100.0, 60_000, 1.2, "a") == []


# --- samples


def small(**changes):
    """A scenario that takes milliseconds."""
    made = SAMPLES.scenario({**POINT, **changes}, SETUP, "sim")
    times = {"from_s": 2, "pages_s": 20, "end_s": 40}
    if made["leaves_s"]:
        times |= {"joins_s": [0.0, 3.0, 6.0, 9.0, 12.0], "leaves_s": [15.0, 16.0, 17.0, 18.0, 19.0]}
    return {**made, **times}


def test_a_simulated_run_counts_what_is_left_and_what_is_used():
    none, reno = (SAMPLES.sample(small(control=control), "sim") for control in ("none", "reno"))
    assert (none["bg_bps"], none["retransmits"], none["unfinished"]) == (0, 0, 0)
    assert 0 < none["fg_bps"] < 10e6
    assert 0.9 * 10e6 < reno["bg_bps"] + reno["fg_bps"] <= 1.001 * 10e6
    assert reno["page_s"] > 1.1 * none["page_s"]
    assert none["pages"] == reno["pages"] > 50
    assert SAMPLES.sample(small(control="reno"), "sim") == reno


def test_a_page_that_has_not_arrived_counts_until_the_end():
    found = SAMPLES.sample({**small(control="none", load=90), "end_s": 20.0}, "sim")
    assert found["unfinished"] > 0


def test_a_run_without_pages_has_no_page_time():
    found = SAMPLES.sample(small(load=0), "sim")
    assert (found["pages"], found["page_s"]) == (0, None)
    assert found["bg_bps"] > 0.8 * 10e6


def test_five_flows_join_and_leave():
    found = SAMPLES.sample(small(connections=5, control="lp"), "sim")
    rates = CELLS.rates(found)
    assert rates.shape == (5, 20)
    assert (rates[1, :3] == 0).all()
    assert rates[1, 4:15].min() > 0
    assert (rates[0, 16:] == 0).all()
    assert len(found["drops_before"]) == len(found["drops_after"]) == 4
    assert rates.sum() <= sum(found["carried_kbps"]) + 1000
    json.dumps(found)


# --- the real kernel


def test_a_program_that_is_missing_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(EMULATED.shutil, "which", lambda name, path=None: None)
    with pytest.raises(PathcastError, match="no program nginx") as caught:
        SAMPLES.sample(SAMPLES.scenario({**POINT, "network": "20"}, SETUP, "emu"), "emu")
    assert (caught.value.code, caught.value.exit) == ("missing", 5)
    assert caught.value.hint == "apt-get install nginx-light"


class Pages(BaseHTTPRequestHandler):
    """Answers with as many bytes as the path says; one that is too large for it ends early."""

    def do_GET(self):
        size = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(bytes(min(size, 50_000)))

    def log_message(self, *_):
        pass


def test_the_reader_fetches_pages_at_their_times_and_says_which_did_not_come():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        told = {"address": "127.0.0.1", "port": server.server_port, "pages": [(0.2, 1500), (0.4, 60_000)]}
        words = [sys.executable, EMULATED.fetch.__file__]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            reader.stdin.write(f"{json.dumps(told)}\n")
            reader.stdin.flush()
            ready = json.loads(reader.stdout.readline())
            go = {"at_ns": time.monotonic_ns(), "until_s": 3.0}
            found = json.loads(reader.communicate(f"{json.dumps(go)}\n")[0])
        assert reader.returncode == 0
    finally:
        server.shutdown()
        server.server_close()
    assert ready == {"ready": True, "failed": None}
    (asked, took, there), (_, short, not_there) = found["pages"]
    assert asked >= 0.2
    assert 0 < took < 3
    assert (there, not_there) == (True, False)
    assert short > 0
    assert "50000 of 60000" in found["failed"] or "IncompleteRead" in found["failed"]


class _Net:
    """A network whose bottleneck carries 100 bytes between readings, and whose ledger fails after so many."""

    def __init__(self, readings):
        self.left, self.bytes = readings, 0

    def ledger(self):
        self.left, self.bytes = self.left - 1, self.bytes + 100
        if self.left < 0:
            raise PathcastError("net", "the network is gone")
        link = {"name": "bottleneck/ab", "counters": {"carried": {"bytes": self.bytes}}}
        return {"groups": [{"links": [link]}]}


def test_a_meter_that_died_is_no_quiet_bottleneck(monkeypatch):
    monkeypatch.setattr(EMULATED, "_EVERY_S", 0.001)
    with pytest.raises(PathcastError, match="the network is gone"), EMULATED._Meter(_Net(3)) as meter:
        meter.join(60)
    # what failed first is told
    meter = EMULATED._Meter(_Net(3)).__enter__()
    meter.join(60)
    assert meter.__exit__(PathcastError) is None
    begun = time.monotonic()
    with EMULATED._Meter(_Net(10**9)) as meter:
        time.sleep(0.05)
        asked = time.monotonic()
    assert meter.at[-1] >= asked
    assert meter.by([begun, asked])[1] > 0
    with pytest.raises(PathcastError, match=r"the bottleneck was last read 5\.. s before the end"):
        meter.by([begun, meter.at[-1] + 5.02])


@pytest.fixture
def real(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))
    lacking = doctor.missing("privilege", "iproute2", "namespaces", "tun")
    if lacking:
        pytest.skip("missing: " + "; ".join(f"{check.name} ({check.detail})" for check in lacking))
    try:
        EMULATED.program("nginx")
    except PathcastError as error:
        pytest.skip(f"missing: {error} ({error.hint})")


@pytest.mark.privileged
def test_an_emulated_run_with_a_real_web_server(real):
    about = SAMPLES.scenario({**POINT, "network": "20", "control": "reno"}, SETUP, "emu")
    patience = time.monotonic() + 60
    while True:
        try:
            found = SAMPLES.sample({**about, "from_s": 1, "pages_s": 3, "end_s": 3.5}, "emu")
            break
        except PathcastError as error:
            if error.code != "late" or time.monotonic() > patience:
                raise
    assert found["pages"] > 5
    assert 0.08 < found["page_s"] < 2  # two round trips at least
    assert 0.5 * 20e6 < found["bg_bps"] + found["fg_bps"] < 1.05 * 20e6
