"""One transfer over the shared bottleneck: the point of the plan as a scenario, and what the simulator says of it."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathcast.errors import usage
from pathcast.lab.simulation import Limits, Scenario, simulate

TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
# of the RTT, what the two access links take (1 ms each, each way)
_ACCESS_MS = 4
_PARAMETERS = ("theta_shift", "theta_floor_us", "samples", "st_div")


@functools.cache
def _topology(name: str) -> str:
    return (TOPOLOGIES / name).read_text(encoding="utf-8")


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The topology's text and what is set over it; raises PathcastError for labels that `setup` does not have."""
    for key in ("tcp", "control"):
        if point[key] not in setup[key]:
            raise usage(f"plan.toml: there is no [setup.{key}.{point[key]}]")
    parameters = dict(setup["control"][point["control"]])
    control = parameters.pop("control")
    parameters |= {key: point[key] for key in _PARAMETERS if key in point}
    # the same start for all controllers, sizes and numbers of subflows, so that they are compared in pairs
    start_s = random.Random(f"gsam-switching {point['seed']}").uniform(0, setup["start_s"])
    sets = {
        "seed": point["seed"],
        "end": setup["end"],
        "subflows": point["subflows"],
        "bytes": point["bytes"],
        "control": control,
        "flow.bulk.start": f"{round(start_s * 1e6)}us",
        "link.bottleneck.delay": f"{(point['rtt_ms'] - _ACCESS_MS) * 500}us",
        "link.c-r1.jitter": f'{{ amplitude = "{setup["jitter"]}" }}',
        **{f"tcp.{key}": _written(value) for key, value in setup["tcp"][point["tcp"]].items()},
        **{f"control.{control}.{key}": value for key, value in parameters.items()},
    }
    return {"text": _topology(setup["topology"]), "sets": [[key, str(value)] for key, value in sets.items()]}


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Completion time, drops, timeouts, segments sent again; raises PathcastError if the transfer did not end."""
    sets = tuple((key, value) for key, value in scenario["sets"])
    report, _ = simulate(Scenario(scenario["text"], sets, "gsam-switching"), Limits())
    (flow,) = report["flows"]
    if flow["completion_s"] is None:
        raise usage("the transfer had not ended")
    return {
        "completion_s": flow["completion_s"],
        "drops": sum(sub["drops"] for sub in flow["subflows"]),
        "timeouts": flow["timeouts"],
        "retransmits": flow["retransmits"],
    }
