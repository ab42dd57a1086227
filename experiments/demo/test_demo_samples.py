"""What a sample of the demo experiment computes, of rounds that nobody made."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment

SAMPLES = Experiment(Path(__file__).parent).module("samples")


def test_transfers_are_told_with_their_path_size_and_throughput():
    plan = SAMPLES.Plan(seed=1)
    row = {
        "rtt_s": (0.12, 0.02),
        "probes_bps": (1.0, 2.0),
        "tcp_bps": (3.0, 4.0),
        "mptcp_probe_bps": 5.0,
        "actual_bps": 6.0,
    }
    found = list(SAMPLES._transfers(plan, row))
    assert found == [
        ("TCP, 64 KB", ("path1",), plan.probe_bytes, 1.0),
        ("TCP, 16 MB", ("path1",), plan.transfer_bytes, 3.0),
        ("TCP, 64 KB", ("path2",), plan.probe_bytes, 2.0),
        ("TCP, 16 MB", ("path2",), plan.transfer_bytes, 4.0),
        (f"MPTCP, 128 KB, {SAMPLES.SLOW_FIRST}", ("path1", "path2"), plan.probe_total_bytes, 5.0),
        (f"MPTCP, 16 MB, {SAMPLES.SLOW_FIRST}", ("path1", "path2"), plan.transfer_bytes, 6.0),
    ]
    other = list(SAMPLES._transfers(plan, {**row, "rtt_s": (0.12, 0.1), "tcp_bps": None}))
    assert [kind for kind, *_ in other] == ["TCP, 64 KB", "TCP, 64 KB", "MPTCP, 128 KB, else", "MPTCP, 16 MB, else"]


def test_simulated_over_emulated_and_only_of_rounds_that_count(monkeypatch):
    from contextlib import nullcontext
    from types import SimpleNamespace as N

    world = N(tcp_probe=lambda *_: N(throughput_bps=8.0), transfer=lambda *_, plain: N(throughput_bps=3.0))
    monkeypatch.setattr(SAMPLES, "make_world", lambda *_: lambda: nullcontext(world))
    monkeypatch.setattr(SAMPLES, "apply", lambda *_: None)
    row = {"rtt_s": (0.1, 0.1), "probes_bps": (4.0, 2.0), "tcp_bps": None, "mptcp_probe_bps": 6.0, "actual_bps": 1.0}
    rounds = [{**row, "left_out": None}, {**row, "left_out": "late"}]
    found = [one["ratio"] for one in SAMPLES._simulated(SAMPLES.Plan(seed=1), rounds)]
    assert found == pytest.approx([2.0, 4.0, 0.5, 3.0])
