"""What a sample of the prediction experiment computes, of transfers that nobody made."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment
from pathcast.worlds.testing import sent

SAMPLES = Experiment(Path(__file__).parent).module("samples")


PLAN = Experiment(Path(__file__).parent).plan
POINT = {"grid": "main", "network": "today", "rtt1_ms": 180, "rtt2_ms": 120, "seed": 1}


class World:
    """Tells every transfer by its path and size."""

    def tcp_probe(self, path, bytes, control, progress=None):
        n = int(path[-1])
        return sent([path], bytes, n * bytes, connect_s=n / 10)

    def transfer(self, paths, bytes, control, progress=None, plain=False):
        assert plain
        assert tuple(paths) == SAMPLES.PATHS
        done = sent(paths, bytes, 3 * bytes)
        from dataclasses import replace

        first, second = done.subflows
        first = replace(first, bytes_sent=1000, bytes_retransmitted=100, min_rtt_s=0.18, joined_s=0.1)
        second = replace(second, bytes_sent=400, bytes_retransmitted=100, min_rtt_s=0.12, joined_s=0.7)
        return replace(done, subflows=(second, first))


def test_columns_are_of_their_path_and_size():
    about = SAMPLES.scenario(POINT, PLAN.setup, "sim")
    values = {}
    for size, paths in (("64KB", ("path1",)), ("64KB", ("path2",)), ("64KB", SAMPLES.PATHS), ("256MB", ("path1",))):
        values |= SAMPLES._sent(World(), size, paths, about)
    assert (values["tcp1_64KB_bps"], values["tcp2_64KB_bps"]) == (64e3, 128e3)
    assert (values["tcp1_64KB_connect_s"], values["tcp2_64KB_connect_s"]) == (0.1, 0.2)
    assert values["mptcp_64KB_bps"] == 192e3
    # 900 of 1200 bytes were new over path 1
    assert values["share_64KB"] == 0.75
    assert (values["mptcp_64KB_rtt1_s"], values["mptcp_64KB_rtt2_s"]) == (0.18, 0.12)
    assert (values["mptcp_64KB_joined_s"], values["retransmitted_bytes"]) == (0.7, 200)
    assert values["tcp1_256MB_bps"] == 256e6
    assert "tcp1_256MB_connect_s" not in values


def test_links_have_half_of_the_round_trip_less_the_jitter():
    sets = dict(one.split("=", 1) for one in SAMPLES.scenario(POINT, PLAN.setup, "sim")["sets"])
    assert (sets["link.wan1.delay"], sets["link.wan2.delay"]) == ("89000us", "59000us")


def test_what_was_measured_is_of_its_path():
    from types import SimpleNamespace as N

    def path(n):
        value = lambda x: N(value=x)  # noqa: E731
        delay = N(minimum=value(n / 10), median=value(n / 10 + n / 100))
        return N(
            directions={
                "out": N(available_bps=value(n), capacity_bps=value(10 * n), delay_s=delay, loss=N(share=n / 1000))
            }
        )

    class Measured:
        def measure(self, paths, request):
            assert (paths, request.directions, request.seed) == (SAMPLES.PATHS, ("out",), 7)
            return N(probe_bytes=5, elapsed_s=2.0, path=lambda name: path(int(name[-1])))

    found = SAMPLES._measured(Measured(), 7)
    assert (found["measure_bytes"], found["measure_s"]) == (5, 2.0)
    for n in (1, 2):
        assert (found[f"path{n}_available_bps"], found[f"path{n}_capacity_bps"]) == (n, 10 * n)
        assert found[f"path{n}_queueing_s"] == pytest.approx(n / 100)
        assert found[f"path{n}_probes_lost"] == n / 1000
