"""A scenario in the simulator: run so that it can be interrupted, its traces as arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pathcast.interruptible import interruptible
from pathcast.scenario import Scenario

# table: column: values
Traces = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Limits:
    """What ends a run early: events of the engine, and simulated time."""

    events: int = 100_000_000_000
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
    run goes on in a thread of its own, so that a signal ends it.
    """
    from pathcast import _native

    limits = limits or Limits()
    stop = _native.Stop()
    arguments = (scenario.text, list(scenario.sets), scenario.source, stop, limits.events, limits.time_ns, trace_ns)
    text, columns = interruptible(lambda: _native.simulate(*arguments), stop.cancel)
    return json.loads(text), _arrays(columns)


def _arrays(columns: Sequence[tuple[str, str, str, bytes]]) -> Traces:
    if not columns:
        return {}
    import numpy as np

    kinds = {"u64": "<u8", "f64": "<f8"}
    found: Traces = {}
    for table, name, kind, data in columns:
        found.setdefault(table, {})[name] = np.frombuffer(data, kinds[kind])
    return found
