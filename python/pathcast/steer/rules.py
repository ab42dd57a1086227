"""Which rules the switches need so that flows go over the paths of a plan. Pure: no switch is asked, no time is read.

A flow is a 5-tuple of one direction; each is carried over a path, a chain of links between switches' ports. Rules are
told apart by a cookie of ours, so that a controller that comes back finds its own, and leaves others' alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from pathcast.errors import PathcastError, usage

# upper half of every cookie of ours: "pathcast" in four bytes; the lower half is the plan's generation
COOKIE = 0x70617468 << 32
MASK = 0xFFFFFFFF << 32
PRIORITY = 100
PROTOCOLS = {"tcp": 6, "udp": 17}


@dataclass(frozen=True, order=True)
class Port:
    """A switch's port: its datapath id, and the port's number there."""

    switch: int
    port: int


@dataclass(frozen=True, order=True)
class Flow:
    """A 5-tuple, as its packets leave the client. Port 0: any, for flows without a rule of their own."""

    local: str
    remote: str
    local_port: int = 0
    remote_port: int = 0
    protocol: str = "tcp"

    def __post_init__(self) -> None:
        try:
            versions = {ip_address(end).version for end in (self.local, self.remote)}
        except ValueError as error:
            raise usage(str(error)) from None
        if len(versions) != 1:
            raise usage(f"flow from {self.local} to {self.remote}: two IP versions")
        if self.protocol not in PROTOCOLS:
            raise usage(f"protocol `{self.protocol}`: allowed are {', '.join(PROTOCOLS)}")
        for port in (self.local_port, self.remote_port):
            if not 0 <= port <= 65535:
                raise usage(f"port {port}: allowed are 0 to 65535")

    def back(self) -> Flow:
        """The same flow as its answers see it."""
        return Flow(self.remote, self.local, self.remote_port, self.local_port, self.protocol)


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
        return PRIORITY + bool(self.flow.local_port) + bool(self.flow.remote_port)


@dataclass(frozen=True)
class Network:
    """What is known of the switches. links: by each port, the port at the link's other end, both ways.

    client, server: the ports behind which the end hosts are, by the host's address.
    """

    links: Mapping[Port, Port]
    client: Mapping[str, Port]
    server: Mapping[str, Port]

    def __post_init__(self) -> None:
        for a, b in self.links.items():
            if self.links.get(b) != a or a.switch == b.switch:
                raise PathcastError("topology", f"port {a.port} of switch {a.switch} does not lead where it says")

    def without(self, down: Collection[Port]) -> Network:
        """The network when these ports are down: their links are gone at both ends."""
        links = {a: b for a, b in self.links.items() if a not in down and b not in down}
        hosts = [{ip: port for ip, port in side.items() if port not in down} for side in (self.client, self.server)]
        return Network(links, *hosts)

    def stands(self, chain: Sequence[Port], flow: Flow) -> bool:
        """Whether a path can carry the flow: from the flow's client to its server, with every link there."""
        begins = self.client.get(flow.local)
        ends = self.server.get(flow.remote)
        if begins is None or ends is None:
            return False
        at, seen = begins.switch, {begins.switch}
        for out in chain:
            far = self.links.get(out)
            if out.switch != at or far is None or far.switch in seen:
                return False
            at = far.switch
            seen.add(at)
        return at == ends.switch


def rules(network: Network, chain: Sequence[Port], flow: Flow) -> list[Rule]:
    """The entries that carry a flow over a path and back; `chain` names the port out of each switch but the last.

    Raises PathcastError (`topology`) for a path that is not there.
    """
    if not network.stands(chain, flow):
        way = ", ".join(f"{port.switch}:{port.port}" for port in chain) or "within one switch"
        raise PathcastError("topology", f"{flow.local} does not reach {flow.remote} over the path {way}")
    came, found = network.client[flow.local], []
    for out in (*chain, network.server[flow.remote]):
        found.append(Rule(out.switch, flow, came.port, out.port))
        found.append(Rule(out.switch, flow.back(), out.port, came.port))
        came = network.links.get(out, out)
    return found


def assign(
    network: Network, paths: Mapping[str, Sequence[Port]], plan: Mapping[Flow, str]
) -> tuple[dict[Flow, str], list[Flow]]:
    """The path of each flow, and the flows that no path is left for.

    It is the plan's wherever that one stands. Others take, of the paths that stand, that with the fewest flows, the
    first of several. Raises exit 2 for a path that there is not.
    """
    for name in plan.values():
        if name not in paths:
            raise usage(f"there is no path `{name}`; allowed: {', '.join(paths)}")
    chosen = {flow: name for flow, name in plan.items() if network.stands(paths[name], flow)}
    lost = []
    for flow in plan:
        if flow in chosen:
            continue
        standing = [name for name, chain in paths.items() if network.stands(chain, flow)]
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
    steps = [Step(add=tuple(sorted(quiet))), Step(add=tuple(sorted(new - quiet))), Step(remove=tuple(sorted(gone)))]
    return [step for step in steps if step.add or step.remove]


def ours(cookie: int) -> bool:
    """Whether an entry with this cookie was made by pathcast."""
    return cookie & MASK == COOKIE
