"""What the paper leaves open: fewer probes than paths, and a WAN. Drawn paths, samples, features, claims, tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pathcast import _native
from pathcast.lab.experiment import Experiment, Results
from pathcast.predict.resample import Assessment
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
SAMPLES, SETUP = EXPERIMENT.module("samples"), EXPERIMENT.plan.setup
WAN, FEATURES, OPEN = (EXPERIMENT.module(name) for name in ("wan", "features", "open_problems"))
EVALUATION, SHOW, CLAIMS = (EXPERIMENT.module(name) for name in ("evaluation", "open_show", "open_claims"))
POINT = {"grid": "wan", "network": "today", "seed": 1}
LOG = OPEN.scale_key("log")
PLANNED = [claim for claim in EXPERIMENT.plan.claims if claim.id in CLAIMS.CLAIMS]


# --- drawn paths and their samples


def test_drawn_paths_are_within_their_ranges_and_what_the_scenario_says():
    lines = [line for seed in range(200) for line in WAN.draw(f"test {seed}")]
    assert {line.kind for line in lines} == set(WAN.KINDS)
    assert 0.4 < sum(line.loss > 0 for line in lines) / len(lines) < 0.6
    for line in lines:
        assert 10e6 <= line.rate_bps <= 1e9
        assert 0.01 <= line.rtt_s <= 0.2
        assert 0.25 <= line.queue_bdp <= 2
        assert line.loss == 0 or 1e-5 <= line.loss <= 1e-3
        assert 0 <= line.load <= 0.6
    for seed in range(1, 60):
        made = SAMPLES.scenario({**POINT, "seed": seed}, SETUP, "sim")
        scenario = Topology.parse(made["text"], made["sets"]).scenario
        assert [path["name"] for path in scenario["paths"]] == list(SAMPLES.PATHS)
        assert len(scenario["traffic"]) == 2
        for n in (1, 2):
            link = scenario["links"][n - 1]["ab"]
            drawn = [made["settings"][f"path{n}_{key}"] for key in ("rate_bps", "rtt_s", "loss")]
            said = (_native.parse_rate(link["rate"]), _native.parse_duration(link["delay"]) / 5e8, link["loss"])
            assert drawn == pytest.approx(said, rel=1e-2)


def test_a_seed_draws_its_own_paths_again_and_again():
    one, again, other = (SAMPLES.scenario({**POINT, "seed": seed}, SETUP, "sim") for seed in (1, 1, 2))
    assert one == again
    assert one["text"] != other["text"]


def test_seeds_that_were_looked_at_are_not_judged():
    seeds = {point["seed"] for point in EXPERIMENT.plan.points("sim") if point["grid"] == "wan"}
    assert len(seeds) == 300
    assert seeds.isdisjoint(range(2001, 2501))


def test_a_sample_knows_what_was_measured_and_an_earlier_transfer():
    made = SAMPLES.scenario(POINT, SETUP, "sim")
    made = {**made, "multipath": ["64KB", "256KB", "2MB"], "subflows_of": ["64KB", "256KB"]}
    found = SAMPLES.sample(made, "sim")
    drawn = made["settings"]
    for n in (1, 2):
        assert found[f"tcp{n}_64KB_connect_s"] == pytest.approx(drawn[f"path{n}_rtt_s"], rel=0.5)
        assert found[f"path{n}_capacity_bps"] == pytest.approx(drawn[f"path{n}_rate_bps"], rel=0.02)
        # beside web pages over a long path too little may be known to say
        available = found[f"path{n}_available_bps"]
        assert (n == 1 and available is None) or 0 < available <= 1.02 * drawn[f"path{n}_rate_bps"]
    assert found["past_2MB_bps"] > 0
    assert found["past_2MB_bps"] != found["mptcp_2MB_bps"]
    assert found["measure_bytes"] > 100_000
    assert SAMPLES.sample(made, "sim") == found


def test_a_small_probe_knows_the_second_rtt_once_that_subflow_has_joined():
    point = {"grid": "main", "network": "paper", "rtt1_ms": 120, "rtt2_ms": 180, "seed": 1}
    made = {**SAMPLES.scenario(point, SETUP, "sim"), "probes": ["64KB"], "multipath": ["64KB", "256KB"], "plain": []}
    found = SAMPLES.sample(made, "sim")
    assert found["mptcp_64KB_rtt1_s"] == pytest.approx(0.12, rel=0.03)
    assert found["mptcp_64KB_rtt2_s"] is found["mptcp_64KB_joined_s"] is None
    assert found["mptcp_256KB_rtt2_s"] == pytest.approx(0.18, rel=0.03)
    assert found["mptcp_256KB_joined_s"] == pytest.approx(2 * (0.12 + 0.18), rel=0.03)
    columns = FEATURES.with_rounds(pd.DataFrame([found]), ["64KB", "256KB"]).iloc[0]
    assert columns["handshake2_bps"] == pytest.approx(FEATURES.ROUND_BITS / 0.18, rel=0.03)
    assert columns["mptcp_256KB_round2_bps"] == pytest.approx(FEATURES.ROUND_BITS / 0.18, rel=0.03)
    # the probe took four round trips: half of that less one is what RTT 2 is known to be more than
    assert columns["mptcp_64KB_round2_bps"] == pytest.approx(FEATURES.ROUND_BITS / 0.12, rel=0.05)


def test_one_probe_of_128_kb_knows_the_rtts_of_eight_paths():
    rtts_ms = (150, 120, 135, 160, 170, 180, 140, 130)
    text = 'name = "eight"\n'
    for n, rtt_ms in enumerate(rtts_ms):
        text += f'[[link]]\nname = "wan{n}"\na = "client"\nb = "server"\nrate = "1Gbit"\ndelay = "{rtt_ms * 500}us"\n'
        text += f'[[path]]\nname = "path{n}"\nlinks = ["wan{n}"]\n'
    with Sim(Topology.parse(text, [])) as net:
        found = net.transfer([path.name for path in net.paths], 128_000, "lia")
    assert [1e3 * subflow.min_rtt_s for subflow in found.subflows] == pytest.approx(rtts_ms, rel=0.01)


# --- claims: on predictors whose errors are as claimed


def made(share, seed):
    """A predictor that is off by `share` or less."""
    rng = np.random.default_rng(seed)
    actual = np.exp(np.random.default_rng(0).uniform(np.log(1e7), np.log(1e9), 300))
    off = 1 + share * rng.uniform(-1, 1, (2, 300))
    rtts = np.column_stack([np.arange(1, 301.0), np.arange(1, 301.0)])
    return EVALUATION.Score(actual[:, None], actual, rtts, Assessment(None, actual * off, actual * off))


def as_claimed():
    """Of the grid of RTTs and of the WAN."""
    shares = {"multi 128KB": 0.05, "single+rtt 128KB": 0.05, "rtt": 0.05, "single 128KB": 0.2}
    wide = {"multi 128KB": 0.4, "single 128KB": 0.9, "multi+measured": 0.3, "last 256MB": 0.1, "settings": 0.2}
    grid = {
        (net, label): made(share, n) for net in ("paper", "today") for n, (label, share) in enumerate(shares.items())
    }
    drawn = {(LOG, label): made(share, n) for n, (label, share) in enumerate(wide.items())}
    settings = SETUP["evaluation"]
    return EVALUATION.Scores(grid, {}, settings), EVALUATION.Scores(drawn, {}, settings)


def judged(claim, scores, wan, world="sim"):
    lossy = [{"path1_loss": 1e-4 * (n % 2), "path2_loss": 0.0} for n in range(300)]
    results = Results([], EXPERIMENT.plan, world, False)
    for name, value in (("scores", scores), ("wan scores", wan), ("wan samples", pd.DataFrame(lossy))):
        results.once(lambda _, value=value: value, name)
    return CLAIMS.CLAIMS[claim.id](results, claim)


@pytest.mark.parametrize("claim", PLANNED, ids=lambda claim: claim.id)
def test_a_claim_holds_on_such_predictors(claim):
    for world in claim.worlds:
        found = judged(claim, *as_claimed(), world)
        assert found.holds is True, found.reason
        assert any(c.isdigit() for c in found.ours)


# for each claim two labels without whose difference it would say nothing
LABELS = {
    "open-a": ("single+rtt 128KB", "single 128KB"),
    "open-a-rtt": ("rtt", "single 128KB"),
    "open-b-multi": ("multi 128KB", "single 128KB"),
    "open-b-measured": ("multi 128KB", "multi+measured"),
    "open-b-past": ("last 256MB", "multi+measured"),
    "open-b-median": ("last 256MB", "multi+measured"),
}


@pytest.mark.parametrize("claim", PLANNED, ids=lambda claim: claim.id)
def test_a_claim_is_false_with_the_predictors_swapped(claim):
    found = judged(claim, *(scores.swapped(*LABELS[claim.id]) for scores in as_claimed()))
    assert found.holds is False
    assert found.reason


def test_a_reason_names_the_one_sample_that_has_the_squared_error():
    _, wan = as_claimed()
    broken = wan("multi+measured", LOG)
    unseen = broken.found.unseen.copy()
    unseen[0, 7] = 1e15
    broken = replace(broken, found=replace(broken.found, unseen=unseen))
    (linear,) = (OPEN.scale_key(scale) for scale in SETUP["wan"]["scales"][1:])
    others = {(linear, label): one for (_, label), one in wan.scores.items()}
    wan = replace(wan, scores={**others, **wan.scores, (LOG, "multi+measured"): broken})
    results = Results([], EXPERIMENT.plan, "sim", False)
    frame = pd.DataFrame({f"path{n}_available_bps": [1e7] * 7 + [0.0] + [1e7] * 292 for n in (1, 2)})
    for name, value in (("wan scores", wan), ("wan samples", frame)):
        results.once(lambda _, value=value: value, name)
    (claim,) = (claim for claim in PLANNED if claim.id == "open-b-measured")
    found = CLAIMS.CLAIMS[claim.id](results, claim)
    assert found.holds is None
    assert "one sample of 300 has 100.0 %" in found.details[0]
    assert "0 bit/s were measured" in found.details[0]


# --- predictors, tables and the figure


@pytest.fixture(scope="module")
def learnt():
    """Made-up paths whose data take what is free of both; probes know RTTs alone."""
    rng, rows = np.random.default_rng(5), []
    for seed in range(1, 49):
        row = {"grid": "wan", "network": "today", "seed": seed, "error": None, "key": "-", "measure_bytes": 1e7}
        total, rtts = 0.0, rng.uniform(0.01, 0.2, 2)
        for n, line in enumerate(WAN.draw(f"made up {seed}"), 1):
            row |= {f"path{n}_{key}": value for key, value in vars(line).items()}
            free = line.rate_bps * (1 - line.load)
            total += free
            row |= {f"path{n}_available_bps": free * rng.uniform(0.98, 1.02), f"path{n}_capacity_bps": line.rate_bps}
            row |= {f"tcp{n}_64KB_bps": 1e5 / rtts[n - 1], f"tcp{n}_64KB_connect_s": rtts[n - 1]}
        for size in ("128KB", "32MB"):
            row[f"mptcp_{size}_bps"] = 1e5 / rtts[0]
        # where RTT 2 is the longer one, the second subflow has not joined before the end
        row |= {"mptcp_128KB_rtt1_s": rtts[0], "mptcp_128KB_rtt2_s": None if rtts[1] > rtts[0] else rtts[1]}
        row |= {"mptcp_256MB_bps": total * rng.uniform(0.98, 1.02), "past_256MB_bps": total * rng.uniform(0.98, 1.02)}
        rows.append(row)
    wan = {**SETUP["wan"], "scales": ["log"]}
    return Results(rows, replace(EXPERIMENT.plan, setup={**SETUP, "wan": wan}), "sim", True)


def test_measured_bandwidth_tells_what_probes_cannot_know(learnt):
    scores = OPEN.wan_scores(learnt)
    assert scores.reduction("multi+measured", "multi 128KB", LOG, unseen=True).low > 0.3
    assert scores("last 256MB", LOG).fraction(unseen=True) == 1.0
    assert scores("last 256MB", LOG).unseen_median < 0.02
    found = {one["id"]: one["holds"] for one in EXPERIMENT.findings(learnt)}
    assert (found["open-b-measured"], found["open-b-multi"], found["open-a"]) == (True, False, None)


def test_tables_and_figure(learnt):
    import matplotlib.pyplot as plt

    from pathcast.results.style import style

    for results in (learnt, Results([], EXPERIMENT.plan, "sim", True)):
        for name, make in SHOW.TABLES.items():
            header, rows = make(results)
            assert {len(row) for row in rows} <= {len(header)}, name
        with style():
            for draw in SHOW.FIGURES.values():
                plt.close(draw(results))
    header, rows = SHOW.TABLES["open-b-kinds"](learnt)
    assert rows[0][1] == "48"
    assert sum(int(row[1]) for row in rows[1:4]) == 48
    _, rows = SHOW.TABLES["open-a"](learnt)
    assert rows[0][:5] == ("multi 128KB", "2", "128 KB", "8", "512 KB")
