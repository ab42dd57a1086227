"""What is known of the network: ports, links by LLDP, hosts as told or by their ARP packets. Pure; time is an argument.

A link stands when both of its ports are up and what leaves by each is heard at the other. One that was told is believed
though it is not heard, as behind a full queue, until a port of it is down or it is heard to lead elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pathcast.steer.rules import Network, Port

# probes of a link that may be lost one after the other
MISSED = 5
# whoever speaks behind a port within this time of its coming may be a switch that was not heard yet
STRANGE_S = 0.5
# hosts that are believed by their ARP, behind one port and in all: whoever forges addresses fills no switch
MOST_AT = 64
MOST_HOSTS = 1024


@dataclass
class _Link:
    """One direction: where it leads, how that is known, and the probes since it was last heard."""

    far: Port
    how: str
    missed: int = 0


@dataclass
class Discovery:
    """told, kept: links and hosts, as somebody says or as they were known before a restart."""

    told: Mapping[Port, Port]
    told_hosts: Mapping[str, Port]
    kept: Mapping[Port, Port] = field(default_factory=dict)
    kept_hosts: Mapping[str, Port] = field(default_factory=dict)
    changed_at: float = 0.0

    def __post_init__(self) -> None:
        # a link of before whose end is told to lead elsewhere is no more
        kept = {a: b for a, b in self.kept.items() if a not in self.told and b not in self.told}
        self._links = {a: _Link(b, "kept") for a, b in kept.items()}
        self._links.update({a: _Link(b, "told") for a, b in self.told.items()})
        self._hosts = {**self.kept_hosts, **self.told_hosts}
        self._up: dict[Port, float] = {}
        self._down: set[Port] = set()

    def port(self, port: Port, up: bool, now: float) -> bool:
        """A port is there, up or down; says whether that changes anything."""
        if up == (port in self._up) and not (not up and port not in self._down):
            return False
        if up:
            self._up[port] = now
            self._down.discard(port)
        else:
            self._up.pop(port, None)
            self._down.add(port)
            for end in (port, self._far(port)):
                # what was heard has to be heard again; what was told is believed again
                if end in self._links and self._links[end].how != "told":
                    self._links[end].missed = MISSED + 1
        self.changed_at = now
        return True

    def only(self, switch: int, numbers: set[int], now: float) -> None:
        """These are the ports of a switch; what was believed behind others is not there."""
        for port in {*self._up, *self._links, *self._hosts.values()}:
            if port.switch == switch and port.port not in numbers:
                self.port(port, False, now)

    def probes(self, ready: set[int], only: Port | None = None, counted: bool = False) -> Iterator[Port]:
        """The ports that a probe shall leave by now, of switches that are `ready`, or one of them.

        counted: it is missed where it is not heard before the next one that counts; an answer takes some time.
        """
        for port in sorted(self._up):
            if port.switch in ready and only in (None, port):
                link = self._links.get(port)
                if counted and link is not None and link.how != "told" and link.far.switch in ready:
                    link.missed += 1
                yield port

    def heard(self, left: Port, came: Port, now: float) -> bool:
        """A probe that left by one port came in by another; says whether that changes anything."""
        link = self._links.get(left)
        if link is not None and link.far == came:
            stood = self.stands(left)
            link.missed = 0
            if link.how == "kept":
                link.how = "heard"
            if stood or not self.stands(left):
                return False
        else:
            for end in (left, came):
                self._forget(end)
            self._links[left] = _Link(came, "heard")
            self._links[came] = _Link(left, "heard", MISSED + 1)
            self._hosts = {a: p for a, p in self._hosts.items() if p not in (left, came)}
        self.changed_at = now
        return True

    def spoke(self, address: str, came: Port, now: float) -> bool:
        """A host has sent ARP; says whether it was not known there. Hosts that were told do not move."""
        known = address in self.told_hosts or self._hosts.get(address) == came
        if known or came in self._links or self.strange(came, now):
            return False
        if (address not in self._hosts and len(self._hosts) >= MOST_HOSTS) or self.crowded(came):
            return False
        self._hosts[address] = came
        self.changed_at = now
        return True

    def crowded(self, port: Port) -> bool:
        """Whether no further host is believed to be behind a port."""
        return sum(at == port for at in self._hosts.values()) >= MOST_AT

    def knows(self, address: str, port: Port) -> bool:
        """Whether a host is behind a port, as far as is known."""
        return self._hosts.get(address) == port

    def strange(self, port: Port, now: float) -> bool:
        """Whether a port has come so lately that a switch behind it may not have been heard yet."""
        return now - self._up.get(port, now) < STRANGE_S

    def stands(self, port: Port) -> bool:
        """Whether the link of a port carries packets, as far as is known."""
        link = self._links[port]
        both = (port, link.far)
        return not any(end in self._down or self._links[end].missed > MISSED for end in both)

    def network(self) -> Network:
        """The links that stand, and the hosts whose ports are not down."""
        hosts = {address: port for address, port in self._hosts.items() if port not in self._down}
        return Network({a: b.far for a, b in self._links.items() if self.stands(a)}, hosts, hosts)

    def believed(self) -> Network:
        """All links and hosts that ever were, standing or not."""
        return Network({a: b.far for a, b in self._links.items()}, self._hosts, self._hosts)

    def edges(self) -> set[Port]:
        """The ports that are up and lead to no switch."""
        return {port for port in self._up if port not in self._links}

    def about(self) -> tuple[list[tuple[Port, Port, str, bool]], list[tuple[str, Port, str, bool]]]:
        """Links (two ends, how known, whether it stands) and hosts (address, port, how, whether the port is up)."""
        links = [(a, b.far, b.how, self.stands(a)) for a, b in sorted(self._links.items()) if a < b.far]
        how = {address: "told" if address in self.told_hosts else "arp" for address in self._hosts}
        return links, [(a, p, how[a], p not in self._down) for a, p in sorted(self._hosts.items())]

    def _far(self, port: Port) -> Port:
        link = self._links.get(port)
        return link.far if link else port

    def _forget(self, port: Port) -> None:
        link = self._links.pop(port, None)
        if link is not None:
            self._links.pop(link.far, None)
