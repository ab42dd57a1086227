"""All samples of an experiment's plan in one world: computed once, kept one by one, judged, and written as Parquet.

A sample's key is the hash of its scenario, its world and its version of the code (the extension with every controller,
the worlds' verbs, the experiment's own files). So the quick subset is part of the whole, and a plan may grow.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pathcast import parallel
from pathcast.errors import Exit, PathcastError, usage
from pathcast.lab import worker
from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.plan import Plan, Point
from pathcast.lab.sets import over
from pathcast.lab.tally import tally
from pathcast.results.lines import Lines
from pathcast.results.rundir import RunDir

SCHEMA = "pathcast.lab-sample/1"
# columns that are ours
_OWN = ("key", "error", "tries")
_METADATA = b"pathcast"
# of the field of a column of JSON text
_JSON = {b"pathcast": b"json"}
# names of results: a quick run does not take the place of a whole one
_WHOLE, _QUICK = "results", "quick"


@dataclass(frozen=True)
class Sample:
    """One point of the plan, what it depends on, or why there is no such scenario."""

    point: Point
    key: str
    scenario: Any
    error: dict[str, Any] | None


class Campaign:
    """The samples of an experiment in a world, and the directory that they are kept in. Use it in a `with`."""

    def __init__(
        self,
        experiment: Experiment,
        world: str,
        quick: bool,
        directory: RunDir,
        only: Sequence[tuple[str, str]] = (),
        events: int | None = None,
    ) -> None:
        """only: keys of points and values as text; those with one of the values of each key. What is chosen so is a
        part of the plan, as its quick subset is. events: the most of the simulator in one verb of a sample, which fails
        beyond it; None: the simulator's own limit.

        Raises PathcastError (exit 2) for a world that is not in the plan, or a plan of which nothing can run.
        """
        if world not in experiment.plan.worlds:
            raise usage(f"--world `{world}`: {experiment.name} has {', '.join(experiment.plan.worlds)}")
        self.experiment, self.world, self.quick, self.directory = experiment, world, quick or bool(only), directory
        self.events = events
        self.samples = [self._sample(point) for point in _chosen(list(experiment.plan.points(world, quick)), only)]
        if all(sample.error for sample in self.samples):
            error = self.samples[0].error if self.samples else None
            raise usage(f"{experiment.name}: no sample can run: {error['message'] if error else 'the plan has none'}")

    def __enter__(self) -> Campaign:
        # simulated samples are too many to wait for the disc after each
        sync_s = 1.0 if self.world == "sim" else 0.0
        path = self.directory.path / "samples.jsonl"
        self._lines = Lines(path, lambda line: line.get("schema") == SCHEMA, sync_s).__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.__exit__(*error)

    @property
    def count(self) -> int:
        """How many unlike samples there are: points of one scenario are one."""
        return len({sample.key for sample in self.samples})

    def todo(self) -> list[Sample]:
        """Samples that are not finished, each key once, by seed: what is broken off has few seeds everywhere."""
        stored = self._lines.stored
        left = {s.key: s for s in self.samples if stored.get(s.key, {"error": True})["error"] is not None}
        return sorted(left.values(), key=lambda sample: sample.point.get("seed", 0))

    def needed(self) -> None:
        """Raises PathcastError (exit 2) where there is nothing that could be continued."""
        if any(sample.key in self._lines.stored for sample in self.samples):
            return
        older = "what is there is of another version of the code" if self._lines.stored else "nothing is there"
        raise usage(f"--resume: no sample of this plan in {self.directory.path}: {older}", "run it without --resume")

    def run(self, jobs: int | None, cluster: str | None = None, done: Callable[[], object] | None = None) -> int:
        """Computes what is left; returns how many samples that were.

        jobs: processes, None: one a processor, in `emu` one. cluster: address of a Dask scheduler.
        """
        todo = self.todo()
        # no part of the key: an update of the system would throw away days of real time
        kernel = {"kernel": platform.release()} if self.world == "emu" else {}
        with closing(self._outcomes(todo, jobs, cluster)) as outcomes:
            for key, outcome in outcomes:
                self._lines.add({"schema": SCHEMA, "key": key, "code": self.experiment.code, **kernel, **outcome})
                if done is not None:
                    done()
        return len(todo)

    def results(self) -> Results:
        """The finished and the failed samples, in the plan's order."""
        rows = []
        for sample in self.samples:
            line = self._lines.stored[sample.key]
            values = line["values"] or {}
            if both := [name for name in (*sample.point, *_OWN) if name in values]:
                raise usage(f"{self.experiment.name}: sample() returns what the point has: {', '.join(both)}")
            error = line["error"] and f"{line['error']['code']}: {line['error']['message']}"
            rows.append({**sample.point, **values, "error": error, "tries": line.get("tries", 1), "key": sample.key})
        return Results(rows, self.experiment.plan, self.world, self.quick)

    def kernels(self) -> list[str]:
        """In `emu` the releases of the kernels that finished samples are of; `unknown`: older ones do not have it."""
        lines = (self._lines.stored[sample.key] for sample in self.samples)
        done = {line.get("kernel", "unknown") for line in lines if line["error"] is None}
        return sorted(done) if self.world == "emu" else []

    def write(self, results: Results, document: dict[str, Any]) -> Path:
        """Writes `run.json`, and with all of its metadata `results.parquet`, of a quick run `quick.parquet`: that."""
        about = {
            "experiment": self.experiment.name,
            "world": self.world,
            "quick": self.quick,
            "code": self.experiment.code,
            "plan": self.experiment.plan.text,
            "set": dict(self.experiment.sets),
            "lists": self.experiment.lists(),
            **({"kernels": self.kernels()} if self.world == "emu" else {}),
        }
        run = self.directory.run({**about, "result": document})
        table = _table(results.rows).replace_schema_metadata({_METADATA: run.read_bytes()})
        return self.directory.columns(_QUICK if self.quick else _WHOLE, table)

    def _sample(self, point: Point) -> Sample:
        make, error = self.experiment.module("samples").scenario, None
        with self.experiment.blamed():
            try:
                scenario = make(dict(point), self.experiment.plan.setup, self.world)
            except PathcastError as refusal:
                scenario, error = {"point": point}, refusal.document()["error"]
        text = json.dumps([self.world, self.experiment.code, scenario], sort_keys=True, allow_nan=False)
        return Sample(point, hashlib.sha256(text.encode()).hexdigest(), scenario, error)

    def _outcomes(
        self, todo: list[Sample], jobs: int | None, cluster: str | None
    ) -> Generator[tuple[str, dict[str, Any]]]:
        refused = [sample for sample in todo if sample.error]
        yield from ((sample.key, {"error": sample.error, "values": None}) for sample in refused)
        about = (str(self.experiment.directory), self.experiment.code, self.world)
        calls = [(*about, sample.key, sample.scenario, self.events) for sample in todo if not sample.error]
        if not calls:
            return
        if cluster is not None:
            from pathcast.lab.cluster import connected

            with connected(cluster, self.experiment):
                yield from parallel.unordered(worker.compute, calls, -1, "auto", "dask")
        elif self.world == "emu":
            yield from parallel.lanes(worker.__name__, calls, min(jobs or 1, len(calls)))
        else:
            jobs = max(1, min(jobs or len(os.sched_getaffinity(0)), len(calls)))
            yield from parallel.unordered(worker.compute, calls, jobs, "auto")


def _chosen(points: list[Point], only: Sequence[tuple[str, str]]) -> list[Point]:
    for key in dict.fromkeys(key for key, _ in only):
        known = dict.fromkeys(str(point[key]) for point in points if key in point)
        wanted = [value for one, value in only if one == key]
        if not known:
            keys = dict.fromkeys(key for point in points for key in point)
            raise usage(f"--only {key}={wanted[0]}: there is no key `{key}`; allowed: {', '.join(keys)}")
        for value in wanted:
            if value not in known:
                told = ", ".join(list(known)[:40])
                raise usage(f"--only {key}={value}: no sample has this `{key}`; there are: {told}")
        points = [point for point in points if key in point and str(point[key]) in wanted]
    return points


def document(experiment: Experiment, results: Results, computed: int, directory: Path) -> dict[str, Any]:
    """What `lab run` and `lab report` end with."""
    errors = [row["error"] for row in results.rows if row["error"] is not None]
    claims = experiment.findings(results)
    return {
        "experiment": experiment.name,
        "world": results.world,
        "quick": results.quick,
        "directory": str(directory),
        "samples": len(results.rows),
        "computed": computed,
        "failed": len(errors),
        "errors": list(dict.fromkeys(errors))[:10],
        "claims": claims,
        "tally": tally(claims),
    }


def status(document: dict[str, Any], results: Results) -> Exit:
    """0; 1 where samples failed; where the emulator was late, and nothing else, 3 if it was so in more than a tenth."""
    late = sum((row["error"] or "").startswith("late:") for row in results.rows)
    if late < document["failed"]:
        return Exit.RUNTIME
    return Exit.UNTRUSTWORTHY if 10 * late > document["samples"] else Exit.OK


def last(directory: Path, whole: bool) -> Path | None:
    """What the last run has written there, or the last whole run."""
    there = [path for name in ((_WHOLE,) if whole else (_WHOLE, _QUICK)) for path in directory.glob(f"{name}.parquet")]
    return max(there, key=lambda path: path.stat().st_mtime_ns, default=None)


def load(path: Path, plan: Plan) -> tuple[Results, dict[str, Any]]:
    """Results that a run has written, to be judged by `plan`; and their metadata, `run.json` as it was.

    What that run was told by `--set`, and the lists that it took from samples.py, are the plan's here.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    run = json.loads((table.schema.metadata or {})[_METADATA])
    lists, named = run.get("lists", {}), plan.named
    setup = over(plan.setup, tuple(run.get("set", {}).items()))
    plan = replace(plan, setup=setup, named=lambda name: lists[name] if name in lists else named(name))
    return Results(_rows(table), plan, run["world"], run["quick"]), run


def _table(rows: Any) -> Any:
    """Every row has every column; what a point or a failed sample does not have is null.

    A column with mappings is of JSON text, and its field says so: Arrow's would all have the keys of any.
    """
    import pyarrow as pa

    fields, columns = [], []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        mapped = any(map(_mapped, values))
        if mapped:
            values = [None if value is None else json.dumps(value) for value in values]
        columns.append(column := pa.array(values))
        fields.append(pa.field(name, column.type, metadata=_JSON if mapped else None))
    return pa.table(columns, pa.schema(fields))


def _mapped(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list | tuple) and any(map(_mapped, value)))


def _rows(table: Any) -> list[dict[str, Any]]:
    """What `_table` was made of."""
    rows: list[dict[str, Any]] = table.to_pylist()
    for field in table.schema:
        if field.metadata and _JSON.items() <= field.metadata.items():
            for row in rows:
                row[field.name] = None if row[field.name] is None else json.loads(row[field.name])
    return rows
