"""Predict every choice of paths from one set of probes: each path alone by TCP, several together by MPTCP.

A choice is a tuple of path names in the order of the subflows. Each has its own SVR, on the probes of its own
paths, all through the same search: path j alone learns probe j -> tcp_bps[j] (Lee et al.), all paths learn
the whole row -> actual_bps (Hamazaki, Abe, Kato, section 6.1), and any other tuple that rounds carry in
`subset_bps` likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pathcast.predict.choose import rank, regret
from pathcast.predict.errors import RoundError
from pathcast.predict.features import Round, as_round, as_rounds
from pathcast.predict.probe_svr import MultiProbeSVR

Paths = tuple[str, ...]


@dataclass(frozen=True)
class ChoiceQuality:
    """How well choices were made over n rounds; regret as in `choose.regret`.

    fraction_best: share of rounds whose best choice was chosen. mean_regret, max_regret: of the choices made.
    all_paths_mean_regret: what it would have been to take all paths every time, the thing to beat.
    """

    n: int
    fraction_best: float
    mean_regret: float
    max_regret: float
    all_paths_mean_regret: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class PathChoice:
    """Predictors for all choices over `paths`, in the order of the probes.

    min_rounds: a choice with fewer measured rounds than this is left out, and named in `left_out_`.
    settings: keyword arguments of `MultiProbeSVR` (scale, grid, n_iter, cv, repeats, random_state, n_jobs),
    for all.

    After `fit`: predictors_, from a tuple of path names to its fitted MultiProbeSVR; left_out_, from tuple to
    rounds.
    """

    def __init__(self, paths: Sequence[str], *, min_rounds: int = 8, **settings: Any):
        self.paths: Paths = tuple(paths)
        if isinstance(paths, str) or not self.paths or len(set(self.paths)) != len(self.paths):
            raise ValueError(f"paths is {paths!r}; give a list of different path names")
        if min_rounds < 2:
            raise ValueError(f"min_rounds is {min_rounds}; a predictor needs at least 2")
        self.min_rounds = min_rounds
        MultiProbeSVR(**settings)  # an unknown setting is refused now
        self.settings = settings

    def fit(self, rounds: Iterable[Round | Mapping[str, Any]]) -> PathChoice:
        """Fit a predictor for every choice with enough rounds. Raises RoundError if there is none."""
        rounds = self._checked(as_rounds(rounds))
        samples: dict[Paths, list[tuple[list[float], float]]] = {}
        for item in rounds:
            for paths, bps in self._measured(item).items():
                row = [item.probes_bps[self.paths.index(name)] for name in paths]
                samples.setdefault(paths, []).append((row, bps))
        self.predictors_: dict[Paths, MultiProbeSVR] = {}
        self.left_out_: dict[Paths, int] = {}
        for paths in sorted(samples, key=self._order):
            pairs = samples[paths]
            if len(pairs) < self.min_rounds:
                self.left_out_[paths] = len(pairs)
                continue
            X, y = np.array([row for row, _ in pairs]), np.array([bps for _, bps in pairs])
            self.predictors_[paths] = MultiProbeSVR(**self.settings).fit(X, y)
        if not self.predictors_:
            raise RoundError(
                f"no choice of paths has {self.min_rounds} measured rounds",
                "measure more rounds, or lower min_rounds",
            )
        return self

    def predict(self, probes_bps: Sequence[float] | Mapping[str, float]) -> list[dict[str, Any]]:
        """Every choice among the probed paths, best first; there may be none.

        probes_bps: one probe per path in the order of `paths`, or by the names of some of them [bit/s]. Each choice is
        `{"paths", "predicted_bps", "rmse_bps", "within_training_range"}`: rmse_bps is the cross-validated error, the
        last is False where a probe is outside of what the choice was trained on. Raises RoundError on bad probes.
        """
        if not hasattr(self, "predictors_"):
            raise RuntimeError("this PathChoice is not fitted yet; call fit with training rounds first")
        names = tuple(probes_bps) if isinstance(probes_bps, Mapping) else self.paths
        values = list(probes_bps.values()) if isinstance(probes_bps, Mapping) else probes_bps
        item = as_round({"probes_bps": values}, "probe round")
        if len(item.probes_bps) != len(names) or set(names) - set(self.paths):
            raise RoundError(f"probes {probes_bps!r} for the paths {'+'.join(self.paths)}", "give one probe per path")
        probes = dict(zip(names, item.probes_bps, strict=True))
        result = []
        for paths, predictor in self.predictors_.items():
            if set(paths) <= set(probes):
                X = np.array([[probes[name] for name in paths]])
                result.append(
                    {
                        "paths": list(paths),
                        "predicted_bps": float(predictor.predict(X)[0]),
                        "rmse_bps": predictor.best_rmse_bps_,
                        "within_training_range": bool(predictor.covers(X)[0]),
                    }
                )
        return rank(result) if result else []

    def range_bps(self, path: str) -> tuple[float, float]:
        """The training range of the probes of a path [bit/s], as its own choice has it."""
        low, high = self.predictors_[(path,)].range_bps_[:, 0]
        return float(low), float(high)

    def evaluate(self, rounds: Iterable[Round | Mapping[str, Any]]) -> ChoiceQuality:
        """Choose for every round by its probes, and compare with what was measured in it.

        A round must have measured every choice that this one predicts, all paths among them. Raises
        RoundError.
        """
        rounds = self._checked(as_rounds(rounds))
        made, always_all = [], []
        for index, item in enumerate(rounds):
            truth = self._measured(item)
            missing = [paths for paths in (*self.predictors_, self.paths) if paths not in truth]
            if missing:
                raise RoundError(
                    f"round {index} has no measurement over {'+'.join(missing[0])}",
                    "measure every choice in a round",
                )
            measured = [
                {"paths": list(paths), "actual_bps": bps}
                for paths, bps in truth.items()
                if paths in self.predictors_ or paths == self.paths
            ]
            made.append(regret(self.predict(item.probes_bps)[0]["paths"], measured))
            always_all.append(regret(self.paths, measured))
        return ChoiceQuality(
            n=len(made),
            fraction_best=float(np.mean(np.array(made) == 0)),
            mean_regret=float(np.mean(made)),
            max_regret=float(np.max(made)),
            all_paths_mean_regret=float(np.mean(always_all)),
        )

    def _measured(self, item: Round) -> dict[Paths, float]:
        """Throughput per choice that this round measured [bit/s]."""
        result: dict[Paths, float] = {}
        if item.tcp_bps is not None:
            result.update({(name,): bps for name, bps in zip(self.paths, item.tcp_bps, strict=True)})
        result.update(item.subset_bps)
        if item.actual_bps is not None:
            result[self.paths] = item.actual_bps
        return result

    def _checked(self, rounds: list[Round]) -> list[Round]:
        for index, item in enumerate(rounds):
            if len(item.probes_bps) != len(self.paths):
                raise RoundError(
                    f"round {index}: probes_bps has {len(item.probes_bps)} values for the paths {'+'.join(self.paths)}",
                    "give one probe per path, in the order of the paths",
                )
            for paths in item.subset_bps:
                unknown = [name for name in paths if name not in self.paths]
                if unknown or len(set(paths)) != len(paths):
                    raise RoundError(
                        f"round {index}: subset_bps has the choice {'+'.join(paths)}",
                        f"a choice names different paths among {'+'.join(self.paths)}",
                    )
        return rounds

    def _order(self, paths: Paths) -> tuple[int, list[int]]:
        return len(paths), [self.paths.index(name) for name in paths]
