"""The predictors on an experiment's samples: training error as in the paper, and error on unseen samples.

A predictor is called by its method and the bytes of its probes in total: `multi 128KB` are 64 KB over each of two
paths, `single 128KB` and `cdf 128KB` are one MPTCP probe, `tcp 64KB` and `tcp-cdf 64KB` one over path 1 that is to
predict plain TCP. With fewer probes than paths: `single+rtt 128KB` is one MPTCP probe with its subflows' RTTs, `rtt` a
handshake a path, no probe at all (features.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from pathcast import parallel
from pathcast.lab.experiment import Results, Undecided
from pathcast.predict import CdfMatching, MultiProbeSVR, SingleProbeSVR, fraction_within, rmse
from pathcast.predict.evaluate import Errors
from pathcast.predict.resample import Assessment, Reduction, assess, reduction, split

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

    @property
    def rmse(self) -> float:
        """Training error [bit/s]."""
        return rmse(self.found.trained, self.actual)

    @property
    def fraction(self) -> float:
        """Share of training samples within 10 %."""
        return fraction_within(self.found.trained, self.actual)

    @property
    def unseen_rmse(self) -> float:
        """On unseen samples [bit/s], over all repeats."""
        return float(np.sqrt(np.mean((self.found.unseen - self.actual) ** 2)))

    @property
    def unseen_fraction(self) -> float:
        """Share of unseen samples within 10 %, mean of all repeats."""
        return float(np.mean([fraction_within(one, self.actual) for one in self.found.unseen]))

    @property
    def unseen_median(self) -> float:
        """Median of |predicted - actual| / actual on unseen samples, mean of all repeats."""
        return float(np.mean(np.median(np.abs(self.found.unseen / self.actual - 1), axis=1)))

    @property
    def rho(self) -> float:
        """Spearman's, of the first probe and the transfer."""
        return float(spearmanr(self.probes[:, 0], self.actual).statistic)

    def by_relation(self, unseen: bool) -> list[float]:
        """The share within 10 % in each of `RELATIONS`; NaN where there is no sample."""
        guesses = self.found.unseen if unseen else self.found.trained[None]
        rows = []
        for _, belongs in RELATIONS:
            here = belongs(self.rtts[:, 0], self.rtts[:, 1])
            means = [fraction_within(guess[here], self.actual[here]) for guess in guesses] if here.any() else [np.nan]
            rows.append(float(np.mean(means)))
        return rows


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

    def reduction(self, label: str, other: str, network: str, unseen: bool) -> Reduction:
        """Of the RMSE of `label` over that of `other`."""
        one, two = self(label, network), self(other, network)
        guesses = (one.found.unseen, two.found.unseen) if unseen else (one.found.trained, two.found.trained)
        return reduction(*guesses, one.actual, one.rtts, self.settings["bootstrap"], self.settings["seed"])

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
    return Scores(assessed(data, settings, settings["repeats"][length]), splits, settings)


def assessed(data: Mapping[Key, Task], settings: Mapping[str, Any], repeats: int) -> dict[Key, Score]:
    """Each of them in training, and on unseen samples `repeats` times."""
    folds = (settings["folds"], repeats, settings["seed"])
    found = dict(_parallel(assess, [(key, *one[:3], *folds) for key, one in data.items()]))
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
