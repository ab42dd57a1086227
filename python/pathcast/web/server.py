"""What serves the page to browsers."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

# a request is to be whole so long after its connection was made, or after the answer before it [s]
REQUEST_S = 10.0
# so many connections at once; idle ones count
_MOST = 64


class Prompt(H11Protocol):
    """Closes a connection whose request does not come: uvicorn waits for it for ever."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _await(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(REQUEST_S, self._look)

    def _look(self) -> None:
        # one that is answered now is looked at again after that
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def server(app: Any) -> uvicorn.Server:
    """Of the page."""
    config = uvicorn.Config(
        app,
        http=Prompt,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
