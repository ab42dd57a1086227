"""Which flows shall go where: the plan, pairs of hosts beside it, and what is wanted of the switches for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

from pathcast.errors import PathcastError, usage
from pathcast.steer.client import Owner
from pathcast.steer.rules import PROTOCOLS, WHOLE, Flow, Network, Port, Rule, assign, rules, simple
from pathcast.steer.tables import Tables

# paths between two switches that are found, not told
MOST_PATHS = 16
# of hosts that reach each other by default
MOST_PAIRS = 4096
# until what a switch refused is tried again
AGAIN_S = 10.0

Paths = dict[str, tuple[Port, ...]]
Entry = tuple[str, Owner | None]


def pair(a: str, b: str) -> tuple[str, str]:
    """Two hosts in the order in which they are kept."""
    return (a, b) if a < b else (b, a)


class Plan:
    """flows: each with its path and the process with which it ends; pairs: hosts that reach each other by default."""

    def __init__(
        self, paths: Paths, told: bool, flows: Mapping[Flow, Entry], pairs: Collection[tuple[str, str]]
    ) -> None:
        self.paths, self._told = dict(paths), told
        self.flows, self.pairs = dict(flows), set(pairs)
        self.chosen: dict[Flow, str] = {}
        self.lost: list[Flow] = []
        self._barred: dict[tuple[Flow, str], float] = {}

    def meet(self, a: str, b: str) -> None:
        """Two hosts reach each other from now on."""
        if len(self.pairs) < MOST_PAIRS:
            self.pairs.add(pair(a, b))

    def find_paths(self, believed: Network) -> None:
        """Names the paths that there are between switches with hosts, unless paths were told; names stay."""
        if self._told:
            return
        known = set(self.paths.values())
        at = sorted(port.switch for port in set(believed.client.values()))
        for begin, end in sorted(set(combinations(at, 2))):
            for chain in simple(believed.links, begin, end, MOST_PATHS):
                if chain not in known:
                    known.add(chain)
                    self.paths[self._name()] = chain

    def _name(self) -> str:
        number = len(self.paths) + 1
        while f"path{number}" in self.paths:
            number += 1
        return f"path{number}"

    def check(self, flows: Mapping[Flow, str], believed: Network) -> dict[Flow, set[int]]:
        """Raises PathcastError for flows that cannot be carried as asked: exit 2 for a path that there is not, 1 for
        hosts that are not known, or a path that does not join them. Else the switches that each needs."""
        found = {}
        for flow, name in flows.items():
            if flow.protocol not in PROTOCOLS:
                raise usage(f"a flow of protocol `{flow.protocol}`: allowed are {', '.join(PROTOCOLS)}")
            if name not in self.paths:
                raise usage(f"there is no path `{name}`; allowed: {', '.join(self.paths) or 'none is known yet'}")
            if flow.back() in self.flows or flow.back() in flows:
                raise usage(f"flow {flow}: it has a path from its other end already")
            for host in (flow.local, flow.remote):
                if host not in believed.client:
                    told = f"nobody knows where {host} is: it was neither told nor has it sent ARP"
                    raise PathcastError("topology", told, "name it in a [[host]], or let it send a packet first")
            way = believed.oriented(self.paths[name], flow)
            if way is None or believed.client[flow.local] == believed.server[flow.remote]:
                raise PathcastError("topology", f"path `{name}` does not join {flow.local} and {flow.remote}")
            found[flow] = {port.switch for port in (*way, believed.server[flow.remote])}
        return found

    def want(
        self, network: Network, believed: Network, ready: Collection[int], tables: Tables, now: float
    ) -> set[Rule]:
        """The entries that shall be there; `chosen` and `lost` say of which flows.

        What a flow has that no path is left for stays: a link may carry packets though it is not heard.
        """
        self._barred = {one: until for one, until in self._barred.items() if until > now}
        asked = self._defaults(believed) | {flow: name for flow, (name, _) in self.flows.items()}
        self.chosen, self.lost = assign(
            network, self.paths, asked, self.chosen, self._closed(asked, network, ready, tables)
        )
        lost = {one for flow in self.lost for one in (flow, flow.back())}
        left = {rule for rule in tables.have.values() if rule.flow in lost} if lost else set()
        return left | {rule for flow in self.chosen for rule in self.rules(flow, network)}

    def rules(self, flow: Flow, network: Network) -> list[Rule]:
        """The entries of a flow that has a path."""
        return rules(network, self.paths[self.chosen[flow]], flow)

    def refused(self, rule: Rule, now: float) -> Flow | None:
        """A switch has refused an entry: its flow, which takes another path for some time; None if it is none now."""
        flow = self.of(rule)
        if flow is not None:
            self._barred[flow, self.chosen[flow]] = now + AGAIN_S
        return flow

    def of(self, rule: Rule) -> Flow | None:
        """The flow that an entry serves, in whichever direction."""
        return next((flow for flow in (rule.flow, rule.flow.back()) if flow in self.chosen), None)

    def allow(self, flows: Iterable[Flow]) -> None:
        """What was refused these flows may be tried at once."""
        for flow, name in list(self._barred):
            if flow in flows:
                del self._barred[flow, name]

    def due(self) -> float | None:
        """When something refused may be tried again."""
        return min(self._barred.values(), default=None)

    def _defaults(self, believed: Network) -> dict[Flow, str]:
        found = {}
        for a, b in sorted(self.pairs):
            if believed.client.get(a) == believed.client.get(b):
                continue  # behind one port, or both unknown
            flows = [Flow(a, b, protocol=protocol) for protocol in WHOLE if protocol != "arp" or ":" not in a]
            name = next((name for name, chain in self.paths.items() if believed.stands(chain, flows[0])), None)
            if name is not None:
                found.update(dict.fromkeys(flows, name))
        return found

    def _closed(
        self, asked: Mapping[Flow, str], network: Network, ready: Collection[int], tables: Tables
    ) -> set[tuple[Flow, str]]:
        """Flows with paths over switches that are away; what these carry already they go on to carry."""
        found = set(self._barred)
        for name, chain in self.paths.items():
            for flow in asked:
                way = network.oriented(chain, flow)
                if way is None or {p.switch for p in (*way, network.server[flow.remote])} <= set(ready):
                    continue
                if not tables.carries(rules(network, chain, flow)):
                    found.add((flow, name))
        return found
