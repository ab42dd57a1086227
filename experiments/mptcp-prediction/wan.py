"""Settings nearer to a real WAN, which the paper leaves open (its section 7): two disjoint paths, everything drawn.

A path has one link of 10 Mbit/s to 1 Gbit/s (evenly in the logarithm), a round trip of 10 to 200 ms (evenly), a queue
of 0.25 to 2 bandwidth-delay products (logarithm), cross traffic towards the server of 0 to 60 % of the rate, and in
half of the cases random loss of 0.001 to 0.1 % (logarithm). Cross traffic is Poisson, Pareto on/off, web clients, or
one to three greedy TCP connections, equally likely; how much these last take, they settle themselves.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

KINDS = ("poisson", "pareto-onoff", "web", "tcp")
# of web traffic on one path: clients, and the shape of their pages' sizes; the mean page makes the load
_CLIENTS, _SHAPE, _THINK_S = 20, 1.5, 1.0
_PACKET = 1500


@dataclass(frozen=True)
class Line:
    """One path's link. load: the cross traffic's share of the rate, 0..1; of kind `tcp` there are `flows` instead."""

    rate_bps: float
    rtt_s: float
    queue_bdp: float
    loss: float
    kind: str
    load: float
    flows: int

    def tables(self, n: int, switched: bool) -> str:
        """The scenario's tables of path `n`; switched: its link is between two switches."""
        a, b = (f"left:{n + 1}", f"right:{n + 1}") if switched else ("client", "server")
        links = f'"client-left", "wan{n}", "right-server"' if switched else f'"wan{n}"'
        packets = max(10, round(self.queue_bdp * self.rate_bps * self.rtt_s / 8 / _PACKET))
        text = f'\n[[link]]\nname = "wan{n}"\na = "{a}"\nb = "{b}"\nrate = "{round(self.rate_bps)}bit"\n'
        text += f'delay = "{round(self.rtt_s * 5e5)}us"\nqueue = "{packets} packets"\nloss = {self.loss:.7f}\n'
        text += f'\n[[path]]\nname = "path{n}"\nlinks = [{links}]\n'
        return text + f'\n[[traffic]]\nname = "cross{n}"\nkind = "{self.kind}"\n{self._cross(n)}'

    def _cross(self, n: int) -> str:
        mean = self.load * self.rate_bps
        if self.kind == "tcp":
            return f'path = "path{n}"\nflows = {self.flows}\nstagger = "100ms"\n'
        if self.kind == "web":
            # a page takes some round trips beside the time in which its reader thinks
            page = mean / 8 * (_THINK_S + 6 * self.rtt_s) / _CLIENTS
            about = f'think = "{_THINK_S:g}s"\nshape = {_SHAPE}\n'
            return f'path = "path{n}"\nclients = {_CLIENTS}\npage = "{max(1, round(page))}B"\n{about}'
        link = f'link = "wan{n}"\ndirection = "ab"\nrate = "{max(1000, round(mean))}bit"\npacket = "{_PACKET}B"\n'
        if self.kind == "poisson":
            return link
        peak = min(max(2 * self.load, 0.25), 1) * self.rate_bps
        return f'{link}peak = "{round(peak)}bit"\non = "100ms"\n'


def draw(about: str) -> tuple[Line, Line]:
    """Two paths by a text that seeds them."""
    r = random.Random(about)

    def log(low: float, high: float) -> float:
        return math.exp(r.uniform(math.log(low), math.log(high)))

    def line() -> Line:
        rate, rtt, queue = log(10e6, 1e9), r.uniform(0.010, 0.200), log(0.25, 2)
        loss = r.choice((0.0, log(1e-5, 1e-3)))
        return Line(rate, rtt, queue, loss, r.choice(KINDS), r.uniform(0, 0.6), r.choice((1, 2, 3)))

    return line(), line()


# hosts with one address each, and the switches that send each subflow over its path
_SWITCHES = """
[[switch]]
name = "left"
ports = 3

[[switch]]
name = "right"
ports = 3

[[link]]
name = "client-left"
a = "client"
b = "left:1"

[[link]]
name = "right-server"
a = "right:1"
b = "server"
"""


def text(lines: tuple[Line, Line], seed: int, switched: bool = False) -> str:
    """The scenario; switched: OpenFlow switches steer the subflows."""
    head = f'name = "wan"\nseed = {seed}\n' + (_SWITCHES if switched else "")
    return head + "".join(line.tables(n, switched) for n, line in enumerate(lines, 1))
