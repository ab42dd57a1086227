"""Several flows at once in the simulator: a run of the scenario from time zero."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from pathcast.errors import PathcastError
from pathcast.interruptible import interruptible
from pathcast.worlds.flows import Flow, FlowsResult, LinkUse, Plan, Sample, SubflowSample, plans, rate
from pathcast.worlds.results import Verdict
from pathcast.worlds.topology import Topology


def run(
    topology: Topology,
    sets: list[tuple[str, str]],
    names: Sequence[str] | None,
    until_s: float | None,
    every_s: float,
    events: int,
) -> FlowsResult:
    """Runs flows of the scenario with `sets` over it; a signal ends the run, and (exit 1) the limit of events."""
    wanted = plans(topology.scenario, names, until_s)
    if until_s is not None:
        sets = [*sets, ("end", f"{round(until_s * 1e9)}ns")]
    began = time.monotonic()
    report, series = _simulate(topology, sets, [plan.name for plan in wanted], round(every_s * 1e9), events)
    if report["stopped"] == "event-limit":
        told = f"the flows had not ended after {events} events of the simulator, the limit"
        raise PathcastError("event-limit", told, "raise the limit (--limit-events), or give `until`")
    ended_s = report["simulated_s"]
    flows = [_flow(*of, ended_s) for of in zip(wanted, report["flows"], series, strict=True)]
    links = (LinkUse(**{key: link[key] for key in LinkUse.__dataclass_fields__}) for link in report["links"])
    wall_s = time.monotonic() - began
    head = ("sim", report["name"], report["seed"], every_s, ended_s)
    return FlowsResult(*head, tuple(flows), tuple(links), Verdict(), wall_s)


def _simulate(
    topology: Topology, sets: list[tuple[str, str]], names: list[str], every_ns: int, events: int
) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    from pathcast import _native

    stop = _native.Stop()
    arguments = (topology.text, sets, topology.base, topology.called, stop, names, every_ns, events)
    report, series = map(json.loads, interruptible(lambda: _native.simulate_flows(*arguments), stop.cancel))
    return report, series + [[] for _ in range(len(names) - len(series))]


def _flow(plan: Plan, report: dict[str, Any], series: list[dict[str, Any]], ended_s: float) -> Flow:
    completion_s, joined = report["completion_s"], [s["joined_s"] for s in report["subflows"]]
    started_s = plan.start_s
    finished_s = None if completion_s is None else started_s + completion_s
    samples = [_sample(plan, sample) for sample in series]
    if finished_s is not None:
        samples.append(_sample(plan, _last(report, finished_s)))
        over_s = finished_s
    elif report["failed"]:
        over_s = samples[-1].t_s if samples else started_s
    else:
        over_s = ended_s if plan.stop_s is None else min(ended_s, plan.stop_s)
    bytes_acked = samples[-1].bytes_acked if samples else 0
    return Flow(
        name=plan.name,
        control=plan.control,
        kernel_control=report["control"],
        protocol="mptcp" if plan.multipath else "tcp",
        paths=plan.paths,
        started_s=started_s,
        connect_s=min((s for s in joined if s is not None), default=None),
        finished_s=finished_s,
        stopped_s=over_s if finished_s is None else None,
        bytes_acked=bytes_acked,
        bytes_retransmitted=sum(s["retransmitted_bytes"] for s in report["subflows"]),
        goodput_bps=rate(bytes_acked, over_s - started_s),
        completion_s=completion_s,
        error="given up: no path answered any more" if report["failed"] else None,
        notes=(),
        samples=tuple(samples),
        run_ended_s=ended_s,
    )


def _last(report: dict[str, Any], at_s: float) -> dict[str, Any]:
    """Where a flow stood when it was done."""
    subflow = {
        "bytes_acked": "bytes",
        "bytes_retransmitted": "retransmitted_bytes",
        "cwnd_packets": "cwnd_packets",
        "rtt_s": "srtt_s",
    }
    subflows = [{key: s[of] for key, of in subflow.items()} for s in report["subflows"]]
    return {"at_s": at_s, "bytes_acked": report["bytes"], "subflows": subflows}


def _sample(plan: Plan, sample: dict[str, Any]) -> Sample:
    found = [SubflowSample(path, **of) for path, of in zip(plan.paths, sample["subflows"], strict=False)]
    missing = [SubflowSample(path, 0, 0, 0, None) for path in plan.paths[len(found) :]]
    return Sample(sample["at_s"], sample["bytes_acked"], (*found, *missing))
