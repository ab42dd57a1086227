"""Many scenarios in parallel processes, stored one by one, so that an interrupted sweep continues where it was.

Every sample is a line of `samples.jsonl`, synced to the disc as soon as it is there. Its key is the hash of the checked
scenario and of the extension that ran it: a sample is computed once for a version of the code, whatever else is in the
grid. What a line says of a finished sample depends on nothing but its key; the times that the machine took are left
out.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from pathcast import parallel
from pathcast.errors import PathcastError, usage
from pathcast.results.lines import Lines
from pathcast.results.rundir import RunDir
from pathcast.scenario import Scenario, pair
from pathcast.simulation.run import Limits, code, simulate

SCHEMA = "pathcast.sim-sample/1"
# more is a slip of the fingers: a simulation takes at least some milliseconds
MOST = 1_000_000
# of the whole numbers of TOML and of a column
LARGEST = (1 << 63) - 1
_TIMES = ("cpu_s", "wall_s")


@dataclass(frozen=True)
class Grid:
    """Keys and their values; the product of them all, the last key changing fastest."""

    keys: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, sweeps: Sequence[str], seeds: str | None = None) -> Grid:
        """`key=a,b,c` each, and `1..20` or `1,5` for the seeds."""
        found: dict[str, tuple[str, ...]] = {}
        for item in sweeps:
            key, text = pair("--sweep", item)
            if key in found or (key == "seed" and seeds is not None):
                raise usage(f"--sweep `{item}`: `{key}` is swept twice")
            found[key] = _values(f"--sweep `{item}`", text)
        if seeds is not None:
            found["seed"] = _seeds(seeds)
        grid = cls(tuple(found), tuple(found.values()))
        count = functools.reduce(lambda n, values: n * len(values), grid.values, 1)
        if count > MOST:
            raise usage(f"a grid of {count} samples; allowed: at most {MOST}")
        return grid

    def settings(self) -> Iterator[tuple[tuple[str, str], ...]]:
        """What each sample sets."""
        for values in itertools.product(*self.values):
            yield tuple(zip(self.keys, values, strict=True))


def _values(where: str, text: str) -> tuple[str, ...]:
    """The values between commas; a comma in braces, brackets or quotes belongs to its value."""
    values, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == '"'
        depth += 0 if quoted else (sign in "{[") - (sign in "}]")
        if sign == "," and not quoted and depth == 0:
            values.append("")
        else:
            values[-1] += sign
    found = tuple(value.strip() for value in values)
    if not all(found):
        raise usage(f"{where}: a value is missing; write key=a,b,c")
    if len(dict.fromkeys(found)) < len(found):
        raise usage(f"{where}: a value comes twice")
    return found


def _seeds(text: str) -> tuple[str, ...]:
    found: list[int] = []
    for part in text.split(","):
        low, dots, high = part.partition("..")
        try:
            first, last = int(low), int(high) if dots else int(low)
        except ValueError:
            raise usage(f"--seeds `{text}`: write 1..20, or 1,5,9") from None
        if first < 0 or last < first or last - first >= MOST:
            raise usage(f"--seeds `{text}`: a range goes up, from 0 or more, over at most {MOST} seeds")
        if last > LARGEST:
            raise usage(f"--seeds `{text}`: seeds are at most {LARGEST}")
        found += range(first, last + 1)
    if len(set(found)) < len(found):
        raise usage(f"--seeds `{text}`: a seed comes twice")
    return tuple(str(seed) for seed in found)


@dataclass(frozen=True)
class Sample:
    """One point of the grid."""

    key: str
    sets: tuple[tuple[str, str], ...]
    # what the scenario's checks say of it
    error: dict[str, Any] | None


class Sweep:
    """A grid over a scenario, and the directory of its samples. Use it in a `with`."""

    def __init__(self, scenario: Scenario, grid: Grid, limits: Limits, directory: RunDir) -> None:
        self.scenario, self.grid, self.limits, self.directory = scenario, grid, limits, directory
        self._lines = Lines(directory.path / "samples.jsonl", lambda line: line.get("schema") == SCHEMA)
        self.samples = [self._sample(sets) for sets in grid.settings()]
        error = self.samples[0].error
        if error is not None and all(sample.error for sample in self.samples):
            raise PathcastError(error["code"], error["message"], error["hint"], error["exit"])

    def __enter__(self) -> Sweep:
        self._lines.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.__exit__()

    def todo(self) -> list[Sample]:
        """Samples that are not finished, each key once. One that failed is tried again."""
        left = {sample.key: sample for sample in self.samples if not self._finished(sample.key)}
        return list(left.values())

    def run(self, jobs: int | None = None, done: Callable[[], object] | None = None) -> dict[str, Any]:
        """Computes what is left, writes `samples.parquet` and `run.json`, returns the summary.

        jobs: processes, None: one a processor. done: called after each sample.
        """
        todo = self.todo()
        jobs = max(1, min(jobs or len(os.sched_getaffinity(0)), len(todo)))
        for key, outcome in self._outcomes(todo, jobs):
            self._keep(key, outcome)
            if done is not None:
                done()
        document = self._document(len(todo))
        self._write(document)
        return document

    def _sample(self, sets: tuple[tuple[str, str], ...]) -> Sample:
        from pathcast import _native

        whole = self.scenario.over(sets)
        try:
            checked, error = _native.scenario(whole.text, list(whole.sets), whole.base), None
            # no event at all: only what the simulator itself refuses
            _native.simulate(whole.text, list(whole.sets), whole.source, _native.Stop(), 0, self.limits.time_ns)
        except PathcastError as refusal:
            checked, error = json.dumps([whole.text, whole.sets]), refusal.document()["error"]
        return Sample(hashlib.sha256(f"{code()}\n{checked}".encode()).hexdigest(), sets, error)

    def _finished(self, key: str) -> bool:
        line = self._lines.stored.get(key)
        if line is None or line["error"] is not None:
            return False
        # with other limits a run that met one may go on
        return line["report"]["stopped"] is None or line["limits"] == self._limits()

    def _limits(self) -> dict[str, int]:
        return {"events": self.limits.events, "time_ns": self.limits.time_ns}

    def _outcomes(self, todo: list[Sample], jobs: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Key and outcome of every sample, in the order in which they end."""
        calls = ((one.key, self.scenario.over(one.sets), self.limits, one.error) for one in todo)
        return parallel.unordered(_run, calls, jobs)

    def _keep(self, key: str, outcome: dict[str, Any]) -> None:
        self._lines.add({"schema": SCHEMA, "key": key, "code": code(), "limits": self._limits(), **outcome})

    def _document(self, computed: int) -> dict[str, Any]:
        failed, stopped = [], []
        for number, sample in enumerate(self.samples):
            line = self._lines.stored[sample.key]
            about = {"sample": number, "set": dict(sample.sets)}
            if line["error"] is not None:
                failed.append({**about, "error": line["error"]})
            elif line["report"]["stopped"] is not None:
                stopped.append({**about, "stopped": line["report"]["stopped"]})
        return {
            "directory": str(self.directory.path),
            "samples": len(self.samples),
            "computed": computed,
            "keys": [key for key in self.grid.keys if key != "seed"],
            "summary": self._summary(),
            "failed": failed,
            "stopped": stopped,
        }

    def _summary(self) -> list[dict[str, Any]]:
        """A row for each setting and flow, over the seeds."""
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for sample in self.samples:
            line = self._lines.stored[sample.key]
            setting = tuple((key, value) for key, value in sample.sets if key != "seed")
            for flow in line["report"]["flows"] if line["error"] is None else ():
                groups.setdefault((setting, flow["name"]), []).append(flow)
        rows = []
        for (setting, name), flows in groups.items():
            times = [flow["completion_s"] for flow in flows if flow["completion_s"] is not None]
            rows.append(
                {
                    "set": dict(setting),
                    "flow": name,
                    "samples": len(flows),
                    "completion_s": median(times) if times else None,
                    "completion_least_s": min(times, default=None),
                    "completion_most_s": max(times, default=None),
                    **{k: median(f[k] for f in flows) for k in ("goodput_bps", "retransmits", "timeouts")},
                    "incomplete": len(flows) - len(times),
                }
            )
        return rows

    def _write(self, document: dict[str, Any]) -> None:
        self.directory.columns("samples", _table(self.grid, self.samples, self._lines.stored))
        about = {"world": "sim", "scenario": self.scenario.source, "set": dict(self.scenario.sets)}
        swept = {key: list(values) for key, values in zip(self.grid.keys, self.grid.values, strict=True)}
        self.directory.run({**about, "sweep": swept, "code": code(), "result": document})


def _run(key: str, scenario: Scenario, limits: Limits, error: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """One sample, in whatever process."""
    if error is not None:
        return key, {"error": error, "report": None}
    try:
        report, _ = simulate(scenario, limits)
    except Exception as failure:
        if not isinstance(failure, PathcastError):
            failure = PathcastError("internal", f"{type(failure).__name__}: {failure}")
        return key, {"error": failure.document()["error"], "report": None}
    return key, {"error": None, "report": {k: v for k, v in report.items() if k not in _TIMES}}


def _table(grid: Grid, samples: Sequence[Sample], stored: dict[str, dict[str, Any]]) -> Any:
    """A row for each sample and flow, in the order of the grid; a failed sample has one row, with its error."""
    import pyarrow as pa

    columns = {key: _typed([dict(sample.sets)[key] for sample in samples]) for key in grid.keys}
    rows = []
    for number, sample in enumerate(samples):
        line = stored[sample.key]
        sets = {f"set.{key}": values[number] for key, values in columns.items()}
        if line["error"] is not None:
            rows.append({"sample": number, **sets, "error": line["error"]["message"]})
            continue
        report = line["report"]
        whole = {"simulated_s": report["simulated_s"], "events": report["events"], "stopped": report["stopped"]}
        rows += [{"sample": number, **sets, **flow, **whole, "error": None} for flow in report["flows"]]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _typed(values: Sequence[str]) -> list[Any]:
    """As whole numbers or numbers if all of them are, else as they were written."""
    for kind in (int, float):
        with suppress(ValueError):
            found = [kind(value) for value in values]
            if kind is float or all(-LARGEST - 1 <= value <= LARGEST for value in found):
                return found
    return list(values)
