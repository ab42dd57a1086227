"""Several flows at once in the emulated network: a real transfer for each, in a thread and a session of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pathcast.errors import Exit, PathcastError, usage
from pathcast.worlds.flows import Flow, LinkUse, Plan, Sample, SubflowSample, rate
from pathcast.worlds.results import Path

if TYPE_CHECKING:
    from pathcast import _native

# a session is asked whether it still stands so long before its flow connects
AHEAD_S = 2.0
# what can happen to one flow while the others go on
OWN_FAULTS = ("no-connection", "broken", "stalled", "control-lost")


@dataclass
class Runner:
    """One flow on its way."""

    plan: Plan
    pairs: list[dict[str, str]]
    kernel_control: str
    client: _native.Client
    job: _native.Job
    # connect() since the common zero, once it is known
    started_s: float = 0.0
    report: dict[str, Any] | None = None
    error: BaseException | None = None
    ended_s: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def run(self, zero_ns: int, every_ns: int) -> None:
        """To be called in a thread of its own."""
        plan = self.plan
        try:
            if self.over.wait(max(0.0, plan.start_s - AHEAD_S - since(zero_ns))):
                return
            called = time.monotonic_ns()
            start_ns = max(0, zero_ns + round(plan.start_s * 1e9) - called)
            stop_ns = None if plan.stop_s is None else max(0, zero_ns + round(plan.stop_s * 1e9) - called)
            self.started_s = (called + start_ns - zero_ns) / 1e9
            what = (json.dumps(self.pairs), plan.multipath, plan.bytes, self.kernel_control)
            report = json.loads(self.client.flow(self.job, *what, start_ns, stop_ns, every_ns))
            self.started_s = (called - zero_ns) / 1e9 + report["waited_s"]
            self.report = report
        except BaseException as error:
            self.error = error
        finally:
            self.ended_s = since(zero_ns)

    def cancel(self) -> None:
        """Ends it without a result."""
        self.over.set()
        self.job.cancel()

    def flow(self, run_ended_s: float) -> Flow:
        """Its result."""
        plan, report = self.plan, self.report
        samples = [self._sample(sample) for sample in json.loads(self.job.samples())]
        over_s = self.ended_s if report is None else self.started_s + report["elapsed_s"]
        done = report is not None and not report["stopped"]
        last = samples[-1] if samples else Sample(over_s, 0, ())
        return Flow(
            name=plan.name,
            control=plan.control,
            kernel_control=self.kernel_control if report is None else report["control"],
            protocol="mptcp" if plan.multipath else "tcp",
            paths=plan.paths,
            started_s=self.started_s,
            connect_s=None if report is None else report["connect_s"],
            finished_s=over_s if done else None,
            stopped_s=None if done else over_s,
            bytes_acked=last.bytes_acked,
            bytes_retransmitted=sum(s.bytes_retransmitted for s in last.subflows),
            goodput_bps=rate(last.bytes_acked, over_s - self.started_s),
            completion_s=report["elapsed_s"] if done and report is not None else None,
            error=None if self.error is None else str(self.error),
            notes=() if report is None else _notes(report),
            samples=tuple(samples),
            run_ended_s=run_ended_s,
        )

    def _sample(self, sample: dict[str, Any]) -> Sample:
        subflows, left = [], list(sample["subflows"])
        for pair in self.pairs:
            # switches carry several paths between one pair of addresses, and a path more than one subflow
            of_pair = (
                s for s in left if (s["path"], s["local"], s["remote"]) == (pair["name"], pair["local"], pair["remote"])
            )
            s = next(of_pair, None)
            if s is not None:
                left.remove(s)
            if s is None or s["joined_s"] is None:
                subflows.append(SubflowSample(pair["name"], 0, 0, 0, None))
            else:
                of = ("bytes_acked", "bytes_retransmitted", "cwnd_packets", "rtt_s")
                subflows.append(SubflowSample(pair["name"], *(s[key] for key in of)))
        return Sample(self.started_s + sample["at_s"], sample["bytes_acked"], tuple(subflows))


def _notes(report: dict[str, Any]) -> tuple[str, ...]:
    fallback = (f"plain TCP: {report['fallback_reason']}",) if report["fallback"] else ()
    subflows = (f"subflow over {s['path']}: {s['note']}" for s in report["subflows"] if s["note"])
    return (*report["notes"], *fallback, *subflows)


def since(zero_ns: int) -> float:
    """The time since the common zero [s]."""
    return (time.monotonic_ns() - zero_ns) / 1e9


def runners(
    wanted: Sequence[Plan],
    path: Callable[[str], Path],
    open_session: Callable[[], _native.Client],
    kernel_name: Callable[[str], str],
) -> list[Runner]:
    """Sessions for all flows; refuses what cannot run before anything is sent."""
    from pathcast import _native

    for plan in wanted:
        if plan.web:
            raise usage(f"flow `{plan.name}` is made of pages, which only the simulator fetches; see docs/scenario.md")
    made: list[Runner] = []
    try:
        for plan in wanted:
            seen: dict[str, int] = {}
            pairs = []
            for name in plan.paths:
                pairs.append(path(name).pair(seen.setdefault(name, 0)))
                seen[name] += 1
            control = kernel_name(plan.control)
            made.append(Runner(plan, pairs, control, open_session(), _native.Job()))
            made[-1].client.check_control(control)
    except BaseException:
        close(made)
        raise
    return made


def close(made: Sequence[Runner]) -> None:
    """Ends the sessions."""
    for runner in made:
        runner.client.close()


def carry(made: Sequence[Runner], zero_ns: int, every_s: float, cancelled: Callable[[], bool]) -> None:
    """Runs all flows to their ends. What is wrong with one flow's way is in its result, all else is raised."""
    threads = [threading.Thread(target=r.run, args=(zero_ns, round(every_s * 1e9)), daemon=True) for r in made]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            next(thread for thread in threads if thread.is_alive() or thread is threads[-1]).join(0.1)
            if cancelled():
                raise PathcastError("interrupted", "interrupted", None, Exit.INTERRUPTED)
            for runner in made:
                if runner.error is not None and getattr(runner.error, "code", None) not in OWN_FAULTS:
                    raise runner.error
    except BaseException:
        for runner in made:
            runner.cancel()
        deadline = time.monotonic() + 2
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        raise
    for runner in made:
        if runner.error is not None and getattr(runner.error, "code", None) not in OWN_FAULTS:
            raise runner.error


def await_empty(ledger: Callable[[], dict[str, Any]]) -> None:
    """Waits until no real packet is in the links, such as those that a flow broken off has left; a minute at most."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        counters = [link["counters"] for group in ledger()["groups"] for link in group["links"]]
        if all(c["offered"]["packets"] == c["carried"]["packets"] + _drops(c) for c in counters):
            return
        time.sleep(0.02)


def link_uses(links: list[dict[str, Any]], before: dict[str, Any], after: dict[str, Any]) -> tuple[LinkUse, ...]:
    """What the scenario's links did between two ledgers, in its order."""
    first, last = _counts(before), _counts(after)
    return tuple(
        LinkUse(name, end, *(now - then for now, then in zip(last[key], first[key], strict=True)))
        for name in (link["name"] for link in links)
        for end in ("ab", "ba")
        for key in [f"{name}/{end}"]
    )


def _counts(ledger: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    counted = {}
    for group in ledger["groups"]:
        for link in group["links"]:
            c = link["counters"]
            counted[link["name"]] = (c["carried"]["packets"], c["carried"]["bytes"], _drops(c))
    return counted


def _drops(counters: dict[str, Any]) -> int:
    return sum(cause["packets"] for cause in counters["dropped"].values())
