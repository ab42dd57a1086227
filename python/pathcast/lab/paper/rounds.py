"""Rounds of probes and transfers in a world, several worlds side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pathcast.forecast import rounds as forecast
from pathcast.forecast.rounds import MINIMUM_SHARE
from pathcast.lab.paper.plan import PATHS, Plan, Setting

T = TypeVar("T")
Predict = Callable[[forecast.Round], dict[str, float]]


@dataclass
class Round:
    """One round of the demo; throughputs in bit/s."""

    index: int
    unseen: bool
    setting: Setting
    measured: forecast.Round
    predicted_bps: dict[str, float] | None = None
    placebo_bps: float | None = None  # the multi-probe predictor's word on another round's probes

    @property
    def left_out(self) -> str | None:
        """Why it does not count."""
        return self.measured.left_out

    def document(self) -> dict[str, Any]:
        """For JSON and Parquet."""
        names = ("attempts", "left_out", "probes_bps", "mptcp_probe_bps", "actual_bps", "tcp_bps", "subflow_bytes")
        return {
            "index": self.index,
            "unseen": self.unseen,
            **{name: getattr(self.measured, name) for name in (*names, "fallback", "emulator")},
            "predicted_bps": self.predicted_bps,
            "placebo_bps": self.placebo_bps,
            "rtt_s": list(self.setting.rtt_s),
            "rate_bps": list(self.setting.rate_bps),
        }


def apply(world: Any, setting: Setting, index: int) -> None:
    """Sets the links of a world for the work of that index: a simulated one begins afresh, whatever it did before."""
    world.fresh(index)
    for link, changes in setting.changes():
        world.set(link, **changes)


def measure(
    world: Any, plan: Plan, index: int, predict: Predict | None, worth_repeating: Callable[[], bool] = lambda: True
) -> Round:
    """One round, repeated up to twice when the emulator was late or Multipath TCP did not use both paths.

    With `predict`, the round is an unseen one: it is called with the round's probes before the transfer starts.
    """
    task = plan.task(unseen=predict is not None)

    def attempt() -> Round:
        round = Round(index, predict is not None, plan.drawn(index), task.round())

        def before() -> None:
            if predict is not None:
                round.predicted_bps = predict(round.measured)

        apply(world, round.setting, index)
        forecast.carry_out(world, task, round.measured, before=before)
        round.measured.left_out = round.left_out or _starved(round.measured.subflow_bytes or [])
        return round

    made: Round
    made, made.measured.attempts = world.again(attempt, lambda r: r.left_out is None or not worth_repeating())
    return made


def _starved(carried: Sequence[int]) -> str | None:
    if carried and min(carried) < MINIMUM_SHARE * sum(carried):
        return f"a subflow carried less than 2 % of the bytes: {carried}"
    return None


class Lanes:
    """Worlds side by side, each carrying out one job at a time. Use it in a `with`."""

    def __init__(self, make: Callable[[], Any], count: int) -> None:
        self._make, self._count = make, count

    def __enter__(self) -> Lanes:
        with ExitStack() as stack:
            self._pool = stack.enter_context(ThreadPoolExecutor(self._count))
            entered = [self._submit(stack.enter_context, self._make()) for _ in range(self._count)]
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
        return str(self._worlds[0].world)

    def run(self, jobs: Iterable[Callable[[Any], T]], done: Callable[[T], None] | None = None) -> list[T]:
        """Results in the order of the jobs; `done` hears of each as it ends, in the calling thread."""
        futures = [self._submit(self._on_a_lane, job) for job in jobs]
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

    def _submit(self, function: Callable[[Any], T], argument: Any) -> Future[T]:
        """With the caller's limits (`pathcast.limits`)."""
        return self._pool.submit(copy_context().run, function, argument)

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
        with world.turn():
            apply(world, plan.fixed(rtts), plan.rounds + plan.unseen + index)
            transfer = world.transfer(PATHS, size, plan.control, plain=True)
        by_path = transfer.bytes_by_path(PATHS)
        share = by_path[0] / max(1, sum(by_path))
        return {"rtt_s": list(rtts), "bytes": size, "share": share, "throughput_bps": transfer.throughput_bps}

    points = enumerate((rtts, size) for rtts in plan.share_rtts_s for size in plan.share_bytes)
    return lanes.run([partial(job, index=i, rtts=rtts, size=size) for i, (rtts, size) in points], done)


def truth(
    world: Any, plan: Plan, predict: Callable[[Sequence[float]], T]
) -> tuple[Sequence[float], tuple[T, dict[Any, Any]]]:
    """The last round: probes, `predict` of them, and only then what every choice really gives, one after the other."""
    before = plan.rounds + plan.unseen + len(plan.share_rtts_s) * len(plan.share_bytes)
    apply(world, plan.fixed(plan.choice_rtts_s), before)
    sent = forecast.send_each(world, PATHS, plan.probe_bytes, plan.control, at_once=True)
    probes = [transfer.throughput_bps for transfer in sent]
    predicted = predict(probes)
    choices = (*((path,) for path in PATHS), PATHS)
    actual = {c: forecast.send(world, c, plan.transfer_bytes, plan.control).throughput_bps for c in choices}
    return probes, (predicted, actual)
