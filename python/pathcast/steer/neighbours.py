"""Neighbours ask for each other by ARP (RFC 826): hosts are learnt by it; it passes when their packets can. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from pathcast.steer import openflow as of
from pathcast.steer.discovery import MOST_AT, Discovery
from pathcast.steer.plan import Plan, pair
from pathcast.steer.rules import Flow, Port
from pathcast.steer.switches import Switches

# frames that wait for the entries of their hosts
MOST_HELD = 64


class Neighbours:
    """note: takes a sentence that somebody may want to know."""

    def __init__(self, discovery: Discovery, plan: Plan, switches: Switches, note: Callable[[str], None]) -> None:
        self._discovery, self._plan, self._switches, self._note = discovery, plan, switches, note
        self._held: deque[tuple[tuple[str, str], Port, bytes]] = deque(maxlen=MOST_HELD)

    def asked(self, came: Port, asks: str, whom: str, frame: bytes, now: float) -> None:
        """ARP that has no entry: whoever sends it is there, and it goes to whom it is for, or out of every edge."""
        discovery = self._discovery
        if asks != "0.0.0.0":
            discovery.spoke(asks, came, now)
            if not discovery.knows(asks, came):
                if discovery.crowded(came):
                    self._note(
                        f"port {self._switches.port(came)}: more than {MOST_AT} hosts; no further ones are believed"
                    )
                if came in discovery.edges():
                    return  # it speaks from where it is not
        hosts, edges = discovery.network().client, discovery.edges()
        # whoever is not heard asks again; one that was answered would not, and have no entries
        if came not in edges or asks == whom or discovery.strange(came, now):
            return
        if asks in hosts and whom in hosts:
            two = pair(asks, whom)
            self._plan.meet(*two)
            # who is answered sends at once, and into nothing also while what is chosen is not in all switches
            self._held.append((two, hosts[whom], frame))
            return
        for out in {hosts[whom]} if whom in hosts else edges:
            if out != came:
                self._send(out, frame)

    def release(self) -> None:
        """Lets ARP pass between hosts that have their entries by now: all that were chosen are there."""
        for one in list(self._held):
            two, out, frame = one
            if Flow(*two, protocol="ip") in self._plan.chosen:
                self._held.remove(one)
                self._send(out, frame)

    def _send(self, out: Port, frame: bytes) -> None:
        if self._switches.is_ready(out.switch):
            self._switches.send(self._switches.by_id[out.switch], of.PacketOut(out.port, frame))
