"""A connection to PostgreSQL that is given up where its server answers nothing: a server whose disc or machine hangs
still has a kernel that acknowledges, and no timeout of TCP or of the server itself ends that."""

from __future__ import annotations

from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

T = TypeVar("T")
# more than the server itself gives a statement [s]
SILENCE_S = 30.0


class Impatient(psycopg.Connection[Any]):
    """Closed by its end once nothing came for so long."""

    def wait(self, gen: PQGen[T], *more: Any, **named: Any) -> T:
        return super().wait(self._heard(gen), *more, **named)

    def _heard(self, of: PQGen[T]) -> PQGen[T]:
        """It is resumed some times a second, also where nothing came."""
        until_s = monotonic() + SILENCE_S
        try:
            wanted = next(of)
            while True:
                ready = yield wanted
                if ready:
                    until_s = monotonic() + SILENCE_S
                elif monotonic() > until_s:
                    self.close()
                    raise psycopg.OperationalError("its server answers nothing")
                wanted = of.send(ready)
        except StopIteration as end:
            found: T = end.value
            return found
