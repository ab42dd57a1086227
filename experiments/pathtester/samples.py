"""One measurement of one direction, and what was true meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathcast.errors import usage

from ..measuring.measured import measured
from ..measuring.network import Cross, Link, toml


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The network's text, and what is asked for; raises PathcastError for a label without a setup."""
    for key in ("network", "method"):
        if point[key] not in setup[key]:
            raise usage(f"plan.toml: there is no [setup.{key}.{point[key]}]")
    # a point may have a value of its own
    about = {"queue": setup["queue"], **setup["network"][point["network"]]}
    about |= {key: point[key] for key in about if key in point}
    cross = ()
    if point.get("cross"):
        way = {"out": "ab", "in": "ba"}[point["direction"]]
        cross = (Cross(point["kind"], f"{point['cross']}Mbit", way),)
    rate = f'{{ ab = "{about["out"]}", ba = "{about["back"]}" }}'
    link = Link(rate, f'"{about["queue"]}"', f'"{about["delay"]}"', cross=cross)
    return {
        # the same draws for every method: seeds are compared in pairs
        "text": toml((link,), f'"{setup["access"]}"', point["seed"], "pathtester"),
        "direction": point["direction"],
        "request": {**setup["method"][point["method"]], "seed": point["seed"]},
    }


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """What was found and what was true (`measured.columns`)."""
    return measured(world, scenario)
