"""What `watch` forecasts of the jobs that go to a far end, by what it has just measured: nothing is sent for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pathcast import zone
from pathcast.errors import PathcastError

if TYPE_CHECKING:
    from pathcast.cli.planoptions import Asked
    from pathcast.forecast.record import Recorder
    from pathcast.service.jobs import Job
    from pathcast.worlds.measurement import Measurement

# each is forecast so often [s]
APART_S = 3600.0
# one light round alone tells little of a line
ROUNDS = 3
# less probable than that its deadline is told to be in danger
_LIKELY = 0.5


class Standing:
    """name: of the far end. recorder: of its measurements. say: hears of deadlines that are in danger."""

    def __init__(self, name: str, recorder: Recorder, say: Callable[[str], object]) -> None:
        self._name, self._recorder, self._say = name, recorder, say
        self._made_s: dict[str, float] = {}
        self._danger: dict[str, bool] = {}
        self._rounds = 0
        self._said: set[str] = set()

    def look(self, network: Any, found: Measurement) -> None:
        """Forecasts those whose turn it is, into the history. What cannot be forecast now is tried after a round. No
        fault of a job is the watch's."""
        self._rounds += 1
        if self._rounds < ROUNDS:
            return
        for job, asked in jobs_to(self._name, self._once):
            if time.monotonic() - self._made_s.get(job.name, -APART_S) < APART_S:
                continue
            try:
                self._forecast(network, found, job, asked)
                self._made_s[job.name] = time.monotonic()
            except PathcastError:
                continue  # too little is known of the paths by this round
            except Exception as error:
                self._made_s[job.name] = time.monotonic()
                self._once(f"job {job.name} is not forecast: {type(error).__name__}: {error}")

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)

    def _forecast(self, network: Any, found: Measurement, job: Job, asked: Asked) -> None:
        from pathcast.cli.plan import controls_of
        from pathcast.cli.planoptions import bytes_of
        from pathcast.forecast import fresh
        from pathcast.forecast.ask import Answer
        from pathcast.forecast.effort import QUICK_S
        from pathcast.forecast.forecast import Job as Wanted
        from pathcast.forecast.forecast import forecast
        from pathcast.forecast.watch import Watched
        from pathcast.units import size, span

        began = time.monotonic()
        wanted = Wanted(bytes_of(str(asked.size)), controls_of(network.controls, asked.background), "out", network.ends)
        keys = {path.name: network.keys[path.name] for path in found.paths}
        past = self._recorder.past(network.keys, "out", keys)
        left = [path.directions["out"].available_bps.value for path in found.paths if "out" in path.directions]
        horizon_s = wanted.size_bytes * 8 / max(1.0, sum(of for of in left if of is not None))
        loads = {name: fresh.loads(past, name, "out", horizon_s) for name in keys}
        made = forecast(found, wanted, loads, past=past, time_s=QUICK_S)
        took_s = time.monotonic() - began
        has_s = has(job, zone.clock())
        answer = Answer(made, Watched(found, loads), None, took_s, took_s)
        document = {"world": network.world, "target": self._name, "job": job.name, **answer.document(has_s), "by": None}
        self._recorder.measured = self._recorder.measured[-1:]
        self._recorder.forecast(network.world, document, keys, "out")
        if has_s is None:
            return
        best = next(
            of
            for of in document["options"]
            if (of["paths"], of["control"]) == (document["chosen"], document["chosen_control"])
        )
        danger = best["deadline_probability"] < _LIKELY
        if danger != self._danger.get(job.name, False):
            told = f"{size(wanted.size_bytes)} would take {span(best['duration_s']['value'])}, and it has {span(has_s)}"
            self._say(f"job {job.name}: its deadline is {'in danger' if danger else 'no more in danger'}: {told}")
        self._danger[job.name] = danger


def jobs_to(name: str, say: Callable[[str], object]) -> Iterator[tuple[Job, Asked]]:
    """The jobs whose --to is this far end and that have a size, with what they ask for. say: hears of a --to that is
    no host."""
    from pathcast.cli.planoptions import Asked
    from pathcast.service import jobs
    from pathcast.worlds.host import label

    for job in jobs.every(lambda error: None):
        words = dict(zip(job.options, job.options[1:], strict=False))
        if "--size" not in words or "--to" not in words:
            continue
        try:
            to = label(words["--to"])
        except PathcastError as error:
            say(f"job {job.name} is not forecast: --to {words['--to']}: {error.message}")
            continue
        if to == name:
            quiet = "--background" in job.options
            yield job, Asked(words["--size"], None, None, None, None, False, quiet, False, words["--to"])


def has(job: Job, now: datetime) -> float | None:
    """How long it has from its next beginning to its deadline [s]."""
    from pathcast.plan.again import next_due

    if job.until is None:
        return None
    begin = next_due(job.times, now)
    if isinstance(job.until, timedelta):
        return job.until.total_seconds()
    end = datetime.combine(begin.date(), job.until)
    return ((end if end > begin else end + timedelta(days=1)) - begin).total_seconds()
