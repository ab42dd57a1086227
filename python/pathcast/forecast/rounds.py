"""One round: a TCP probe on every path, a small MPTCP probe, the transfer over all paths, a transfer on each path.

The method is that of Hamazaki, Abe, Kato, section 6.1; transfers on single paths and on further choices are ours. The
paths of a real host may share a bottleneck, so that nothing is sent at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.results import Transfer, Verdict
from pathcast.worlds.turns import turn_of

ATTEMPTS = 3


@dataclass(frozen=True)
class Task:
    """What a round measures. Paths and choices by the model's names; `control` None is the kernel's default.

    about: what the round is stored with beside its measurements, such as the `--set`s of an emulated network.
    """

    paths: tuple[str, ...]
    bytes: int
    probe_bytes: int
    control: str | None = None
    choices: tuple[tuple[str, ...], ...] = ()
    about: Mapping[str, Any] | None = None

    @property
    def sent_bytes(self) -> int:
        """Application bytes of one round, probes included."""
        alone, n = len(self.paths) == 1, len(self.paths)
        return self.probe_bytes * (1 if alone else 2 * n) + self.bytes * (1 if alone else n + 1 + len(self.choices))


# what is told of a round's progress: application bytes acknowledged in it so far
Heard = Callable[[int], None]


def measure(world: Any, names: Mapping[str, str], task: Task, heard: Heard = lambda _: None) -> dict[str, Any]:
    """One round as it is stored, throughputs in bit/s; `left_out` is the reason why it does not count, or None.

    In a world that judges its own time keeping, a late round is measured again, up to twice. names: what the task's
    paths are called in this world. A failed transfer (exit 1) leaves the round out, any other error is raised.
    """
    judges, sent = _judges(world), 0
    for attempt in range(1, (ATTEMPTS if judges else 1) + 1):
        with turn_of(world, alone=attempt > 1) if judges else nullcontext():
            round = _attempt(world, names, task, heard)
        sent += round["sent_bytes"]
        round |= {"attempts": attempt, "sent_bytes": sent}
        if round["left_out"] is None:
            break
    return round


def probe(world: Any, paths: Sequence[str], bytes: int, control: str | None) -> tuple[list[Transfer], str | None]:
    """A TCP probe on each path, by the names of now, and what was wrong with them; repeated as a round is."""
    if not _judges(world):
        return [world.tcp_probe(path, bytes, control) for path in paths], None
    for attempt in range(1, ATTEMPTS + 1):
        with turn_of(world, alone=attempt > 1), world.judged() as verdict:
            found = [world.tcp_probe(path, bytes, control) for path in paths]
        if verdict.valid:
            return found, None
    return found, _late(verdict)


def empty(task: Task) -> dict[str, Any]:
    """A round before anything is measured."""
    return {
        "at_unix_s": round(time.time(), 3),
        "bytes": task.bytes,
        "probe_bytes": task.probe_bytes,
        "control": task.control,
        "probes_bps": None,
        "mptcp_probe_bps": None,
        "actual_bps": None,
        "tcp_bps": None,
        "subset_bps": None,
        "subflow_bytes": None,
        "notes": [],
        "emulator": None,
        "attempts": 1,
        "sent_bytes": 0,
        "left_out": None,
        "error": None,
        **(task.about or {}),
    }


def _attempt(world: Any, names: Mapping[str, str], task: Task, heard: Heard) -> dict[str, Any]:
    result = empty(task)
    faults: list[str] = []
    try:
        with world.judged() if _judges(world) else nullcontext() as verdict:
            _transfers(world, names, task, result, faults, heard)
    except PathcastError as error:
        if error.exit != Exit.RUNTIME:
            raise
        return {**result, "left_out": error.message, "error": error.code}
    if verdict is not None:
        result["emulator"] = {**verdict.release_error, "realtime": verdict.realtime}
        if not verdict.valid:
            faults.append(_late(verdict))
    result["left_out"] = faults[0] if faults else None
    return result


def _judges(world: Any) -> bool:
    """Whether it may be late and says so: an emulated network. A simulated one never is, a real one cannot tell."""
    return world.real_time and hasattr(world, "judged")


def _late(verdict: Verdict) -> str:
    late, lost = verdict.release_error.get("p99_s", 0.0), verdict.dropped_unmodelled
    return f"the emulator was late (p99 {late * 1e3:.2f} ms) or lost {lost} packets"


def _transfers(
    world: Any, names: Mapping[str, str], task: Task, result: dict[str, Any], faults: list[str], heard: Heard
) -> None:
    paths = [names[p] for p in task.paths]
    notes: dict[str, None] = {}

    def send(over: list[str], bytes: int, multipath: bool = True) -> Any:
        def progress(acked: int) -> None:
            heard(result["sent_bytes"] + acked)

        if multipath:
            report = world.transfer(over, bytes, task.control, progress=progress)
        else:
            report = world.tcp_probe(over[0], bytes, task.control, progress=progress)
        result["sent_bytes"] += bytes
        heard(result["sent_bytes"])
        result["control"] = report.control
        notes.update(dict.fromkeys(report.notes))
        if report.fallback and multipath:
            faults.append(f"Multipath TCP fell back to TCP: {report.fallback}")
        return report

    result["probes_bps"] = [send([p], task.probe_bytes, multipath=False).throughput_bps for p in paths]
    if len(paths) > 1:
        result["mptcp_probe_bps"] = send(paths, task.probe_bytes * len(paths)).throughput_bps
        whole = send(paths, task.bytes)
        result["actual_bps"] = whole.throughput_bps
        result["subflow_bytes"] = whole.bytes_by_path(paths)
    result["tcp_bps"] = [send([p], task.bytes, multipath=False).throughput_bps for p in paths]
    result["subset_bps"] = [
        {"paths": list(c), "actual_bps": send([names[p] for p in c], task.bytes).throughput_bps} for c in task.choices
    ]
    result["notes"] = list(notes)
