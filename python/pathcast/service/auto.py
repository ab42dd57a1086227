"""The hands of a course: looks at a program that runs, asks what to change, and changes it."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from pathcast import zone
from pathcast.control.launch import Running
from pathcast.errors import PathcastError
from pathcast.plan.course import Course, Seen, Step
from pathcast.plan.terms import OVERHEAD, LineTerms
from pathcast.units import bits, size, span

LOOK_S = 1.0
# of how far it is people hear first after [s]
FIRST_S = 2.0
# others of this host may read how far it is so often [s]
SHOW_S = 2.0
# addresses of the lines are looked for so often, and at once where a connection has one that is new [s]
FIND_S = 5.0
# a program that has to end sends so much of each connection meanwhile [byte/s], and is killed after [s]
CRAWL, END_S = 1_000, 5.0
# the wall clock against the monotonic one, from where on it was set [s]
STEP_S = 2.0


class Auto:
    """course: decides. addresses: of every line those of this host. say: for people, who hear of progress every
    `tell_s`. counted: what the lines' devices have carried since the start, of everybody. dated: whether the deadline
    is by the wall clock. changed: new terms of lines, told what the job has carried over each [byte]; further: those
    that were to end, told anew. stepped: hears that the clock was set. found: the addresses that lines have now, as
    `addresses`, where they may be others."""

    def __init__(
        self,
        course: Course,
        addresses: Mapping[str, Sequence[str]],
        controls: Sequence[str],
        max_rate_bps: float | None,
        say: Callable[[str], object],
        tell_s: float,
        counted: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.monotonic,
        dated: bool = True,
        wall: Callable[[], float] = time.time,
        changed: Callable[[Mapping[str, int]], Mapping[str, LineTerms]] = lambda _: {},
        stepped: Callable[[], object] = lambda: None,
        found: Callable[[], Mapping[str, Sequence[str]]] = dict,
        further: Callable[[Mapping[str, int]], Mapping[str, LineTerms]] = lambda _: {},
    ) -> None:
        self._course, self.controls, self._find = course, controls, found
        self._addresses = {line: [*of] for line, of in addresses.items()}
        # and those that lines had before
        self.lines = {line: [*of] for line, of in addresses.items()}
        self._line = {address: line for line, of in addresses.items() for address in of}
        self._max_rate_bps, self._say, self._tell_s = max_rate_bps, say, tell_s
        self._count, self._clock = counted, clock
        self._dated, self._wall, self._changed = dated, wall, changed
        self._stepped, self._further = stepped, further
        self._off_s = wall() - clock()
        self.step: Step = course.first()
        self.steps: list[dict[str, Any]] = []
        self.waits: list[dict[str, Any]] = []
        self._ended_s: float | None = None
        # hears of what is left of the job's own bounds, as a kill may be the next
        self.keep: Callable[[Mapping[str, Any]], object] | None = None
        self.pace = self._pace(max(1, len(self.first)))
        self._allowed = set(self.step.lines)
        self._ordered = (self.step.control, self.pace)
        # whether lines have addresses that the run has not been told of; those that were looked for
        self._renewed, self._sought = False, set[str]()
        self._found_s = -math.inf
        self._began_s = self._told_s = 0.0
        self._shown_s = -math.inf
        self._carried: Mapping[str, int] = {}
        self._note(0.0, self.step)

    @property
    def first(self) -> Sequence[str]:
        return self._of(self.step.lines)

    @property
    def expected_s(self) -> float | None:
        """How long it was to take, by what was known before it began."""
        expected: float | None = self.steps[0]["expected_end_s"]
        return expected

    @property
    def ended(self) -> bool:
        """Whether it was told to end, since no line might be used."""
        return self._ended_s is not None

    @property
    def spent(self) -> bool:
        """Whether the job's own bounds leave nothing to any of its lines."""
        return self._course.spent

    def left(self, paths: Sequence[Mapping[str, Any]], ahead: bool = False) -> dict[str, Any]:
        """Of the job's own bounds after these, as `Course.left` has it."""
        return self._course.left(self._wire(paths), ahead)

    @contextlib.contextmanager
    def beside(self, running: Running) -> Iterator[None]:
        """Looks at it every second, in a thread."""
        end = threading.Event()
        thread = threading.Thread(target=self._watch, args=(running, end), daemon=True)
        self._began_s = self._clock()
        self._told_s = self._began_s - max(0.0, self._tell_s - FIRST_S)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def document(self, paths: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """For the report, whose `paths` have all that passed until the end: what was decided when, what it came to."""
        done = self._course.done(self._job(paths))
        left = self.left(paths)
        return {"steps": self.steps, "waits": self.waits, "ended": self.ended, "done": done, "left": left}

    def _watch(self, running: Running, end: threading.Event) -> None:
        said = ""
        while not end.wait(LOOK_S):
            try:
                self.look(running, self._clock())
            except Exception as error:  # whatever it is: without looks no bound holds
                known = isinstance(error, PathcastError)
                told = str(error) if known else f"a look at the run failed: {type(error).__name__}: {error}"
                if told != said:
                    said = told
                    with contextlib.suppress(Exception):  # nor does what cannot be said end them
                        self._say(said)

    def look(self, running: Running, now_s: float) -> None:
        """Looks once, and carries out what is to change."""
        if (seen := running.seen()) is None:
            return
        if self._ended_s is not None:
            if now_s - self._ended_s >= END_S:
                running.kill()
            return
        if abs(step_s := self._wall() - now_s - self._off_s) >= STEP_S:
            self._off_s += step_s
            self._course.stepped(step_s, self._dated)
            self._stepped()
            self._say(f"the clock was set {'forward' if step_s > 0 else 'back'} by {span(abs(step_s))}")
        self._look_for(now_s, {path["local"] for path in seen["paths"]})
        passed = self._seen(seen["paths"])
        try:
            self._course.further(self._further(passed.wire))
            self._course.renewed(self._changed(passed.wire))
        except PathcastError as error:  # it goes on by what it knows
            self._say(f"{error.message}: the lines' terms stay as they were")
        self.step = self._course.look(now_s - self._began_s, passed)
        self._carried = passed.job
        try:
            notes = self._carry_out(running, seen["open"], now_s)
        finally:
            self._note(now_s - self._began_s, self.step)
        for note in notes:
            self._say(note)
        if now_s - self._shown_s >= SHOW_S or self.step.said:
            self._shown_s = now_s
            running.tell(self.shown())
            if self.keep is not None:
                self.keep(self._course.left({}, ahead=True))
        if self._ended_s is None and now_s - self._told_s >= self._tell_s:
            self._told_s = now_s
            self._say(self.progress())

    def _look_for(self, now_s: float, used: Set[str]) -> None:
        """Addresses that lines have got meanwhile: they take the place of those that are gone."""
        sought = used - self._line.keys() - self._sought
        if not sought and now_s - self._found_s < FIND_S:
            return
        self._sought |= sought
        self._found_s = now_s
        with contextlib.suppress(PathcastError, OSError):  # it goes on by those it knows
            for line, now in self._find().items():
                if new := [address for address in now if address not in self._addresses[line]]:
                    self._addresses[line] = [*now]
                    self.lines[line] += [address for address in new if address not in self.lines[line]]
                    self._line |= dict.fromkeys(new, line)
                    self._renewed = True
                    self._say(f"{line} has another address: {', '.join(new)}")

    def _carry_out(self, running: Running, open: Mapping[str, int], now_s: float) -> list[str]:
        """What the step changes, before anybody is told of it; what people are to know of that. What fails is tried
        again at the next look."""
        if not self.step.lines:
            self._ended_s = now_s
            running.end()
            running.order(self._ordered[0], CRAWL)
            return []
        notes = []
        if self._renewed:
            running.renew(self._of([*self._addresses]))
        if (lines := set(self.step.lines)) != self._allowed or self._renewed:
            backups, shared = running.allow(self._of(self.step.lines))
            self._allowed, self._renewed = lines, False
            # of an address that is gone nothing is to be said
            for line in (line for at in backups if (line := self._line.get(at, at)) not in lines):
                notes.append(f"{line}'s MPTCP endpoint is not pathcast's: it is a backup meanwhile")
            for line in (line for at in shared if (line := self._line.get(at, at)) not in lines):
                notes.append(f"another run uses {line}'s MPTCP endpoint: until it ends this one may go over {line} too")
        connections = sum(count for local, count in open.items() if local in self._line)
        orders = self.step.control, self._pace(max(1, connections))
        if orders != self._ordered:
            running.order(*orders)
            self._ordered = orders
        return notes

    def shown(self) -> dict[str, Any]:
        """How far it is, for other programs; times are UTC [s since 1970]. done: 0 to 1, None without a size."""
        step, off_s = self.step, self._wall() - (self._clock() - self._began_s)
        middle, low, high = (None if of is None else off_s + of for of in step.end_s)
        wait = None if step.wait is None else {"since_s": off_s + step.wait.since_s, "lines": list(step.wait.dead)}
        return {
            "at_s": self._wall(),
            "done": step.done,
            "bytes": sum(self._carried.values()),
            "control": step.control,
            "rates_bps": {name: step.rates_bps.get(name, 0.0) for name in step.lines},
            "end_s": {"value": middle, "low": low, "high": high},
            "wait": wait,
        }

    def progress(self) -> str:
        """`42 %; dsl 9.1 Mbit/s, cable 17 Mbit/s; done at 03:12 (02:50 to 04:01)`."""
        step = self.step
        told = [] if step.done is None else [f"{100 * step.done:.0f} %"]
        if step.wait is not None:
            since = f"nothing gets through since {self._at(step.wait.since_s)}"
            return "; ".join([*told, f"{since}: it waits for {' or '.join(step.wait.dead)}"])
        told.append(", ".join(f"{name} {bits(step.rates_bps.get(name, 0.0))}" for name in step.lines))
        middle, low, high = step.end_s
        if step.done is not None:
            none = "no end in sight" if step.known else "when it is done is not known yet"
            told.append(none if middle is None else f"done {self._at(middle)}")
            if middle is not None:
                least = "?" if low is None else self._at(low)
                most = "no end" if high is None else self._at(high)
                told[-1] += f" ({least} to {most})"
        return "; ".join(told)

    def _at(self, at_s: float) -> str:
        left_s = at_s - (self._clock() - self._began_s)
        at = zone.local(time.time() + left_s)
        return f"{at:%H:%M:%S}{zone.mark(at)}"

    def _note(self, at_s: float, step: Step) -> None:
        for one in step.said:
            self._say(one)
        self._note_wait(at_s, step)
        if not self.steps or step.said:
            about = {"at_s": at_s, "lines": list(step.lines), "control": step.control, "why": list(step.said)}
            self.steps.append({**about, "expected_end_s": step.end_s[0]})

    def _note_wait(self, at_s: float, step: Step) -> None:
        if step.wait is not None and (not self.waits or self.waits[-1]["until_s"] is not None):
            dead, barred = list(step.wait.dead), dict(step.wait.barred)
            self.waits.append({"since_s": step.wait.since_s, "until_s": None, "lines": dead, "barred": barred})
        elif step.wait is None and self.waits and self.waits[-1]["until_s"] is None:
            self.waits[-1]["until_s"] = at_s

    def _of(self, lines: Sequence[str]) -> list[str]:
        return [address for line in lines for address in self._addresses[line]]

    def _pace(self, connections: int) -> int | None:
        """Of each connection [byte/s]: each has an equal part, which the next look may change."""
        if self._max_rate_bps is None:
            return None
        pace = max(1, int(self._max_rate_bps / 8 / connections))
        # what the kernel cannot be told is no bound there, either: its largest number says so
        return pace if pace < 2**32 - 1 else None

    def _over(self, path: Mapping[str, Any]) -> str | None:
        """The line that a path is over; None of one that stays on this host, or is over no line."""
        return None if path["remote"] in self._line else self._line.get(path["local"])

    def _job(self, paths: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """The program's bytes by line, of the direction that most of the lines' went."""
        over = [(line, path) for path in paths if (line := self._over(path)) is not None]
        sent = sum(path["bytes_sent"] for _, path in over)
        there = "bytes_sent" if sent >= sum(path["bytes_received"] for _, path in over) else "bytes_received"
        job: dict[str, int] = {}
        for line, path in over:
            job[line] = job.get(line, 0) + path[there]
        return job

    def _wire(self, paths: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """What passed of the job by line, IP bytes both ways."""
        wire: dict[str, int] = {}
        for path in paths:
            if (line := self._over(path)) is not None:
                whole = path["bytes_sent"] + path["bytes_retransmitted"] + path["bytes_received"]
                wire[line] = wire.get(line, 0) + int(whole * OVERHEAD)
        return wire

    def _seen(self, paths: Sequence[Mapping[str, Any]]) -> Seen:
        timeouts: dict[str, int] = {}
        over = [(line, path) for path in paths if (line := self._over(path)) is not None]
        # whom else a program tries in vain says nothing of the lines
        heard = {path["remote"] for _, path in over if path["bytes_sent"] + path["bytes_received"]}
        silent = {path["remote"] for _, path in over if path["timeouts"] and (path["remote"] in heard or not heard)}
        for line, path in over:
            if path["remote"] in silent:
                timeouts[line] = timeouts.get(line, 0) + path["timeouts"]
        return Seen(
            self._job(paths), self._wire(paths), self._count(), timeouts, () if heard else tuple(sorted(silent))
        )


def carried_sentence(document: Mapping[str, Any], addresses: Mapping[str, Sequence[str]]) -> str:
    """Of a run's report what each line carried: `dsl 3.1 GB, cable 6 GB`."""
    own = {address for of in addresses.values() for address in of}
    paths = [path for path in document["paths"] if path["remote"] not in own]
    found = {
        line: sum(p["bytes_sent"] + p["bytes_received"] for p in paths if p["local"] in of)
        for line, of in addresses.items()
    }
    return ", ".join(f"{line} {size(bytes)}" for line, bytes in found.items() if bytes) or "nothing was carried"
