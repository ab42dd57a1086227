"""What entries the switches have, and how they come to those that they shall have, step by step. Pure.

A step's entries are sent to all of its switches at once, and each one's barrier is waited for; only then comes the
next, which is reckoned anew from what is there by then. So whatever happens meanwhile (a port that goes down, a switch
that says no) changes what is wanted, and never leaves a step half remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

from pathcast.steer.rules import Flow, Network, Port, Rule, change, order

Key = tuple[int, Flow, int]


def key(rule: Rule) -> Key:
    """What an entry replaces: the same switch, match and priority."""
    return rule.switch, rule.flow, rule.in_port


class Tables:
    """drain_s: how long packets may be on their way over entries that are wanted no more."""

    def __init__(self, drain_s: float) -> None:
        self.drain_s = drain_s
        self.have: dict[Key, Rule] = {}
        self._read: set[int] = set()
        self._gone: dict[Rule, float] = {}
        self._sent: dict[int, list[Rule]] = {}
        self._refused: dict[Rule, str] = {}

    @property
    def busy(self) -> bool:
        """Whether a step is under way."""
        return bool(self._sent)

    def read(self, switch: int, rules: Iterable[Rule]) -> None:
        """What a switch says that it has, of ours."""
        self._read.add(switch)
        self.have = {k: rule for k, rule in self.have.items() if rule.switch != switch}
        self.have.update({key(rule): rule for rule in rules})

    def has(self, rule: Rule) -> bool:
        """Whether there is an entry in the place of this one."""
        return key(rule) in self.have

    def carries(self, rules: Iterable[Rule]) -> bool:
        """Whether all of these are there, as far as the switches have said what they have."""
        return all(self.have.get(key(rule)) == rule for rule in rules if rule.switch in self._read)

    def step(self, want: Set[Rule], network: Network, ready: Collection[int]) -> dict[int, list[tuple[Rule, bool]]]:
        """The next entries to send, by switch, and whether each is new there; empty when nothing is left to add."""
        assert not self.busy
        # the order is that of the network as the entries have it: where a link is gone, nothing is on its way
        steps = change(self.have.values(), want, network, ready)
        add = next((one.add for one in steps if one.add), ())
        found: dict[int, list[tuple[Rule, bool]]] = {}
        for rule in add:
            found.setdefault(rule.switch, []).append((rule, key(rule) not in self.have))
            self._sent.setdefault(rule.switch, []).append(rule)
        return found

    def refused(self, rule: Rule, why: str) -> None:
        """A switch says no to an entry of the step under way."""
        self._refused.setdefault(rule, why)

    def done(self, switch: int) -> dict[Rule, str]:
        """A switch has answered its barrier: what it took is there; what it refused, and why."""
        return self._over(switch, None)

    def lost(self, switch: int, why: str) -> dict[Rule, str]:
        """A switch is away: what was sent to it counts as refused."""
        return self._over(switch, why)

    def _over(self, switch: int, why: str | None) -> dict[Rule, str]:
        failed = {}
        for rule in self._sent.pop(switch, []):
            told = self._refused.pop(rule, why)
            if told is None:
                self.have[key(rule)] = rule
            else:
                failed[rule] = told
        return failed

    def sweep(
        self,
        want: Set[Rule],
        edges: Collection[Port],
        now: float,
        ready: Collection[int],
        vain: Collection[Flow] = (),
        settled: bool = True,
    ) -> list[Rule]:
        """The entries to remove now, of those that are wanted no more, as a step; they count as removed.

        Where a flow ended, those by which packets enter the network go at once, so that nothing meets the others
        when they go: after the time that packets are on their way. vain: flows that never came to be, whose entries go
        at once, and alone as long as it is not `settled` what is wanted.
        """
        kept, flows = {key(rule) for rule in want}, {rule.flow for rule in want}
        spare = {rule for k, rule in self.have.items() if k not in kept}
        self._gone = {rule: at for rule, at in self._gone.items() if rule in spare}
        found = []
        for rule in sorted(spare, key=order):
            if rule.flow not in vain and rule.flow.back() not in vain:
                if not settled:
                    continue
                edge = Port(rule.switch, rule.in_port) in edges and rule.flow not in flows
                if self._gone.setdefault(rule, now if edge else now + self.drain_s) > now:
                    continue
            if rule.switch in ready:
                self._gone.pop(rule, None)
                del self.have[key(rule)]
                self._sent.setdefault(rule.switch, [])
                found.append(rule)
        return found

    def due(self, ready: Collection[int]) -> float | None:
        """When the next entry is to be removed."""
        return min((at for rule, at in self._gone.items() if rule.switch in ready), default=None)
