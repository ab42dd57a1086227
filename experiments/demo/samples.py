"""A whole demo, as `pathcast demo` has it; in the emulator also its transfers again in the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pathcast.errors import Exit, PathcastError
from pathcast.lab.paper.plan import PATHS, Plan
from pathcast.lab.paper.rounds import apply
from pathcast.lab.paper.run import make_world, run

# its rounds take turns on the machine, and are repeated, one by one
OWN_TURNS = True
# what the samples are made of beside the worlds
PACKAGES = (
    *("pathcast.lab.paper", "pathcast.forecast", "pathcast.predict", "pathcast.history"),
    *("pathcast.overhead", "pathcast.plan.terms"),
)
SLOW_FIRST = "first path's RTT 1.5 times the other's"


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The demo's own options."""
    return {"seed": point["seed"], "vary_rate": point["vary_rate"], "lanes": setup["lanes"][world]}


def sample(scenario: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The demo's document. Raises PathcastError (`late`) where it says that it is not to be trusted.

    `rounds`: training and unseen rounds, predictions and what was sent; `choice`: the last round; `beside`: kind of
    transfer and simulated over emulated throughput, of every transfer of the rounds that count.
    """
    plan = Plan(**{key: value for key, value in scenario.items() if key != "lanes"})
    document = run(plan, make_world(plan, world), scenario["lanes"], _Nobody())
    if document["untrustworthy"]:
        raise PathcastError("late", document["untrustworthy"], None, Exit.UNTRUSTWORTHY)
    names = ("rounds", "errors", "counted", "choice", "shares", "elapsed_s")
    again = list(_simulated(plan, document["rounds"])) if world == "emu" and not plan.vary_rate else None
    return {**{name: document[name] for name in names}, "beside": again}


def _simulated(plan: Plan, rounds: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every transfer begins afresh."""
    with make_world(plan, "sim")() as world:
        for row in rounds:
            for kind, paths, size, actual in _transfers(plan, row) if row["left_out"] is None else ():
                apply(world, plan.fixed(tuple(row["rtt_s"])), 0)
                if len(paths) == 1:
                    done = world.tcp_probe(paths[0], size, plan.control)
                else:
                    done = world.transfer(paths, size, plan.control, plain=True)
                yield {"kind": kind, "ratio": done.throughput_bps / actual}


def _transfers(plan: Plan, row: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], int, float]]:
    """What a round has measured: kind, paths, bytes, throughput."""
    for path, probe, whole in zip(PATHS, row["probes_bps"], row["tcp_bps"] or (None,) * len(PATHS), strict=True):
        yield "TCP, 64 KB", (path,), plan.probe_bytes, probe
        if whole:
            yield "TCP, 16 MB", (path,), plan.transfer_bytes, whole
    # the first path carries the handshake, and what is queued before the second joins
    where = SLOW_FIRST if row["rtt_s"][0] > 1.5 * row["rtt_s"][1] else "else"
    yield f"MPTCP, 128 KB, {where}", PATHS, plan.probe_total_bytes, row["mptcp_probe_bps"]
    yield f"MPTCP, 16 MB, {where}", PATHS, plan.transfer_bytes, row["actual_bps"]


class _Nobody:
    """Hears how far the demo is."""

    def phase(self, name: str, steps: int) -> None:
        pass

    def step(self, done: Any) -> None:
        pass
