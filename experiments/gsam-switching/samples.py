"""One transfer over the shared bottleneck: the point of the plan as a scenario, and what the simulator says of it.

In `emu` a sample is such a transfer by each of several controllers: emulated.py.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathcast.errors import usage
from pathcast.scenario import Scenario
from pathcast.simulation.run import Limits, simulate

from . import emulated
from .networks import network, topology

TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
# of the RTT, what the two access links take (1 ms each, each way)
_ACCESS_MS = 4
_PARAMETERS = ("theta_shift", "theta_floor_us", "samples", "st_div")


@functools.cache
def _topology(name: str) -> str:
    return (TOPOLOGIES / name).read_text(encoding="utf-8")


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The topology's text and what is set over it; raises PathcastError for labels that `setup` does not have."""
    if world == "emu":
        return _emulated(point, setup)
    for key in ("tcp", "control"):
        if point[key] not in setup[key]:
            raise usage(f"plan.toml: there is no [setup.{key}.{point[key]}]")
    parameters = dict(setup["control"][point["control"]])
    control = parameters.pop("control")
    parameters |= {key: point[key] for key in _PARAMETERS if key in point}
    # the same start for all controllers, sizes and numbers of subflows, so that they are compared in pairs
    start_s = random.Random(f"gsam-switching {point['seed']}").uniform(0, setup["start_s"])
    other = "paths" in point or "network" in point
    shared = {} if other else _shared(point, setup)
    sets = {
        "seed": point["seed"],
        "end": setup["end_other" if other else "end"],
        **shared,
        "bytes": point["bytes"],
        "control": control,
        "flow.bulk.start": f"{round(start_s * 1e6)}us",
        **{f"tcp.{key}": _written(value) for key, value in setup["tcp"][point["tcp"]].items()},
        **{f"control.{control}.{key}": value for key, value in parameters.items()},
    }
    text = topology(network(point, setup), setup["jitter"]) if other else _topology(setup["topology"])
    return {"text": text, "sets": [[key, str(value)] for key, value in sets.items()]}


def _shared(point: Mapping[str, Any], setup: Mapping[str, Any]) -> dict[str, Any]:
    """What of the paper's network the point says."""
    return {
        "subflows": point["subflows"],
        "link.bottleneck.delay": f"{(point['rtt_ms'] - _ACCESS_MS) * 500}us",
        "link.c-r1.jitter": f'{{ amplitude = "{setup["jitter"]}" }}',
    }


def _emulated(point: Mapping[str, Any], setup: Mapping[str, Any]) -> dict[str, Any]:
    """All controllers of [setup.emulated] over one network, and beside each what is simulated."""
    labels = setup["emulated"]["controls"]
    simulated = {label: scenario({**point, "control": label}, setup, "sim") for label in labels}
    # of the simulated ones the network; TCP and its start are the kernel's
    network = ("seed", "end", "subflows", "link.")
    sets = {key: value for key, value in simulated[labels[0]]["sets"] if key.startswith(network)}
    kernel = setup["kernel"][point["tcp"]]
    chosen = emulated.controls(labels, setup, kernel)
    sets |= {f"control.{name}.{key}": value for _, name, own in chosen for key, value in own.items()}
    return {
        "text": _topology(setup["topology"]),
        "sets": [f"{key}={value}" for key, value in sets.items()],
        "controls": {label: name for label, name, _ in chosen},
        "subflows": point["subflows"],
        "bytes": point["bytes"],
        "kernel": {key: value for key, value in kernel.items() if key != "control"},
        "pause_s": setup["emulated"]["pause_s"],
        "draws": f"gsam-switching {point['seed']}",
        "simulated": simulated,
    }


def _beside(simulated: Mapping[str, Any]) -> dict[str, Any]:
    return {f"simulated_{key}": value for key, value in simulated.items()}


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Completion time, drops, timeouts, segments sent again; raises PathcastError if the transfer did not end.

    In `emu`: `transfers`, a row for each controller, with the simulator's values in `simulated_…`.
    """
    if world == "emu":
        simulated = {label: sample(one, "sim") for label, one in scenario["simulated"].items()}
        found = emulated.sample(scenario)
        return {"transfers": [one | _beside(simulated[one["control"]]) for one in found]}
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
