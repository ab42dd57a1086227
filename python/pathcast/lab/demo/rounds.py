"""Rounds of probes and transfers in a world, several worlds side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pathcast.lab.demo.plan import PATHS, Plan, Setting
from pathcast.machine import late_share
from pathcast.worlds.results import Transfer
from pathcast.worlds.turns import turn_of

ATTEMPTS = 3
MINIMUM_SHARE = 0.02

T = TypeVar("T")
Predict = Callable[[dict[str, Any]], dict[str, float]]


@dataclass
class Round:
    """One round as it came out; throughputs in bit/s."""

    index: int
    unseen: bool
    setting: Setting
    attempts: int = 0
    left_out: str | None = None
    probes_bps: list[float] = field(default_factory=list)
    mptcp_probe_bps: float | None = None
    actual_bps: float | None = None
    tcp_bps: list[float] | None = None
    predicted_bps: dict[str, float] | None = None
    placebo_bps: float | None = None  # the multi-probe predictor's word on another round's probes
    subflow_bytes: list[int] = field(default_factory=list)
    fallback: str | None = None
    emulator: dict[str, Any] | None = None  # None in a world that is never late

    def document(self) -> dict[str, Any]:
        """For JSON and Parquet."""
        own = {k: v for k, v in vars(self).items() if k != "setting"}
        return {**own, "rtt_s": list(self.setting.rtt_s), "rate_bps": list(self.setting.rate_bps)}


def apply(world: Any, setting: Setting, index: int) -> None:
    """Sets the links of a world for the work of that index: a simulated one begins afresh, whatever it did before."""
    world.fresh(index)
    for link, changes in setting.changes():
        world.set(link, **changes)


def together(*calls: Callable[[], T]) -> list[T]:
    """Results of calls that run at the same time; the paths are disjoint, so that they do not disturb each other."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [f.result() for f in [pool.submit(c) for c in calls]]


def single_paths(world: Any, bytes: int, control: str) -> list[Transfer]:
    """A TCP transfer on each path at the same time; in a simulation in turn, since threads come in any order."""
    calls = [lambda p=p: world.tcp_probe(p, bytes, control) for p in PATHS]
    return together(*calls) if world.real_time else [call() for call in calls]


def measure(
    world: Any, plan: Plan, index: int, predict: Predict | None, worth_repeating: Callable[[], bool] = lambda: True
) -> Round:
    """One round, repeated up to twice when the emulator was late or Multipath TCP did not use both paths.

    A simulated round is not repeated: it would come out the same.
    With `predict`, the round is an unseen one: it is called with the probes before the transfer starts.
    """
    alone = False
    for attempt in range(1, ATTEMPTS + 1):
        with turn_of(world, alone):
            round = _attempt(world, plan, index, attempt, predict)
        if round.left_out is None or not world.real_time or not worth_repeating():
            break
        # the machine for itself helps if it was our own load that made the emulator late
        alone = late_share() <= 0.01
    return round


def _attempt(world: Any, plan: Plan, index: int, attempt: int, predict: Predict | None) -> Round:
    round = Round(index, predict is not None, plan.drawn(index), attempt)
    apply(world, round.setting, index)
    with world.judged() as verdict:
        round.probes_bps = [t.throughput_bps for t in single_paths(world, plan.probe_bytes, plan.control)]
        probe = world.mptcp_probe(PATHS, plan.probe_total_bytes, plan.control)
        round.mptcp_probe_bps = probe.throughput_bps
        if predict is not None:
            probes = {"probes_bps": round.probes_bps, "mptcp_probe_bps": round.mptcp_probe_bps}
            round.predicted_bps = predict(probes)
        transfer = world.transfer(PATHS, plan.transfer_bytes, plan.control)
        round.actual_bps = transfer.throughput_bps
        if predict is None:
            sent = single_paths(world, plan.transfer_bytes, plan.control)
            round.tcp_bps = [t.throughput_bps for t in sent]
    round.subflow_bytes = transfer.bytes_by_path(PATHS)
    round.fallback = transfer.fallback
    if world.real_time:
        round.emulator = {**verdict.release_error, "realtime": verdict.realtime}
    round.left_out = _fault(round, verdict)
    return round


def _fault(round: Round, verdict: Any) -> str | None:
    if not verdict.valid:
        late, lost = verdict.release_error.get("p99_s", 0.0), verdict.dropped_unmodelled
        return f"the emulator was late (p99 {late * 1e3:.2f} ms) or lost {lost} packets"
    if round.fallback:
        return f"Multipath TCP fell back to TCP: {round.fallback}"
    total = sum(round.subflow_bytes)
    if min(round.subflow_bytes) < MINIMUM_SHARE * total:
        return f"a subflow carried less than 2 % of the bytes: {round.subflow_bytes}"
    return None


class Lanes:
    """Worlds side by side, each carrying out one job at a time. Use it in a `with`."""

    def __init__(self, make: Callable[[], Any], count: int) -> None:
        self._make, self._count = make, count

    def __enter__(self) -> Lanes:
        with ExitStack() as stack:
            self._pool = stack.enter_context(ThreadPoolExecutor(self._count))
            entered = [self._pool.submit(stack.enter_context, self._make()) for _ in range(self._count)]
            wait(entered)  # before any is undone because another failed
            self._worlds = [f.result() for f in entered]
            self._stack = stack.pop_all()
        self._free = list(self._worlds)
        self._lock = threading.Lock()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def world(self) -> str:
        """What the worlds are called."""
        return self._worlds[0].world

    def run(self, jobs: Iterable[Callable[[Any], T]], done: Callable[[T], None] | None = None) -> list[T]:
        """Results in the order of the jobs; `done` hears of each as it ends, in the calling thread."""
        futures = [self._pool.submit(self._on_a_lane, job) for job in jobs]
        try:
            for future in as_completed(futures):
                result = future.result()
                if done is not None:
                    done(result)
        except BaseException:
            for future in futures:
                future.cancel()
            for world in self._worlds:
                world.cancel()
            raise
        return [f.result() for f in futures]

    def _on_a_lane(self, job: Callable[[Any], T]) -> T:
        with self._lock:
            world = self._free.pop()
        try:
            return job(world)
        finally:
            with self._lock:
                self._free.append(world)


def shares(lanes: Lanes, plan: Plan, done: Callable[[Any], None] | None = None) -> list[dict[str, Any]]:
    """The share of bytes on subflow 1 by size and round trip times (the paper's figure 4)."""

    def job(world: Any, index: int, rtts: tuple[float, float], size: int) -> dict[str, Any]:
        with turn_of(world):
            apply(world, plan.fixed(rtts), plan.rounds + plan.unseen + index)
            transfer = world.transfer(PATHS, size, plan.control)
        by_path = transfer.bytes_by_path(PATHS)
        share = by_path[0] / max(1, sum(by_path))
        return {"rtt_s": list(rtts), "bytes": size, "share": share, "throughput_bps": transfer.throughput_bps}

    points = enumerate((rtts, size) for rtts in plan.share_rtts_s for size in plan.share_bytes)
    return lanes.run([lambda world, i=i, p=point: job(world, i, *p) for i, point in points], done)


def truth(world: Any, plan: Plan, predict: Callable[[Sequence[float]], T]) -> tuple[Sequence[float], tuple[T, dict]]:
    """The last round: probes, `predict` of them, and only then what every choice really gives, one after the other."""
    before = plan.rounds + plan.unseen + len(plan.share_rtts_s) * len(plan.share_bytes)
    apply(world, plan.fixed(plan.choice_rtts_s), before)
    probes = [t.throughput_bps for t in single_paths(world, plan.probe_bytes, plan.control)]
    predicted = predict(probes)
    options: dict[tuple[str, ...], float] = {}
    for path in PATHS:
        options[(path,)] = world.tcp_probe(path, plan.transfer_bytes, plan.control).throughput_bps
    options[PATHS] = world.transfer(PATHS, plan.transfer_bytes, plan.control).throughput_bps
    return probes, (predicted, options)
