"""Which rules the switches need so that flows go over the paths of a plan. Pure: no switch is asked, no time is read.

A flow is a 5-tuple of one direction; each is carried over a path, a chain of links between switches' ports. Rules are
told apart by a cookie of ours, so that a controller that comes back finds its own, and leaves others' alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from pathcast.errors import PathcastError, usage

# upper half of every cookie of ours: "path"; the lower half tells controllers apart
COOKIE = 0x70617468 << 32
MASK = 0xFFFFFFFF << 32
PRIORITY = 100
PROTOCOLS = {"tcp": 6, "udp": 17}
# all of a pair of hosts: what has no rule of its own, and how they find each other
WHOLE = ("ip", "arp")

# beginnings of paths that are looked at side by side
_HEADS = 4096


@dataclass(frozen=True, order=True)
class Port:
    """A switch's port: its datapath id, and the port's number there."""

    switch: int
    port: int


@dataclass(frozen=True, order=True)
class Flow:
    """A 5-tuple, as its packets leave the client. Port 0: any. Protocols `ip` and `arp`: all between two addresses."""

    local: str
    remote: str
    local_port: int = 0
    remote_port: int = 0
    protocol: str = "tcp"

    def __post_init__(self) -> None:
        try:
            local, remote = ip_address(self.local), ip_address(self.remote)
        except ValueError as error:
            raise usage(str(error)) from None
        # an address of IPv6 has many spellings
        object.__setattr__(self, "local", str(local))
        object.__setattr__(self, "remote", str(remote))
        if local.version != remote.version:
            raise usage(f"flow from {self.local} to {self.remote}: two IP versions")
        if self.protocol not in (*PROTOCOLS, *WHOLE):
            raise usage(f"protocol `{self.protocol}`: allowed are {', '.join((*PROTOCOLS, *WHOLE))}")
        most = 65535 if self.protocol in PROTOCOLS else 0
        for port in (self.local_port, self.remote_port):
            if not 0 <= port <= most:
                raise usage(f"port {port}: allowed are 0 to {most}")

    def back(self) -> Flow:
        """The same flow as its answers see it."""
        return _back(self)


@lru_cache(maxsize=1 << 14)
def _back(flow: Flow) -> Flow:
    """Remembered, as it is asked for at every turn, and addresses are checked anew each time."""
    return Flow(flow.remote, flow.local, flow.remote_port, flow.local_port, flow.protocol)


@dataclass(frozen=True, order=True)
class Rule:
    """One entry of one switch: packets of `flow` that come in by a port leave by `out`."""

    switch: int
    flow: Flow
    in_port: int
    out: int

    @property
    def priority(self) -> int:
        """More the more it says."""
        flow = self.flow
        return PRIORITY + (flow.protocol in PROTOCOLS) + bool(flow.local_port) + bool(flow.remote_port)


def order(rule: Rule) -> tuple[Any, ...]:
    """For sorting many, which Python does sooner by keys."""
    flow = rule.flow
    return (
        rule.switch,
        flow.local,
        flow.remote,
        flow.local_port,
        flow.remote_port,
        flow.protocol,
        rule.in_port,
        rule.out,
    )


@dataclass(frozen=True)
class Network:
    """What is known of the switches. links: by each port, the port at the link's other end, both ways.

    client, server: the ports behind which the end hosts are, by the host's address.
    """

    links: Mapping[Port, Port]
    client: Mapping[str, Port]
    server: Mapping[str, Port]
    # ways that were looked for, by path and ends: those of many flows are the same
    _ways: dict[Any, tuple[Port, ...] | None] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for a, b in self.links.items():
            if self.links.get(b) != a or a.switch == b.switch:
                raise PathcastError("topology", f"port {a.port} of switch {a.switch} does not lead where it says")

    def without(self, down: Collection[Port]) -> Network:
        """The network when these ports are down: their links are gone at both ends."""
        links = {a: b for a, b in self.links.items() if a not in down and b not in down}
        hosts = [{ip: port for ip, port in side.items() if port not in down} for side in (self.client, self.server)]
        return Network(links, *hosts)

    def oriented(self, chain: Sequence[Port], flow: Flow) -> tuple[Port, ...] | None:
        """The ports by which the flow leaves the switches when it takes a path, be it from that one's other end.

        None where the path cannot carry it: from the flow's client to its server, with every link there.
        """
        begins, ends = self.client.get(flow.local), self.server.get(flow.remote)
        if begins is None or ends is None:
            return None
        asked = (tuple(chain), begins.switch, ends.switch)
        if asked not in self._ways:
            self._ways[asked] = self._way(*asked)
        return self._ways[asked]

    def _way(self, chain: tuple[Port, ...], begin: int, end: int) -> tuple[Port, ...] | None:
        far = [self.links[out] for out in chain if out in self.links]
        if len(far) < len(chain):
            return None
        return next((way for way in (chain, tuple(far[::-1])) if self._joins(way, begin, end)), None)

    def stands(self, chain: Sequence[Port], flow: Flow) -> bool:
        """Whether a path can carry the flow."""
        return self.oriented(chain, flow) is not None

    def _joins(self, chain: Sequence[Port], at: int, end: int) -> bool:
        seen = {at}
        for out in chain:
            if out.switch != at or (at := self.links[out].switch) in seen:
                return False
            seen.add(at)
        return at == end


def rules(network: Network, chain: Sequence[Port], flow: Flow) -> list[Rule]:
    """The entries that carry a flow over a path and back; `chain` names the port out of each switch but the last.

    Raises PathcastError (`topology`) for a path that is not there.
    """
    way = network.oriented(chain, flow)
    if way is None:
        told = ", ".join(f"{port.switch}:{port.port}" for port in chain) or "within one switch"
        raise PathcastError("topology", f"{flow.local} does not reach {flow.remote} over the path {told}")
    came, found = network.client[flow.local], []
    for out in (*way, network.server[flow.remote]):
        found.append(Rule(out.switch, flow, came.port, out.port))
        found.append(Rule(out.switch, flow.back(), out.port, came.port))
        came = network.links.get(out, out)
    return found


def assign(
    network: Network,
    paths: Mapping[str, Sequence[Port]],
    plan: Mapping[Flow, str],
    before: Mapping[Flow, str] | None = None,
    barred: Collection[tuple[Flow, str]] = (),
) -> tuple[dict[Flow, str], list[Flow]]:
    """The path of each flow, and the flows that no path is left for.

    It is the plan's wherever that one stands. Others stay on the path that they had `before`, or take, of the paths
    that stand, that with the fewest flows, the first of several. barred: flows with paths that cannot have them though
    they stand. Raises exit 2 for a path that there is not.
    """

    def may(flow: Flow, name: str) -> bool:
        return (flow, name) not in barred and name in paths and network.stands(paths[name], flow)

    for name in plan.values():
        if name not in paths:
            raise usage(f"there is no path `{name}`; allowed: {', '.join(paths)}")
    chosen = {flow: name for flow, name in plan.items() if may(flow, name)}
    for flow, name in (before or {}).items():
        if flow in plan and flow not in chosen and may(flow, name):
            chosen[flow] = name
    lost = []
    for flow in plan:
        if flow in chosen:
            continue
        standing = [name for name in paths if may(flow, name)]
        if standing:
            carried = list(chosen.values())
            chosen[flow] = min(standing, key=carried.count)
        else:
            lost.append(flow)
    return chosen, lost


def wanted(network: Network, paths: Mapping[str, Sequence[Port]], chosen: Mapping[Flow, str]) -> set[Rule]:
    """All entries of an assignment. Raises PathcastError (`topology`) for a path that is not there."""
    return {rule for flow, name in chosen.items() for rule in rules(network, paths[name], flow)}


@dataclass(frozen=True)
class Step:
    """What is sent to the switches before the next barrier."""

    add: tuple[Rule, ...] = ()
    remove: tuple[Rule, ...] = ()


def change(
    have: Iterable[Rule], want: Iterable[Rule], network: Network, switches: Collection[int] | None = None
) -> list[Step]:
    """The steps from the entries that are there to those that shall be, of these switches (None: all).

    First come entries for ingress ports that nothing uses yet, then those at the edge that send packets another way,
    then what is used no more goes. Whoever sends them waits for the barriers of each step, and before the last until
    what is on its way over the old paths has arrived: no packet meets a switch without an entry for it then.
    """
    before, after = ({r for r in some if switches is None or r.switch in switches} for some in (have, want))
    taken = {(r.switch, r.flow, r.in_port) for r in before}
    edges = {*network.client.values(), *network.server.values()}
    new = after - before
    quiet = {r for r in new if (r.switch, r.flow, r.in_port) not in taken and Port(r.switch, r.in_port) not in edges}
    kept = {(r.switch, r.flow, r.in_port) for r in after}
    gone = {r for r in before if (r.switch, r.flow, r.in_port) not in kept}
    first, then, last = (tuple(sorted(some, key=order)) for some in (quiet, new - quiet, gone))
    steps = [Step(add=first), Step(add=then), Step(remove=last)]
    return [step for step in steps if step.add or step.remove]


def simple(links: Mapping[Port, Port], begin: int, end: int, most: int) -> list[tuple[Port, ...]]:
    """The paths from one switch to another that pass none twice, the shortest first; no more than `most`."""
    found: list[tuple[Port, ...]] = []
    heads: list[tuple[tuple[Port, ...], tuple[int, ...]]] = [((), (begin,))]
    outs = sorted(links)
    while heads and len(found) < most:
        onward = []
        for chain, seen in heads:
            if seen[-1] == end:
                found.append(chain)
                continue
            for out in outs:
                if out.switch == seen[-1] and (far := links[out].switch) not in seen:
                    onward.append(((*chain, out), (*seen, far)))
        heads = onward[:_HEADS]
    return found[:most]


def ours(cookie: int) -> bool:
    """Whether an entry with this cookie was made by pathcast."""
    return cookie & MASK == COOKIE
