"""What a watch knows, for Prometheus: `/metrics`, in base units, under names by its conventions."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pathcast.errors import PathcastError, need, usage

if TYPE_CHECKING:
    from pathcast.service.watching import Watch

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


def serve(address: str, port: int, collect: Callable[[], Iterator[Any]]) -> tuple[int, Callable[[], None]]:
    """Answers there from a thread of its own: on which port (0: the system chooses), and what ends it.

    Raises PathcastError where it cannot listen there.
    """
    need("prometheus_client")
    from prometheus_client import CollectorRegistry, start_http_server

    class Collector:
        def describe(self) -> list[Any]:
            return []

        def collect(self) -> Iterator[Any]:
            return collect()

    registry = CollectorRegistry()
    registry.register(Collector())
    try:
        server, thread = start_http_server(port, address, registry)
    except OSError as error:
        raise PathcastError("address", f"cannot listen on {address} port {port}: {error.strerror}") from None

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, end


def collected(of: Watch) -> Iterator[Any]:
    """Its state now, read from another thread than the watch's."""
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

    now = of.time.now()
    up = Gauge("pathcast_target_up", "Whether the far end answered in its last round.", labels=["target"])
    rounds = Counter("pathcast_rounds", "Rounds that were measured.", labels=["target"])
    path_up = Gauge("pathcast_path_up", "Whether anything came through in the last round.", labels=_PATH)
    measured = Gauge("pathcast_path_measured_timestamp_seconds", "When its last round was (UTC).", labels=_PATH)
    trip = Gauge("pathcast_path_round_trip_seconds", "The least of the last round.", labels=_PATH)
    levels = {what: Gauge(f"pathcast_path_{name}", help, labels=_WAY) for what, name, help in _LEVELS}
    firing = Gauge("pathcast_alert_firing", "Whether it was told and is not over.", labels=[*_WAY, "alert"])
    for target, known in list(of.known.items()):
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
            measured.add_metric([target, path.name], now.utc_us / 1e6 - (now.boot_us / 1e6 - path.at_s))
            if (least := seen["out"].rtt.value) is not None:
                trip.add_metric([target, path.name], least)
            for direction, one in seen.items():
                for what, gauge in levels.items():
                    if (value := getattr(one, what).sure) is not None:
                        gauge.add_metric([target, path.name, direction], value)
    yield from (up, rounds, path_up, measured, trip, *levels.values(), firing)
    yield Counter("pathcast_probe_bytes", "IP bytes of probes, of both ends.", value=of.probe_bytes)
    yield Gauge("pathcast_allowance_bytes", "Most bytes of any 24 hours.", value=of.ledger.allowance.most)
    yield Gauge("pathcast_allowance_used_bytes", "Of the last 24 hours.", value=of.used_bytes)
