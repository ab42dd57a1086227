"""How fast a transfer will be, before a byte of it is sent.

Names are loaded when first used, so that importing this package costs nothing: numpy and scikit-learn come
with the name that needs them. See docs/prediction.md for the method.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathcast.predict.cdf_matching import CdfMatching as CdfMatching
    from pathcast.predict.choose import best as best
    from pathcast.predict.choose import rank as rank
    from pathcast.predict.choose import regret as regret
    from pathcast.predict.errors import RoundError as RoundError
    from pathcast.predict.evaluate import Errors as Errors
    from pathcast.predict.evaluate import Placebo as Placebo
    from pathcast.predict.evaluate import fraction_within as fraction_within
    from pathcast.predict.evaluate import median_abs_rpe as median_abs_rpe
    from pathcast.predict.evaluate import placebo as placebo
    from pathcast.predict.evaluate import rmse as rmse
    from pathcast.predict.evaluate import rpe as rpe
    from pathcast.predict.evaluate import summarise as summarise
    from pathcast.predict.features import Round as Round
    from pathcast.predict.features import as_round as as_round
    from pathcast.predict.features import as_rounds as as_rounds
    from pathcast.predict.features import multi as multi
    from pathcast.predict.features import single as single
    from pathcast.predict.features import target as target
    from pathcast.predict.path_choice import ChoiceQuality as ChoiceQuality
    from pathcast.predict.path_choice import PathChoice as PathChoice
    from pathcast.predict.probe_svr import MultiProbeSVR as MultiProbeSVR
    from pathcast.predict.probe_svr import SingleProbeSVR as SingleProbeSVR

_HOME = {
    "cdf_matching": "CdfMatching",
    "choose": "best rank regret",
    "errors": "RoundError",
    "evaluate": "Errors Placebo fraction_within median_abs_rpe placebo rmse rpe summarise",
    "features": "Round as_round as_rounds multi single target",
    "path_choice": "ChoiceQuality PathChoice",
    "probe_svr": "MultiProbeSVR SingleProbeSVR",
}
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)
    globals()[name] = value
    return value
