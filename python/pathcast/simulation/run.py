"""A scenario in the simulator: run so that it can be interrupted, its traces as arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathcast import limits
from pathcast.errors import PathcastError, usage
from pathcast.interruptible import interruptible
from pathcast.scenario import Scenario

# table: column: values
Traces = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Limits:
    """What ends a run early: events of the engine, and simulated time."""

    events: int = field(default_factory=limits.events)
    time_ns: int = 3_600_000_000_000_000


def code() -> str:
    """The digest of what the extension was built from: the simulator, the emulator, every controller, native and eBPF.

    Not the hash of its file, which has the paths of the build in it.
    """
    from pathcast import _native

    return _native.SOURCE_DIGEST


def simulate(
    scenario: Scenario, limits: Limits | None = None, trace_ns: int | None = None
) -> tuple[dict[str, Any], Traces]:
    """Runs a scenario; returns its report and its traces.

    trace_ns: a row of a subflow at most so often, 0: at every ACK, None: no traces (and no need of numpy). The native
    run goes on in a thread of its own, so that a signal ends it. A report says which of the given `limits` ended it;
    without any, meeting the limit of events raises PathcastError (`event-limit`).
    """
    from pathcast import _native

    given = limits or Limits()
    stop = _native.Stop()
    arguments = (scenario.text, list(scenario.sets), scenario.source, stop, given.events, given.time_ns, trace_ns)
    text, columns = interruptible(lambda: _native.simulate(*arguments), stop.cancel)
    report = json.loads(text)
    if limits is None and report["stopped"] == "event-limit":
        told = f"the run had not ended after {given.events} events of the simulator, the limit"
        raise PathcastError("event-limit", told, "raise the limit (--limit-events), or give the scenario an `end`")
    return report, _arrays(columns)


def checked(scenario: Scenario) -> dict[str, Any]:
    """A scenario as the extension understands it, with all defaults; refuses what is wrong."""
    from pathcast import _native

    found: dict[str, Any] = json.loads(_native.scenario(scenario.text, scenario.sets, scenario.base))
    return found


def without_effect(scenario: Mapping[str, Any], ended_s: float) -> list[str]:
    """What of a checked scenario a run that ended then did not come to, in sentences."""
    from pathcast import _native

    def late(time: str) -> bool:
        return _native.parse_duration(time) / 1e9 >= ended_s

    found = []
    changes = list(dict.fromkeys(_change(scenario, one) for one in scenario["changes"] if late(one["at"])))
    if changes:
        what, at = changes[0]
        told = f"the change of {what} at {at} has" if len(changes) == 1 else f"{len(changes)} changes from {at} on have"
        found.append(f"{told} no effect: the run ended at {ended_s:g} s")
    for kind, ones in (("flow", scenario["flows"]), ("traffic", scenario["traffic"])):
        for one in ones:
            if late(one["start"]):
                found.append(f"{kind} `{one['name']}` starts at {one['start']}: the run ended at {ended_s:g} s")
    return found


def _change(scenario: Mapping[str, Any], change: Mapping[str, Any]) -> tuple[str, str]:
    """Of what it is, and when."""
    [(kind, what)] = change["what"].items()
    named = scenario["links"] if kind == "link" else scenario["traffic"]
    return f"{kind} `{named[what[kind]]['name']}`", change["at"]


def simulate_many(
    scenario: Scenario,
    runs: Sequence[Sequence[tuple[str, str]]],
    limits: Limits | None = None,
    threads: int | None = None,
    keep_errors: bool = False,
) -> list[dict[str, Any] | PathcastError]:
    """The reports of a scenario with other values each, in their order, as one native call on all processors.

    runs: keys and values over the scenario's, as `--set` has them; its text is read once. threads: None: one a
    processor. keep_errors: what is refused is a result; else the first refusal is raised, with its place. Each report
    is what `simulate` gives of that run alone.
    """
    from pathcast import _native

    if threads is not None and threads < 1:
        raise usage(f"threads {threads}: allowed are 1 and more")
    limits = limits or Limits()
    stop, wanted = _native.Stop(), [list(run) for run in runs]
    about = (scenario.text, list(scenario.sets), scenario.source, stop, wanted, limits.events, limits.time_ns, threads)
    found: list[dict[str, Any] | PathcastError] = []
    for n, text in enumerate(interruptible(lambda: _native.simulate_many(*about), stop.cancel)):
        document = json.loads(text)
        if "report" in document:
            found.append(document["report"])
            continue
        error = document["error"]
        told = f"run {n} ({', '.join('='.join(pair) for pair in runs[n])}): {error['message']}"
        failed = PathcastError(error["code"], told, error["hint"], error["exit"])
        if not keep_errors:
            raise failed
        found.append(failed)
    return found


def _arrays(columns: Sequence[tuple[str, str, str, bytes]]) -> Traces:
    if not columns:
        return {}
    import numpy as np

    # signed, so that differences may be negative; what a controller publishes uses all of its bits
    kinds = {"u64": "<i8", "f64": "<f8"}
    found: Traces = {}
    for table, name, kind, data in columns:
        found.setdefault(table, {})[name] = np.frombuffer(data, "<u8" if name == "control_word" else kinds[kind])
    return found
