"""Runs the rows, a network of its own for each run, and judges the worst of them. A refusal counts as a miss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pathcast.lab.measuring.network import Truth
from pathcast.lab.measuring.once import once
from pathcast.lab.measuring.rows import Row
from pathcast.worlds.measurement import Direction, Measurement

# a run of which the emulator was late is repeated so often; then it counts as a miss, and is told as late
_ATTEMPTS = 3
LATE = "late"


@dataclass(frozen=True)
class Sample:
    """One run. error: relative, of `delay` in seconds; None: nothing was found, `why` says the reason.

    covered: whether the 90 % interval held the truth; half_width: half of it over the true capacity.
    """

    row: str
    world: str
    seed: int
    value: float | None
    true: float
    error: float | None
    covered: bool | None
    half_width: float | None
    bytes: int
    elapsed_s: float
    why: str | None = None


def measure(row: Row, world: str, seed: int) -> Sample:
    """One run of a row."""
    from pathcast.worlds.topology import Topology

    topology = Topology.parse(row.scenario(seed))
    for attempt in range(_ATTEMPTS):
        run = once(world, topology, replace(row.request, seed=seed))
        if run.verdict.valid or attempt == _ATTEMPTS - 1:
            break
    one = sample(row, world, seed, run.found, run.truth(row.direction))
    if not run.verdict.valid:  # what it found says nothing
        return replace(one, value=None, error=None, covered=None, half_width=None, why=LATE)
    return one


def sample(row: Row, world: str, seed: int, found: Measurement, true: Truth) -> Sample:
    """What a run has come to, beside the truth."""
    of = found.paths[0].directions[row.direction]
    value, low, high, right = _value(row.quantity, of, true)
    error = covered = width = None
    if value is not None:
        error = value - right if row.quantity == "delay" else value / right - 1
    if value is not None and row.quantity != "delay":
        covered, width = low <= right <= high, (high - low) / 2 / true.capacity_bps
    why = {"available": of.available_bps.why, "capacity": of.capacity_bps.why}.get(row.quantity)
    cost = (found.probe_bytes, found.elapsed_s)
    return Sample(row.name, world, seed, value, right, error, covered, width, *cost, why)


def _value(quantity: str, of: Direction, true: Truth) -> tuple[float | None, float | None, float | None, float]:
    if quantity == "delay":
        d = of.delay_s
        return d.minimum, None, None, true.delay_s(d.packet_bytes or 0)
    rate = of.capacity_bps if quantity == "capacity" else of.available_bps
    return rate.value, rate.low, rate.high, true.capacity_bps if quantity == "capacity" else true.available_bps


@dataclass(frozen=True)
class Verdict:
    """A row's runs. holds: every run found a value within the limit, for no more than the row allows."""

    row: Row
    world: str
    runs: int
    refused: int
    late: int
    worst: float | None
    mean: float | None
    covered: int
    half_width: float | None
    bytes: int
    elapsed_s: float

    @property
    def holds(self) -> bool:
        """Whether the bar is met."""
        row = self.row
        return (
            self.refused == 0
            and self.worst is not None
            and abs(self.worst) <= row.limit
            and (row.bytes is None or self.bytes <= row.bytes)
            and (row.time_s is None or self.elapsed_s <= row.time_s)
        )


def judge(row: Row, world: str, samples: Sequence[Sample]) -> Verdict:
    """The worst of a row's runs."""
    errors = [s.error for s in samples if s.error is not None]
    widths = sorted(s.half_width for s in samples if s.half_width is not None)
    return Verdict(
        row,
        world,
        len(samples),
        len(samples) - len(errors),
        sum(s.why == LATE for s in samples),
        max(errors, key=abs, default=None),
        math.fsum(errors) / len(errors) if errors else None,
        sum(bool(s.covered) for s in samples),
        widths[len(widths) // 2] if widths else None,
        max(s.bytes for s in samples),
        max(s.elapsed_s for s in samples),
    )


def run(
    rows: Iterable[Row],
    world: str,
    seeds: Iterable[int],
    jobs: int = 1,
    done: Callable[[Verdict, Sequence[Sample]], object] = lambda verdict, samples: None,
) -> list[Verdict]:
    """All rows; `done` hears each as it is judged. jobs: runs at once, in the simulator only."""
    from joblib import Parallel, delayed

    seeds, verdicts = list(seeds), []
    for row in rows:
        work = (delayed(measure)(row, world, seed) for seed in seeds)
        samples = Parallel(n_jobs=jobs if world == "sim" else 1)(work)
        verdicts.append(judge(row, world, samples))
        done(verdicts[-1], samples)
    return verdicts


HEADER = ("case", "bar", "worst of runs", "mean", "in the interval", "half-width", "most bytes", "longest", "")


def markdown(verdict: Verdict) -> str:
    """A verdict as a row of a Markdown table."""
    row, delay = verdict.row, verdict.row.quantity == "delay"

    def off(value: float | None, sign: str = "+") -> str:
        if value is None:
            return "-"
        return f"{value * 1e6:{sign}.0f} µs" if delay else f"{value * 100:{sign}.2f} %"

    refused = verdict.refused - verdict.late
    missing = [f"{n} {word}" for n, word in ((refused, "refused"), (verdict.late, LATE)) if n]
    inside = "" if delay else f"{verdict.covered}/{verdict.runs - verdict.refused}"
    width = "" if verdict.half_width is None else f"{verdict.half_width * 100:.1f} %"
    word = ("held" if verdict.holds else "**missed**") if verdict.world in row.worlds else "reported"
    cells = (
        row.name,
        off(row.limit, ""),
        ", ".join([off(verdict.worst), *missing]),
        off(verdict.mean),
        inside,
        width,
        f"{verdict.bytes / 1e3:,.0f} kB",
        f"{verdict.elapsed_s:.2f} s",
        word,
    )
    return "| " + " | ".join(cells) + " |"
