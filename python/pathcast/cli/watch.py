"""`pathcast watch`: gentle measurements for ever, within so many bytes a day, and alerts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.cli import quantity
from pathcast.cli.historyoptions import HistoryUrl, NoHistory, recorder
from pathcast.cli.measureseries import now
from pathcast.cli.output import print_line
from pathcast.cli.paths import KeyFile
from pathcast.cli.standing import Standing
from pathcast.cli.target import Target, target
from pathcast.cli.watchreport import WithReport, first
from pathcast.errors import PathcastError, usage
from pathcast.say import Once, say
from pathcast.units import seconds, size, span

if TYPE_CHECKING:
    from pathcast.forecast.record import Recorder
    from pathcast.history.clock import Moment
    from pathcast.history.records import Event
    from pathcast.service.teller import Teller
    from pathcast.worlds.measurement import Measurement, PathMeasured

Command = WithReport
_LOOK_S = 1.0
# how often what a killed run has left running is looked for
_TIDY_S = 15.0
_WEEK_S = 7 * 86_400.0


def watch(
    hosts: Annotated[
        list[str],
        typer.Argument(help="HOST or HOST:PORT of a `pathcast serve`.", metavar="HOST...", autocompletion=first),
    ],
    every: Annotated[str, typer.Option(help="From one round to the next of each HOST, 10s to 24h.")] = "5m",
    max: Annotated[
        str, typer.Option(help="Most bytes of any 24 hours, both ends' together; rounds become rarer for it.")
    ] = "50MB/day",
    alert: Annotated[
        list[str] | None,
        typer.Option(
            help="What is to be told, for example 'cable.available < 70% for 15m'; may be repeated. See docs/watch.md.",
            show_default=False,
        ),
    ] = None,
    alert_run: Annotated[
        str | None,
        typer.Option(
            metavar="CMD", help="A program that reads each alert as JSON from its standard input.", show_default=False
        ),
    ] = None,
    alert_post: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where each alert is posted to, as JSON.", show_default=False),
    ] = None,
    alert_mail: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Whom each alert is mailed to, by sendmail.", show_default=False),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Serve /metrics and /probe?target=HOST for Prometheus there; a PORT alone is one of the loopback.",
            show_default=False,
        ),
    ] = None,
    paths: Annotated[
        str | None,
        typer.Option(help="Of these paths or lines only, with commas between (default: all).", show_default=False),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after so many rounds (default: never).", show_default=False)
    ] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print alerts as lines of JSON.")] = False,
    key_file: KeyFile = None,
    history: HistoryUrl = None,
    no_history: NoHistory = False,
) -> None:
    """Measure every path to each HOST again and again, record it, and tell what degrades.

    `pathcast watch report` writes a page of some weeks.
    """
    from pathcast.history import clock
    from pathcast.history.store import Store
    from pathcast.lines import config
    from pathcast.service.ledger import Ledger, alone
    from pathcast.service.metrics import collected, forecasts, probed, serve, where
    from pathcast.service.probes import Probes
    from pathcast.service.watching import SESSION_BYTES, Watch
    from pathcast.watch.allowance import DAY_S
    from pathcast.watch.expression import parse

    every_s, most = quantity.duration_s("--every", every), _bytes(max)
    if not 10 <= every_s <= 86_400:
        raise usage(f"--every `{every}`: allowed are 10s to 24h")
    alerts = [parse(text) for text in alert or []]
    tellers = _tellers(alert_run, alert_post, alert_mail)
    if tellers and not alerts:
        raise usage("--alert-run, --alert-post and --alert-mail go with --alert")
    listen = None if metrics is None else where(metrics)
    lines = frozenset(config.load())
    with ExitStack() as stack:
        ends: list[_End] = []
        for host in hosts:
            into = recorder(history, no_history, "watch")
            of = target(host, "host", None, None, key_file, None, into)
            if of.name in [end.name for end in ends]:
                raise usage(f"HOST `{host}` is named twice")
            ends.append(_End(replace(of, lasting=True), into, lines, jsonl))
        directory = stack.enter_context(alone())
        for end in ends:
            end.begin(stack)
        path_bytes = _light_bytes()

        def tell(document: dict[str, Any]) -> None:
            for teller in tellers:
                teller.tell({"schema": "pathcast.alert/1", **document})

        into = ends[0].recorder
        gap_s = _gap_s(every_s, path_bytes * DAY_S / most)
        ledger = Ledger(directory / "watch.json", most, clock.now, _say, lambda: _recorded(into), gap_s)
        alerted = [event for end in ends for event in end.alerted()]
        probes = Probes()
        only = [part.strip() for part in (paths or "").split(",") if part.strip()]
        clocked = _Clock(tellers)
        made = Watch(ends, alerts, every_s, ledger, clocked, path_bytes, tell, _say, alerted, probes, only)
        names = ", ".join(end.name for end in ends)
        begins_s = ledger.free_in_s(SESSION_BYTES, paced=False)
        later = f": it begins in {span(begins_s)}" if begins_s > 0 else ""
        gone = f"{size(ledger.used())} are gone{later}"
        _say(f"watching {names} every {seconds(every_s)}, by at most {size(most)} a day; {gone}")
        if listen is not None:
            past = None if into is None else Store(into.journal.store.place, read_only=True)

            def metrics_now() -> Iterator[Any]:
                yield from collected(made)
                if past is not None:
                    yield from forecasts(past, made.ends)

            port, end_metrics = serve(*listen, metrics_now, probed(made, probes))
            stack.callback(end_metrics)
            shown = f"[{listen[0]}]" if ":" in listen[0] else listen[0]
            _say(f"metrics: http://{shown}:{port}/metrics")
        try:
            made.run(count)
        finally:
            for teller in tellers:
                teller.close()
        if error := made.nothing():
            raise error


def _gap_s(every_s: float, share_s: float) -> float:
    """Rounds of one far end and one path are no further apart than that, but where one was missed."""
    from pathcast.service.watching import GAP

    return GAP * max(every_s, share_s)


def _recorded(into: Recorder | None) -> list[tuple[float, int]]:
    """What its history tells of the rounds of a day, how long ago each ended [s], with what they take beside probes."""
    from pathcast.history.read import Reader
    from pathcast.service.watching import ROUND_BYTES, SESSION_BYTES
    from pathcast.watch.allowance import DAY_S

    if into is None:
        return []
    try:
        rounds = Reader(into.journal.store).probed("watch", DAY_S)
    except PathcastError:  # it is said when it is written to
        return []
    return [(ago_s, bytes + ROUND_BYTES + SESSION_BYTES) for ago_s, bytes in rounds]


def _tellers(run: str | None, post: str | None, mail: str | None) -> list[Teller]:
    """The programs that hear of alerts."""
    from pathcast.service import told
    from pathcast.service.teller import Teller, program

    found = []
    if run is not None:
        found.append(Teller(words := program(run), words[0], _say))
    if post is not None:
        found.append(Teller(told.post(post), "--alert-post", _say, again=True))
    if mail is not None:
        found.append(Teller(told.mail(mail), "--alert-mail", _say, again=True))
    return found


class _Clock:
    """The machine's: who waits looks after alerts' programs meanwhile."""

    def __init__(self, tellers: list[Teller]) -> None:
        self._tellers, self._tidied_s = tellers, -_TIDY_S
        self._left = Once(_say)

    def now(self) -> Moment:
        from pathcast.history import clock

        return clock.now()

    def wait(self, seconds: float) -> None:
        """A part of it, so that a clock that runs on while the host sleeps is looked at."""
        time.sleep(min(seconds, _LOOK_S))
        for teller in self._tellers:
            teller.look()
        if time.monotonic() - self._tidied_s >= _TIDY_S:
            from pathcast.runtime.state import tidy

            self._tidied_s = time.monotonic()
            tidy(self._left)
            self._left.looked()


class _End:
    """A far end: a target whose measurements and alerts are recorded; what was recorded of alerts is printed."""

    def __init__(self, of: Target, into: Recorder | None, lines: frozenset[str], jsonl: bool) -> None:
        self.of, self.name, self.recorder, self.lines = of, of.name, into, lines
        self._jsonl = jsonl
        self._standing = None if into is None else Standing(of.name, into, _say)
        self._make: Callable[[], AbstractContextManager[Any]] | None = None

    def begin(self, stack: ExitStack) -> None:
        self._make = stack.enter_context(self.of.open())

    def open(self) -> AbstractContextManager[Any]:
        assert self._make is not None
        return self._make()

    def past(self, network: Any) -> Mapping[str, Iterable[tuple[float, PathMeasured]]]:
        from pathcast.watch.usual import APART_S

        if self.recorder is None:
            return {}
        found = self.recorder.lately(network.keys, _WEEK_S, APART_S)
        return {name: [(one.age_s, one.path) for one in reversed(of)] for name, of in found.items()}

    def alerted(self) -> list[Event]:
        """What was told last of each alert, the newest first."""
        from pathcast.history.alerts import last_told
        from pathcast.history.read import Reader

        if self.recorder is None:
            return []
        try:
            found = last_told(Reader(self.recorder.journal.store))
        except PathcastError:  # it is said when it is written to
            return []
        return [event for event in found if event.target == self.name]

    def line_ids(self, network: Any) -> Mapping[str, str]:
        """As a FarEnd has it: of several steered paths none is the line's."""
        if self.recorder is None:
            return {}
        return {name: key.line_id for name, key in network.keys.items() if not key.way}

    def looked(self, network: Any, found: Measurement) -> None:
        """What it tells of the jobs that go there."""
        if self._standing is not None:
            self._standing.look(network, found)

    def keep(self, document: dict[str, Any]) -> None:
        if self.recorder is not None:
            act = self.recorder.act("host")
            act.event("alert", document["text"], self.recorder.keys.get(document["path"]), about=document)
            self.recorder.keep(act)
        try:
            if self._jsonl:
                print_line("alert", document)
            else:
                print(f"{now()} {document['text']}", flush=True)
        except BrokenPipeError:  # who has gone needs no more
            raise
        except OSError as error:
            _say(f"cannot be printed ({error.strerror}): {document['text']}")


def _bytes(text: str) -> int:
    """`50MB/day`."""
    from pathcast import _native

    try:
        found = int(_native.parse_bytes(text.removesuffix("/day")))
    except PathcastError as error:
        raise usage(f"--max `{text}`: {error.message}", "allowed are bytes a day, for example 50MB/day") from None
    if found <= 0:
        least = size(_least())
        raise usage(f"--max `{text}` allows nothing", f"allowed is {least}/day and more, for example 50MB/day")
    return found


def _least() -> int:
    from pathcast.service.watching import ROUND_BYTES, SESSION_BYTES

    return _light_bytes() + SESSION_BYTES + ROUND_BYTES


def _light_bytes() -> int:
    import json

    from pathcast import _native

    return int(json.loads(_native.measure_costs())["light_most"][0])


def _say(text: str) -> None:
    say(text, now())
