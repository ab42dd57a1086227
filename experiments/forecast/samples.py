"""Measure a network, forecast a transfer over every choice of paths, and send it there and then."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import median
from typing import Any

from pathcast.errors import PathcastError
from pathcast.forecast.answer import option, quantile
from pathcast.forecast.belief import PathBelief
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.field import field_of
from pathcast.forecast.forecast import Job, forecast
from pathcast.forecast.watch import watch
from pathcast.worlds.many import Future
from pathcast.worlds.measurement import Measurement, PathMeasured, Request, Value
from pathcast.worlds.results import Transfer
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

from .networks import Profile, load, pairs, text

PACKAGES = ("pathcast.forecast",)
# others' traffic alone, before the measurement: no queue begins empty then but one that is
SETTLE_S = 5.0
# transfers in the exact network under other seeds
FLOOR_DRAWS = 20
# nothing is cut, and no clock is looked at
ALL = Effort(1e9, 10**15)
LISTS = {half: lambda setup, half=half: pairs(load(setup["profiles"]), half) for half in ("tuning", "judged")}
LISTS["few"] = lambda setup: pairs(load(setup["profiles"]), "judged")[:4]


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The two profiles, where in them the run starts, what is measured, and what the forecast is told beside it."""
    profiles = load(setup["profiles"])
    two = [asdict(profiles[name]) for name in point["pair"].split("+")]
    draw = random.Random(f"{point['pair']} {point['seed']}")
    starts = [draw.uniform(0, len(one["cross_kbps"])) for one in two]
    about = {"bytes": setup["bytes"], "single": setup["single"], "several": setup["several"]}
    return {"profiles": two, "starts_s": starts, **about, **{key: point[key] for key in ("seed", "effort", "told")}}


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Of every choice what came (`truth_bps`), what was forecast and by whom; what was measured cost."""
    two = [Profile(**{**of, "cross_kbps": tuple(of["cross_kbps"])}) for of in scenario["profiles"]]
    size, seed = scenario["bytes"], scenario["seed"]
    job = Job(size, Controls((scenario["single"],), (scenario["several"],)))
    with Sim(Topology.parse(text(two, scenario["starts_s"], seed))) as network:
        network.wait(SETTLE_S)
        before = network.measure(request=Request(effort=scenario["effort"], seed=seed))
        seen = watch(network, before, job.direction, size, seed * 1000)
        measured = seen.measured
        told = _told(measured, two, scenario["told"])
        loads = seen.loads
        if "load" in scenario["told"]:
            # seen so often that nothing is left to chance
            loads = {path.name: [of.load] * 1000 for path, of in zip(measured.paths, two, strict=True)}
        answer, refused = None, None
        try:
            answer = forecast(told, job, loads, limits=ALL, seed=seed * 1000)
        except PathcastError as error:
            refused = error.code
        known = [belief for path in told.paths if (belief := PathBelief.of(path, "out", loads.get(path.name, ())))]
        # where a path is not known the best guess of the order is the measurement's own
        order = [one.name for one in sorted(known, key=lambda one: -one.available_bps)]
        order += [path.name for path in told.paths if path.name not in order]
        choices = field_of(order, job.controls)
        wanted = [Future(choice.paths, size, choice.control) for choice in choices]
        came = network.futures(wanted, keep_errors=True)
        others = [replace(one, seed=1 + draw) for draw in range(FLOOR_DRAWS) for one in wanted]
        floor = network.futures(others, keep_errors=True)
    left = {one.name: one.available_bps for one in known}
    twins = {runner.choice: option(runner, size, None) for runner in answer.runners} if answer else {}
    found = []
    for n, choice in enumerate(choices):
        rates = sorted(_rate(one) for one in floor[n :: len(wanted)])
        twin = twins.get(choice)
        found.append(
            {
                "paths": sorted(choice.paths),
                "truth_bps": _rate(came[n]),
                "twin": twin and twin["throughput_bps"],
                "sum": {"value": sum(left[name] for name in choice.paths)} if set(choice.paths) <= set(left) else None,
                "floor": {"value": median(rates), "low": quantile(rates, 0.05), "high": quantile(rates, 0.95)},
            }
        )
    return {
        "choices": found,
        "chosen": sorted(answer.chosen.choice.paths) if answer else None,
        "refused": refused,
        "paths": [_path(one, loads.get(one.name), of) for one, of in zip(measured.paths, two, strict=True)],
        "probe_bytes": before.probe_bytes + seen.probe_bytes,
        "measured_s": before.elapsed_s + seen.elapsed_s,
    }


def _rate(outcome: Any) -> float:
    """Nothing, of a transfer that did not end."""
    return outcome.throughput_bps if isinstance(outcome, Transfer) else 0.0


def _path(measured: PathMeasured, loads: Sequence[float] | None, profile: Any) -> dict[str, Any]:
    """What was found, and what is so, for what the error is made of."""
    out = measured.directions["out"]
    return {
        "source": profile.source,
        "rate_bps": profile.rate_kbps * 1e3,
        "load": profile.load,
        "queue_bytes": profile.queue_packets * 1500,
        "one_way_s": profile.one_way_ms / 1e3,
        "capacity_bps": out.capacity_bps.value,
        "available_bps": out.available_bps.value,
        "loads": None if loads is None else list(loads)[:20],
        "depth_bytes": out.queue.depth_bytes.value,
    }


def _told(measured: Measurement, two: list[Any], told: str) -> Measurement:
    """The measurement with the exact queue in place of what it found."""
    paths = []
    for path, profile in zip(measured.paths, two, strict=True):
        out = path.directions["out"]
        if "queue" in told:
            depth = profile.queue_packets * 1500.0
            fifo = replace(out.queue, depth_bytes=Value(depth, depth, depth), fair=Value(0.0), managed=Value(0.0))
            out = replace(out, queue=fifo)
        paths.append(replace(path, directions={**path.directions, "out": out}))
    return replace(measured, paths=tuple(paths))
