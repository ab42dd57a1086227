"""The predictors: scikit-learn's own checks, and what the physics of probes demands of them."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pathcast.predict import synthetic
from pathcast.predict.cdf_matching import CdfMatching
from pathcast.predict.evaluate import placebo, summarise
from pathcast.predict.features import multi, single, target
from pathcast.predict.probe_svr import MultiProbeSVR, SingleProbeSVR
from pathcast.predict.search import GRID, candidates


@parametrize_with_checks(
    [
        CdfMatching(),
        # one class but for their columns and scale, so each once; a short search is a search
        SingleProbeSVR(scale="linear", n_iter=4, cv=2, repeats=1),
        MultiProbeSVR(n_iter=4, cv=2, repeats=1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def few():
    return synthetic.rounds(24, seed=1)


@pytest.fixture(scope="module")
def test_rounds():
    return synthetic.rounds(300, seed=2)


def errors_of(predictor, features, training, test):
    predictor.fit(features(training), target(training))
    return summarise(predictor.predict(features(test)), target(test))


def test_multi_beats_single_and_cdf_at_equal_bytes(few, test_rounds):
    by_multi = errors_of(MultiProbeSVR(), multi, few, test_rounds)
    by_single = errors_of(SingleProbeSVR(), single, few, test_rounds)
    by_cdf = errors_of(CdfMatching(), single, few, test_rounds)
    assert by_multi["rmse_bps"] < 0.5 * by_single["rmse_bps"]
    assert by_multi["fraction_within_10pct"] > by_single["fraction_within_10pct"] + 0.2
    assert by_multi["rmse_bps"] < 0.5 * by_cdf["rmse_bps"]


def test_placebo_is_worse(few, test_rounds):
    fitted = MultiProbeSVR().fit(multi(few), target(few))
    check = placebo(fitted, multi(test_rounds), target(test_rounds), random_state=3)
    assert check["passed"]
    assert check["rmse_ratio"] > 3


def test_placebo_fails_where_the_probes_know_nothing(few, test_rounds):
    shuffled = np.random.default_rng(0).permutation(target(test_rounds))
    fitted = MultiProbeSVR().fit(multi(few), target(few))
    assert not placebo(fitted, multi(test_rounds), shuffled)["passed"]


def test_learning_curve_falls(test_rounds):
    def mean_rmse(n):
        found = [
            errors_of(MultiProbeSVR(), multi, synthetic.rounds(n, seed=200 + seed), test_rounds) for seed in range(4)
        ]
        return np.mean([errors["rmse_bps"] for errors in found])

    few, some, many = mean_rmse(8), mean_rmse(24), mean_rmse(100)
    assert few > 1.2 * some
    assert some > many


def test_logarithm_is_the_better_scale_for_few_rounds(test_rounds):
    ratios = []
    for seed in range(5):
        training = synthetic.rounds(24, seed=100 + seed)
        log, linear = (
            errors_of(MultiProbeSVR(scale=scale), multi, training, test_rounds)["rmse_bps"]
            for scale in ("log", "linear")
        )
        ratios.append(log / linear)
    assert np.median(ratios) < 0.8


def test_more_than_two_paths():
    training, test = (synthetic.rounds(n, seed, n_paths=3) for n, seed in ((60, 5), (200, 6)))
    assert errors_of(MultiProbeSVR(), multi, training, test)["fraction_within_10pct"] > 0.8


def test_same_seed_same_model_whatever_the_processes(few, test_rounds):
    one, two, parallel = (
        MultiProbeSVR(random_state=7, n_jobs=jobs).fit(multi(few), target(few)) for jobs in (None, None, 2)
    )
    expected = one.predict(multi(test_rounds))
    assert np.array_equal(expected, two.predict(multi(test_rounds)))
    assert np.array_equal(expected, parallel.predict(multi(test_rounds)))


def test_both_svrs_search_the_same(few):
    probe = multi(few)[:, [0]]
    as_single = SingleProbeSVR(n_iter=6, random_state=3).fit(probe, target(few))
    as_multi = MultiProbeSVR(n_iter=6, random_state=3).fit(probe, target(few))
    assert as_single.best_params_ == as_multi.best_params_
    assert as_single.best_rmse_bps_ == as_multi.best_rmse_bps_
    assert np.array_equal(as_single.predict(probe), as_multi.predict(probe))


def test_single_looks_at_its_column_only(few):
    X, y = multi(few), target(few)
    fitted = SingleProbeSVR(column=1).fit(X, y)
    changed = X.copy()
    changed[:, 0] = 1.0
    assert np.array_equal(fitted.predict(X), fitted.predict(changed))


def test_outside_of_the_training_range_is_said(few):
    X = multi(few)
    fitted = MultiProbeSVR().fit(X, target(few))
    assert fitted.covers(X).all()
    assert not fitted.covers(X * 10).any()
    assert (fitted.predict(X * 1e6) >= 1).all()


def test_candidates():
    assert len(candidates(None, None, 0)) == np.prod([len(values) for values in GRID.values()])
    assert candidates(None, 5, 1) == candidates(None, 5, 1)
    assert len(candidates(None, 5, 1)) == 5
    assert candidates({"C": [2.0]}, None, 0) == [{"C": 2.0}]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scale": "sqrt"}, "scale is 'sqrt'"),
        ({"grid": {"nu": [0.5]}}, "unknown parameters"),
        ({"n_iter": 0}, "n_iter is 0"),
        ({"cv": 1}, "cv is 1"),
        ({"repeats": 0}, "repeats 0"),
    ],
)
def test_bad_settings_are_refused_at_fit(few, settings, words):
    with pytest.raises(ValueError, match=words):
        MultiProbeSVR(**settings).fit(multi(few), target(few))


def test_bad_data_is_refused(few):
    X, y = multi(few), target(few)
    with pytest.raises(ValueError, match="Negative values"):
        MultiProbeSVR().fit(-X, y)
    with pytest.raises(ValueError, match="must be positive"):
        MultiProbeSVR().fit(X, 0 * y)
    with pytest.raises(ValueError, match="column is 2, but X has 2"):
        SingleProbeSVR(column=2).fit(X, y)
    with pytest.raises(ValueError, match="column is -1"):
        CdfMatching(column=-1).fit(X, y)


def test_cdf_matching_by_hand():
    fitted = CdfMatching().fit([[1.0], [2.0], [3.0]], [30.0, 10.0, 20.0])
    assert fitted.predict([[1.0], [2.0], [2.5], [9.0], [0.0]]) == pytest.approx([10, 20, 25, 30, 10])
    tied = CdfMatching().fit([[1.0], [1.0], [2.0]], [10.0, 20.0, 30.0])
    assert tied.predict([[1.0], [2.0]]) == pytest.approx([15, 30])


def test_the_small_mptcp_probe_sees_only_the_first_path():
    rounds = synthetic.rounds(300, seed=9)
    probe, first, second = single(rounds)[:, 0], multi(rounds)[:, 0], multi(rounds)[:, 1]
    assert np.corrcoef(np.log(probe), np.log(first))[0, 1] > 0.8
    assert np.corrcoef(np.log(probe), np.log(second))[0, 1] < 0.4
