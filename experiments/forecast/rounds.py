"""Forecasts of one transfer after another over the same two real paths, with and without what the rounds before taught:
`python -m experiments.forecast.rounds PAIRS ROUNDS`, of the tuning half. A round a line, then the medians."""

from __future__ import annotations

import random
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from pathcast.forecast.answer import option
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.forecast import Job, forecast
from pathcast.forecast.past import Carried, Earlier, Judged, Past
from pathcast.forecast.watch import watch
from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

from .networks import load, pairs, text

# between two rounds [s]
PAUSE_S = 30.0


def rounds(two, starts_s, seed, number, job):
    """Of every round after the first: what came, the option with and without the past [s]."""
    names, past, found = ("p1", "p2"), Past({"p1": (), "p2": ()}), []
    with Sim(Topology.parse(text(two, starts_s, seed))) as network:
        for n in range(number):
            network.wait(PAUSE_S)
            seen = watch(
                network, network.measure(request=Request(seed=seed + n)), "out", job.size_bytes, seed + 100 * n
            )
            answer = forecast(seen.measured, job, seen.loads, 24, Effort(1e9, 8_000_000), n, past)
            runner = next(one for one in answer.runners if len(one.choice.paths) == 2)
            told = option(runner, job.size_bytes, None)
            came = network.transfer(runner.choice.paths, job.size_bytes, runner.choice.control).elapsed_s
            if n:
                found.append((came, told))
            passed = seen.measured.elapsed_s + seen.elapsed_s + came + PAUSE_S
            done = Carried(0.0, frozenset(names), runner.choice.control, job.size_bytes, came)
            past = Past(
                {
                    name: (
                        Earlier(came, seen.measured.path(name), "usual"),
                        *(replace(one, age_s=one.age_s + passed) for one in past.of(name)),
                    )
                    for name in names
                    if "out" in seen.measured.path(name).directions
                },
                (done, *(replace(one, age_s=one.age_s + passed) for one in past.carried)),
                (
                    Judged(done, told, job.size_bytes),
                    *(
                        replace(one, carried=replace(one.carried, age_s=one.carried.age_s + passed))
                        for one in past.judged
                    ),
                ),
            )
    return found


def main(number: int, each: int) -> None:
    setup = tomllib.loads((Path(__file__).parent / "plan.toml").read_text())["setup"]
    profiles, off = load(setup["profiles"]), {"twin": [], "past": [], "taught": []}
    inside = []
    for pair in pairs(profiles, "tuning")[:number]:
        two, draw = [profiles[name] for name in pair.split("+")], random.Random(pair)
        starts = [draw.uniform(0, len(one.cross_kbps)) for one in two]
        job = Job(setup["bytes"] // 4, Controls((setup["single"],), (setup["several"],)))
        for came, told in rounds(two, starts, 1, each, job):
            taught = told["duration_s"]["value"]
            for way, said in (("taught", taught), *told["ways_s"].items()):
                off.setdefault(way, []).append(abs(said / came - 1))
            inside.append(told["duration_s"]["low"] <= came <= (told["duration_s"]["high"] or came))
            print(
                pair, round(came, 2), told["by"], {way: round(of, 2) for way, of in told["ways_s"].items()}, flush=True
            )
    print({way: f"{median(of):.1%}" for way, of in off.items() if of}, f"inside {fmean(inside):.0%} of {len(inside)}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
