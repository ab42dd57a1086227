"""One round: a TCP probe on every path, a small MPTCP probe, the transfer over all paths, a transfer on each path.

The method is that of Hamazaki, Abe, Kato, section 6.1; transfers on single paths and on further choices are ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.results import Transfer
from pathcast.worlds.world import Progress, World

# more than one round in so many left out: what is left is not to be trusted
LEFT_OUT_LIMIT = 0.1
# a path that carries less than this share of the bytes does not take part
MINIMUM_SHARE = 0.02


@dataclass(frozen=True)
class Task:
    """What a round measures. `control` None is the kernel's default.

    alone: whether `bytes` go over each path alone too. at_once: whether transfers on single paths go at the same time:
    only where the paths share nothing. A simulated world has them in turn, since threads come in any order.
    plain: as of the worlds' `transfer`.
    """

    paths: tuple[str, ...]
    bytes: int
    probe_bytes: int
    control: str | None = None
    choices: tuple[tuple[str, ...], ...] = ()
    set: dict[str, str] | None = None
    alone: bool = True
    at_once: bool = False
    plain: bool = False

    @property
    def sent_bytes(self) -> int:
        """Application bytes of one round, probes included."""
        n = len(self.paths)
        if n == 1:
            return self.probe_bytes + self.bytes * self.alone
        return self.probe_bytes * 2 * n + self.bytes * (n * self.alone + 1 + len(self.choices))

    def round(self) -> Round:
        """A round of it before anything is measured."""
        return Round(round(time.time(), 3), self.bytes, self.probe_bytes, self.control, set=self.set)


@dataclass(frozen=True)
class Subset:
    """An MPTCP transfer over some of the paths [bit/s]."""

    paths: tuple[str, ...]
    actual_bps: float


@dataclass
class Round:
    """A round as it is stored; docs/learn-and-predict.md tells its keys.

    Throughputs are in bit/s, None where not measured. set: of a network from a file, what was set over it.
    """

    at_unix_s: float
    bytes: int
    probe_bytes: int
    control: str | None
    probes_bps: list[float] | None = None
    mptcp_probe_bps: float | None = None
    actual_bps: float | None = None
    tcp_bps: list[float] | None = None
    subset_bps: list[Subset] | None = None
    subflow_bytes: list[int] | None = None
    notes: list[str] = field(default_factory=list)
    fallback: str | None = None
    emulator: dict[str, float | bool] | None = None
    attempts: int = 1
    sent_bytes: int = 0
    left_out: str | None = None
    error: str | None = None
    set: dict[str, str] | None = None

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {name: value for name, value in asdict(self).items() if name != "set" or value is not None}

    def features(self) -> dict[str, Any]:
        """What predictors take of it."""
        names = ("probes_bps", "mptcp_probe_bps", "actual_bps", "tcp_bps")
        subsets = {one.paths: one.actual_bps for one in self.subset_bps or ()}
        return {**{name: getattr(self, name) for name in names}, "subset_bps": subsets}


def send(
    world: World,
    paths: Sequence[str],
    bytes: int,
    control: str | None = None,
    progress: Progress | None = None,
    plain: bool = False,
) -> Transfer:
    """Plain TCP over one path, Multipath TCP over several, the first subflow over the first of them."""
    if len(paths) == 1:
        return world.tcp_probe(paths[0], bytes, control, progress=progress)
    return world.transfer(paths, bytes, control, progress=progress, plain=plain)


def send_each(
    world: World,
    paths: Sequence[str],
    bytes: int,
    control: str | None = None,
    progress: Progress | None = None,
    at_once: bool = False,
) -> Iterator[Transfer]:
    """A TCP transfer over each path; `at_once` as in `Task`."""
    calls = [partial(send, world, (path,), bytes, control, progress) for path in paths]
    if at_once and world.real_time:
        with ThreadPoolExecutor(len(calls)) as pool:
            yield from [future.result() for future in [pool.submit(call) for call in calls]]
    else:
        yield from (call() for call in calls)


def carry_out(
    world: World,
    task: Task,
    round: Round,
    names: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Measures one attempt of a round into `round`; its `left_out` says why it does not count.

    names: what the task's paths are called in this world. progress: called with the bytes acknowledged in the round.
    before: called when the probes are there, before the transfer that they are to predict. What a transfer raises is
    raised.
    """
    paths = task.paths if names is None else [names[path] for path in task.paths]

    under_way = 0  # acknowledged of the transfer that runs

    def noted(sent: Transfer) -> float:
        nonlocal under_way
        under_way = 0
        round.sent_bytes += sent.bytes
        progress(round.sent_bytes)
        round.control = sent.control
        round.notes += [note for note in sent.notes if note not in round.notes]
        if len(sent.paths) > 1:
            round.fallback = round.fallback or sent.fallback
        return sent.throughput_bps

    def meanwhile(acked: int) -> None:
        nonlocal under_way
        under_way = acked
        progress(round.sent_bytes + acked)

    def each(bytes: int) -> list[float]:
        return [noted(sent) for sent in send_each(world, paths, bytes, task.control, meanwhile, task.at_once)]

    def over(paths: Sequence[str], bytes: int) -> Transfer:
        return send(world, paths, bytes, task.control, meanwhile, task.plain)

    try:
        with world.judged() as verdict:
            round.probes_bps = each(task.probe_bytes)
            if len(paths) > 1:
                round.mptcp_probe_bps = noted(over(paths, task.probe_bytes * len(paths)))
                before()
                whole = over(paths, task.bytes)
                round.actual_bps = noted(whole)
                round.subflow_bytes = whole.bytes_by_path(paths)
            if task.alone:
                round.tcp_bps = each(task.bytes)
            choices = (
                (choice, choice if names is None else [names[path] for path in choice]) for choice in task.choices
            )
            round.subset_bps = [Subset(choice, noted(over(paths, task.bytes))) for choice, paths in choices]
    finally:
        round.sent_bytes += under_way  # of one that broke
    round.emulator = verdict.document()
    round.left_out = verdict.fault or (round.fallback and f"Multipath TCP fell back to TCP: {round.fallback}")


def measure(world: World, names: Mapping[str, str], task: Task, progress: Progress = lambda _: None) -> Round:
    """A round; in an emulated network one that does not count is measured again, up to twice.

    A failed transfer (exit 1) leaves the round out, any other error is raised.
    """
    sent_bytes = 0

    def attempt() -> Round:
        nonlocal sent_bytes
        round = task.round()
        try:
            carry_out(world, task, round, names, progress)
        except PathcastError as error:
            if error.exit != Exit.RUNTIME:
                raise
            round.left_out, round.error = error.message, error.code
        sent_bytes += round.sent_bytes
        return round

    made, attempts = world.again(attempt, lambda round: round.left_out is None)
    made.attempts, made.sent_bytes = attempts, sent_bytes
    return made


def probe(world: World, paths: Sequence[str], bytes: int, control: str | None) -> tuple[list[Transfer], str | None]:
    """A TCP probe on each path, one after the other, and what is wrong with them; repeated as a round is."""

    def attempt() -> tuple[list[Transfer], str | None]:
        with world.judged() as verdict:
            found = list(send_each(world, paths, bytes, control))
        return found, verdict.fault

    return world.again(attempt, lambda found: found[1] is None)[0]


def too_many(left_out: int, rounds: int) -> bool:
    """Whether so many rounds were left out that the others are not to be trusted."""
    return left_out > LEFT_OUT_LIMIT * rounds
