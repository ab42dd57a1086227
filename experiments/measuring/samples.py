"""One measurement of one direction: a case of the bars, or a path drawn from the seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathcast.errors import usage

from .cases import draw
from .measured import measured
from .network import Cross, Link, toml


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The network's text, and what is asked for; raises PathcastError for a label without a setup."""
    if point["grid"] == "random":
        return draw(point["seed"]).about()
    for key in ("network", "budget"):
        if point[key] not in setup[key]:
            raise usage(f"plan.toml: there is no [setup.{key}.{point[key]}]")
    about = setup["network"][point["network"]]
    links = [_link(link) for link in about["links"][:-1]]
    # cross traffic is on the last link
    links.append(_link(about["links"][-1], point))
    return {
        "text": toml(tuple(links), f'"{about.get("access", setup["access"])}"', point["seed"]),
        "direction": point["direction"],
        "request": {**setup["budget"][point["budget"]], "seed": point["seed"]},
    }


def _link(about: Mapping[str, Any], point: Mapping[str, Any] | None = None) -> Link:
    rate = f'{{ ab = "{about["out"]}", ba = "{about.get("back", "100Mbit")}" }}'
    cross = (Cross(point["kind"], f"{point['cross']}Mbit"),) if point and point["cross"] else ()
    bucket = about.get("bucket")
    more = f'bucket = {{ rate = "{bucket}", burst = "1600B" }}\n' if bucket else ""
    return Link(rate, f'"{about.get("queue", "50 packets")}"', cross=cross, more=more)


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """What was found and what was true (`measured.columns`), and what the path is like if it was drawn."""
    return {**measured(world, scenario), **scenario.get("case", {})}
