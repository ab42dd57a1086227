"""The predictors on an experiment's samples: training error as in the paper, and error on unseen samples.

A predictor is called by its method and the bytes of its probes in total: `multi 128KB` are 64 KB over each of two
paths, `single 128KB` and `cdf 128KB` are one MPTCP probe, `tcp 64KB` and `tcp-cdf 64KB` one over path 1 that is to
predict plain TCP. With fewer probes than paths: `single+rtt 128KB` is one MPTCP probe with its subflows' RTTs, `rtt` a
handshake a path, no probe at all (features.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pathcast import parallel
from pathcast.lab.experiment import Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.predict import CdfMatching, MultiProbeSVR, SingleProbeSVR
from pathcast.predict.evaluate import Errors
from pathcast.predict.resample import Assessment, assess, split

from .features import featured

# network and label
Key = tuple[str, str]
# what a predictor needs: itself, unfitted; probes and transfers [bit/s]; the RTTs of each sample's paths [ms]
Task = tuple[Any, np.ndarray, np.ndarray, np.ndarray]
MULTI, SINGLE = "multi 128KB", "single 128KB"
# on networks other than the judged one
_CORE = (MULTI, SINGLE, "single 32MB", "single+rtt 128KB", "rtt")
# of the RTTs, table 5's rows: least and largest RTT1 / RTT2, ends as in the paper
RELATIONS = (
    ("RTT2/RTT1 > 1.2", lambda a, b: b / a > 1.2),
    ("1.2 >= RTT2/RTT1 > 1.1", lambda a, b: (b / a > 1.1) & (b / a <= 1.2)),
    ("1.1 >= RTT2/RTT1 > 1", lambda a, b: (b / a > 1) & (b / a <= 1.1)),
    ("equal", lambda a, b: a == b),
    ("1.1 >= RTT1/RTT2 > 1", lambda a, b: (a / b > 1) & (a / b <= 1.1)),
    ("1.2 >= RTT1/RTT2 > 1.1", lambda a, b: (a / b > 1.1) & (a / b <= 1.2)),
    ("RTT1/RTT2 > 1.2", lambda a, b: a / b > 1.2),
)


@dataclass(frozen=True)
class Score:
    """A predictor on a network's samples."""

    # shape (n, columns) and (n,) [bit/s]
    probes: np.ndarray
    actual: np.ndarray
    # shape (n, 2) [ms]
    rtts: np.ndarray
    found: Assessment

    def error(self, unseen: bool = False) -> float:
        """RMSE in training, over all searches, or on unseen samples, over all repeats [bit/s]."""
        return float(self._whole.error(unseen)[0])

    def fraction(self, unseen: bool = False) -> float:
        """Share of samples within 10 %, mean of all searches or repeats."""
        return float(self._whole.fraction(unseen)[0])

    def by_relation(self, unseen: bool = False) -> list[float]:
        """The share within 10 % in each of `RELATIONS`; NaN where there is no sample."""
        return [float(row[0]) for row in self._whole.by_relation(unseen)]

    @property
    def rho(self) -> float:
        """Spearman's, of the first probe and the transfer."""
        return float(self._whole.rho()[0])

    @property
    def unseen_median(self) -> float:
        """Median of |predicted - actual| / actual on unseen samples, mean of all repeats."""
        return float(np.mean(np.median(np.abs(self.found.unseen / self.actual - 1), axis=1)))

    @property
    def _whole(self) -> Drawings:
        return Drawings(self, np.ones((1, len(self.actual))))


@dataclass(frozen=True)
class Drawings:
    """A score of samples that were drawn again and again: a value a drawing, shape (drawings,)."""

    score: Score
    # shape (drawings, n): how often each sample was drawn
    times: np.ndarray
    # shape (drawings,): of the training which search; None: all
    search: np.ndarray | None = None

    def error(self, unseen: bool = False) -> np.ndarray:
        """As `Score.error`."""
        return np.sqrt(self._mean((self._guesses(unseen) - self.score.actual) ** 2, unseen))

    def fraction(self, unseen: bool = False) -> np.ndarray:
        """As `Score.fraction`."""
        return self._mean(within(self._guesses(unseen), self.score.actual), unseen)

    def by_relation(self, unseen: bool = False) -> np.ndarray:
        """As `Score.by_relation`, a row each."""
        near, (a, b) = within(self._guesses(unseen), self.score.actual), self.score.rtts.T
        return np.array([self._mean(near, unseen, belongs(a, b)) for _, belongs in RELATIONS])

    def rho(self) -> np.ndarray:
        """As `Score.rho`."""
        ranks = [self._ranks(values) for values in (self.score.probes[:, 0], self.score.actual)]
        total = self.times.sum(axis=1, keepdims=True)
        x, y = (one - (self.times * one).sum(axis=1, keepdims=True) / total for one in ranks)
        xx, yy, xy = ((self.times * one).sum(axis=1) for one in (x * x, y * y, x * y))
        return xy / np.sqrt(xx * yy)

    def _guesses(self, unseen: bool) -> np.ndarray:
        return self.score.found.unseen if unseen else self.score.found.trained

    def _mean(self, each: np.ndarray, unseen: bool, here: np.ndarray | None = None) -> np.ndarray:
        """Over the samples (that are `here`), of all searches or repeats, or of the search; `each`: (searches, n)."""
        times = self.times if here is None else self.times[:, here]
        each = each if here is None else each[:, here]
        with np.errstate(invalid="ignore"):
            means = times @ each.T / times.sum(axis=1, keepdims=True)
        if unseen or self.search is None:
            return means.mean(axis=1)
        return means[np.arange(len(means)), self.search % means.shape[1]]

    def _ranks(self, values: np.ndarray) -> np.ndarray:
        """Shape (drawings, n): what is equal has the middle of its ranks."""
        _, group = np.unique(values, return_inverse=True)
        count = np.zeros((len(self.times), int(group.max()) + 1))
        np.add.at(count, (slice(None), group), self.times)
        return (count.cumsum(axis=1) - count / 2)[:, group]


def within(guesses: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """As `pathcast.predict.fraction_within`, of each."""
    near: np.ndarray = np.abs(guesses - actual) < 0.1 * np.minimum(guesses, actual)
    return near


@dataclass(frozen=True)
class Scores:
    """All of them, and table 6: by training share the errors of each split."""

    scores: Mapping[Key, Score]
    splits: Mapping[float, list[Errors]]
    settings: Mapping[str, Any]

    def __call__(self, label: str, network: str) -> Score:
        """Raises Undecided where there are not samples enough."""
        if (network, label) not in self.scores:
            least = self.settings["least"]
            raise Undecided(f"fewer than {least} samples of network `{network}` have what `{label}` needs")
        return self.scores[network, label]

    def interval(self, labels: Sequence[str], network: str, statistic: Callable[..., np.ndarray]) -> Interval:
        """A statistic of the `Drawings` of some predictors on a network, with its 95 % interval by bootstrap.

        A drawing takes as many pairs of RTTs as there are, with replacement and all samples of each, since repetitions
        are not independent, and of the training one search: what hangs on its folds widens the interval.
        """
        found = [self(label, network) for label in labels]
        pairs, group = np.unique(np.concatenate([one.rtts for one in found]), axis=0, return_inverse=True)
        groups = np.split(group.ravel(), np.cumsum([len(one.rtts) for one in found])[:-1])
        count, draws, random = len(pairs), self.settings["bootstrap"], np.random.default_rng(self.settings["seed"])
        times = random.multinomial(count, np.full(count, 1 / count), draws).astype(float)
        search = random.integers(max(len(one.found.trained) for one in found), size=draws)
        drawn = statistic(*(Drawings(one, times[:, own], search) for one, own in zip(found, groups, strict=True)))
        if np.isnan(drawn).any():
            raise Undecided("there are too few samples to draw from")
        whole = statistic(*(Drawings(one, np.ones((1, len(one.actual)))) for one in found))
        return Interval.of_draws(float(whole[0]), drawn, count)

    def reduction(self, label: str, other: str, network: str, unseen: bool) -> Interval:
        """Of the RMSE of `label` over that of `other`."""
        return self.interval((label, other), network, lambda one, two: 1 - one.error(unseen) / two.error(unseen))

    def swapped(self, a: str, b: str) -> Scores:
        """The same with the labels of two predictors exchanged: what no claim about the two may survive."""
        other = {a: b, b: a}
        return replace(self, scores={(net, other.get(label, label)): one for (net, label), one in self.scores.items()})


def judged_network(results: Results) -> str:
    """On which one claims are judged that name none."""
    return "today" if results.world == "emu" else "paper"


def scores(results: Results) -> Scores:
    """Every predictor of the tables; of networks other than the judged one those of the core claims."""
    return results.once(_scores, "scores")


def _scores(results: Results) -> Scores:
    setup, main = results.plan.setup, judged_network(results)
    settings = setup["evaluation"]
    length = "quick" if results.quick else "whole"
    searches = settings["searches"][length]
    data: dict[Key, Task] = {}
    for network in setup["network"]:
        labels = None if network == main else _CORE
        for label, (predictor, columns, target) in _predictors(setup).items():
            rows = _rows(results, network, (*columns, target))
            if (labels is None or label in labels) and len(rows) >= settings["least"]:
                rtts = rows[["rtt1_ms", "rtt2_ms"]].to_numpy(float)
                data[network, label] = (predictor, rows[list(columns)].to_numpy(float), rows[target].to_numpy(), rtts)
    one = data.get((main, MULTI))
    shares = settings["training_shares"] if one else []
    drawn = (settings["splits"][length], settings["seed"])
    # of fewer than two samples nothing can be fitted
    able = [share for share in shares if share * len(one[2]) >= 2]
    splits = dict(_parallel(split, [(share, *one[:3], share, *drawn) for share in able]))
    scored = assessed(data, settings, settings["repeats"][length], lambda key: searches if key[0] == main else 1)
    return Scores(scored, splits, settings)


def assessed(
    data: Mapping[Key, Task], settings: Mapping[str, Any], repeats: int, searches: Callable[[Key], int]
) -> dict[Key, Score]:
    """Each of them in training, in so many searches, and on unseen samples `repeats` times."""
    tasks = [(key, *one[:3], settings["folds"], repeats, searches(key), settings["seed"]) for key, one in data.items()]
    found = dict(_parallel(assess, tasks))
    return {key: Score(x, y, rtts, found[key]) for key, (_, x, y, rtts) in data.items()}


def _parallel(function: Any, arguments: list[Any]) -> list[Any]:
    jobs = max(1, min(len(os.sched_getaffinity(0)), len(arguments)))
    return list(parallel.unordered(function, arguments, jobs)) if arguments else []


def _predictors(setup: Mapping[str, Any]) -> dict[str, tuple[Any, tuple[str, ...], str]]:
    """By label: the unfitted predictor, the columns of its probes, the column that it is to predict."""
    search = {"scale": setup["evaluation"]["scale"], "cv": setup["evaluation"]["folds"], "repeats": 1}
    mptcp, tcp = f"mptcp_{setup['data']}_bps", f"tcp1_{setup['data']}_bps"
    found: dict[str, tuple[Any, tuple[str, ...], str]] = {}
    for size in setup["probes"]:
        columns = (f"tcp1_{size}_bps", f"tcp2_{size}_bps")
        found[f"multi {2 * int(size.removesuffix('KB'))}KB"] = (MultiProbeSVR(**search), columns, mptcp)
        columns = (f"mptcp_{size}_bps", f"mptcp_{size}_round1_bps", f"mptcp_{size}_round2_bps")
        found[f"single+rtt {size}"] = (MultiProbeSVR(**search), columns, mptcp)
    found["rtt"] = (MultiProbeSVR(**search), ("handshake1_bps", "handshake2_bps"), mptcp)
    for size in setup["singles"]:
        found[f"single {size}"] = (SingleProbeSVR(**search), (f"mptcp_{size}_bps",), mptcp)
        found[f"cdf {size}"] = (CdfMatching(), (f"mptcp_{size}_bps",), mptcp)
    small = setup["probes"][0]
    found[f"tcp {small}"] = (SingleProbeSVR(**search), (f"tcp1_{small}_bps",), tcp)
    found[f"tcp-cdf {small}"] = (CdfMatching(), (f"tcp1_{small}_bps",), tcp)
    return found


def _rows(results: Results, network: str, columns: tuple[str, ...]) -> pd.DataFrame:
    """Samples of the grid of RTTs that have all those columns."""
    frame = featured(results)
    if frame.empty or any(name not in frame for name in ("rtt1_ms", *columns)):
        return frame.iloc[:0]
    return frame[(frame["network"] == network) & frame["rtt1_ms"].notna()].dropna(subset=list(columns))


def shares(results: Results, network: str) -> pd.DataFrame:
    """Share of subflow 1, 0..1: a row a sample of the figure's three pairs, a column a size, in the plan's order.

    Raises Undecided without samples.
    """
    frame, sizes = results.frame, results.plan.setup["shares"]
    if frame.empty or "pair" not in frame:
        raise Undecided("no sample of the shares has a result")
    frame = frame[frame["pair"].notna() & (frame["network"] == network)]
    if frame.empty:
        raise Undecided(f"no sample of the shares has a result on network `{network}`")
    return frame.set_index("pair")[[f"share_{size}" for size in sizes]].set_axis(sizes, axis=1)
