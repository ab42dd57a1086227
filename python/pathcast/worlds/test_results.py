"""Result types, read from what the native extension reports."""

from __future__ import annotations

import json

import pytest

from pathcast.errors import PathcastError
from pathcast.worlds.results import Path, Transfer, Verdict


def subflow(path, sent, again=0, **more):
    return {
        "path": path,
        "local": "10.0.1.2",
        "local_port": 40000,
        "remote": "10.0.1.1",
        "remote_port": 5275,
        "bytes_sent": sent,
        "bytes_acked": sent - again,
        "bytes_retransmitted": again,
        "retransmits": 1 if again else 0,
        "rtt_s": 0.05,
        "min_rtt_s": 0.05,
        "cwnd_packets": 10,
        "mss_bytes": 1448,
        "joined_s": 0.1,
        "alive": True,
        "note": None,
        **more,
    }


def report(*subflows, **more):
    return {
        "bytes": 1000,
        "elapsed_s": 0.5,
        "throughput_bps": 16000.0,
        "connect_s": 0.05,
        "receiver_s": 0.4,
        "control": "cubic",
        "protocol": "mptcp",
        "fallback": False,
        "fallback_reason": None,
        "path_manager": "userspace",
        "notes": ["a note"],
        "subflows": list(subflows),
        **more,
    }


def test_a_transfer_is_read_and_written():
    transfer = Transfer.read(["p1", "p2", "p1"], report(subflow("p1", 600), subflow("p2", 400)))
    assert transfer.paths == ("p1", "p2")  # each once, in order
    assert transfer.notes == ("a note",)
    assert transfer.fallback is None
    document = json.loads(json.dumps(transfer.document(), allow_nan=False))
    assert document["throughput_bps"] == 16000.0
    assert [s["path"] for s in document["subflows"]] == ["p1", "p2"]


def test_bytes_by_path_leaves_out_what_was_sent_again():
    transfer = Transfer.read(
        ["p1", "p2"], report(subflow("p1", 700, 100), subflow("p2", 300), subflow("p1", 150, 50), subflow(None, 9))
    )
    assert transfer.bytes_by_path(["p1", "p2"]) == [700, 300]
    assert transfer.bytes_by_path(["p2", "p1", "other"]) == [300, 700, 0]


@pytest.mark.parametrize(("reason", "said"), [("a middlebox", "a middlebox"), (None, "reason unknown")])
def test_a_fallback_always_has_a_reason(reason, said):
    transfer = Transfer.read(["p1"], report(subflow("p1", 1), fallback=True, fallback_reason=reason))
    assert transfer.fallback == said


def test_fields_of_a_newer_extension_are_passed_over():
    transfer = Transfer.read(["p1"], report(subflow("p1", 1, news=1), news=1))
    assert not hasattr(transfer, "news")


def test_the_pairs_of_a_path():
    path = Path("p1", ("10.0.1.2", "10.0.1.3"), "10.0.1.1")
    assert path.pair() == {"name": "p1", "local": "10.0.1.2", "remote": "10.0.1.1"}
    assert path.pair(1)["local"] == "10.0.1.3"


@pytest.mark.parametrize(
    ("p99", "dropped", "valid"), [(0.0, 0, True), (1e-3, 0, True), (1.001e-3, 0, False), (0.0, 1, False)]
)
def test_when_a_round_counts(p99, dropped, valid):
    assert Verdict({"p99_s": p99}, dropped).valid is valid


def test_what_the_emulator_was_late_with_is_refused():
    Verdict({"p99_s": 0.0009}, 0).check()
    with pytest.raises(PathcastError, match=r"late: p99 2.00 ms, 1 packets") as caught:
        Verdict({"p99_s": 0.002}, 1).check()
    assert (caught.value.code, caught.value.exit) == ("late", 3)


def test_a_round_without_packets_counts():
    assert Verdict().valid
