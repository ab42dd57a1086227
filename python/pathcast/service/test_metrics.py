"""What Prometheus reads of a watch."""

from __future__ import annotations

from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pathcast.errors import PathcastError
from pathcast.service.metrics import collected, serve, where
from pathcast.service.test_watching import HOUR_S, Far, Time, watch


def read(port):
    text = build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    families = list(text_string_to_metric_families(text))
    assert all(of.documentation for of in families)
    return {(one.name, *sorted(one.labels.values())): one.value for of in families for one in of.samples}


def test_metrics_have_base_units_and_what_was_seen():
    time = Time()
    end = Far(time, lines={"cable": lambda s: 17e6 if s < HOUR_S else None, "dsl": lambda _: 9e6})
    made, *_ = watch(time, [end], ["cable.down for 5m"])
    port, stop = serve("127.0.0.1", 0, lambda: collected(made))
    try:
        assert read(port)["pathcast_rounds_total", "far"] == 0
        made.run(3)
        found = read(port)
        assert 16e6 < found["pathcast_path_available_bits_per_second", "cable", "far", "in"] < 18e6
        assert found["pathcast_path_capacity_bits_per_second", "cable", "far", "out"] == 34e6
        assert found["pathcast_path_round_trip_seconds", "cable", "far"] == 0.02
        assert found["pathcast_path_loss_ratio", "cable", "far", "out"] == 0
        assert found["pathcast_path_up", "cable", "far"] == found["pathcast_target_up", "far"] == 1
        assert found["pathcast_alert_firing", "cable", "cable.down for 5m", "far", "out"] == 0
        assert found["pathcast_rounds_total", "far"] == 3
        assert found["pathcast_probe_bytes_total",] == sum(bytes for *_, bytes in end.sent)
        assert found["pathcast_allowance_bytes",] == 50_000_000
        assert found["pathcast_allowance_used_bytes",] == made.ledger.used() > found["pathcast_probe_bytes_total",]
        at_s = time.now().utc_us / 1e6
        assert at_s - 10 < found["pathcast_path_measured_timestamp_seconds", "cable", "far"] <= at_s + 1e-3
        time.wait(2 * HOUR_S)
        made.run(3)
        found = read(port)
        assert ("pathcast_path_available_bits_per_second", "cable", "far", "in") not in found
        assert (found["pathcast_path_up", "cable", "far"], found["pathcast_path_up", "dsl", "far"]) == (0, 1)
        assert found["pathcast_alert_firing", "cable", "cable.down for 5m", "far", "out"] == 1
        with pytest.raises(PathcastError, match=f"cannot listen on 127.0.0.1 port {port}"):
            serve("127.0.0.1", port, lambda: collected(made))
    finally:
        stop()


def test_where_it_listens_is_the_loopback_unless_told():
    assert where("9275") == where("127.0.0.1:9275") == ("127.0.0.1", 9275)
    assert where("[::1]:0") == ("::1", 0)
    for wrong in ("", "far.example.org:9275", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", "-1"):
        with pytest.raises(PathcastError, match="allowed are ADDRESS:PORT and PORT") as refused:
            where(wrong)
        assert refused.value.exit == 2
