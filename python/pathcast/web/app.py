"""The page as an ASGI application: GET only, for its own names only, nothing of anybody else's in it."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pathcast import units
from pathcast.history import clock
from pathcast.web.facts import SPANS, Facts, part, plots

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_ROWS = 48


class Guard:
    """Refuses what is no GET or HEAD, and what asks under a name that is not ours: another site's that was made to
    point here (DNS rebinding)."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self.app, self.names = app, frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message["headers"] if name.decode() not in HEADERS]
                message["headers"] = kept + [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            await send(message)

        if scope["type"] != "http":
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        refused: Response | None = None
        if len(hosts) != 1 or _name(hosts[0]) not in self.names:
            refused = PlainTextResponse(
                f"This page answers as {', '.join(sorted(self.names))} only; `--name` adds one.\n", 421
            )
        elif scope["method"] not in ("GET", "HEAD"):
            refused = PlainTextResponse("This page only shows.\n", 405, {"allow": "GET, HEAD"})
        await (self.app if refused is None else refused)(scope, receive, sealed)


def _name(host: str) -> str:
    """Without its port."""
    return (host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]).lower().rstrip(".")


def application(facts: Facts, names: Collection[str] = LOOPBACK, prefix: str = "") -> ASGIApp:
    """prefix: `/pathcast`, below which all of it lies, or nothing."""
    pages = Environment(
        loader=FileSystemLoader(HERE / "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"bits": units.bits, "seconds": units.seconds, "size": units.size, "span": units.span}
    pages.filters |= {"data": _data, "quantity": _quantity, "ratio": _ratio, "level": _level, "iso": _iso}
    pages.globals |= {"prefix": prefix, "zip": zip, "spans": list(SPANS), "rows_of": _rows}

    def page(name: str, **more: Any) -> Response:
        return HTMLResponse(pages.get_template(name).render(**more))

    def span(request: Request) -> str:
        asked = request.query_params.get("since", "7d")
        return asked if asked in SPANS else "7d"

    def now(_: Request) -> Response:
        parts = {name: part(getattr(facts, name)) for name in ("lines", "firing", "live", "jobs", "caps")}
        return page("now.html", here="now", **parts)

    def living(_: Request) -> Response:
        return page("live.html", live=part(facts.live))

    def weeks(request: Request) -> Response:
        of = span(request)
        trend = part(lambda: facts.trend(of))
        return page("weeks.html", here="weeks", since=of, trend=trend, plots=plots(trend.of) if trend.of else [])

    def forecasts(request: Request) -> Response:
        of = span(request)
        found = part(lambda: facts.forecasts(of))
        sent = part(lambda: facts.transfers(of))
        return page("forecasts.html", here="forecasts", since=of, forecasts=found, transfers=sent)

    def events(request: Request) -> Response:
        of = span(request)
        return page("events.html", here="events", since=of, events=part(lambda: facts.events(of)))

    routes = [
        Route("/", now),
        Route("/live", living),
        Route("/weeks", weeks),
        Route("/forecasts", forecasts),
        Route("/events", events),
        Mount("/assets", StaticFiles(directory=HERE / "assets")),
    ]
    made = Starlette(routes=[Mount(prefix, routes=routes)] if prefix else routes)
    return Guard(made, names)


def _data(value: Any) -> Markup:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(value, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _iso(at_s: float) -> str:
    """at_s: since 1970."""
    return clock.iso(round(at_s * 1e6))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"


def _quantity(value: Any, unit: str) -> str:
    """As the command line writes it."""
    if value is None or value is False:
        return "-"
    return {"bits": units.bits, "seconds": units.seconds, "share": _ratio}[unit](value)


def _level(of: Any, unit: str) -> str:
    """A value, or what is known of it."""
    if of.value is not None:
        return _quantity(of.value, unit)
    if of.low is not None:
        return f"at least {_quantity(of.low, unit)}"
    return f"at most {_quantity(of.high, unit)}" if of.high is not None else "-"


def _rows(plot: dict[str, Any]) -> list[tuple[float, list[float | None]]]:
    """A plot as a table of some rows, each a mean of its part."""
    step = max(1, -(-len(plot["x"]) // _ROWS))
    rows = []
    for first in range(0, len(plot["x"]), step):
        cells = []
        for series in plot["series"]:
            known = [v for v in series["values"][first : first + step] if v is not None and v is not False]
            cells.append(sum(known) / len(known) if known else None)
        rows.append((plot["x"][first], cells))
    return rows
