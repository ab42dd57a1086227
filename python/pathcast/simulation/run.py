"""A scenario in the simulator: read from a file, run so that it can be interrupted, its traces as arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.errors import missing, usage
from pathcast.interruptible import interruptible

# table: column: values
Traces = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Limits:
    """What ends a run early: events of the engine, and simulated time."""

    events: int = 100_000_000_000
    time_ns: int = 3_600_000_000_000_000


@dataclass(frozen=True)
class Scenario:
    """The text of a scenario file, not yet checked, and what is set over it."""

    text: str
    sets: tuple[tuple[str, str], ...] = ()
    source: str | None = None

    @classmethod
    def load(cls, file: Path | str, sets: Sequence[str] = ()) -> Scenario:
        """Reads a file; `sets` are as `--set` takes them."""
        pairs = tuple(pair("--set", item) for item in sets)
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            hint = "give the path of a scenario file (TOML), for example topologies/two-path.toml"
            raise usage(f"cannot read the scenario `{file}`: {reason}", hint) from None
        return cls(text, pairs, str(file))

    def over(self, sets: Sequence[tuple[str, str]]) -> Scenario:
        """The same with more set over it."""
        return Scenario(self.text, (*self.sets, *sets), self.source)


def code() -> str:
    """The digest of what the extension was built from: the simulator, the emulator, every controller, native and eBPF.

    Not the hash of its file, which has the paths of the build in it.
    """
    from pathcast import _native

    return _native.SOURCE_DIGEST


def pair(option: str, item: str) -> tuple[str, str]:
    """`KEY=VALUE` as its two parts."""
    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        raise usage(f"{option} `{item}` is not KEY=VALUE, for example flow.bulk.control=lia")
    return key.strip(), value.strip()


def need(*packages: str) -> None:
    """Refuses (exit 5) where packages that the simulator itself does without are not installed."""
    from importlib.util import find_spec

    lacking = [name for name in packages if find_spec(name) is None]
    if lacking:
        raise missing(f"no Python package {', '.join(lacking)}", "pip install 'pathcast[lab]'")


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
