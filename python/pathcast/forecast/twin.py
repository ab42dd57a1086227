"""The twin: networks drawn from what is believed of the paths, and this very job in each of them, simulated.

Paths lie side by side, each over a line of its own, or several over one line where they may share their bottleneck.

Every choice of paths and controller is tried in a copy of the same drawn network, so that differences between choices
are not those of the draws.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pathcast.errors import Exit
from pathcast.forecast.belief import Line, PathBelief
from pathcast.forecast.outcome import Outcome, outcome
from pathcast.worlds.many import Draw, Future, several
from pathcast.worlds.results import Transfer
from pathcast.worlds.topology import Topology

# cross traffic alone, before the job begins [s]
WARM_UP_S = 1.0
# the most events of one simulated transfer: half a minute of a processor's time
EVENTS = 200_000_000
# of a network, at most (`MAX_PATHS`, crates/scenario/src/addresses.rs)
NETWORK_PATHS = 8
_SMALLEST_QUEUE_BYTES = 3000
# what a real line does that a simulated one does not: deviation of the logarithm of the duration
_MODEL = 0.02
# others' connections do not begin in step
_STAGGER = "130ms"
# of a transfer of which a part is simulated, about so many samples; between two of them at least, and at most [s]
_SAMPLES, _LEAST_S, _MOST_S = 60, 1e-3, 3600.0
# a scenario knows no later change [s]; that far nothing is simulated
_LATEST_S = 1000 * 3600.0


@dataclass(frozen=True)
class Choice:
    """Paths, the first of which carries the first subflow, and a controller."""

    paths: tuple[str, ...]
    control: str


def simulate(
    beliefs: Sequence[PathBelief],
    seeds: Sequence[int],
    choices: Sequence[Choice],
    size_bytes: int,
    most_bytes: Callable[[Choice], int] | None = None,
    ends: Sequence[tuple[str, str]] = (),
) -> list[list[Outcome | None]]:
    """Of every seed's network the outcome of every choice; None: it did not end, or not within its limits.

    most_bytes: of one simulated transfer of a choice; the rest goes on as its stationary part. ends: how TCP at
    both ends behaves, as `--set` keys of a scenario (`tcp.…`, `control.…`).
    """
    parts = [size_bytes if most_bytes is None else min(size_bytes, most_bytes(choice)) for choice in choices]
    networks = [[belief.draw(random.Random(f"{belief.name} {seed}")) for belief in beliefs] for seed in seeds]
    names = [belief.name for belief in beliefs]
    found: list[list[Outcome | None]] = [[] for _ in seeds]
    shapes = [
        (
            tuple(line.elastic_flows for line in lines),
            shared_by(beliefs, random.Random(f"shared {seed}")),
            tuple(line.rates for line in lines),
        )
        for lines, seed in zip(networks, seeds, strict=True)
    ]
    left = {belief.name: belief.available_bps for belief in beliefs}
    jobs = tuple(
        Future(choice.paths, part, choice.control, every_s=None if part == size_bytes else _every_s(left, choice, part))
        for choice, part in zip(choices, parts, strict=True)
    )
    places = {shape: [at for at, of in enumerate(shapes) if of == shape] for shape in dict.fromkeys(shapes)}
    asked = [
        (
            Topology.parse(text(names, *shape)),
            [Draw((*ends, *sets(names, networks[at], shape[1], seeds[at])), jobs, WARM_UP_S) for at in where],
        )
        for shape, where in places.items()
    ]
    outcomes = several(asked, events=EVENTS, keep_errors=True)
    for where, those in zip(places.values(), outcomes, strict=True):
        for at, each in zip(where, those, strict=True):
            for one in each:
                if not isinstance(one, Transfer) and one.exit == Exit.USAGE:
                    raise one
            draw = random.Random(f"model {seeds[at]}")
            off, rest = math.exp(draw.gauss(0, _MODEL)), draw.gauss(0, 1)
            found[at] = [
                outcome(one, choice.paths, size_bytes, _together(names, networks[at], shapes[at][1], choice))
                .off(rest)
                .times(off)
                if isinstance(one, Transfer)
                else None
                for one, choice in zip(each, choices, strict=True)
            ]
    return found


def _together(
    names: Sequence[str], lines: Sequence[Line], first: Sequence[int], choice: Choice
) -> Callable[[float, float], float]:
    """What the lines of a choice give in the mean of a time since the job began; a shared one is that of its first
    path, and counts once."""
    taken = {of for name, of in zip(names, first, strict=True) if name in choice.paths}
    return lambda from_s, to_s: math.fsum(lines[of].mean_bps(from_s, to_s) for of in taken)


def _every_s(left_bps: Mapping[str, float], choice: Choice, part_bytes: int) -> float:
    """Between two samples: reading them is much of a fresh answer's work, and the batches of outcome.py need few."""
    taken_s = part_bytes * 8 / sum(left_bps[name] for name in choice.paths)
    return min(max(_LEAST_S, taken_s / _SAMPLES), _MOST_S)


def shared_by(beliefs: Sequence[PathBelief], draw: random.Random) -> tuple[int, ...]:
    """Of every path the first one that has its bottleneck, which is itself where it shares none."""
    names = [belief.name for belief in beliefs]
    first = list(range(len(names)))
    for at, belief in enumerate(beliefs):
        for other, probability in belief.shared:
            # of two that tell of each other only the former is asked
            if other in names[at + 1 :] and draw.random() < probability:
                low, high = sorted((first[at], first[names.index(other)]))
                first = [low if one == high else one for one in first]
    return tuple(first)


def text(
    names: Sequence[str],
    elastic: Sequence[int],
    first: Sequence[int],
    rates: Sequence[Sequence[tuple[float, float]]] | None = None,
) -> str:
    """The network of so many paths, each bottleneck with its own cross traffic and so many greedy connections; `rates`:
    from when on which, since the job began, of those that vary. `sets` gives it its other numbers."""
    parts = ['name = "twin"\n']
    for at, (name, greedy) in enumerate(zip(names, elastic, strict=True)):
        own, line = first.count(first[at]) == 1, bottleneck(names, first, at)
        links = f'"{name}"' if own else f'"{name}", "{line}"'
        a = "client" if own else f"{line}-end"
        if not own:
            parts.append(f'[[link]]\nname = "{name}"\na = "client"\nb = "{a}"\ndelay = "0s"\n')
        if first[at] == at:
            parts.append(
                f'[[link]]\nname = "{line}"\na = "{a}"\nb = "server"\nrate = "1Mbit"\ndelay = "0s"\nqueue = "3000B"\n'
                f'[[traffic]]\nname = "{name}-cross"\nkind = "poisson"\nlink = "{line}"\ndirection = "ab"\n'
                'packet = "1500B"\nrate = "1bit"\n'
            )
        parts.append(f'[[path]]\nname = "{name}"\nlinks = [{links}]\n')
        if greedy and first[at] == at:
            flows = f'flows = {greedy}\nstagger = "{_STAGGER}"\n' if greedy > 1 else ""
            parts.append(f'[[traffic]]\nname = "{name}-greedy"\nkind = "tcp"\npath = "{name}"\n{flows}')
        if rates and first[at] == at:
            # until the job begins the first one holds
            later = [(WARM_UP_S + from_s, rate_bps) for from_s, rate_bps in rates[at][1:]]
            parts += [_change(line, from_s, rate_bps) for from_s, rate_bps in later if from_s <= _LATEST_S]
    return "".join(parts)


def _change(link: str, from_s: float, rate_bps: float) -> str:
    return (
        f'[[change]]\nat = "{round(from_s * 1e9)}ns"\nlink = "{link}"\ndirection = "ab"\nrate = "{_bits(rate_bps)}"\n'
    )


def bottleneck(names: Sequence[str], first: Sequence[int], at: int) -> str:
    """The link that is a path's: of its name, or one that several share."""
    return names[at] if first.count(first[at]) == 1 else f"{names[first[at]]}-shared"


def sets(names: Sequence[str], lines: Sequence[Line], first: Sequence[int], seed: int) -> list[tuple[str, str]]:
    """The numbers of the drawn lines; a shared one has those of its first path."""
    found = [("seed", str(seed))]
    for at, (name, line) in enumerate(zip(names, lines, strict=True)):
        found.append((f"link.{name}.delay", f"{round(line.rtt_s / 2 * 1e9)}ns"))
        if first[at] != at:
            continue
        link = bottleneck(names, first, at)
        queue = round(max(line.queue_bytes, _SMALLEST_QUEUE_BYTES))
        kind = f"{queue}B" if line.queue_kind == "fifo" else _managed(line.queue_kind, queue)
        found += [
            (f"link.{link}.rate.ab", _bits(line.rate_bps)),
            (f"link.{link}.rate.ba", _bits(line.back_bps)),
            (f"link.{link}.queue", kind),
            (f"traffic.{name}-cross.rate", _bits(line.cross_bps)),
        ]
        if line.policer:
            rate, burst = line.policer
            bucket = f'{{ rate = "{_bits(rate)}", burst = "{round(burst)}B" }}'
            found.append((f"link.{link}.policer.ab", bucket))
        if line.loss:
            found.append((f"link.{link}.loss.ab", _lost(line)))
        if line.back_loss:
            found.append((f"link.{link}.loss.ba", f"{line.back_loss:.9f}"))
    return found


def _lost(line: Line) -> str:
    if line.row <= 1:
        return f"{line.loss:.9f}"
    r = 1 / line.row
    return f'{{ kind = "gilbert-elliott", p = {min(line.loss * r / (1 - line.loss), 1.0):.9f}, r = {r:.6f} }}'


def _managed(kind: str, queue_bytes: int) -> str:
    limit = "packets" if kind == "fair" else "limit"
    return f'{{ kind = "{kind}", {limit} = {max(2, queue_bytes // 1500)} }}'


def _bits(rate_bps: float) -> str:
    """The least rate that a scenario can say is one packet in three hours."""
    return f"{max(1, round(rate_bps))}bit"
