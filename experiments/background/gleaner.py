"""Judges gleaner by its own bars, with the device's default offloads, in the simulator: a program, minutes.

    python -m experiments.background.gleaner [idle|beside|pages|frontier|short|drawn|loss|bursts|first|policed] …

Writes data/gleaner-*.csv. Its parameters were chosen on the networks "10", "20" and "100" of imtcp-bg's plan with seeds
4001..4016 (`near`: 9401..9412), and on `beside` at 20 Mbit/s, 0.25 and 1 BDP, with seeds 11..18; seeds here are others,
the network "5, 80 ms" was looked at once. What is for short queues was chosen on other
drawn lines, those of seeds 8001..8060 among them. The idle lines were all looked at but those of 500 Mbit/s.
"""

from __future__ import annotations

import csv
import importlib
import itertools
import math
import random
import statistics
import sys
import tomllib
import types
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from pathcast.scenario import Scenario
from pathcast.simulation.run import simulate

from . import samples

HERE = Path(__file__).parent
CONTROLS = ("gleaner", "imtcp_bg", "nice")
SINGLE = "[host.client]\nsend_segments = 1\n"
PAYLOAD = 1448 / 1500


def idle(control: str, rate: int, rtt: int, buffer: float) -> float:
    """Of an idle line's rate, from 10 to 30 s."""
    bdp = rate * 1e3 * rtt / 8 / 1500
    text = "\n".join(
        (
            'name = "idle"\nseed = 1\nend = "30s"',
            f'[[link]]\nname = "b"\na = "client"\nb = "server"\nrate = "{rate}Mbit"\ndelay = "{rtt * 500}us"',
            f'queue = "{max(1, round(bdp * buffer))} packets"\n[[path]]\nname = "p"\nlinks = ["b"]',
            '[tcp]\nreceive_buffer = "64MiB"\nsend_buffer = "64MiB"',
            f'[[flow]]\nname = "f"\npaths = ["p"]\ncontrol = "{control}"\nstart = "0s"\nstop = "30s"\n',
        )
    )
    _, traces = simulate(Scenario(text), trace_ns=100_000_000)
    windows = traces["windows"]
    acked = [0, *windows["acked_bytes"]]
    at = windows["time_s"].searchsorted([10.0, 30.0], side="right")
    return float(int(acked[at[1]]) - int(acked[at[0]])) * 8 / 20 / (rate * 1e6 * PAYLOAD)


def beside(control: str | None, rate: int, rtt: int, buffer: float, foreground: str, seed: int) -> float:
    """Bytes of the foreground, alone or beside."""
    role = "beside" if control else "alone"
    point = {"role": role, "control": "x", "rate_mbit": rate, "rtt_ms": rtt, "buffer": buffer, "seed": seed}
    point |= {"foreground": foreground, "grid": "pairs"}
    about = samples.scenario(point, {"control": {"x": {"control": control or "reno"}}}, "sim")
    about["text"] = about["text"].replace(SINGLE, "")
    return float(samples.sample(about, "sim")["foreground_bytes"])


def _imtcp_bg() -> tuple[Any, Any, dict[str, Any]]:
    """The folder's name is no name of Python's."""
    folder = HERE.parent / "imtcp-bg"
    if "imtcp_bg_folder" not in sys.modules:
        package = types.ModuleType("imtcp_bg_folder")
        package.__path__ = [str(folder)]
        sys.modules["imtcp_bg_folder"] = package
    parts = [importlib.import_module(f"imtcp_bg_folder.{name}") for name in ("samples", "simulated")]
    return parts[0], parts[1], tomllib.loads((folder / "plan.toml").read_text())["setup"]


def page(control: str, network: str, load: int, connections: int, seed: int) -> tuple[float, float, float]:
    """Mean page time [s]; what background and foreground carried [bit/s]. control: a name, then any `key=value`."""
    of, run, setup = _imtcp_bg()
    name, *values = control.split()
    own = {key: int(value) for key, _, value in (one.partition("=") for one in values)}
    point = {"network": network, "control": "x", "load": load, "seed": seed, "connections": connections}
    about = of.scenario(point, setup | {"control": {"x": {"control": name} | own}}, "sim")
    topology = run.topology
    run.topology = lambda one: topology(one).replace(SINGLE, "")
    try:
        found = run.run(about)
    finally:
        run.topology = topology
    return found["page_s"] or 0.0, found["bg_bps"], found["fg_bps"]


def spread(values: list[float]) -> tuple[str, str]:
    """Mean, and half of its 95 % interval (Student's t)."""
    t = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57}.get(len(values) - 1, 2.2)
    half = t * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.3f}", f"{half:.3f}"


def lone(
    control: str, foreground: str, rate: float, rtt: float, queue: str, loss: float, seed: int
) -> tuple[float, float]:
    """Shares of a line's rate that a foreground flow and a background flow have from 30 to 120 s; either may be "".

    queue: in BDP, or a discipline. The seed draws which of the two starts first.
    """
    packets = rate * 1e3 * rtt / 8 / 1500 * (0 if queue in DISCIPLINES else float(queue))
    kind = f'{{ kind = "{queue}" }}' if queue in DISCIPLINES else f'"{max(1, round(packets))} packets"'
    link = f'rate = "{rate}Mbit"\nqueue = {{ ab = {kind}, ba = "1000 packets" }}\nloss = {{ ab = {loss} }}\n'
    return _shares(link, rate, rtt, control, foreground, seed)


def policed(
    control: str, foreground: str, line: int, rate: float, rtt: float, burst_kb: int, seed: int
) -> tuple[float, float]:
    """As `lone`, of what a policer in front of a line of so many Mbit/s lets through."""
    link = f'rate = "{line}Mbit"\nqueue = "500 packets"\n'
    link += f'policer = {{ ab = {{ rate = "{rate}Mbit", burst = "{burst_kb}KB" }} }}\n'
    return _shares(link, rate, rtt, control, foreground, seed)


def bursts(
    control: str, foreground: str, rate: float, rtt: float, queue: float, loss: float, burst: int, seed: int
) -> tuple[float, float]:
    """As `lone`; losses are three fifths of bursts of so many packets in the mean."""
    packets = max(2, round(rate * 1e3 * rtt / 8 / 1500 * queue))
    wire = f'{{ kind = "gilbert-elliott", p = {loss / burst / 0.6:.8f}, r = {1 / burst:.6f}, bad = 0.6 }}'
    link = (
        f'rate = "{rate}Mbit"\nqueue = {{ ab = "{packets} packets", ba = "1000 packets" }}\nloss = {{ ab = {wire} }}\n'
    )
    return _shares(link, rate, rtt, control, foreground, seed)


def _shares(link: str, rate: float, rtt: float, control: str, foreground: str, seed: int) -> tuple[float, float]:
    starts = random.Random(f"gleaner short {seed}").choice(((1, 8), (8, 1)))
    text = (
        f'name = "short"\nseed = {seed}\nend = "120s"\n[tcp]\nreceive_buffer = "64MiB"\nsend_buffer = "64MiB"\n'
        f'[[link]]\nname = "b"\na = "client"\nb = "server"\ndelay = "{round(rtt * 500)}us"\n{link}'
        '[[path]]\nname = "p"\nlinks = ["b"]\n'
    )
    for name, flow, start in zip(("front", "back"), (foreground, control), starts, strict=True):
        if flow:
            text += f'[[flow]]\nname = "{name}"\npaths = ["p"]\ncontrol = "{flow}"\nstart = "{start}s"\n'
    acked = samples._simulated(text, 30.0, 120.0)
    front, back = (acked.get(name, 0) * 8 / 90 / (rate * 1e6 * PAYLOAD) for name in ("front", "back"))
    return front, back


def drawn(seed: int) -> tuple[float, float, str]:
    """A line: Mbit/s, RTT [ms], queue [BDP]; each uniform in its logarithm."""
    draw = random.Random(f"gleaner drawn {seed}")
    rate, rtt, queue = (math.exp(draw.uniform(*map(math.log, ends))) for ends in ((1, 200), (5, 200), (0.02, 2)))
    return round(rate, 2), round(rtt, 1), f"{queue:.3f}"


def first(rate: float, rtt: float, queue: float, loss: float, seed: int) -> tuple[float, ...]:
    """Shares of an idle line's rate that gleaner has in the first 5 s, the next 10, 15 and 30."""
    packets = max(1, round(rate * 1e3 * rtt / 8 / 1500 * queue))
    text = (
        f'name = "first"\nseed = {seed}\nend = "61s"\n[tcp]\nreceive_buffer = "64MiB"\nsend_buffer = "64MiB"\n'
        f'[[link]]\nname = "b"\na = "client"\nb = "server"\ndelay = "{round(rtt * 500)}us"\nrate = "{rate}Mbit"\n'
        f'queue = {{ ab = "{packets} packets", ba = "1000 packets" }}\nloss = {{ ab = {loss} }}\n'
        '[[path]]\nname = "p"\nlinks = ["b"]\n'
        '[[flow]]\nname = "f"\npaths = ["p"]\ncontrol = "gleaner"\nstart = "1s"\n'
    )
    _, traces = simulate(Scenario(text), trace_ns=100_000_000)
    windows = traces["windows"]
    ends = (1.0, 6.0, 16.0, 31.0, 61.0)
    acked = [int([0, *windows["acked_bytes"]][at]) for at in windows["time_s"].searchsorted(ends, side="right")]
    return tuple(
        (b - a) * 8 / (end - start) / (rate * 1e6 * PAYLOAD)
        for a, b, start, end in zip(acked, acked[1:], ends, ends[1:], strict=False)
    )


def begun(seed: int) -> tuple[float, float, float, float]:
    """A line that loses: Mbit/s, RTT [ms], queue [BDP], loss; each uniform in its logarithm."""
    draw = random.Random(f"gleaner first {seed}")
    ends = ((5, 200), (5, 100), (0.3, 3), (0.001, 0.01))
    rate, rtt, queue, loss = (math.exp(draw.uniform(*map(math.log, one))) for one in ends)
    return round(rate, 1), round(rtt, 1), round(queue, 2), round(loss, 4)


def behind_policers() -> list[tuple[int, float, float, int]]:
    """The shipped one and fourteen drawn ones: the line and what is let through, Mbit/s; RTT [ms]; burst [kB]."""
    draw = random.Random(5)
    found: list[tuple[int, float, float, int]] = [(100, 20, 30, 625)]
    for _ in range(14):
        line = draw.choice((100, 300, 1000))
        share, rtt, burst_s = (
            math.exp(draw.uniform(*map(math.log, ends))) for ends in ((0.02, 0.7), (8, 120), (0.01, 0.5))
        )
        rate = round(line * share, 1)
        found.append((line, rate, round(rtt), max(20, round(rate * 1e3 / 8 * burst_s))))
    return found


def _call(task: tuple[Any, ...]) -> Any:
    return globals()[task[0]](*task[1:])


def write(name: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    with (HERE / "data" / f"gleaner-{name}.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerows([header, *rows])


def judge(what: str, of: dict[tuple[Any, ...], Any]) -> None:
    """Writes the table of one of the three."""
    rows: list[tuple[Any, ...]] = []
    if what == "idle":
        rows = [(*task[1:], f"{value:.3f}", value >= 0.9) for task, value in of.items()]
        write("idle", ("controller", "Mbit/s", "RTT ms", "buffer BDP", "of the line from 10 s", "0.9"), rows)
    elif what == "beside":
        cells = dict.fromkeys(task[1:6] for task in of if task[1])
        for control, *cell in cells:
            kept = [of["beside", control, *cell, seed] / of["beside", None, *cell, seed] for seed in SEEDS]
            median = statistics.median(kept)
            rows.append((control, *cell, f"{median:.3f}", f"{min(kept):.3f}", f"{max(kept):.3f}", median >= 0.9))
        header = ("controller", "Mbit/s", "RTT ms", "buffer BDP", "foreground", "keeps, median", "least", "most", "0.9")
        write("beside", header, rows)
    elif what in ("short", "drawn"):
        for control, *line in dict.fromkeys((t[1], *t[3:7]) for t in of if t[1]):
            cells = [t for t in of if t[1] == control and t[2] and list(t[3:7]) == line]
            alone = statistics.median(of["lone", control, "", *line, t[7]][1] for t in cells)
            for front in ("cubic", "reno"):
                own = [t for t in cells if t[2] == front]
                single = [of["lone", "", *t[2:]][0] for t in own]
                kept = [of[t][0] / one if one else 1.0 for t, one in zip(own, single, strict=True)]
                back = statistics.median(of[t][1] for t in own)
                median = statistics.median(kept)
                values = (statistics.median(single), median, min(kept), back, alone)
                rows.append((control, *line[:3], front, *(f"{value:.3f}" for value in values), median >= 0.9))
        header = ("controller", "Mbit/s", "RTT ms", "queue BDP", "foreground", "has alone", "keeps, median", "least")
        write(what, (*header, "background beside", "background alone", "0.9"), rows)
    elif what == "policed":
        for line in dict.fromkeys(t[3:7] for t in of):
            front, beside, back, alone = (
                statistics.median(v[at] for t, v in of.items() if t[1:7] == (*pair, *line))
                for at, pair in (
                    (0, ("", "cubic")),
                    (0, ("gleaner", "cubic")),
                    (1, ("gleaner", "cubic")),
                    (1, ("gleaner", "")),
                )
            )
            rows.append(
                (*line, *(f"{value:.3f}" for value in (front, beside / front, back, alone)), beside >= 0.9 * front)
            )
        header = ("line Mbit/s", "policer Mbit/s", "RTT ms", "burst kB", "CUBIC has alone", "keeps, median")
        write(what, (*header, "background beside", "background alone", "0.9"), rows)
    elif what in ("loss", "bursts"):
        for who, line in dict.fromkeys((t[1] or t[2], t[3:-1]) for t in of):
            had = [max(value) for t, value in of.items() if (t[1] or t[2], t[3:-1]) == (who, line)]
            rows.append((who, *line, f"{statistics.median(had):.3f}", f"{min(had):.3f}"))
        burst = ("burst packets",) if what == "bursts" else ()
        header = ("controller", "Mbit/s", "RTT ms", "queue BDP", "loss", *burst, "of the line, median", "least")
        write(what, header, rows)
    elif what == "first":
        for line in dict.fromkeys(t[1:5] for t in of):
            starts = [value for t, value in of.items() if t[1:5] == line]
            typical = [statistics.median(one) for one in zip(*starts, strict=True)]
            behind = [sum(value[at] < usual / 3 for value in starts) for at, usual in enumerate(typical)]
            rows.append((*line, len(starts), *(f"{one:.3f}" for one in typical), *behind))
        spans = ("1 to 6 s", "6 to 16 s", "16 to 31 s", "31 to 61 s")
        header = (
            "Mbit/s",
            "RTT ms",
            "queue BDP",
            "loss",
            "starts",
            *spans,
            *(f"a third of it, {one}" for one in spans),
        )
        write(what, header, rows)
    else:
        for control, network, connections in dict.fromkeys((t[1], t[2], t[4]) for t in of if t[1] != "none"):
            link = _imtcp_bg()[2]["network"][network]["rate_mbit"] * 1e6
            loads = list(dict.fromkeys(t[3] for t in of if t[2] == network and t[4] == connections))
            grows, uses = [], []
            for seed in PAGES_SEEDS:
                own = [of["page", control, network, load, connections, seed] for load in loads]
                none = [of["page", "none", network, load, connections, seed] for load in loads]
                pairs = [(a[0], b[0]) for a, b in zip(own, none, strict=True) if b[0]]
                grows.append(statistics.mean(a / b - 1 for a, b in pairs))
                uses.append(sum(a[1] for a in own) / sum(link - b[2] for b in none))
            verdicts = (statistics.mean(grows) <= 0.03, statistics.mean(uses) >= 0.75)
            rows.append((control, network, connections, *spread(grows), *spread(uses), *verdicts))
        header = ("controller", "network", "flows", "page time grows", "±", "uses of available", "±", "0.03", "0.75")
        write(what, header, rows)


SEEDS = range(101, 106)
PAGES_SEEDS = range(9501, 9513)
LOADS = (0, 15, 30, 45, 60, 75, 90)
DISCIPLINES = ("codel", "pie", "fq_codel")
SHORT = ("0.02", "0.05", "0.1", "0.15", *DISCIPLINES)
DRAWN = range(9001, 9061)
FIRST_LINES = range(1201, 1221)
FIRST_STARTS = range(20)
# more for the background or for the pages; without the idle line among the loads
FRONTIER = ("gleaner", "gleaner gamma=30", "gleaner gamma=300")


def tasks(what: str) -> list[tuple[Any, ...]]:
    if what == "idle":
        lines = itertools.product(CONTROLS[:2], (10, 40, 100, 500), (10, 50, 100), (0.5, 1, 4))
        return [("idle", *one) for one in lines]
    if what == "beside":
        rest = ((20, 100), (20, 100), (0.25, 1.0, 4.0), ("reno", "cubic"), SEEDS)
        return [("beside", *one) for one in itertools.product((None, *CONTROLS[:2]), *rest)]
    if what in ("short", "drawn"):
        lines = list(itertools.product((10, 50, 200), (20, 100), SHORT, (0,), range(101, 104)))
        if what == "drawn":
            lines = [(*drawn(seed), 0, seed) for seed in DRAWN]
        fronts, controls = ("cubic", "reno"), CONTROLS[: 2 if what == "short" else 1]
        pairs = [(control, front) for control in ("", *controls) for front in ("", *fronts) if control or front]
        return [("lone", *pair, *line) for line in lines for pair in pairs]
    if what == "policed":
        pairs = [("", "cubic"), ("gleaner", "cubic"), ("gleaner", "")]
        return [("policed", *pair, *line, seed) for line in behind_policers() for pair in pairs for seed in (1, 2, 3)]
    if what == "loss":
        losses = (0.0001, 0.001, 0.003, 0.01)
        lines = list(itertools.product((10, 50, 200), (20, 100), ("0.05", "0.5", "2"), losses, range(401, 406)))
        return [("lone", *pair, *line) for pair in (("gleaner", ""), ("", "cubic")) for line in lines]
    if what == "bursts":
        wires = ((0.002, 20), (0.01, 8), (0.01, 50))
        lines = [
            (*one, *wire, seed)
            for *one, wire, seed in itertools.product((20, 100, 300), (20, 80), (0.5,), wires, (1, 2, 3))
        ]
        return [("bursts", *pair, *line) for pair in (("gleaner", ""), ("", "cubic")) for line in lines]
    if what == "first":
        return [("first", *begun(line), seed) for line in FIRST_LINES for seed in FIRST_STARTS]
    if what == "frontier":
        trade = (("none", *FRONTIER, *CONTROLS[1:]), ("10",), LOADS[1:], (1,), PAGES_SEEDS)
        return [("page", *one) for one in itertools.product(*trade)]
    found = []
    for network in ("10", "20", "100", "5, 80 ms"):
        one = itertools.product(("none", *CONTROLS), (network,), LOADS, (1,), PAGES_SEEDS)
        found += [("page", *point) for point in one]
    for network in ("10", "100"):
        several = itertools.product(("none", *CONTROLS), (network,), (50,), (5,), PAGES_SEEDS)
        found += [("page", *point) for point in several]
    return found


def main() -> None:
    for what in sys.argv[1:] or ("idle", "beside", "pages"):
        points = tasks(what)
        with ProcessPoolExecutor() as pool:
            judge(what, dict(zip(points, pool.map(_call, points, chunksize=2), strict=True)))


if __name__ == "__main__":
    main()
