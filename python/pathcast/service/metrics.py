"""What a watch knows, for Prometheus: `/metrics`, `/probe?target=`; in base units, under names by its conventions."""

from __future__ import annotations

import ipaddress
import math
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from pathcast.errors import PathcastError, need, usage
from pathcast.service.probes import Probes, Refused
from pathcast.units import span

if TYPE_CHECKING:
    from pathcast.history.store import Store
    from pathcast.service.watching import Watch

# a round takes seconds, and waits for those before it
_PATIENCE_S = 120.0
# who connects and is silent for so long [s] is left, and so many are answered at once
_SILENT_S = 10.0
_MOST = 32
# of the 90 % interval
_QUANTILES = (("0.05", "low"), ("0.5", "value"), ("0.95", "high"))

_LEVELS = (
    ("available", "available_bits_per_second", "What others leave of the path, or the least that it is."),
    ("capacity", "capacity_bits_per_second", "IP bits a second of its narrowest link."),
    ("queue", "queue_seconds", "How long packets wait in its queues."),
    ("loss", "loss_ratio", "Share of the probes of the last round that was lost."),
)
_PATH = ("target", "path")
_WAY = (*_PATH, "direction")


def where(text: str, option: str = "--metrics", example: str = "127.0.0.1:9275") -> tuple[str, int]:
    """`ADDRESS:PORT`, `[ADDRESS]:PORT`, or a port of the loopback. Raises PathcastError (exit 2)."""
    address, colon, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    try:
        ipaddress.ip_address(address)
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number < 65536 or not port.isascii():
        raise usage(f"{option} `{text}`: allowed are ADDRESS:PORT and PORT, for example {example}")
    return address, number


def serve(
    address: str,
    port: int,
    collect: Callable[[], Iterable[Any]],
    probe: Callable[[dict[str, list[str]], float], Answer] | None = None,
) -> tuple[int, Callable[[], None]]:
    """Answers there from threads of its own: on which port (0: the system chooses), and what ends it.

    probe: of `/probe`, by its query and how long [s] it may take. Raises PathcastError where it cannot listen there.
    """
    need("prometheus_client")
    from prometheus_client import make_wsgi_app

    metrics: Any = make_wsgi_app(_registry(collect))

    def app(environ: dict[str, Any], start: Any) -> Any:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return metrics(environ, start)
        if path != "/probe" or probe is None:
            known = "/metrics" if probe is None else "/metrics and /probe?target=HOST"
            answer = Answer("404 Not Found", f"Nothing is here: allowed are {known}\n")
        elif environ["REQUEST_METHOD"] != "GET":
            answer = Answer("405 Method Not Allowed", "Only GET measures.\n", {"Allow": "GET"})
        else:
            query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
            answer = probe(query, _patience_s(environ.get("HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS")))
        if isinstance(answer.body, str):
            start(answer.status, [("Content-Type", "text/plain; charset=utf-8"), *answer.headers.items()])
            return [answer.body.encode()]
        found = answer.body
        return make_wsgi_app(_registry(lambda: found))(environ, start)

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        room = threading.Semaphore(_MOST)

        def process_request(self, request: Any, client_address: Any) -> None:
            if not self.room.acquire(blocking=False):
                self.shutdown_request(request)
                return
            try:
                super().process_request(request, client_address)
            except BaseException:  # no thread was begun
                self.room.release()
                raise

        def process_request_thread(self, request: Any, client_address: Any) -> None:
            try:
                super().process_request_thread(request, client_address)
            finally:
                self.room.release()

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), OSError):  # who has gone, or is silent
                super().handle_error(request, client_address)

    class Quiet(WSGIRequestHandler):
        timeout = _SILENT_S

        def log_message(self, format: str, *args: Any) -> None:
            pass

    try:
        server = make_server(address, port, app, Server, Quiet)
    except OSError as error:
        raise PathcastError("address", f"cannot listen on {address} port {port}: {error.strerror}") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, end


@dataclass(frozen=True)
class Answer:
    """Of `/probe`: words, or metrics."""

    status: str
    body: str | list[Any]
    headers: dict[str, str] = field(default_factory=dict)


def _registry(collect: Callable[[], Iterable[Any]]) -> Any:
    from prometheus_client import CollectorRegistry

    class Collector:
        def describe(self) -> list[Any]:
            return []

        def collect(self) -> Iterable[Any]:
            return collect()

    registry = CollectorRegistry()
    registry.register(Collector())
    return registry


def _patience_s(asked: str | None) -> float:
    """As long as Prometheus itself waits, less what the answer takes."""
    try:
        return min(_PATIENCE_S, max(0.5, float(asked or "") - 0.5))
    except ValueError:
        return _PATIENCE_S


def probed(of: Watch, probes: Probes) -> Callable[[dict[str, list[str]], float], Answer]:
    """What answers `/probe?target=`: a round of a far end that the watch was told of; where the allowance, other rounds
    or who asks leave no time for one, the newest that there was, with its age."""
    from prometheus_client.core import GaugeMetricFamily as Gauge

    def answer(query: dict[str, list[str]], patience_s: float) -> Answer:
        targets = query.get("target", [])
        if len(targets) != 1 or targets[0] not in of.ends:
            named = f"target `{targets[0]}`" if len(targets) == 1 else "one target is needed"
            return Answer("400 Bad Request", f"{named}: allowed are {', '.join(of.ends)}\n")
        found = probes.ask(targets[0], patience_s)
        age_s = 0.0
        if isinstance(found, Refused) and (newest := of.newest.get(targets[0])) is not None:
            age_s, found = of.time.now().boot_us / 1e6 - newest[0], newest[1]
        if isinstance(found, Refused):
            again = {"Retry-After": str(math.ceil(max(1.0, found.retry_s)))}
            if found.busy:
                return Answer("503 Service Unavailable", "No round has ended meanwhile.\n", again)
            told = f"The allowance of {of.ledger.allowance.most} bytes a day has nothing for a round yet.\n"
            if found.paced:
                left = span(math.ceil(max(1.0, found.retry_s)))
                told = f"By {of.ledger.allowance.most} bytes a day, the next round may begin in {left}.\n"
            return Answer("429 Too Many Requests", told, again)
        success = Gauge("pathcast_probe_success", "Whether the far end answered.", value=float(found.success))
        took = Gauge("pathcast_probe_duration_seconds", "How long the round took.", value=found.duration_s)
        age = Gauge("pathcast_probe_age_seconds", "How long ago the round was over: 0 of a new one.", value=age_s)
        return Answer("200 OK", [success, took, age, *_of_paths(of, targets)])

    return answer


def forecasts(store: Store, names: Iterable[str]) -> Iterator[Any]:
    """Of the newest forecast to each far end that the history has; nothing where it cannot be read now."""
    from prometheus_client.core import GaugeMetricFamily as Gauge
    from prometheus_client.core import Metric

    from pathcast.history.browse import Browser

    # by Prometheus' conventions only a summary has quantiles
    took = Metric("pathcast_forecast_duration_seconds", "How long the choice takes.", "summary")
    bytes = Gauge("pathcast_forecast_size_bytes", "What is to be sent.", labels=["target"])
    made = Gauge("pathcast_forecast_timestamp_seconds", "When it was made (UTC).", labels=["target"])
    for name in names:
        try:
            found = Browser(store).forecasts_of(None, 1, name)
        except (PathcastError, OSError):
            continue
        for one in found:
            chosen = one.chosen, one.chosen_control
            options = one.answer.get("options") or ()
            option: Any = next((of for of in options if (of.get("paths"), of.get("control")) == chosen), {})
            duration = option.get("duration_s")
            values = duration if isinstance(duration, dict) else {"value": duration}
            for quantile, key in _QUANTILES:
                if (value := values.get(key)) is not None:
                    took.add_sample(took.name, {"target": name, "quantile": quantile}, value)
            bytes.add_metric([name], one.size_bytes)
            made.add_metric([name], datetime.fromisoformat(one.at).timestamp())
    yield from (took, bytes, made)


def collected(of: Watch) -> Iterator[Any]:
    """Its state now, read from another thread than the watch's."""
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

    yield from _of_paths(of, list(of.known))
    yield Counter("pathcast_probe_bytes", "IP bytes of probes, of both ends.", value=of.probe_bytes)
    yield Gauge("pathcast_allowance_bytes", "Most bytes of any 24 hours.", value=of.ledger.allowance.most)
    yield Gauge("pathcast_allowance_used_bytes", "Of the last 24 hours.", value=of.ledger.used())


def _of_paths(of: Watch, targets: Iterable[str]) -> Iterator[Any]:
    """Of these far ends."""
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

    now = of.time.now()
    up = Gauge(
        "pathcast_target_up", "Whether the far end answered in its last round, once there was one.", labels=["target"]
    )
    rounds = Counter("pathcast_rounds", "Rounds that were measured.", labels=["target"])
    path_up = Gauge("pathcast_path_up", "Whether anything came through in the last round.", labels=_PATH)
    measured = Gauge("pathcast_path_measured_timestamp_seconds", "When its last round was (UTC).", labels=_PATH)
    trip = Gauge("pathcast_path_round_trip_seconds", "The least of the last round.", labels=_PATH)
    levels = {what: Gauge(f"pathcast_path_{name}", help, labels=_WAY) for what, name, help in _LEVELS}
    firing = Gauge("pathcast_alert_firing", "Whether it was told and is not over.", labels=[*_WAY, "alert"])
    for target in targets:
        known = of.known[target]
        # before it was asked nobody knows
        if of.rounds[target] or target in of.away:
            up.add_metric([target], float(target not in of.away))
        rounds.add_metric([target], of.rounds[target])
        for path in list(known.values()):
            for alarm in path.alarms:
                labels = [target, path.name, alarm.of.direction, alarm.of.text]
                firing.add_metric(labels, float(alarm.firing))
            seen = path.seen
            if not seen:
                continue
            path_up.add_metric([target, path.name], float(all(one.down is None for one in seen.values())))
            measured.add_metric([target, path.name], path.utc_s(now))
            if (least := seen["out"].rtt.value) is not None:
                trip.add_metric([target, path.name], least)
            for direction, one in seen.items():
                for what, gauge in levels.items():
                    if (value := getattr(one, what).sure) is not None:
                        gauge.add_metric([target, path.name, direction], value)
    yield from (up, rounds, path_up, measured, trip, *levels.values(), firing)
