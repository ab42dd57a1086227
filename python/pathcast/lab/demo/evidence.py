"""The demo's experiment for several seeds, pooled over the unseen rounds, with the bars that it must reach.

python -m pathcast.lab.demo.evidence [--world emu] [--seeds 1-5] [--out DIR] [--vary-rate]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathcast.forecast.rounds import MINIMUM_SHARE
from pathcast.lab.demo.page import write
from pathcast.lab.demo.plan import Plan
from pathcast.lab.demo.run import WORLDS, make_world, run
from pathcast.results.rundir import RunDir
from pathcast.results.style import LABELS
from pathcast.units import bits

NAMES = ("multi", "single", "cdf", "placebo")


class Bars:
    """Collects what was found against what must hold."""

    def __init__(self) -> None:
        self.rows: list[tuple[bool, str]] = []

    def check(self, holds: bool, text: str) -> None:
        self.rows.append((holds, text))

    @property
    def all_hold(self) -> bool:
        return all(holds for holds, _ in self.rows)


def pooled(documents: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], Bars]:
    """Errors over all counted unseen rounds, and the bars."""
    from pathcast.predict import summarise

    rounds = [r for d in documents for r in d["rounds"] if r["unseen"] and r["left_out"] is None]
    if not rounds:
        bars = Bars()
        bars.check(False, "not a single unseen round could be counted")
        return {}, bars
    actual = [r["actual_bps"] for r in rounds]

    def of(name: str) -> list[float]:
        return [r["placebo_bps"] if name == "placebo" else r["predicted_bps"][name] for r in rounds]

    errors = {name: dict(summarise(of(name), actual)) for name in NAMES if all(of(name))}
    bars = Bars()
    rmse = {name: e["rmse_bps"] for name, e in errors.items()}
    ratio = rmse["multi"] / rmse["single"]
    bars.check(ratio <= 0.8, f"multi-probe's RMSE is {ratio:.2f} of single-probe's at equal probe bytes (at most 0.8)")
    within = errors["multi"]["fraction_within_10pct"]
    bars.check(within >= 0.6, f"{100 * within:.0f} % of rounds within 10 % (at least 60 %)")
    worse = "placebo" in rmse and rmse["placebo"] > max(rmse["multi"], rmse["single"])
    bars.check(worse, f"with wrong probes the RMSE is {bits(rmse.get('placebo'))}, worse than both")
    every = [r for d in documents for r in d["rounds"] if r["left_out"] is None]
    fallbacks = sum(bool(r["fallback"]) for r in every)
    bars.check(fallbacks == 0, f"{fallbacks} of {len(every)} counted rounds fell back to TCP (none)")
    least = min(min(r["subflow_bytes"]) / sum(r["subflow_bytes"]) for r in every)
    bars.check(least >= MINIMUM_SHARE, f"the smallest share of a subflow is {100 * least:.1f} % (at least 2 %)")
    for d in documents:
        if d["untrustworthy"]:
            bars.check(False, f"seed {d['plan']['seed']}: {d['untrustworthy']}")
    return errors, bars


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="1-5", help="for example 1-5 or 7")
    parser.add_argument("--world", choices=WORLDS, default="emu")
    parser.add_argument("--out", type=Path, help="default: out/evidence-demo, with -sim in a simulation")
    parser.add_argument("--lanes", type=int, default=3)
    parser.add_argument("--vary-rate", action="store_true")
    given = parser.parse_args()
    out = given.out or Path("out") / ("evidence-demo-sim" if given.world == "sim" else "evidence-demo")
    first, _, last = given.seeds.partition("-")
    documents = []
    for seed in range(int(first), int(last or first) + 1):
        plan = Plan(seed=seed, vary_rate=given.vary_rate)
        document = run(plan, make_world(plan, given.world), given.lanes, _Quiet())
        write(document, RunDir(out / f"seed-{seed}"))
        documents.append(document)
        e, c = document["errors"], document["counted"]
        print(
            f"seed {seed}: {c['unseen']} unseen rounds, RMSE multi {bits(e['multi']['rmse_bps'])}, "
            f"single {bits(e['single']['rmse_bps'])}, CDF {bits(e['cdf']['rmse_bps'])}; "
            f"left out {c['left_out']}, repeated {c['repeated']}; regret {100 * document['choice']['regret']:.1f} %; "
            f"{document['elapsed_s']:.0f} s",
            flush=True,
        )
    errors, bars = pooled(documents)
    print("\npooled over the unseen rounds:")
    for name, e in errors.items():
        within, median = 100 * e["fraction_within_10pct"], 100 * e["median_abs_rpe"]
        print(
            f"  {LABELS[name]:26} RMSE {bits(e['rmse_bps']):>12}, within 10 %: {within:3.0f} %, "
            f"median |RPE| {median:.1f} %, n {e['n']}"
        )
    for holds, text in bars.rows:
        print(f"  {'ok    ' if holds else 'FAILED'} {text}")
    summary = {"schema": "pathcast.evidence-demo/1", "world": given.world, "errors": errors, "bars": bars.rows}
    RunDir(out).text("summary.json", json.dumps(summary, indent=1) + "\n")
    return 0 if bars.all_hold else 1


class _Quiet:
    def phase(self, name: str, steps: int) -> None:
        pass

    def step(self, done: Any) -> None:
        pass


if __name__ == "__main__":
    sys.exit(main())
