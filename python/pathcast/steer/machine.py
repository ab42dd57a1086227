"""The controller as a machine: bytes, requests and time go in; bytes, answers and connections to close come out. Pure.

Flows of a plan go over the paths that it names, every other packet between two hosts over the first path that stands.
When a port goes down those concerned go over what is left, and come back with it. Before each step `plan` says what is
wanted and `tables` what is missing; what a switch refuses is undone and told to who asked.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pathcast.errors import PathcastError
from pathcast.steer import entries, frames, report
from pathcast.steer import openflow as of
from pathcast.steer.client import Owner
from pathcast.steer.config import Config
from pathcast.steer.discovery import Discovery
from pathcast.steer.kept import Kept
from pathcast.steer.match import Malformed, pack_match
from pathcast.steer.neighbours import Neighbours
from pathcast.steer.plan import Entry, Plan, pair
from pathcast.steer.rules import Flow, Port, Rule, ours
from pathcast.steer.switch import Ended, Session, Told
from pathcast.steer.switches import MOST_KNOWN, Switch, Switches
from pathcast.steer.tables import Tables

PROBE_S = 1.0
SOON_S = 0.05
# how long the network has to be as it is before paths are named and what is wanted no more is removed
SETTLED_S = 1.0
# how long a switch may take for a barrier
BARRIER_S = 5.0
# how often the switches' entries are compared with what they should be
AUDIT_S = 10.0
# of a cookie's bits
ALL = (1 << 64) - 1


@dataclass
class Ticket:
    """A request, and what it is answered with in time. before, after: what the plan had of its flows, and then had."""

    begin: Callable[[float], None] = lambda now: None
    flows: tuple[Flow, ...] = ()
    before: dict[Flow, Entry | None] = field(default_factory=dict)
    after: dict[Flow, Entry] = field(default_factory=dict)
    waits: set[int] = field(default_factory=set)
    result: Any = None
    error: PathcastError | None = None


class Machine:
    """cookie: of all entries of this controller; key: of its LLDP frames; kept: what the last one of its name knew."""

    def __init__(self, config: Config, cookie: int, key: bytes, kept: Kept | None = None, now: float = 0.0) -> None:
        kept = kept or Kept()
        self.config, self.cookie, self._key = config, cookie, key
        self.discovery = Discovery(config.links(), config.hosts(), kept.links(), kept.hosts(), now)
        paths = config.paths() or kept.paths()
        hosts = sorted(config.hosts())
        pairs = {pair(a, b) for a in hosts for b in hosts if a != b and (":" in a) == (":" in b)}
        flows = {flow: entry for flow, entry in kept.plan().items() if entry[0] in paths}
        self.plan = Plan(paths, bool(config.paths()), flows, pairs | kept.pairs())
        self.tables = Tables(config.drain_s)
        self.switches = Switches(((one.id, one.name) for one in config.switch), kept.switches)
        self.notes: deque[str] = deque(maxlen=20)
        self.settled: list[Ticket] = []
        self.closing: list[Session] = []
        self._neighbours = Neighbours(self.discovery, self.plan, self.switches, self.note)
        self._strangers: dict[Session, float] = {}
        self._queue: deque[Ticket] = deque()
        self._ticket: Ticket | None = None
        self._asking: list[Ticket] = []
        self._probe_at, self._count_at, self._audit_at = now, now, now + AUDIT_S
        self._named_at = -1.0
        # whether what is wanted or there may have changed since it was last compared
        self._changed = True

    # --- requests --------------------------------------------------------------------------------------------------

    def begin(self, flows: Mapping[Flow, str], owner: Owner | None, now: float) -> Ticket:
        """Flows to be carried or moved, all or none."""
        ticket = Ticket(flows=tuple(flows))

        def begin(now: float) -> None:
            self._name_paths(now, hasty=True)
            believed = self.discovery.believed()
            for flow, needed in self.plan.check(flows, believed).items():
                away = [self.switches.name(id) for id in sorted(needed) if not self.switches.is_ready(id)]
                if away:
                    told = f"switch `{away[0]}` is not connected; path `{flows[flow]}` needs it"
                    raise PathcastError("switch", told, "see `pathcast steer status`")
            ticket.before = {flow: self.plan.flows.get(flow) for flow in flows}
            ticket.after = {flow: (name, owner) for flow, name in flows.items()}
            self.plan.flows.update(ticket.after)
            self.plan.allow(flows)

        ticket.begin = begin
        self._queue.append(ticket)
        self._changed = True
        self._converge(now)
        return ticket

    def withdraw(self, ticket: Ticket, now: float) -> None:
        """Nobody waits for the answer to a `begin` any more: it is not carried out, or it is undone."""
        waiting = len(self._queue)
        self._queue = deque(one for one in self._queue if one is not ticket)
        if len(self._queue) == waiting and ticket.error is None:
            ticket.error = PathcastError("gone", "nobody waits for the answer any more")
            self._revert(ticket)
        self._changed = True
        self._converge(now)

    def end(self, flows: Iterable[Flow], now: float) -> Ticket:
        """Flows that have ended; unknown ones are passed over."""
        ticket, gone = Ticket(), list(flows)

        def begin(now: float) -> None:
            ticket.result = {"ended": sum(self.plan.flows.pop(flow, None) is not None for flow in gone)}

        ticket.begin = begin
        self._queue.append(ticket)
        self._changed = True
        self._converge(now)
        return ticket

    def end_dead(self, now: float) -> None:
        """Ends the flows whose processes have ended."""
        owners = {owner for _, owner in self.plan.flows.values()}
        gone = {owner for owner in owners if owner is not None and not owner.alive}
        if dead := [flow for flow, (_, owner) in self.plan.flows.items() if owner in gone]:
            self.end(dead, now)

    def count(self, now: float) -> Ticket:
        """What paths and flows have carried, as the switches say it now."""
        ticket = Ticket()
        for switch in self.switches.ready():
            assert switch.session is not None
            ticket.waits.add(switch.id)
            for what in (of.PORT_STATS, of.FLOW_STATS):
                self.switches.send(
                    switch, of.Ask(what), ("count", ticket if what == of.FLOW_STATS else None, switch.changes)
                )
        self._asking.append(ticket)
        self._counted(ticket, None)
        return ticket

    def clear(self, now: float) -> Ticket:
        """Removes all entries of ours from the switches that are connected."""
        ticket = Ticket()
        for switch in self.switches.ready():
            ticket.waits.add(switch.id)
            self.switches.send(switch, entries.FlowMod(entries.DELETE, {}, 0, self.cookie, ALL))
            self.switches.send(switch, of.BarrierRequest(), ("clear", ticket))
            self.tables.read(switch.id, [])
            for rule, _ in switch.step:
                self.tables.refused(rule, "all entries are removed from it")
            switch.step = []
        self.plan.flows.clear()
        self.plan.pairs.clear()
        self._changed = True
        self._asking.append(ticket)
        self._counted(ticket, None)
        return ticket

    def state(self) -> dict[str, Any]:
        """Everything that is known, as plain data."""
        return report.state(self)

    def kept(self) -> Kept:
        """What the next controller of this name goes on with."""
        believed = self.discovery.believed()
        paths, pairs = self.plan.paths, self.plan.pairs
        listen, hosts = self.config.listen, believed.client
        names = {self.switches.name(id): id for id in self.switches.by_id}
        return Kept.of(listen, self.cookie, names, self.plan.flows, believed.links, hosts, paths, pairs)

    # --- what happens ----------------------------------------------------------------------------------------------

    def connected(self, now: float) -> Session:
        """A switch has opened a connection."""
        session = Session(now)
        self._strangers[session] = now
        return session

    def received(self, session: Session, data: bytes, now: float) -> None:
        """Bytes of a switch."""
        ended = None
        try:
            for xid, event in session.received(data, now):
                if isinstance(event, Ended):
                    ended = event
                else:
                    self._happened(session, xid, event, now)
        except (Malformed, struct.error) as error:
            ended = Ended(f"it sent {error}")
        if ended is not None:
            self.note(f"{self.switches.at(session)} was sent away: {ended.why}")
            self.closing.append(session)
            self.lost(session, ended.why, now)
        self._converge(now)

    def oldest_stranger(self) -> Session | None:
        """Of those that have not said what switch they are, the one that has been silent for longest."""
        return next(iter(self._strangers), None)

    def lost(self, session: Session, why: str, now: float) -> None:
        """A connection is over; what its switch has it goes on to do."""
        switch = self.switches.behind(session)
        self._strangers.pop(session, None)
        self.switches.gone(session)
        if switch is None:
            return
        switch.session, switch.ready, switch.barrier_at = None, False, None
        switch.step, switch.looked = [], set()
        self._changed = True
        self._failed(self.tables.lost(switch.id, f"it is away: {why}"), now)
        for ticket in list(self._asking):
            self._counted(ticket, switch.id)
        self.note(f"switch `{switch.name}` is away: {why}")
        self._converge(now)

    def tick(self, now: float) -> None:
        """Time has passed. To be called when all that arrived was given."""
        for switch in list(self.switches.by_id.values()):
            if switch.session is None:
                continue
            ended = switch.session.tick(now)
            if ended is None and switch.barrier_at is not None and now - switch.barrier_at >= BARRIER_S:
                ended = Ended(f"it answered no barrier for {BARRIER_S:.0f} s")
            if ended is not None:
                self.closing.append(switch.session)
                self.lost(switch.session, ended.why, now)
        for session in [one for one, since in self._strangers.items() if now - since >= BARRIER_S]:
            self.note(f"somebody connected, and did not say what switch it is for {BARRIER_S:.0f} s")
            self.closing.append(session)
            self.lost(session, "", now)
        if now >= self._probe_at:
            self._probe_at = now + PROBE_S
            # however often others make a probe come sooner
            counted = now >= self._count_at
            if counted:
                self._count_at = now + PROBE_S
            self._probe(counted=counted)
            self._changed = True  # a link that was not heard again may be taken for dead
            self.end_dead(now)
        if now >= self._audit_at:
            self._audit_at = now + AUDIT_S
            for switch in self.switches.ready():
                self.switches.send(switch, of.Ask(of.FLOW_STATS), ("count", None, switch.changes))
        self._converge(now)

    def wake_at(self) -> float:
        """When `tick` is due at the latest."""
        return min(self._probe_at, self._due())

    def _due(self) -> float:
        """When what is wanted or spare changes by time alone."""
        if self.tables.busy:
            return math.inf  # a barrier's answer comes first
        settled = self.discovery.changed_at + SETTLED_S
        due = [self.plan.due()]
        if self._named_at < self.discovery.changed_at:
            due.append(settled)
        if (spare := self.tables.due({switch.id for switch in self.switches.ready()})) is not None:
            due.append(max(spare, settled))
        return min((at for at in due if at is not None), default=math.inf)

    def note(self, text: str) -> None:
        """Keeps what somebody may want to know, the last of it, each once."""
        if text in self.notes:
            self.notes.remove(text)
        self.notes.append(text)

    # --- a switch's words ------------------------------------------------------------------------------------------

    def _happened(self, session: Session, xid: int, event: Any, now: float) -> None:
        switch = self.switches.behind(session)
        self._changed |= not isinstance(event, of.PacketIn)
        match event:
            case of.Features():
                self._introduced(session, event.id, now)
            case Told() if switch is not None:
                self._told(switch, self.switches.meaning(session, xid), event, now)
            case of.PacketIn() if switch is not None:
                self._packet(switch, event, now)
            case of.PortStatus() if switch is not None:
                self._port(switch, event.port, event.port.up and not event.gone, now)
                self._probe(Port(switch.id, event.port.number))
            case of.BarrierReply() if switch is not None:
                meaning = self.switches.meaning(session, xid)
                if meaning == "step":
                    self.switches.step_done(session)
                self._barrier(switch, meaning, now)
            case of.Error():
                meaning = self.switches.meaning(session, xid, keep=True)
                if isinstance(meaning, Rule) and switch is not None and meaning in switch.looked:
                    self._looked(switch, meaning, str(event), now)
                elif isinstance(meaning, Rule):
                    self.tables.refused(meaning, str(event))
                elif meaning in entries.WATCHED.values():
                    told = f"does not take the entry that brings {meaning} to the controller: {event}"
                    self.note(f"{self.switches.at(session)} {told}")
                else:
                    self.note(f"{self.switches.at(session)} says: {event}")

    def _introduced(self, session: Session, id: int, now: float) -> None:
        if id not in self.switches.by_id and len(self.switches.by_id) >= MOST_KNOWN and not self.switches.forget():
            self.note(f"a further switch was sent away: {MOST_KNOWN} are known")
            self.closing.append(session)
            return
        switch = self.switches.by_id.setdefault(id, Switch(id, ""))
        if switch.session is not None:  # it has come again, before the end of its last connection was seen
            self.closing.append(switch.session)
            self.lost(switch.session, "it has connected anew", now)
        switch.session = session
        self._strangers.pop(session, None)
        for what in (of.PORTS, of.FLOW_STATS):
            self.switches.send(switch, of.Ask(what), ("first", None, 0))

    def _told(self, switch: Switch, meaning: Any, told: Told, now: float) -> None:
        if meaning is None:
            return
        if isinstance(meaning, Rule):
            there = [entry for part in told.parts for entry in entries.stats(part)]
            taken = any(one.cookie != self.cookie and entries.equal(one, meaning) for one in there)
            self._looked(switch, meaning, str(of.IN_THE_WAY) if taken else None, now)
            return
        why, ticket, changes = meaning
        if told.what == of.PORTS:
            ports = [port for part in told.parts for port in part.ports()]
            self.switches.call(switch, ports)
            switch.ports.clear()
            for port in ports:
                self._port(switch, port, port.up, now)
            self.discovery.only(switch.id, {port.number for port in ports}, now)
        elif told.what == of.PORT_STATS:
            switch.counters = {n: c for part in told.parts for n, c in part.counters().items()}
        elif told.what == of.FLOW_STATS:
            switch.stats = [entry for part in told.parts for entry in entries.stats(part)]
            if why == "first" or (changes == switch.changes and not self.tables.busy):
                self._reconcile(switch, why == "first")
            if why == "first":
                switch.ready = True
                self._probe()
                self._probe_at = min(self._probe_at, now + SOON_S)  # when the others, too, let it come to us
            if ticket is not None:
                self._counted(ticket, switch.id)

    def _reconcile(self, switch: Switch, first: bool) -> None:
        """What the switch has of ours is what is there; what is none of our forms goes at once."""
        switch.holds = True  # from here on at the latest
        mine = [entry for entry in switch.stats if entry.cookie == self.cookie]
        switch.foreign = len(switch.stats) - len(mine)
        if any(ours(entry.cookie) and entry.cookie != self.cookie for entry in switch.stats):
            told = "of another controller of pathcast's, or of one that was killed"
            self.note(f"switch `{switch.name}` has entries {told}")
        found = []
        for entry in mine:
            rule = entries.rule_of(switch.id, entry)
            if rule is not None:
                found.append(rule)
            elif not entries.watching(entry):
                gone = entries.FlowMod(entries.DELETE_STRICT, entry.raw, entry.priority, self.cookie, ALL)
                self.switches.send(switch, gone)
        if not first and any(not self.tables.has(rule) for rule in found):
            told = "that it did not send: perhaps another controller of this name, on a copy of this host"
            self.note(f"switch `{switch.name}` got entries with this controller's mark {told}")
        self.tables.read(switch.id, found)
        there = [(entry.priority, dict(entry.match)) for entry in mine]
        for watch, name in zip(entries.watches(self.cookie), entries.WATCHED.values(), strict=True):
            if (watch.priority, watch.match) not in there:
                self.switches.send(switch, watch, name)

    def _port(self, switch: Switch, port: of.PortAbout, up: bool, now: float) -> None:
        if port.number < of.MOST:
            switch.ports[port.number] = port
            changed = self.discovery.port(Port(switch.id, port.number), up, now)
            told = f"port {port.number} ({port.name}) of switch `{switch.name}` is down"
            if changed and not up:
                self.note(told)
            elif up and told in self.notes:
                self.notes.remove(told)

    def _packet(self, switch: Switch, packet: of.PacketIn, now: float) -> None:
        came = Port(switch.id, packet.in_port)
        left = frames.sender(packet.data, self._key)
        if left is not None and left.switch == came.switch:
            self.note(f"what leaves by the port {self.switches.port(left)} comes back by {self.switches.port(came)}")
        elif left is not None:
            told, changed = self.discovery.told.get(left), self.discovery.heard(left, came, now)
            self._changed |= changed
            if changed and told not in (None, came):
                self.note(f"the port {self.switches.port(left)} leads to {self.switches.port(came)}, other than told")
        elif (asked := frames.arp(packet.data)) is not None:
            self._changed = True
            self._neighbours.asked(came, *asked, packet.data, now)

    def _barrier(self, switch: Switch, meaning: Any, now: float) -> None:
        if meaning == "step":
            switch.barrier_at = None
            self._failed(self.tables.done(switch.id), now)
        elif isinstance(meaning, tuple) and meaning[0] == "clear":
            switch.holds = False
            self._counted(meaning[1], switch.id)

    # --- what is done ----------------------------------------------------------------------------------------------

    def _converge(self, now: float) -> None:
        """Sends what is missing; when nothing is, removes what is spare, answers, and begins the next request."""
        if not self._changed and now < self._due():
            return
        self._changed = False
        while not self.tables.busy:
            self._name_paths(now)
            ready = {switch.id for switch in self.switches.ready()}
            network, believed = self.discovery.network(), self.discovery.believed()
            want = self.plan.want(network, believed, ready, self.tables, now)
            if step := self.tables.step(want, network, ready):
                for id, rules in step.items():
                    self._change(self.switches.by_id[id], rules, now)
                return
            self._neighbours.release()
            # nothing is removed before all is known that was known before a restart, but what a failed request brought
            settled = now - self.discovery.changed_at >= SETTLED_S
            if spare := self.tables.sweep(want, self.discovery.edges(), now, ready, self._vain(), settled):
                self._sweep(spare, now)
                return
            if self._ticket is not None:
                self._settle(self._ticket)
                self._ticket = None
            if not self._queue:
                return
            self._ticket = self._queue.popleft()
            try:
                self._ticket.begin(now)
            except PathcastError as error:
                self._ticket.error = error

    def _settle(self, ticket: Ticket) -> None:
        if ticket.error is None and ticket.flows:
            lost = [flow for flow in ticket.flows if flow in self.plan.lost]
            if lost:
                self._revert(ticket)
                told = f"no path is left from {lost[0].local} to {lost[0].remote}"
                ticket.error = PathcastError("topology", told, "see `pathcast steer status`")
            else:
                ticket.result = {"paths": [self.plan.chosen[flow] for flow in ticket.flows]}
        self.settled.append(ticket)

    def _change(self, switch: Switch, rules: list[tuple[Rule, bool]], now: float) -> None:
        """Of new entries it first asks what is in their place: a switch may replace another's by its equal."""
        switch.step, switch.looked = rules, {rule for rule, new in rules if new}
        switch.barrier_at = now
        for rule in [rule for rule, new in rules if new]:
            self.switches.send(switch, of.Ask(of.FLOW_STATS, pack_match(entries.match_of(rule))), rule)
        if not switch.looked:
            self._put(switch, now)

    def _looked(self, switch: Switch, rule: Rule, why: str | None, now: float) -> None:
        """A switch has said what is in an entry's place; why: the entry cannot be there."""
        if rule not in switch.looked:
            return
        switch.looked.discard(rule)
        if why is not None:
            self.tables.refused(rule, why)
            switch.step = [one for one in switch.step if one[0] != rule]
        if not switch.looked:
            self._put(switch, now)

    def _put(self, switch: Switch, now: float) -> None:
        for rule, new in switch.step:
            command, match = entries.ADD if new else entries.MODIFY, entries.match_of(rule)
            mod = entries.FlowMod(command, match, rule.priority, self.cookie, ALL, out=rule.out, alone=True)
            self.switches.send(switch, mod, rule)
        switch.step = []
        self._finish(switch, now)

    def _vain(self) -> set[Flow]:
        """The new flows of a request that has failed."""
        ticket = self._ticket
        if ticket is None or ticket.error is None:
            return set()
        return {flow for flow, old in ticket.before.items() if old is None}

    def _sweep(self, rules: Iterable[Rule], now: float) -> None:
        for rule in rules:
            match = entries.match_of(rule)
            mod = entries.FlowMod(entries.DELETE_STRICT, match, rule.priority, self.cookie, ALL)
            self.switches.send(self.switches.by_id[rule.switch], mod)
        for id in {rule.switch for rule in rules}:
            self._finish(self.switches.by_id[id], now)

    def _finish(self, switch: Switch, now: float) -> None:
        """The end of a step at a switch."""
        self.switches.send(switch, of.BarrierRequest(), "step")
        switch.changes += 1
        switch.barrier_at = now

    def _failed(self, failed: Mapping[Rule, str], now: float) -> None:
        """What a step did not bring: the request that wanted it is undone, else another path is taken."""
        for rule, why in failed.items():
            told = f"switch `{self.switches.name(rule.switch)}` does not take the entry {report.entry(rule)}: {why}"
            ticket, flow = self._ticket, self.plan.of(rule)
            if ticket is not None and ticket.error is None and flow in ticket.flows:
                ticket.error = PathcastError("switch", told, "nothing of the request is in force")
                self._revert(ticket)
            else:  # be it on the way back from what failed
                self.plan.refused(rule, now)
                self.note(told)

    def _revert(self, ticket: Ticket) -> None:
        for flow, old in ticket.before.items():
            if self.plan.flows.get(flow) is not ticket.after.get(flow):
                continue  # it has ended since, or another request has moved it
            if old is None:
                self.plan.flows.pop(flow, None)
            else:
                self.plan.flows[flow] = old

    def _probe(self, only: Port | None = None, counted: bool = False) -> None:
        """Sends LLDP out of every port, or of one."""
        for port in self.discovery.probes({one.id for one in self.switches.ready()}, only, counted):
            switch = self.switches.by_id[port.switch]
            about = switch.ports.get(port.port)
            # one that was forgotten may say what entries it has before it says what ports
            if about is not None:
                self.switches.send(switch, of.PacketOut(port.port, frames.lldp(port, about.address, self._key, 120)))

    def _name_paths(self, now: float, hasty: bool = False) -> None:
        if self._named_at < self.discovery.changed_at and (hasty or now - self.discovery.changed_at >= SETTLED_S):
            self._named_at = now
            self.plan.find_paths(self.discovery.believed())

    def _counted(self, ticket: Ticket, switch: int | None) -> None:
        """A switch has answered a question that several are asked, or has gone."""
        ticket.waits.discard(-1 if switch is None else switch)
        if not ticket.waits and ticket in self._asking:
            self._asking.remove(ticket)
            ticket.result = report.counters(self)
            self.settled.append(ticket)
