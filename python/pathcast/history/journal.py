"""The writing side: acts go into the database, or into the spool where that is away, and from there later."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

from pathcast.errors import PathcastError
from pathcast.history import clock
from pathcast.history.clock import Moment
from pathcast.history.faults import history_error, told
from pathcast.history.keep import daily
from pathcast.history.link import link
from pathcast.history.place import Place
from pathcast.history.plain import TABLES, Plain
from pathcast.history.rows import Act, Origin
from pathcast.history.spool import Rows, Spool
from pathcast.history.store import Store

# a database that is away is not asked again for so long, and sending what was kept may take so long [s]
_AWAY_S, _SEND_S = 30.0, 5.0
# whether retention is due is looked at so often
_LOOK_US = 3_600_000_000


class Journal:
    """One history to add to, from any thread. trouble: what kept the last act out of the database."""

    def __init__(self, place: Place, now: Callable[[], Moment] = clock.now, patient: bool = False) -> None:
        """patient: as of `Store`."""
        self.place, self.now = place, now
        self.store, self.spool = Store(place, patient=patient), Spool(place.spool)
        self.trouble: PathcastError | None = None
        self._lock = Lock()
        self._not_before = 0.0
        self._last: Moment | None = None
        self._look_us = 0

    def close(self) -> None:
        """Ends its connections."""
        self.store.close()

    def act(self, origin: Origin, ago_s: float = 0.0) -> Act:
        """An act that began so long ago."""
        return Act(clock.before(self.now(), ago_s), origin)

    def add(self, act: Act) -> bool:
        """Keeps an act: when this returns it is on a disc. True: in the database; False: in the spool, and `trouble`
        says why. Raises PathcastError where it can be kept nowhere."""
        with self._lock:
            if time.monotonic() >= self._not_before:
                try:
                    if act.rows.get("transfer"):
                        self._send()  # its forecast may wait there
                    with self.store.changing() as plain:
                        self._stepped(plain, act)
                        self._insert(plain, act.rows)
                    self.trouble = None
                except PathcastError as error:
                    if error.code in ("history-rows", "history-missing"):
                        raise
                    self.trouble = error
                    self._not_before = time.monotonic() + _AWAY_S
                else:
                    with suppress(PathcastError):  # this one is stored
                        self._send()
                    self._retire(act)
                    return True
            self.put_by(act)
            return False

    def put_by(self, act: Act) -> None:
        """Keeps an act in the spool, without a look at the database; the next one that is added takes it along.

        Raises PathcastError where it cannot be kept.
        """
        try:
            self.spool.put(act.id, act.rows)
        except OSError as error:
            raise told(error, str(self.spool.directory)) from None
        except (ValueError, TypeError) as error:
            raise history_error("rows", f"the history cannot hold this: {error}") from None

    def send(self) -> tuple[int, int]:
        """Adds what the spool holds: how many acts, and how many the database does not take. Raises PathcastError."""
        with self._lock:
            try:
                return self.spool.send(self._add_all)
            except OSError as error:
                raise told(error, str(self.spool.directory)) from None

    def _send(self) -> None:
        """Adds what waits, as far as there is time. Raises PathcastError where the database is away."""
        with suppress(OSError):  # they stay where they are
            if len(self.spool):
                self.spool.send(self._add_all, _SEND_S)

    def _retire(self, act: Act) -> None:
        """Retention, where it is due; by the time since boot, as the clock may be set."""
        at = self.now()
        if at.boot_us >= self._look_us:
            self._look_us = at.boot_us + _LOOK_US
            daily(self.store, at, act.origin.host_id, act.at.utc_us)

    def _add_all(self, acts: Sequence[Rows]) -> None:
        with self.store.changing() as plain:
            for rows in acts:
                self._insert(plain, rows)

    def _insert(self, plain: Plain, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        rows = {**rows, "transfer": [link(plain, row, rows) for row in rows.get("transfer", ())]}
        for table in TABLES:
            plain.insert(table, rows.get(table, ()))

    def _stepped(self, plain: Plain, act: Act) -> None:
        """Notes where the clock was set since the last act of this boot."""
        from pathcast.history.read import last_moment

        before = self._last or last_moment(plain, act.at.boot, act.origin.host_id)
        self._last = act.at
        if before is not None and (step := clock.stepped_s(before, act.at)) is not None:
            text = f"the clock was set {'forward' if step > 0 else 'back'} by {abs(step):.0f} s"
            act.event("clock-step", text, about={"step_s": step})
