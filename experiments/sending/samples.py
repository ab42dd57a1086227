"""A cell: over each path alone, over both by the kernel's scheduler, and by pathcast's rule; paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean, median, stdev
from typing import Any

from pathcast.errors import PathcastError

from .cells import NAMES, draw, fast, four

# Student's t, 90 % on one side, by degrees of freedom
T90 = {1: 3.078, 2: 1.886, 3: 1.638, 4: 1.533}


def scenario(point: Mapping[str, Any], setup: Mapping[str, Any], world: str) -> dict[str, Any]:
    drawn = {"four": four, "fast": fast}.get(point.get("grid"), draw)
    cell = drawn(point["case"], setup["longest_s"][world])
    of = {"queue_bdp": min(line.queue_bdp for line in cell.lines), "loss": max(line.loss for line in cell.lines)}
    rates = [line.rate_mbit for line in cell.lines]
    of |= {"times": max(rates) / min(rates), "bdps": cell.bytes / max(line.bdp for line in cell.lines)}
    # without random loss every seed is the same
    pairs = 1 if drawn is fast else setup["pairs"][world]
    return {"text": cell.text, "bytes": cell.bytes, "control": cell.control, "pairs": pairs, "of": of}


def sample(scenario: dict[str, Any], world: str) -> dict[str, Any]:
    """control, bytes, times (ratio of the rates), bdps (size over the larger BDP), queue_bdp (the smaller), loss (the
    larger); medians over the seeds [bit/s]: a_bps, b_bps (c_bps, d_bps) alone, both_bps (all), plain_bps; ratio,
    plain_ratio: median of all over the best alone; bound: of the ratio's mean, 90 % on one side; part: of the sum of
    all alone."""
    runs = _simulated(scenario) if world == "sim" else _emulated(scenario)
    names = [name for name in NAMES if name in runs[0]]
    alone = [run[_order(runs, names)[0]] for run in runs]
    ratios = [run["both"] / one for run, one in zip(runs, alone, strict=True)]
    plain = [run["plain"] / one for run, one in zip(runs, alone, strict=True)]
    parts = [run["both"] / sum(run[name] for name in names) for run in runs]
    found = {f"{name}_bps": median(run[name] for run in runs) for name in (*names, "both", "plain")}
    found |= {"ratio": median(ratios), "bound": bound(ratios), "plain_ratio": median(plain), "part": median(parts)}
    return {"control": scenario["control"], "bytes": scenario["bytes"], **scenario["of"], **found}


def bound(ratios: list[float]) -> float:
    """What the mean is not below, by 90 % (Student's t, one side)."""
    if len(ratios) == 1:
        return ratios[0]
    return mean(ratios) - T90[len(ratios) - 1] * stdev(ratios) / math.sqrt(len(ratios))


def _simulated(about: Mapping[str, Any]) -> list[dict[str, float]]:
    from pathcast.worlds.many import Draw, Future, draws
    from pathcast.worlds.topology import Topology

    topology = Topology.parse(about["text"], [], base=None)
    seeds = [(("seed", str(seed)),) for seed in range(1, about["pairs"] + 1)]
    size, control = about["bytes"], about["control"]
    names = [name for name in NAMES if f'name = "{name}"' in about["text"]]
    alone = [Draw(sets, tuple(Future((name,), size, control) for name in names)) for sets in seeds]
    ended = draws(topology, alone, threads=1, keep_errors=True)
    runs = [dict(zip(names, [_alone(one, size) for one in each], strict=True)) for each in ended]
    order = _order(runs, names)
    both = [Draw(sets, (Future(order, size, control), Future(order, size, control, plain=True))) for sets in seeds]
    for run, each in zip(runs, draws(topology, both, threads=1), strict=True):
        run["both"], run["plain"] = _speeds(each)
    return runs


def _alone(outcome: Any, size: int) -> float:
    """What has not ended in an hour had at most this: of the sum both then have rather less."""
    if isinstance(outcome, PathcastError):
        if outcome.code != "stalled":
            raise outcome
        return size * 8 / 3600
    return float(outcome.throughput_bps)


def _speeds(outcomes: Any) -> list[float]:
    return [one.throughput_bps for one in outcomes]


def _order(runs: list[dict[str, float]], names: Sequence[str]) -> tuple[str, ...]:
    """The best path first: it is known beforehand."""
    return tuple(sorted(names, key=lambda name: -median(run[name] for run in runs)))


def _emulated(about: Mapping[str, Any]) -> list[dict[str, float]]:
    from pathcast.worlds.emu import Emu
    from pathcast.worlds.topology import Topology

    size, control = about["bytes"], about["control"]
    with Emu(Topology.parse(about["text"], [], base=None)) as world:
        with world.judged() as verdict:
            runs = []
            for _ in range(about["pairs"]):
                runs.append({path: world.tcp_probe(path, size, control).throughput_bps for path in "ab"})
                order = _order(runs, "ab")
                runs[-1]["both"] = world.transfer(order, size, control).throughput_bps
                runs[-1]["plain"] = world.transfer(order, size, control, plain=True).throughput_bps
        verdict.check()
    return runs
