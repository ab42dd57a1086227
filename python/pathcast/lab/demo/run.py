"""The demo from its plan to its document: forecast every choice, send, compare; change a line; once more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from pathcast.errors import Exit, PathcastError
from pathcast.forecast.ask import Answer, ask
from pathcast.forecast.forecast import Job
from pathcast.lab.demo.plan import PATIENCE_S, TIME_S, Plan
from pathcast.worlds.measurement import Request
from pathcast.worlds.results import Transfer
from pathcast.worlds.topology import Topology

WORLDS = ("emu", "sim")


class Listener(Protocol):
    """Who is told how far the demo is."""

    def phase(self, text: str) -> None: ...
    def forecast(self, round: dict[str, Any]) -> None: ...
    def sent(self, round: dict[str, Any], option: dict[str, Any]) -> None: ...


def run(plan: Plan, make_world: Callable[[], Any], listener: Listener) -> dict[str, Any]:
    """The document of a whole demo; `untrustworthy` in it says why, or is None."""
    began = time.monotonic()
    listener.phase("building the network")
    with make_world() as world:
        rounds = []
        for change in (None, *((plan.change,) if plan.change else ())):
            told = "as the lines are" if change is None else change.told
            if change is not None:
                listener.phase(f"now {told}")
                world.set(change.link, direction="ab", **change.set)
            rounds.append(_round(world, plan, told, listener, lambda: time.monotonic() - began < TIME_S))
        name = str(world.world)
    faults = [fault for round in rounds for fault in round["faults"]]
    return {
        "world": name,
        "plan": asdict(plan),
        "untrustworthy": faults[0] if faults else None,
        "rounds": rounds,
        "elapsed_s": time.monotonic() - began,
    }


def _round(world: Any, plan: Plan, told: str, listener: Listener, in_time: Callable[[], bool]) -> dict[str, Any]:
    listener.phase("measuring both lines, and looking how others' traffic varies")
    job = Job(plan.size_bytes, plan.controls(world.controls), "out", world.ends)
    answer = ask(world, job, Request(effort=plan.effort))
    round = _forecast(answer, told)
    listener.forecast(round)
    chosen = (round["chosen"], round["chosen_control"])
    # the chosen one first: the sooner a transfer begins after the measurement, the more its forecast knows of it
    for option in sorted(round["options"], key=lambda one: (one["paths"], one["control"]) != chosen):
        mine = (option["paths"], option["control"]) == chosen
        if not mine and not (in_time() and (option["duration_s"]["value"] or PATIENCE_S + 1) <= PATIENCE_S):
            continue
        listener.phase(f"sending over {' and '.join(option['paths'])}")
        _send(world, plan, option, round["faults"], in_time)
        listener.sent(round, option)
    sent = [one["sent"]["duration_s"] for one in round["options"] if one["sent"]]
    best = next(one for one in round["options"] if (one["paths"], one["control"]) == chosen)
    if best["sent"] and len(sent) > 1:
        round["regret"] = best["sent"]["duration_s"] / min(sent) - 1
    return round


def _forecast(answer: Answer, told: str) -> dict[str, Any]:
    document = answer.document()
    wanted = ("options", "chosen", "chosen_control", "why", "loads", "notes", "probe_bytes", "elapsed_s", "wall_s")
    found: dict[str, Any] = {"told": told, **{name: document[name] for name in wanted}}
    found["measured"] = [
        {
            "path": path.name,
            "capacity_bps": path.directions["out"].capacity_bps.value,
            "available_bps": path.directions["out"].available_bps.value,
            "rtt_s": path.rtt_s.value,
        }
        for path in answer.seen.measured.paths
        if "out" in path.directions
    ]
    options = [{**one, "sent": None} for one in found["options"]]
    return {**found, "options": options, "regret": None, "faults": [answer.fault] if answer.fault else []}


def _send(world: Any, plan: Plan, option: dict[str, Any], faults: list[str], in_time: Callable[[], bool]) -> None:
    """Sends over an option's paths, and puts what came into it; what the emulator or Multipath TCP did wrong is a
    fault, after it was tried again while there is time."""
    paths, control = option["paths"], option["control"]

    def once() -> tuple[Transfer, Any]:
        with world.judged() as verdict:
            one = len(paths) == 1
            sent = (world.tcp_probe if one else world.transfer)(paths[0] if one else paths, plan.size_bytes, control)
        return sent, verdict

    (transfer, verdict), _ = world.again(once, lambda made: _fault(made[0], made[1], paths) is None or not in_time())
    if fault := _fault(transfer, verdict, paths):
        faults.append(fault)
    took = transfer.elapsed_s
    value, low, high = (option["duration_s"][name] for name in ("value", "low", "high"))
    option["sent"] = {
        "duration_s": took,
        "throughput_bps": transfer.throughput_bps,
        "bytes_by_path": transfer.bytes_by_path(paths),
        # as RPE of durations: (forecast - came) / the less of both
        "error": (value - took) / min(value, took) if value else None,
        "inside": (low or 0.0) <= took and (high is None or took <= high),
    }


def _fault(transfer: Transfer, verdict: Any, paths: Sequence[str]) -> str | None:
    if not verdict.valid:
        return str(verdict.fault)
    try:
        transfer.check(len(paths) if len(paths) > 1 else 0)
    except PathcastError as error:
        if error.exit == Exit.INTERRUPTED:
            raise
        return error.message
    return None


def make_world(plan: Plan, world: str) -> Callable[[], Any]:
    """What makes a world of that name with the plan's network."""
    topology = Topology.parse(plan.topology(), source="the demo's topology")
    if world == "sim":
        from pathcast.worlds.sim import Sim

        return lambda: Sim(topology)
    from pathcast.worlds.emu import Emu

    return lambda: Emu(topology)
