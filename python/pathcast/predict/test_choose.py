"""Ranking, regret, and predictors for every choice of paths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.predict import synthetic
from pathcast.predict.choose import best, rank, regret
from pathcast.predict.errors import RoundError
from pathcast.predict.features import Round
from pathcast.predict.path_choice import PathChoice


def choice(names, bps, key="predicted_bps"):
    return {"paths": list(names), key: bps}


def test_best_first_and_fewer_paths_at_a_tie():
    ranked = rank([choice("ab", 5.0), choice("a", 7.0), choice("b", 5.0) | {"note": 1}])
    assert [item["paths"] for item in ranked] == [["a"], ["b"], ["a", "b"]]
    assert ranked[1]["note"] == 1
    assert best([choice("a", 1.0), choice("b", 2.0)])["paths"] == ["b"]


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=8), st.data())
def test_regret_laws(values, data):
    measured = [choice([f"p{i}"], bps, "actual_bps") for i, bps in enumerate(values)]
    index = data.draw(st.integers(0, len(values) - 1))
    found = regret([f"p{index}"], measured)
    assert 0 <= found < 1
    assert (found == 0) == (values[index] == max(values))
    assert max(values) - values[index] == pytest.approx(found * max(values))


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ([], "no choice"),
        ([{"predicted_bps": 1.0}], "must be"),
        ([{"paths": "ab", "predicted_bps": 1.0}], "must be"),
        ([{"paths": [], "predicted_bps": 1.0}], "must be"),
        ([{"paths": ["a"]}], "must be"),
        ([choice("a", 0.0)], "is 0.0, not a positive"),
        ([choice("a", float("nan"))], "nan"),
        ([choice("a", 1.0)] * 2, "twice"),
    ],
)
def test_refusals(choices, words):
    with pytest.raises(ValueError, match=words):
        rank(choices)


def test_regret_of_an_unmeasured_choice():
    with pytest.raises(ValueError, match=r"no measurement of the chosen paths \['b'\]"):
        regret(["b"], [choice("a", 1.0, "actual_bps")])


@pytest.fixture(scope="module")
def fitted():
    return PathChoice(["wan1", "wan2"]).fit(synthetic.rounds(40, seed=1, transfer_bytes=500e3))


def test_every_choice_is_predicted_and_chosen_well(fitted):
    # half a megabyte: a second subflow can cost more than it is worth, so no choice is always right
    test = synthetic.rounds(100, seed=2, transfer_bytes=500e3)
    found = fitted.predict(test[0].probes_bps)
    assert {tuple(item["paths"]) for item in found} == {("wan1",), ("wan2",), ("wan1", "wan2")}
    assert [item["predicted_bps"] for item in found] == sorted((i["predicted_bps"] for i in found), reverse=True)
    quality = fitted.evaluate(test)
    assert quality.n == 100
    assert quality.mean_regret < 0.5 * quality.all_paths_mean_regret
    assert quality.as_dict()["fraction_best"] > 0.6


def test_outside_of_the_training_range_is_said(fitted):
    assert not any(item["within_training_range"] for item in fitted.predict([1e9, 1e9]))


def with_pair(item: Round) -> Round:
    pair = 0.8 * (item.tcp_bps[0] + item.tcp_bps[2])
    return Round(item.probes_bps, item.actual_bps, item.mptcp_probe_bps, item.tcp_bps, {("a", "c"): pair})


def test_subsets_where_the_rounds_have_them():
    rounds = synthetic.rounds(20, seed=3, n_paths=3)
    rounds = [with_pair(item) if index < 12 else item for index, item in enumerate(rounds)]
    rounds[0] = Round(*[getattr(rounds[0], f) for f in ("probes_bps", "actual_bps")], subset_bps={("b", "c"): 1e8})
    model = PathChoice(["a", "b", "c"]).fit(rounds)
    assert list(model.predictors_) == [("a",), ("b",), ("c",), ("a", "c"), ("a", "b", "c")]
    assert model.left_out_ == {("b", "c"): 1}
    probes = np.array(rounds[5].probes_bps)
    moved = probes * [1, 3, 1]
    by_paths = [{tuple(i["paths"]): i["predicted_bps"] for i in model.predict(p)} for p in (probes, moved)]
    assert by_paths[0]["a", "c"] == by_paths[1]["a", "c"]
    assert by_paths[0]["b",] != by_paths[1]["b",]


def test_path_choice_refusals(fitted):
    rounds = synthetic.rounds(4, seed=4)
    with pytest.raises(ValueError, match="different path names"):
        PathChoice(["a", "a"])
    with pytest.raises(ValueError, match="different path names"):
        PathChoice("ab")
    with pytest.raises(ValueError, match="min_rounds is 1"):
        PathChoice(["a"], min_rounds=1)
    with pytest.raises(TypeError):
        PathChoice(["a"], colour="red")
    with pytest.raises(RoundError, match="no choice of paths has 8"):
        PathChoice(["a", "b"]).fit(rounds)
    with pytest.raises(RoundError, match="2 values for the paths a"):
        PathChoice(["a"]).fit(rounds)
    with pytest.raises(RuntimeError, match="not fitted"):
        PathChoice(["a", "b"]).predict([1.0, 1.0])
    with pytest.raises(RoundError, match="positive"):
        fitted.predict([1e6, -1.0])
    with pytest.raises(RoundError, match=r"round 0 has no measurement over wan1"):
        fitted.evaluate([Round((1e6, 1e6), 1e7)])
    with pytest.raises(RoundError, match="has the choice a\\+x"):
        PathChoice(["a", "b"]).fit([Round((1e6, 1e6), 1e7, subset_bps={("a", "x"): 1e6})])
