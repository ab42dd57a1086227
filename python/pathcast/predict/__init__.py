"""How fast a transfer will be, before a byte of it is sent.

Names are loaded when first used, so that importing this package costs nothing: numpy and scikit-learn come
with the name that needs them. See docs/prediction.md for the method.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathcast.predict.cdf_matching import CdfMatching
    from pathcast.predict.choose import best, rank, regret
    from pathcast.predict.errors import RoundError
    from pathcast.predict.evaluate import (
        Errors,
        Placebo,
        fraction_within,
        median_abs_rpe,
        placebo,
        rmse,
        rpe,
        summarise,
    )
    from pathcast.predict.features import Round, as_round, as_rounds, multi, single, target
    from pathcast.predict.path_choice import ChoiceQuality, PathChoice
    from pathcast.predict.probe_svr import MultiProbeSVR, SingleProbeSVR

_HOME = {
    "cdf_matching": ["CdfMatching"],
    "choose": ["best", "rank", "regret"],
    "errors": ["RoundError"],
    "evaluate": [
        "Errors",
        "Placebo",
        "fraction_within",
        "median_abs_rpe",
        "placebo",
        "rmse",
        "rpe",
        "summarise",
    ],
    "features": ["Round", "as_round", "as_rounds", "multi", "single", "target"],
    "path_choice": ["ChoiceQuality", "PathChoice"],
    "probe_svr": ["MultiProbeSVR", "SingleProbeSVR"],
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CdfMatching",
    "ChoiceQuality",
    "Errors",
    "MultiProbeSVR",
    "PathChoice",
    "Placebo",
    "Round",
    "RoundError",
    "SingleProbeSVR",
    "as_round",
    "as_rounds",
    "best",
    "fraction_within",
    "median_abs_rpe",
    "multi",
    "placebo",
    "rank",
    "regret",
    "rmse",
    "rpe",
    "single",
    "summarise",
    "target",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
