"""Two paths at once, which share their bottleneck or do not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from .lines import ACCESS_S, Line, access, draw, greedy, link

# what differs of the paths' round trips [s]
APART_S = (0.0, 0.05)


def pair(seed: str, number: int, shared: bool, fair: bool, managed: bool, cross: str) -> dict[str, Any]:
    """The scenario of two paths, and what a row says of them.

    Separate bottlenecks are twins in a half of the cases, that is of the same rate, kind and load; else the second one
    has between a half and twice the rate. One pair in eight is policed.
    """
    r = random.Random(f"pathcast pair {seed}")  # a str seeds by SHA-512
    policed = r.random() < 1 / 8
    line = draw(f"{seed} first", fair, managed, cross, policed)
    more = [r.uniform(*APART_S) / 2 for _ in range(2)]
    twins = shared or r.random() < 0.5
    text = f'name = "pair"\nseed = {number}\n'
    half_s = max(0.0, line.rtt_s / 2 - 2 * ACCESS_S)
    if shared:
        for k, one_way_s in enumerate(more, 1):
            text += _slow(f"in{k}", "client", f"x{k}", one_way_s) + access(f"join{k}", f"x{k}", "r0")
            text += access(f"part{k}", "r1", f"y{k}") + access(f"out{k}", f"y{k}", "server")
        text += link(line, "line", "r0", "r1", half_s)
        names = [[f"in{k}", f"join{k}", "line", f"part{k}", f"out{k}"] for k in (1, 2)]
        lines = [line, line]
    else:
        other = line if twins else draw(f"{seed} second", fair, managed, cross, policed)
        if not twins:
            # comparable, and so to be told apart by more than the rate
            other = _of_rate(other, line.rate_bps * 2 ** r.uniform(-1, 1), line)
        lines = [line, other]
        for k, (one, one_way_s) in enumerate(zip(lines, more, strict=True), 1):
            text += _slow(f"in{k}", "client", f"x{k}", one_way_s) + link(one, f"line{k}", f"x{k}", f"y{k}", half_s)
            text += access(f"out{k}", f"y{k}", "server")
        names = [[f"in{k}", f"line{k}", f"out{k}"] for k in (1, 2)]
    for k, links in enumerate(names, 1):
        text += f'\n[[path]]\nname = "path{k}"\nlinks = {links}\n'.replace("'", '"')
    text += greedy(line, "path1") + ("" if shared else greedy(lines[1], "path2"))
    return {
        "text": text,
        "line": line,
        "columns": {**line.columns(), "twins": twins and not shared, "policed_pair": policed},
    }


def _slow(name: str, a: str, b: str, one_way_s: float) -> str:
    return access(name, a, b).replace(f'"{round(ACCESS_S * 1e6)}us"', f'"{round((ACCESS_S + one_way_s) * 1e6)}us"')


def _of_rate(line: Line, rate: float, like: Line) -> Line:
    """That line with another rate, with all that is relative to it, and the direction of the other line."""
    factor = rate / line.rate_bps
    return replace(
        line,
        rate_bps=round(rate),
        packets=max(10, round(line.packets * factor)),
        policed_bps=None if line.policed_bps is None else round(line.policed_bps * factor),
        burst_bytes=None if line.burst_bytes is None else max(20_000, round(line.burst_bytes * factor)),
        rates=tuple((at, round(one * factor)) for at, one in line.rates),
        direction=like.direction,
    )
