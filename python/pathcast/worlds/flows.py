"""Several flows at once: what `world.flows` is asked for and what it returns, the same in every world."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.worlds.results import Verdict

SCHEMA = "pathcast.flows/1"


@dataclass(frozen=True)
class Plan:
    """One `[[flow]]` table as it is to be run. Times are since the common zero."""

    name: str
    control: str
    # the path of every subflow, the first one's first
    paths: tuple[str, ...]
    bytes: int | None
    web: bool
    start_s: float
    # its own `stop` or the end of the run, whichever comes first
    stop_s: float | None

    @property
    def multipath(self) -> bool:
        """Whether it is MPTCP."""
        return len(self.paths) > 1


def plans(scenario: dict[str, Any], names: Sequence[str] | None, until_s: float | None) -> list[Plan]:
    """The flows of a checked scenario, all or those with `names`, in the scenario's order.

    until_s: the end of the run in place of the scenario's.
    """
    tables = scenario["flows"]
    known = [table["name"] for table in tables]
    if not known:
        raise usage(f"the scenario `{scenario['name']}` has no [[flow]]", "see docs/scenario.md")
    for name in known if names is None else names:
        if name not in known:
            raise usage(f"there is no flow `{name}`; allowed: {', '.join(known)}")
    if names is not None and (not names or len(set(names)) < len(names)):
        raise usage(f"flows {', '.join(names) or 'none'}: name one or more, each once")
    if until_s is not None and not 0 < until_s < float("inf"):
        raise usage(f"until {until_s} s: allowed are times above 0")
    end_s = _seconds(scenario["end"]) if until_s is None else until_s
    return [_plan(scenario, table, end_s) for table in tables if names is None or table["name"] in names]


def _plan(scenario: dict[str, Any], table: dict[str, Any], end_s: float | None) -> Plan:
    from pathcast import _native

    paths, workload = [scenario["paths"][index]["name"] for index in table["paths"]], table["workload"]
    size = workload.get("bytes") if isinstance(workload, dict) else None
    start_s = _seconds(table["start"]) or 0.0
    stops = [s for s in (_seconds(table["stop"]), end_s) if s is not None]
    if end_s is not None and start_s >= end_s:
        raise usage(f"flow `{table['name']}` starts at {start_s:g} s, but the run ends at {end_s:g} s")
    return Plan(
        name=table["name"],
        control=table["control"],
        paths=tuple(paths[n % len(paths)] for n in range(table["subflows"])),
        bytes=None if size is None else _native.parse_bytes(size),
        web=isinstance(workload, dict) and "web" in workload,
        start_s=start_s,
        stop_s=min(stops, default=None),
    )


def check_every(every_s: float) -> None:
    """Refuses a time between samples that cannot be kept."""
    if not 0.001 <= every_s <= 3600:
        raise usage(f"a sample every {every_s} s: allowed are 0.001 to 3600")


def _seconds(duration: str | None) -> float | None:
    from pathcast import _native

    return None if duration is None else _native.parse_duration(duration) / 1e9


@dataclass(frozen=True)
class SubflowSample:
    """A subflow at one time; before it is there, zeros."""

    path: str
    bytes_acked: int
    bytes_retransmitted: int
    cwnd_packets: int
    rtt_s: float | None


@dataclass(frozen=True)
class Sample:
    """A flow at one time since the common zero. Its subflows are always all of them, in the order of its paths."""

    t_s: float
    bytes_acked: int
    subflows: tuple[SubflowSample, ...]


@dataclass(frozen=True)
class Flow:
    """What became of one flow. Times are since the common zero, `connect_s` and `completion_s` since it connected."""

    name: str
    control: str
    # as the kernel calls it; in `sim` as the register does
    kernel_control: str
    protocol: str
    paths: tuple[str, ...]
    started_s: float
    connect_s: float | None
    # when everything was known to have arrived; None: it was stopped, or failed
    finished_s: float | None
    # when it was stopped, or failed
    stopped_s: float | None
    bytes_acked: int
    bytes_retransmitted: int
    # `bytes_acked` over the time from connecting to the end of it
    goodput_bps: float
    completion_s: float | None
    # why it ended before its time
    error: str | None
    notes: tuple[str, ...]
    samples: tuple[Sample, ...]
    # when the run ended, since the common zero
    run_ended_s: float = math.inf

    def acked(self, t_s: float) -> float:
        """Bytes acknowledged by that time, linear between samples."""
        after = bisect_right(self.samples, t_s, key=lambda sample: sample.t_s)
        t0, b0 = (
            (self.started_s, 0) if after == 0 else (self.samples[after - 1].t_s, self.samples[after - 1].bytes_acked)
        )
        if after == len(self.samples) or t_s <= t0:
            return float(b0 if t_s >= t0 else 0)
        t1, b1 = self.samples[after].t_s, self.samples[after].bytes_acked
        return b0 + (b1 - b0) * (t_s - t0) / (t1 - t0)

    def goodput(self, from_s: float, to_s: float) -> float:
        """Application bits acknowledged per second between two times of the run, since the common zero."""
        if not from_s < to_s:
            raise usage(f"no time lies between {from_s} s and {to_s} s")
        for time_s in (from_s, to_s):
            if not 0 <= time_s <= self.run_ended_s:
                raise usage(f"{time_s} s is not in the run: it lasted from 0 s to {self.run_ended_s} s")
        return (self.acked(to_s) - self.acked(from_s)) * 8 / (to_s - from_s)


@dataclass(frozen=True)
class LinkUse:
    """What one direction of a link carried of real packets during the run, and how many it dropped."""

    name: str
    direction: str
    packets: int
    bytes: int
    drops: int


@dataclass(frozen=True)
class FlowsResult:
    """A run of several flows."""

    world: str
    scenario: str
    seed: int
    every_s: float
    # when the run ended, since the common zero
    ended_s: float
    flows: tuple[Flow, ...]
    links: tuple[LinkUse, ...]
    verdict: Verdict
    # what the run took on the machine's clock
    wall_s: float

    def flow(self, name: str) -> Flow:
        """The flow of that name."""
        for flow in self.flows:
            if flow.name == name:
                return flow
        raise usage(f"there was no flow `{name}`; allowed: {', '.join(f.name for f in self.flows)}")

    def link(self, name: str, direction: str = "ab") -> LinkUse:
        """One direction of a link."""
        for link in self.links:
            if (link.name, link.direction) == (name, direction):
                return link
        raise usage(f"there is no link `{name}` with a direction `{direction}`")

    def check(self) -> None:
        """Raises PathcastError where the emulator was late (`late`), or a flow ended before its time (`transfer`)."""
        self.verdict.check()
        if failed := [f"{flow.name}: {flow.error}" for flow in self.flows if flow.error]:
            raise PathcastError("transfer", "; ".join(failed))

    def document(self) -> dict[str, Any]:
        """For JSON."""
        document = {"schema": SCHEMA, **asdict(self)}
        document["verdict"]["valid"] = self.verdict.valid
        for flow in document["flows"]:
            del flow["run_ended_s"]  # it is the result's `ended_s`
        return document


def rate(bytes: int, time_s: float) -> float:
    """Bits per second; of no time, none."""
    return bytes * 8 / time_s if time_s > 0 else 0.0
