"""A predictor taken apart for storing, and put together again.

What is stored of an SVR is its fitted best estimator; parameters and learned numbers go into plain JSON, so
that no type of this project has to be trusted in a file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.validation import check_is_fitted

from pathcast.predict.cdf_matching import CdfMatching
from pathcast.predict.path_choice import PathChoice
from pathcast.predict.probe_svr import MultiProbeSVR, SingleProbeSVR

Packable = CdfMatching | SingleProbeSVR | MultiProbeSVR | PathChoice
Spec = dict[str, Any]

_SVRS = {"MultiProbeSVR": MultiProbeSVR, "SingleProbeSVR": SingleProbeSVR}


def pack(predictor: Packable) -> tuple[Spec, list[Any]]:
    """JSON and a list of what skops is to store. Raises NotFittedError, and TypeError on any other object."""
    name = type(predictor).__name__
    if type(predictor) is PathChoice:
        if not hasattr(predictor, "predictors_"):
            raise ValueError("this PathChoice is not fitted yet; call fit with training rounds first")
        return _pack_choice(predictor)
    if type(predictor) is CdfMatching:
        check_is_fitted(predictor)
        arrays = {"x": predictor.x_, "quantile": predictor.quantile_, "y": predictor.y_}
        learned = {"n_features_in_": predictor.n_features_in_}
        return {"class": name, "params": {"column": int(predictor.column)}, "learned": learned}, [arrays]
    if _SVRS.get(name) is type(predictor):
        check_is_fitted(predictor)
        learned = {
            "n_features_in_": predictor.n_features_in_,
            "best_params_": {key: float(value) for key, value in predictor.best_params_.items()},
            "best_rmse_bps_": predictor.best_rmse_bps_,
            "range_bps_": predictor.range_bps_.tolist(),
        }
        return {"class": name, "params": _plain(predictor.get_params()), "learned": learned}, [predictor.model_]
    raise TypeError(f"{name} is no predictor of pathcast.predict; give CdfMatching, an SVR or a PathChoice")


def unpack(spec: Spec, estimators: list[Any]) -> Packable:
    """What `pack` took apart. Raises ValueError, KeyError or TypeError when the parts do not fit."""
    if not isinstance(estimators, list):
        raise ValueError(f"a list of estimators is expected, not {type(estimators).__name__}")
    if spec["class"] == "PathChoice":
        return _unpack_choice(spec, estimators)
    if len(estimators) != 1:
        raise ValueError(f"{len(estimators)} estimators for one {spec['class']}")
    learned = spec["learned"]
    if spec["class"] == "CdfMatching":
        predictor: Any = CdfMatching(**spec["params"])
        arrays = estimators[0]
        predictor.x_, predictor.quantile_, predictor.y_ = (_vector(arrays[key]) for key in ("x", "quantile", "y"))
    elif spec["class"] in _SVRS:
        predictor = _SVRS[spec["class"]](**spec["params"])
        predictor.model_ = _machine(estimators[0])
        predictor.best_params_ = dict(learned["best_params_"])
        predictor.best_rmse_bps_ = float(learned["best_rmse_bps_"])
        predictor.range_bps_ = np.array(learned["range_bps_"], dtype=float)
    else:
        raise ValueError(f"unknown predictor {spec['class']!r}")
    predictor.n_features_in_ = int(learned["n_features_in_"])
    return predictor


def _pack_choice(choice: PathChoice) -> tuple[Spec, list[Any]]:
    parts, estimators = [], []
    for paths, predictor in choice.predictors_.items():
        spec, stored = pack(predictor)
        parts.append({"paths": list(paths), "predictor": spec})
        estimators.extend(stored)
    spec = {
        "class": "PathChoice",
        "params": {"paths": list(choice.paths), "min_rounds": choice.min_rounds, **_plain(choice.settings)},
        "choices": parts,
        "left_out": [{"paths": list(paths), "rounds": count} for paths, count in choice.left_out_.items()],
    }
    return spec, estimators


def _unpack_choice(spec: Spec, estimators: list[Any]) -> PathChoice:
    choice = PathChoice(**spec["params"])
    choice.predictors_ = {}
    for part, estimator in zip(spec["choices"], estimators, strict=True):
        predictor = unpack(part["predictor"], [estimator])
        paths = tuple(part["paths"])
        if not isinstance(predictor, MultiProbeSVR) or not set(paths) <= set(choice.paths):
            raise ValueError(f"the choice {paths} does not belong to the paths {choice.paths}")
        choice.predictors_[paths] = predictor
    if not choice.predictors_:
        raise ValueError("a PathChoice without a choice")
    choice.left_out_ = {tuple(part["paths"]): int(part["rounds"]) for part in spec["left_out"]}
    return choice


def _machine(value: Any) -> TransformedTargetRegressor:
    """`value`, if it is built as `search.machine` builds it."""
    steps = getattr(getattr(value, "regressor_", None), "steps", None)
    fits = (
        isinstance(value, TransformedTargetRegressor)
        and isinstance(value.regressor_, Pipeline)
        and isinstance(steps, list)
        and [type(step) for _, step in steps] == [StandardScaler, SVR]
    )
    if not fits:
        raise ValueError(f"a standardised SVR is expected, not {type(value).__name__}")
    check_is_fitted(steps[1][1])
    return value


def _vector(value: Any) -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype != np.float64:
        raise ValueError("a vector of float64 is expected")
    return value


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON holds them: a grid becomes lists of numbers, a numpy integer an integer."""
    result = {}
    for key, value in params.items():
        if key == "grid" and value is not None:
            value = {name: [float(item) for item in values] for name, values in value.items()}
        result[key] = int(value) if isinstance(value, np.integer) else value
    return result
