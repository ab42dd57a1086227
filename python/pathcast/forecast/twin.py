"""The twin: networks drawn from what is believed of the paths, and this very job in each of them, simulated.

Every choice of paths and controller is tried in a copy of the same drawn network, so that differences between choices
are not those of the draws.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pathcast.errors import Exit
from pathcast.forecast.belief import Line, PathBelief
from pathcast.forecast.outcome import Outcome, outcome
from pathcast.worlds.many import Draw, Future, draws
from pathcast.worlds.results import Transfer
from pathcast.worlds.topology import Topology

# cross traffic alone, before the job begins [s]
WARM_UP_S = 1.0
# the most events of one simulated transfer: half a minute of a processor's time
EVENTS = 200_000_000
_SMALLEST_QUEUE_BYTES = 3000
# between two samples of a transfer of which a part is simulated, at first [s]
_EVERY_S = 0.02


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
    most_bytes: int | None = None,
    ends: Sequence[tuple[str, str]] = (),
) -> list[list[Outcome | None]]:
    """Of every seed's network the outcome of every choice; None: it did not end, or not within its limits.

    most_bytes: of one simulated transfer; the rest of a job is taken to go on as its stationary part. ends: how TCP at
    both ends behaves, as `--set` keys of a scenario (`tcp.…`, `control.…`).
    """
    part = size_bytes if most_bytes is None else min(size_bytes, most_bytes)
    every_s = None if part == size_bytes else _EVERY_S
    networks = [[belief.draw(random.Random(f"{belief.name} {seed}")) for belief in beliefs] for seed in seeds]
    names = [belief.name for belief in beliefs]
    found: list[list[Outcome | None]] = [[] for _ in seeds]
    shapes = [tuple(line.elastic_flows > 0 for line in lines) for lines in networks]
    jobs = tuple(Future(choice.paths, part, choice.control, every_s=every_s) for choice in choices)
    for shape in dict.fromkeys(shapes):
        where = [at for at, of in enumerate(shapes) if of == shape]
        wanted = [Draw((*ends, *sets(names, networks[at], seeds[at])), jobs, WARM_UP_S) for at in where]
        outcomes = draws(Topology.parse(text(names, shape)), wanted, events=EVENTS, keep_errors=True)
        for at, each in zip(where, outcomes, strict=True):
            for one in each:
                if not isinstance(one, Transfer) and one.exit == Exit.USAGE:
                    raise one
            found[at] = [
                outcome(one, choice.paths, size_bytes) if isinstance(one, Transfer) else None
                for one, choice in zip(each, choices, strict=True)
            ]
    return found


def text(names: Sequence[str], elastic: Sequence[bool]) -> str:
    """The network of so many lines, side by side, each with its own cross traffic; `sets` gives it its numbers."""
    parts = ['name = "twin"\n']
    for name, greedy in zip(names, elastic, strict=True):
        parts.append(
            f'[[link]]\nname = "{name}"\na = "client"\nb = "server"\nrate = "1Mbit"\ndelay = "0s"\nqueue = "3000B"\n'
            f'[[path]]\nname = "{name}"\nlinks = ["{name}"]\n'
            f'[[traffic]]\nname = "{name}-cross"\nkind = "poisson"\nlink = "{name}"\ndirection = "ab"\n'
            'packet = "1500B"\nrate = "1bit"\n'
        )
        if greedy:
            parts.append(f'[[traffic]]\nname = "{name}-greedy"\nkind = "tcp"\npath = "{name}"\n')
    return "".join(parts)


def sets(names: Sequence[str], lines: Sequence[Line], seed: int) -> list[tuple[str, str]]:
    """The numbers of the drawn lines."""
    found = [("seed", str(seed))]
    for name, line in zip(names, lines, strict=True):
        queue = round(max(line.queue_bytes, _SMALLEST_QUEUE_BYTES))
        kind = f"{queue}B" if line.queue_kind == "fifo" else _managed(line.queue_kind, queue)
        found += [
            (f"link.{name}.rate.ab", _bits(line.rate_bps)),
            (f"link.{name}.rate.ba", _bits(line.back_bps)),
            (f"link.{name}.delay", f"{round(line.rtt_s / 2 * 1e9)}ns"),
            (f"link.{name}.queue", kind),
            (f"traffic.{name}-cross.rate", _bits(line.cross_bps)),
        ]
        if line.loss:
            found.append((f"link.{name}.loss.ab", f"{line.loss:.9f}"))
    return found


def _managed(kind: str, queue_bytes: int) -> str:
    limit = "packets" if kind == "fair" else "limit"
    return f'{{ kind = "{kind}", {limit} = {max(2, queue_bytes // 1500)} }}'


def _bits(rate_bps: float) -> str:
    """The least rate that a scenario can say is one packet in three hours."""
    return f"{max(1, round(rate_bps))}bit"
