"""`pathcast watch`: rounds of light measurements over all paths to some far ends, within an allowance, for ever."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from typing import Any, Protocol

from pathcast import zone
from pathcast.errors import BUSY, Exit, PathcastError, usage
from pathcast.history import clock
from pathcast.history.clock import Moment
from pathcast.history.records import Event
from pathcast.service.firing import firing
from pathcast.service.ledger import Ledger
from pathcast.service.probes import Probed, Probes
from pathcast.service.watched import Told, Watched, alarms
from pathcast.units import seconds, size, span
from pathcast.watch import words
from pathcast.watch.allowance import DAY_S
from pathcast.watch.expression import EVERY, Expression
from pathcast.watch.schedule import Schedule
from pathcast.watch.seen import Seen
from pathcast.watch.usual import WEEK_S
from pathcast.worlds.measurement import Measurement, PathMeasured, Request

# what a session takes to open and to close, and what a round takes beside its probes, with a margin [IP byte]
SESSION_BYTES, ROUND_BYTES = 4_000, 1_000
LIGHT = Request(effort="light")
# rounds that are further apart than so many times the usual do not stand for what was between them
GAP = 3
_PASSES = (Exit.RUNTIME, Exit.UNTRUSTWORTHY)


class Network(Protocol):
    """Of a world what is needed."""

    @property
    def paths(self) -> Any: ...

    @property
    def lost(self) -> Mapping[str, str]: ...

    @property
    def over(self) -> Collection[str]:
        """The lines that paths go over: of some that are steered no path has the name."""
        ...

    def measure(self, paths: Sequence[str] | None, request: Request) -> Measurement: ...


class Time(Protocol):
    """The machine's clock, or one of a test."""

    def now(self) -> Moment: ...

    def wait(self, seconds: float) -> None: ...


class FarEnd(Protocol):
    """One far end."""

    @property
    def name(self) -> str: ...

    @property
    def lines(self) -> Collection[str]:
        """Names that a path may get yet."""
        ...

    def open(self) -> AbstractContextManager[Any]:
        """A session."""
        ...

    def past(self, network: Any) -> Mapping[str, Iterable[tuple[float, PathMeasured]]]:
        """By path what was measured before, how long ago [s], the oldest first."""
        ...

    def line_ids(self, network: Any) -> Mapping[str, str]:
        """By path what the history knows its line by."""
        ...

    def keep(self, document: dict[str, Any]) -> None:
        """An alert, into the history."""
        ...

    def looked(self, network: Any, found: Measurement) -> None:
        """Hears of a round that is over and kept."""
        ...


class Watch:
    """path_bytes: the most that a round takes of each path [IP byte]. tell: hears of alerts, say: of all else in words.

    alerted: alerts of before, the newest first. probes: rounds that others ask for; between two of its own there is
    time for them. only: the paths that are measured, by any of their names; none: all.
    """

    def __init__(
        self,
        ends: Sequence[FarEnd],
        alerts: Sequence[Expression],
        every_s: float,
        ledger: Ledger,
        time: Time,
        path_bytes: int,
        tell: Callable[[dict[str, Any]], object],
        say: Callable[[str], object],
        alerted: Iterable[Event] = (),
        probes: Probes | None = None,
        only: Collection[str] = (),
    ) -> None:
        self.ends = {end.name: end for end in ends}
        self.alerts, self.every_s, self.ledger, self.time = tuple(alerts), every_s, ledger, time
        self.path_bytes, self.tell, self.say = path_bytes, tell, say
        self.known: dict[str, dict[str, Watched]] = {name: {} for name in self.ends}
        # of each far end why it cannot be reached, since when
        self.away: dict[str, tuple[float, str]] = {}
        self.rounds = dict.fromkeys(self.ends, 0)
        # why the last round that failed did
        self._fault: PathcastError | None = None
        # of each far end its newest round, and when that was over
        self.newest: dict[str, tuple[float, Probed]] = {}
        self.probe_bytes = 0
        self._networks: dict[str, Any] = {}
        self._stacks = {name: ExitStack() for name in self.ends}
        self._turn = dict.fromkeys(self.ends, 0)
        # of each far end by path all that it was called last
        self._called: dict[str, dict[str, set[str]]] = {name: {} for name in self.ends}
        self._stretched = self._later = False
        self._firing = firing(alerted, self._now_s())
        self._lines = {key[:2]: of.line_id for key, of in self._firing.items()}
        self._probes = probes or Probes()
        self.only = frozenset(only)
        least = path_bytes + SESSION_BYTES + ROUND_BYTES
        if ledger.allowance.most < least:
            told = f"--max {size(ledger.allowance.most)}/day: one round of one path takes up to {size(least)}"
            raise usage(told, f"allowed is {size(least)}/day and more, for example 50MB/day")

    def run(self, count: int | None = None) -> None:
        """Until it is interrupted, or so many rounds were begun. Raises what no later round would mend."""
        try:
            for name in self.ends:
                self._open(name)
            self._check_names()
            self._end_unasked()
            schedule = Schedule(tuple(self.ends), self.every_s, self._now_s())
            while count is None or count > 0:
                name, due_s = schedule.next()
                self._wait_until(due_s)
                began_s = self._answered(name)
                schedule.done(name, began_s)
                count = None if count is None else count - 1
        finally:
            self._probes.close()
            for name in self.ends:
                self._close(name)

    def nothing(self) -> PathcastError | None:
        """Why nothing at all was measured: the newest reason; None where a round was."""
        return None if any(self.rounds.values()) else self._fault

    def _now_s(self) -> float:
        return self.time.now().boot_us / 1e6

    def _wait_until(self, at_s: float) -> None:
        """Rounds that are asked for meanwhile are measured, one at least however late it is."""
        self._asked()
        while (left := at_s - self._now_s()) > 0:
            if not self._asked():
                self.time.wait(left)

    def _asked(self) -> bool:
        """A round that somebody asks for, or why there is none."""
        name = self._probes.next()
        if name is None:
            return False
        if name in self._networks:
            network = self._networks[name]
            most = self._most(len(self._wanted(name, network)) + len(self._lost(name, network)))
        else:
            most = SESSION_BYTES + self._most(len(self.known[name]))
        if (left := self.ledger.free_in_s(most)) > 0:
            self._refuse(left, most)
        else:
            self._answered(name)
        return True

    def _answered(self, name: str) -> float:
        """One round, of which those hear who have asked for it; when it began."""
        before = self.rounds[name]
        began_s = self._round(name)
        of = Probed(self.rounds[name] > before, self._now_s() - began_s)
        self.newest[name] = (self._now_s(), of)
        self._probes.answer(name, of)
        return began_s

    def _most(self, paths: int) -> int:
        """Of a round of so many paths, or of as many as a day allows."""
        return self.path_bytes * max(1, min(paths, self._fit)) + ROUND_BYTES

    @property
    def _fit(self) -> int:
        """Of how many paths a day allows a round."""
        return (self.ledger.allowance.most - SESSION_BYTES - ROUND_BYTES) // self.path_bytes

    def _free(self, bytes: int, paced: bool) -> None:
        """Waits until so many may be sent. Who asks for a round meanwhile is told when to come again."""
        while (left := self.ledger.free_in_s(bytes, paced)) > 0:
            if paced:
                self._tell_later(left)
            self._refuse(left, bytes)
            self.time.wait(left)

    def _refuse(self, left_s: float, bytes: int) -> None:
        """Who asks for a round is told when to come again, and whether it is bytes that lack, or their pace."""
        self._probes.refuse(min(left_s, DAY_S), paced=self.ledger.free_in_s(bytes, paced=False) <= 0)

    def _tell_later(self, left_s: float) -> None:
        """Once, when the next round is, where that is later than asked for."""
        if left_s > self.every_s and not self._later:
            self._later = True
            now_s = self.time.now().utc_us / 1e6
            at = words.clock(zone.local(now_s + left_s), zone.local(now_s))
            self.say(f"next round at {at}, by the allowance of {size(self.ledger.allowance.most)} a day")

    def _open(self, name: str) -> bool:
        """A session with it; False: it is away."""
        self._free(SESSION_BYTES, paced=False)
        try:
            self.ledger.take(SESSION_BYTES)
        except PathcastError as failed:  # a full disc: nothing is sent
            self._failed(name, failed)
            return False
        try:
            self._networks[name] = self._stacks[name].enter_context(self.ends[name].open())
        except (PathcastError, OSError) as failed:
            self._failed(name, failed)
            return False
        finally:
            self._settle(name, SESSION_BYTES, paced=False)
        return True

    def _close(self, name: str) -> None:
        self._networks.pop(name, None)
        self._stacks[name].close()

    def _round(self, name: str) -> float:
        """One round; when it began."""
        if name not in self._networks and not self._open(name):
            return self._now_s()
        network = self._networks[name]
        wanted, lost = self._wanted(name, network), self._lost(name, network)
        if not wanted and not lost:
            self._failed(name, PathcastError("no-path", f"there is no path {' or '.join(sorted(self.only))} to it now"))
            self._close(name)  # it may come up
            return self._now_s()
        # what is lost may be back when it is measured
        paths = self._some(name, wanted, self._fit)
        paths = [*paths, *self._some(name, lost, self._fit - len(paths))]
        most = self._most(len(paths))
        self._tell_stretched(most)
        self._free(most, paced=True)
        began_s = self._now_s()
        try:
            self.ledger.take(most)
        except PathcastError as failed:
            self._failed(name, failed)
            return began_s
        try:
            # by name: what comes up meanwhile has its turn in the next round
            found = network.measure(paths, LIGHT)
        except (PathcastError, OSError) as failed:
            # what it has sent nobody knows
            self._settle(name, most)
            self._failed(name, failed)
            self._close(name)
            return began_s
        self._settle(name, found.probe_bytes + ROUND_BYTES)
        self.probe_bytes += found.probe_bytes
        self.rounds[name] += 1
        if name in self.away:
            since_s, why = self.away.pop(name)
            self.say(f"{name} answers again after {span(self._now_s() - since_s)}: {why}")
        self._look(name, network, found)
        self.ends[name].looked(network, found)
        return began_s

    def _settle(self, name: str, bytes: int, paced: bool = True) -> None:
        """On the disc stands what was taken, which is more: where it cannot be written now that costs nothing."""
        try:
            self.ledger.settle(bytes, paced)
        except PathcastError as failed:
            self.say(f"{name}: {failed.message}")

    def _wanted(self, name: str, network: Any) -> list[str]:
        # one that is lost has but its name
        self._called[name] |= {of.name: {of.name, *of.also} for of in network.paths}
        return [of.name for of in network.paths if self._asked_for(name, of.name)]

    def _lost(self, name: str, network: Any) -> list[str]:
        return [path for path in network.lost if self._asked_for(name, path)]

    def _asked_for(self, name: str, path: str) -> bool:
        return not self.only or bool(self.only & self._called[name].get(path, {path}))

    def _some(self, name: str, paths: list[str], most: int) -> list[str]:
        """All paths; where they are more than that, as many as it is, in turn."""
        if len(paths) <= most or not most:
            return paths[:most]
        first = self._turn[name] % len(paths)
        self._turn[name] = first + most
        return (paths + paths)[first : first + most]

    def _tell_stretched(self, most: int) -> None:
        """Once, that the allowance is for fewer rounds than asked for."""
        apart_s = most * 86_400.0 / self.ledger.allowance.most * len(self.ends)
        if apart_s > self.every_s and not self._stretched:
            self._stretched = True
            allowed = f"{size(self.ledger.allowance.most)} a day"
            self.say(f"a round takes up to {size(most)}: by {allowed} there is one every {span(apart_s)} at worst")

    def _failed(self, name: str, failed: PathcastError | OSError) -> None:
        error = failed if isinstance(failed, PathcastError) else PathcastError("system", failed.strerror or str(failed))
        passes = error.exit in _PASSES or error.code in BUSY
        if error.exit == Exit.INTERRUPTED or (not passes and not any(self.rounds.values())):
            raise error
        self._fault, at_s = error, self._now_s()
        if name not in self.away:
            self.away[name] = (at_s, error.message)
            self.say(f"{name}: {error.message}; it is tried again every {seconds(self.every_s)}")
        for path in self._expected(name):
            self._told(name, path, path.down(at_s, error.message, self._gap_s))

    def _expected(self, name: str) -> list[Watched]:
        """The paths to a far end, the lines that alerts are of, and what was told and is not over."""
        for of in self.alerts:
            lines = self.ends[name].lines
            for line in lines if of.name == EVERY else {of.name}.intersection(lines):
                if of.name != EVERY or self._asked_for(name, line):
                    self._path(name, line, {line})
        for end, path, _ in list(self._firing):
            if end == name:
                self._path(name, path, {path})
        return list(self.known[name].values())

    @property
    def _gap_s(self) -> float:
        most = self.ledger.allowance.most
        return GAP * max(self.every_s, self.path_bytes * 86_400.0 / most * len(self.ends) * self._widest)

    @property
    def _widest(self) -> int:
        return max((len(of) for of in self.known.values()), default=1) or 1

    def _look(self, name: str, network: Any, found: Measurement) -> None:
        at_s = self._now_s()
        called = {path.name: {path.name, *path.also} for path in network.paths}
        seen = {path.name: self._path(name, path.name, called.get(path.name, {path.name})) for path in found.paths}
        # one that was first known as down has learnt nothing
        past = self.ends[name].past(network) if not all(of.learnt for of in seen.values()) else {}
        for path in found.paths:
            of = seen[path.name]
            if not of.learnt:
                of.learnt = True
                for age_s, earlier in past.get(path.name, ()):
                    if 0 < age_s < WEEK_S:
                        of.learn(at_s - age_s, earlier)
            self._told(name, of, of.look(at_s, path, self._gap_s))
        away = {gone.path: gone.reason for gone in found.away}
        asked = {*away, *(path.name for path in found.paths)}
        # a day may not allow to ask for all that is lost
        away |= {path: network.lost[path] for path in self._lost(name, network) if path not in asked}
        for gone, why in away.items():
            of = self._path(name, gone, self._called[name].get(gone, {gone}))
            self._told(name, of, of.down(at_s, why, self._gap_s))
        there = {*called, *network.over, *(path.name for path in found.paths), *away}
        self._end_renamed(name, network, called, there)
        for of in self._expected(name):
            if of.name in there:
                continue
            if of.at_s < at_s - WEEK_S:
                self._end(name, of.name, "there is no such path any more")
            elif of.name in self.ends[name].lines:
                self._told(name, of, of.down(at_s, "there is no path over it", self._gap_s))

    def _path(self, name: str, path: str, called: set[str]) -> Watched:
        """called: all that it is called; one that was down has got but one name, and alerts by that."""
        if path not in self.known[name]:
            self.known[name][path] = Watched(path, [], at_s=self._now_s())
        made = self.known[name][path]
        for alarm in alarms(self.alerts, called):
            if any(one.of is alarm.of for one in made.alarms):
                continue
            if (before := self._firing.get((name, path, alarm.of.text))) is not None:
                alarm.firing, alarm.usual, alarm.since_s = True, before.about.get("usual"), before.since_s
            made.alarms.append(alarm)
        return made

    def _end_unasked(self) -> None:
        """An alert that nobody asks for any more would fire for ever."""
        asked = {of.text for of in self.alerts}
        for name, path, text in list(self._firing):
            if name in self.ends and text not in asked:
                self._end(name, path, "it is no longer asked for", text)

    def _end_renamed(self, name: str, network: Any, called: Mapping[str, set[str]], there: Collection[str]) -> None:
        """What goes by another name now has its alerts by that."""
        lines = self.ends[name].line_ids(network)
        old = {*self.known[name], *(path for end, path, _ in self._firing if end == name)}
        for path in old - {*there, *self.ends[name].lines}:
            line = self._lines.get((name, path))
            now = [of for of in called if path in called[of] or (line is not None and lines.get(of) == line)]
            if now:
                self._end(name, path, f"it is {now[0]} now")
        for end, path, _ in list(self._firing):
            if end == name and self.only and path in called and not self.only & called[path]:
                self._end(name, path, "--paths leaves it out")

    def _end(self, name: str, path: str, why: str, only: str | None = None) -> None:
        """Ends alerts of a path that nobody will see get better. only: this one, else all and the path is forgotten."""
        ended = []
        if only is None and (of := self.known[name].pop(path, None)) is not None:
            for alarm in of.alarms:
                if alarm.firing and alarm.since_s is not None:
                    seen = of.seen.get(alarm.of.direction, Seen())
                    ended.append((self._document(name, of, Told(alarm, "over", seen)), alarm.since_s))
                self._firing.pop((name, path, alarm.of.text), None)
        for key in list(self._firing):
            if key[:2] == (name, path) and only in (None, key[2]):
                before = self._firing.pop(key)
                ended.append(({**before.about}, before.since_s))
        for document, since_s in ended:
            at = self.time.now()
            lasted_s = max(0.0, at.boot_us / 1e6 - since_s)
            text = f"{self._who(name, path)}: `{document.get('alert')}` ends here: {why}"
            times = {"at": clock.iso(at.utc_us), "since": clock.iso(clock.before(at, lasted_s).utc_us)}
            self._tell(name, {**document, "state": "over", "text": text, **times, "lasted_s": round(lasted_s, 3)})

    def _check_names(self) -> None:
        """Refuses an alert on a path that there is not, as far as that is known."""
        called = {
            name for network in self._networks.values() for path in network.paths for name in (path.name, *path.also)
        }
        lines = {line for end in self.ends.values() for line in end.lines}
        for of in self.alerts:
            if of.name == EVERY or of.name in called | lines:
                continue
            names = sorted({path.name for network in self._networks.values() for path in network.paths} | lines)
            if len(self._networks) == len(self.ends):
                raise usage(f"--alert `{of.text}`: there is no path `{of.name}`; allowed are {', '.join(names)}, *")
            self.say(f"note: `{of.text}` waits for a path of that name")
        for name in sorted(self.only - called - lines):
            names = sorted({path.name for network in self._networks.values() for path in network.paths} | lines)
            if len(self._networks) == len(self.ends):
                raise usage(f"--paths: there is no path `{name}`; allowed are {', '.join(names)}")
            self.say(f"note: --paths `{name}` waits for a path of that name")

    def _told(self, name: str, path: Watched, changed: Sequence[Told]) -> None:
        for one in changed:
            self._tell(name, self._document(name, path, one))

    def _tell(self, name: str, document: dict[str, Any]) -> None:
        # told twice is better than never: what was kept is not told again
        self.tell(document)
        self.ends[name].keep(document)

    def _who(self, name: str, path: str) -> str:
        return path if len(self.ends) == 1 else f"{path} to {name}"

    def _document(self, name: str, path: Watched, one: Told) -> dict[str, Any]:
        alarm, at = one.alarm, self.time.now()
        assert alarm.since_s is not None
        lasted_s = max(0.0, at.boot_us / 1e6 - alarm.since_s)
        since = clock.before(at, lasted_s)
        local = [zone.local(of.utc_us / 1e6) for of in (since, at)]
        usual = alarm.usual if alarm.of.of_usual else None
        text = words.said(
            alarm.of, self._who(name, path.name), one.state, one.seen, usual, local[0], local[1], lasted_s
        )
        return {
            "state": one.state,
            "text": text,
            "alert": alarm.of.text,
            "target": name,
            "path": path.name,
            "direction": alarm.of.direction,
            "at": clock.iso(at.utc_us),
            "since": clock.iso(since.utc_us),
            "lasted_s": round(lasted_s, 3),
            "usual": usual,
            "seen": asdict(one.seen),
        }
