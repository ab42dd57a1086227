"""The switches that a controller knows, by datapath id: what they said, what they were asked, what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pathcast.steer import entries
from pathcast.steer import openflow as of
from pathcast.steer.rules import Port, Rule
from pathcast.steer.switch import Session

# more are no network of ours
MOST_KNOWN = 1024


@dataclass
class Switch:
    """ready: connected, and its ports and entries are known; foreign: others' entries; changes: steps sent so far;
    step, looked: what waits until it has said what is in the place of new entries, and those it has not said it of;
    barrier_at: since when it is waited for; holds: it may have entries of ours."""

    id: int
    name: str
    session: Session | None = None
    ready: bool = False
    ports: dict[int, of.PortAbout] = field(default_factory=dict)
    stats: list[entries.Stats] = field(default_factory=list)
    counters: dict[int, of.PortCounters] = field(default_factory=dict)
    foreign: int = 0
    barrier_at: float | None = None
    changes: int = 0
    step: list[tuple[Rule, bool]] = field(default_factory=list)
    looked: set[Rule] = field(default_factory=set)
    holds: bool = False


class Switches:
    """meaning: what a message was for, by the xid that its answer has. before: those that may have entries of the last
    controller's."""

    def __init__(self, named: Iterable[tuple[int, str]], before: Mapping[str, int] | None = None) -> None:
        self.by_id = {id: Switch(id, name) for id, name in named}
        self._named = set(self.by_id)
        for name, id in (before or {}).items():
            taken = any(one.name == name for one in self.by_id.values())
            self.by_id.setdefault(id, Switch(id, "" if taken else name)).holds = True
        self._meaning: dict[tuple[Session, int], Any] = {}

    def behind(self, session: Session) -> Switch | None:
        """The switch at the other end, once it has said who it is, and while this is its connection."""
        found = self.by_id.get(session.id) if session.id is not None else None
        return found if found is not None and found.session is session else None

    def forget(self) -> bool:
        """Forgets a switch that is away and was not named; whether there was one."""
        for id, switch in self.by_id.items():
            if switch.session is None and id not in self._named:
                del self.by_id[id]
                return True
        return False

    def ready(self) -> list[Switch]:
        """Those that can be told something."""
        return [switch for switch in self.by_id.values() if switch.ready]

    def holding(self) -> dict[str, int]:
        """Those that may have entries of ours, by name."""
        return {self.name(id): id for id, switch in self.by_id.items() if switch.holds}

    def is_ready(self, id: int) -> bool:
        return id in self.by_id and self.by_id[id].ready

    def send(self, switch: Switch, message: Any, meaning: Any = None) -> None:
        """Queues a message; what answers it is found under its meaning."""
        if switch.session is not None:
            xid = switch.session.send(message)
            if meaning is not None:
                self._meaning[switch.session, xid] = meaning

    def meaning(self, session: Session, xid: int, keep: bool = False) -> Any:
        """What a message was for; asked for once, unless it may be refused and answered."""
        return self._meaning.get((session, xid)) if keep else self._meaning.pop((session, xid), None)

    def step_done(self, session: Session) -> None:
        """What was sent before a barrier has been refused by now, or never is."""
        old = [key for key, one in self._meaning.items() if key[0] is session and isinstance(one, Rule | str)]
        for key in old:
            del self._meaning[key]

    def gone(self, session: Session) -> None:
        """Nothing is answered over a connection that is over."""
        self._meaning = {key: one for key, one in self._meaning.items() if key[0] is not session}

    def call(self, switch: Switch, ports: Iterable[of.PortAbout]) -> None:
        """Gives a switch that was not named its name: that of its own port, which Open vSwitch calls as the switch."""
        if not switch.name:
            own = next((port.name for port in ports if port.number == of.LOCAL), "")
            taken = {one.name for one in self.by_id.values()}
            switch.name = own if own and own not in taken else f"{switch.id:x}"

    def name(self, id: int) -> str:
        """For people."""
        switch = self.by_id.get(id)
        return switch.name if switch is not None and switch.name else f"{id:x}"

    def port(self, port: Port) -> str:
        """For people: `s1:2`."""
        return f"{self.name(port.switch)}:{port.port}"

    def at(self, session: Session) -> str:
        """Who is at the other end, for people."""
        return "a switch" if session.id is None else f"switch `{self.name(session.id)}`"
