"""Measure a network, forecast a transfer over every choice of paths, and send it there and then."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from pathcast.errors import PathcastError
from pathcast.forecast.answer import option, quantile
from pathcast.forecast.belief import PathBelief
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.field import field_of
from pathcast.forecast.forecast import Job, forecast
from pathcast.forecast.twin import Choice
from pathcast.forecast.watch import Loads, Watched, watch
from pathcast.worlds.many import Future
from pathcast.worlds.measurement import Loss, Measurement, PathMeasured, Request, Value
from pathcast.worlds.results import Transfer
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

from .networks import Profile, load, pairs, text

PACKAGES = ("pathcast.forecast", "pathcast.predict", "pathcast.history", "pathcast.overhead", "pathcast.plan.terms")
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


@dataclass(frozen=True)
class Run:
    """What was measured, what it cost, and what came of every choice then, in the network and in others like it
    (`floor`, the least first) [bit/s]; began_s: the transfers, on the network's clock."""

    seen: Watched
    probe_bytes: int
    measured_s: float
    began_s: float
    came: Mapping[Choice, float]
    floor: Mapping[Choice, Sequence[float]]


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """Of every choice what came (`truth_bps`), what was forecast and by whom; what was measured cost."""
    two, size, seed = _profiles(scenario), scenario["bytes"], scenario["seed"]
    job = Job(size, Controls((scenario["single"],), (scenario["several"],)))
    measuring = {key: value for key, value in scenario.items() if key != "told"}
    run = _run(json.dumps(measuring, sort_keys=True))
    measured = run.seen.measured
    told, loads = _told(run, two, scenario)
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
    left = {one.name: one.available_bps for one in known}
    # the order of a choice's paths is the forecast's, where there is one
    runners = {_unordered(runner.choice): runner for runner in answer.runners} if answer else {}
    found = []
    for usual in choices:
        runner = runners.get(_unordered(usual))
        choice, twin = (runner.choice, option(runner, size, None)) if runner else (usual, None)
        rates = run.floor[choice]
        found.append(
            {
                "paths": sorted(choice.paths),
                "truth_bps": run.came[choice],
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
        "probe_bytes": run.probe_bytes,
        "measured_s": run.measured_s,
    }


def _unordered(choice: Choice) -> tuple[frozenset[str], str]:
    return frozenset(choice.paths), choice.control


@functools.lru_cache(maxsize=4)
def _run(measuring: str) -> Run:
    """Of a scenario as JSON. Whatever a forecast is told beside it, the same line need not be measured again."""
    scenario = json.loads(measuring)
    two, size, seed = _profiles(scenario), scenario["bytes"], scenario["seed"]
    controls = Controls((scenario["single"],), (scenario["several"],))
    with Sim(Topology.parse(text(two, scenario["starts_s"], seed))) as network:
        network.wait(SETTLE_S)
        before = network.measure(request=Request(effort=scenario["effort"], seed=seed))
        seen = watch(network, before, "out", size, seed * 1000)
        names = [path.name for path in network.paths]
        # the first path carries the first subflow, which makes a difference
        choices = list(dict.fromkeys([*field_of(names, controls), *field_of(names[::-1], controls)]))
        wanted = [Future(choice.paths, size, choice.control) for choice in choices]
        came = network.futures(wanted, keep_errors=True)
        others = [replace(one, seed=1 + draw) for draw in range(FLOOR_DRAWS) for one in wanted]
        floor = network.futures(others, keep_errors=True)
    measured_s = before.elapsed_s + seen.elapsed_s
    return Run(
        seen,
        before.probe_bytes + seen.probe_bytes,
        measured_s,
        SETTLE_S + measured_s,
        {choice: _rate(one) for choice, one in zip(choices, came, strict=True)},
        {choice: sorted(_rate(one) for one in floor[n :: len(wanted)]) for n, choice in enumerate(choices)},
    )


def _profiles(scenario: Mapping[str, Any]) -> list[Any]:
    return [Profile(**{**of, "cross_kbps": tuple(of["cross_kbps"])}) for of in scenario["profiles"]]


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


def _told(run: Run, two: list[Any], scenario: Mapping[str, Any]) -> tuple[Measurement, Loads]:
    """The measurement and its loads with what is so in place of what was found: `load` of the time in which the
    transfer over both went, `queue` its depth, `line` capacity and round trip, `kind` that it is fifo and that nothing
    gives way, `loss` that there is none."""
    words, loads, paths = scenario["told"].split(), dict(run.seen.loads), []
    both = max((rate for choice, rate in run.came.items() if len(choice.paths) > 1), default=0.0)
    took_s = scenario["bytes"] * 8 / both if both else 60.0
    for path, profile, start_s in zip(run.seen.measured.paths, two, scenario["starts_s"], strict=True):
        if "load" in words:
            mean = load_of(profile, start_s + run.began_s, took_s)
            loads[path.name] = (min(mean, 1.0),) * 1000  # seen so often that nothing is left to chance
        out = path.directions.get("out")
        if out is None:
            paths.append(path)
            continue
        if "queue" in words:
            out = replace(out, queue=replace(out.queue, depth_bytes=_exactly(profile.queue_packets * 1500.0)))
        if "line" in words:
            out = replace(out, capacity_bps=_exactly(profile.rate_kbps * 1e3))
            path = replace(path, rtt_s=_exactly(2 * profile.one_way_ms / 1e3))
        if "kind" in words:
            fifo = replace(out.queue, fair=Value(0.0), managed=Value(0.0))
            out = replace(out, queue=fifo, cross=replace(out.cross, elastic=Value(0.0)))
        if "loss" in words:
            out = replace(out, loss=Loss(0, 10**8, Value(0.0)))
        paths.append(replace(path, directions={**path.directions, "out": out}))
    return replace(run.seen.measured, paths=tuple(paths)), loads


def load_of(profile: Any, start_s: float, time_s: float) -> float:
    """The mean load over a time that begins so far in a profile's pattern, over the rate."""
    at_s, sent_kbit, of = start_s, 0.0, profile.cross_kbps
    while at_s < start_s + time_s:
        until_s = min(math.floor(at_s) + 1.0, start_s + time_s)
        sent_kbit += (until_s - at_s) * of[int(at_s) % len(of)]
        at_s = until_s
    return sent_kbit / time_s / profile.rate_kbps


def _exactly(value: float) -> Value:
    return Value(value, value, value)
