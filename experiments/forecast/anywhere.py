"""Forecasts as an operator meets them: one to four paths of any kind, 1 MB to 1 GB, both ways, by `predict`'s default.

`python -m experiments.forecast.anywhere RUNS [FIRST] [EFFORT]` draws so many networks from seed FIRST (1) on: a path is
a line of `topologies/` or one that experiments/lines draws, of a class below; now and then a whole topology. A JSON
line a run on stdout, a table by classes on stderr at the end. Seeds below 5000 are those that anything was tuned on.
"""

from __future__ import annotations

import importlib
import json
import math
import random
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from statistics import fmean, median
from typing import Any

from pathcast.errors import PathcastError
from pathcast.forecast.answer import option, quantile
from pathcast.forecast.controls import Controls
from pathcast.forecast.effort import Effort
from pathcast.forecast.forecast import Job, forecast
from pathcast.forecast.twin import Choice
from pathcast.forecast.watch import Watched, watch
from pathcast.worlds.many import Future
from pathcast.worlds.measurement import Request
from pathcast.worlds.results import Transfer
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

_lines = importlib.import_module(f"{__package__.rpartition('.')[0]}.lines.lines")
TOPOLOGIES = Path(__file__).resolve().parents[2] / "topologies"
# what `lines.draw` is asked for, and what the line that it draws must have
CLASSES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "wired": ({}, {"shape": "plain"}),
    "beside TCP": ({"cross": "tcp"}, {"shape": "plain"}),
    "fair": ({"fair": True}, {"shape": "plain"}),
    "managed": ({"managed": True}, {"shape": "plain"}),
    "policed": ({"policed": True}, {}),
    "loss": ({}, {"shape": "loss"}),
    "loss in rows": ({}, {"shape": "gilbert-elliott"}),
    "rate varies": ({}, {"shape": "trace"}),
}
LINES = ("dsl", "cable", "gpon", "wifi", "lte", "5g", "starlink", "policed")
WHOLE = ("two-path", "shared-bottleneck", "three-path", "two-wan", "office", "village", "van", "two-gigabit")
# of drawn lines; of random loss; a job takes about so long at most, and all choices together carry so much
MOST_BPS, LOSS, SIZES, MOST_S, ALL_BYTES = 100e6, (1e-4, 0.02), (1e6, 1e10), 20.0, 4e8
# `predict` has the time for that, too
WHOLE_JOBS = Effort(1e9, 10**15)
SINGLE, SEVERAL = "cubic", "lia"
SETTLE_S, FLOOR = (5.0, 30.0), 4
# as long as the traces of `topologies/` that change each second
TRACE_S = 600
OFF = 0.1


@dataclass(frozen=True)
class Case:
    """A network, what its paths are, and the job."""

    seed: int
    text: str
    base: str
    kinds: tuple[str, ...]
    size: int
    direction: str


def case(seed: int) -> Case:
    """That of a seed."""
    r = random.Random(f"pathcast forecast anywhere {seed}")  # a str seeds by SHA-512
    direction = r.choice(("out", "out", "in"))
    kinds: tuple[str, ...]
    if r.random() < 0.15:
        name = r.choice(WHOLE)
        document = tomllib.loads((TOPOLOGIES / f"{name}.toml").read_text())
        document.pop("flow", None)
        kinds = (name,)
    else:
        number = r.choice((1, 1, 1, 2, 2, 3, 4))
        kinds, document = tuple(r.choice((*CLASSES, *LINES)) for _ in range(number)), {}
        for at, kind in enumerate(kinds):
            other = tomllib.loads(_drawn(kind, r, direction) if kind in CLASSES else _shipped(kind))
            for key, tables in _renamed(other, f"p{at + 1}").items():
                document.setdefault(key, []).extend(tables)
    document |= {"name": "anywhere", "seed": seed}
    _elsewhere(document, random.Random(f"traces {seed}"))
    topology = Topology.parse(_toml(document), base=str(TOPOLOGIES))
    way = {"out": "up_bps", "in": "down_bps"}[direction]
    rates = [path[way] or MOST_BPS for path in topology.about()["paths"]]
    size = math.exp(r.uniform(*(math.log(one) for one in SIZES)))
    size = min(size, MOST_S * sum(rates) / 8 * 0.5, ALL_BYTES / (2 ** len(rates) - 1))
    return Case(seed, _toml(document), str(TOPOLOGIES), kinds, max(1_000_000, round(size)), direction)


def _elsewhere(document: Mapping[str, Any], r: random.Random) -> None:
    """Traces begin anywhere: what comes after their first half minute is always the same."""
    for link in document["link"]:
        rate = link.get("rate")
        ways = (rate, *rate.values()) if isinstance(rate, dict) else ()
        for trace in (way for way in ways if isinstance(way, dict) and "trace" in way):
            trace["offset"] = f"{r.randrange(TRACE_S)}s"


def _shipped(name: str) -> str:
    return (TOPOLOGIES / f"{name}.toml").read_text()


def _drawn(kind: str, r: random.Random, direction: str) -> str:
    asked, wanted = CLASSES[kind]
    while True:
        cross = r.choice(("idle", "inelastic"))
        about = {"fair": False, "managed": False, "policed": False, "cross": cross, **asked}
        line = _lines.draw(f"forecast anywhere {r.random()}", **about)
        have = all(getattr(line, key) == value for key, value in wanted.items())
        if have and line.direction == direction and line.rate_bps <= MOST_BPS:
            break
    if line.loss:
        line = replace(line, loss=math.exp(r.uniform(*(math.log(one) for one in LOSS))))
    return str(_lines.one_path(line, 1))


def _renamed(document: Mapping[str, Any], prefix: str) -> dict[str, list[Any]]:
    """Its links, paths, traffic and changes; nothing but the ends has a name of before."""

    def name(of: str) -> str:
        return of if of in ("client", "server") else f"{prefix}-{of}"

    found: dict[str, list[Any]] = {}
    for key in ("link", "path", "traffic", "change"):
        for table in document.get(key, ()):
            new = {word: name(of) if word in ("name", "a", "b", "link", "path") else of for word, of in table.items()}
            if key == "path":
                new = {"name": prefix, "links": [name(link) for link in table["links"]]}
            elif "path" in table:
                new["path"] = prefix
            found.setdefault(key, []).append(new)
    return found


def mirrored(text: str) -> str:
    """The same network with the client where the server was."""
    document = tomllib.loads(text)
    swap = {"client": "server", "server": "client"}
    for link in document["link"]:
        link["a"], link["b"] = (swap.get(link[end], link[end]) for end in ("a", "b"))
    for path in document["path"]:
        path["links"] = path["links"][::-1]
    for traffic in document.get("traffic", ()):
        if "to" in traffic:
            traffic["to"] = swap.get(traffic["to"], traffic["to"])
        elif "path" in traffic:
            traffic["to"] = "client"
    return _toml(document)


def _toml(document: Mapping[str, Any]) -> str:
    def value(of: Any) -> str:
        if isinstance(of, dict):
            return "{ " + ", ".join(f"{key} = {value(one)}" for key, one in of.items()) + " }"
        if isinstance(of, list):
            return "[" + ", ".join(map(value, of)) + "]"
        return json.dumps(of)

    tables = {key: of for key, of in document.items() if isinstance(of, list)}
    text = [f"{key} = {value(of)}" for key, of in document.items() if key not in tables]
    for key, of in tables.items():
        for table in of:
            text += [f"[[{key}]]", *(f"{word} = {value(one)}" for word, one in table.items())]
    return "\n".join(text) + "\n"


@dataclass(frozen=True)
class Seen:
    """What was measured, or why nothing was; what each choice of paths gave then, and in other seeds [bit/s]."""

    case: Case
    ends: Any
    seen: Watched | None
    refused: str | None
    came: Mapping[Choice, float]
    floor: Mapping[Choice, tuple[float, ...]]


def look(of: Case, effort: str = "usual") -> Seen:
    """Measures, and sends the job over every choice there and then."""
    there = Topology.parse(of.text, base=of.base)
    # a transfer goes out: one from the far end is one of the mirrored network
    here = there if of.direction == "out" else Topology.parse(mirrored(of.text), base=of.base)
    seen, refused = None, None
    with Sim(there) as network, Sim(here) as sending:
        settle_s = random.Random(f"begin {of.seed}").uniform(*SETTLE_S)
        network.wait(settle_s)
        try:
            before = network.measure(request=Request(effort=effort, seed=of.seed))
            seen = watch(network, before, of.direction, of.size, of.seed * 1000)
        except PathcastError as error:
            refused = error.code
        if sending is not network:
            sending.wait(network.now())
        names = [path.name for path in network.paths]
        # it matters which path has the first subflow, and the forecast takes the one with most room
        orders = [order for n in range(1, len(names) + 1) for order in permutations(names, n)]
        choices = [Choice(order, SINGLE if len(order) == 1 else SEVERAL) for order in orders]
        came = sending.futures([Future(one.paths, of.size, one.control) for one in choices], keep_errors=True)
        few = [Choice((name, *(other for other in names if other != name)), choices[-1].control) for name in names]
        others = [Future(one.paths, of.size, one.control, seed=1 + draw) for one in few for draw in range(FLOOR)]
        floor = sending.futures(others, keep_errors=True)
    return Seen(
        of,
        network.ends,
        seen,
        refused,
        {choice: _rate(one) for choice, one in zip(choices, came, strict=True)},
        {choice: tuple(map(_rate, floor[n * FLOOR : (n + 1) * FLOOR])) for n, choice in enumerate(few)},
    )


def _rate(one: Any) -> float:
    return one.throughput_bps if isinstance(one, Transfer) else 0.0


def judge(of: Seen) -> dict[str, Any]:
    """What was forecast of it, against what came."""
    told = {"seed": of.case.seed, "kinds": of.case.kinds, "size": of.case.size, "direction": of.case.direction}
    if of.seen is None:
        return {**told, "refused": of.refused}
    job = Job(of.case.size, Controls((SINGLE,), (SEVERAL,)), of.case.direction, of.ends)
    try:
        answer = forecast(of.seen.measured, job, of.seen.loads, limits=WHOLE_JOBS, seed=of.case.seed * 1000)
    except PathcastError as error:
        return {**told, "refused": error.code}
    floors = {(choice.paths[0], len(choice.paths)): rates for choice, rates in of.floor.items()}
    options = []
    for runner in answer.runners:
        value = option(runner, of.case.size, None)["throughput_bps"]
        truth = of.came[runner.choice]
        floor = floors.get((runner.choice.paths[0], len(runner.choice.paths)))
        options.append(
            {
                "paths": sorted(runner.choice.paths),
                "truth": truth,
                **value,
                "floor": [quantile(sorted(floor), share) for share in (0.05, 0.5, 0.95)] if floor else None,
                "taken": runner is answer.chosen,
            }
        )
    best = max(of.came.values())
    everything = max(answer.runners, key=lambda runner: len(runner.choice.paths))
    return {
        **told,
        "options": options,
        "regret": 1 - of.came[answer.chosen.choice] / best if best else 0.0,
        "regret_all": 1 - of.came[everything.choice] / best if best else 0.0,
        "notes": answer.notes,
    }


def table(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """By kinds of paths, numbers of paths, sizes and ways: of the choices that were taken."""
    yield "of,runs,nothing said,error p50,p90,within 10 %,bias,inside,width,the floor's,regret,of all paths"
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        alone = run["kinds"][0] if len(set(run["kinds"])) == 1 else "several kinds"
        size = f"1e{int(math.log10(run['size']))} B"
        for name in ("all", alone, f"{len(run['kinds'])} drawn", size, run["direction"]):
            groups.setdefault(name, []).append(run)
    for name, of in groups.items():
        taken = [next(one for one in run["options"] if one["taken"]) for run in of if "options" in run]
        taken = [one for one in taken if one["truth"] and one["value"]]
        if not taken:
            yield f"{name},{len(of)},{len(of)}" + ",-" * 9
            continue
        off = sorted(abs(one["value"] / one["truth"] - 1) for one in taken)
        bias = median(one["value"] / one["truth"] - 1 for one in taken)
        inside = fmean((one["low"] or 0) <= one["truth"] <= (one["high"] or math.inf) for one in taken)
        width = median(((one["high"] or math.inf) - (one["low"] or 0)) / one["truth"] for one in taken)
        floors = [(one["floor"][2] - one["floor"][0]) / one["truth"] for one in taken if one["floor"]]
        said = [run for run in of if "options" in run]
        figures = (
            f"{median(off):.1%}",
            f"{quantile(off, 0.9):.1%}",
            f"{fmean(one <= OFF for one in off):.0%}",
            f"{bias:+.1%}",
            f"{inside:.0%}",
            f"{width:.1%}",
            f"{median(floors):.1%}" if floors else "-",
            f"{fmean(run['regret'] for run in said):.2%}",
            f"{fmean(run['regret_all'] for run in said):.2%}",
        )
        yield f"{name},{len(of)},{len(of) - len(said)}," + ",".join(figures)


def main(runs: int, first: int, effort: str) -> None:
    """See the module."""
    found = []
    for seed in range(first, first + runs):
        found.append(judge(look(case(seed), effort)))
        print(json.dumps(found[-1]), flush=True)
    for line in table(found):
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, (*sys.argv[3:], "usual")[0])
