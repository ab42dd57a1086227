"""What is said of what both ends see, where no router can be made to do it, or no clock."""

from __future__ import annotations

import copy
from typing import Any

from pathcast.service import between_here, between_tcp, between_udp
from pathcast.service.between_here import Fallback
from pathcast.service.between_loss import Loss, syns
from pathcast.service.findings import FAULT, NOTED, OK, UNSEEN

SECOND = 1_000_000_000
END: dict[str, Any] = {
    "peer": "192.0.2.1:5275",
    "local": "192.0.2.2:40000",
    "transport": "tcp",
    "options": 7,
    "scales": [7, 7],
    "mss": [1448, 1448],
    "pmtu": 1500,
    "able": 31,
    "joins": 2,
    "timestamp": 5_000,
    "time_of_day": 100 * SECOND,
}
FAR = {**END, "peer": END["local"], "local": END["peer"], "timestamp": 70_000}
PLAIN: dict[str, Any] = {
    "outcome": "answered",
    "near": END,
    "far": FAR,
    "asked": [100 * SECOND - 1_000_000, 100 * SECOND + 1_000_000],
    "timestamps": [70_001, 5_000],
}
JOINED = {"outcome": "joined", "reason": None}
MULTI: dict[str, Any] = {
    "outcome": "answered",
    "near": {**END, "transport": "mptcp"},
    "far": {**FAR, "transport": "mptcp"},
    "join": JOINED,
}
WAY = {
    "largest": 1500,
    "passes": 1500,
    "asked": 1,
    "marks": [{"sent": c, "asked": 3, "came": [c] * 3} for c in between_udp.CLASSES],
}
CLOCK = {"synchronised": True, "offset_s": 0.0, "error_s": 0.0, "skew_ppm": 0.0}
SMALL = {"asked": 33, "answered": 33}
ECHO: dict[str, Any] = {
    "outcome": "answered",
    "plain": 1,
    "small": SMALL,
    "out": WAY,
    "in": copy.deepcopy(WAY),
    "clock": CLOCK,
}


def tcp(plain=None, multi=None, **more):
    found = between_tcp.judge("p", {**PLAIN, **(plain or {})}, {**MULTI, **(multi or {})}, **more)
    return {one.name: one for one in found if one.status != OK}


def test_both_ends_agree_and_nothing_is_said():
    assert tcp() == {}
    assert all(one.status == OK for one in between_udp.packets("p", ECHO, PLAIN, PLAIN))
    assert [one.status for one in between_udp.clocks("p", ECHO, PLAIN, PLAIN)] == [OK]


def test_a_system_that_tells_nothing_of_its_connections_is_no_middlebox():
    # a far end under qemu-user, of this version and of earlier ones
    for transport in ("unknown", "fallen"):
        blind = {**FAR, "transport": transport, "options": 0, "scales": [0, 0], "mss": [0, 0], "pmtu": 0}
        found = tcp({"far": {**blind, "transport": "tcp"}}, {"far": blind})
        assert {name: one.status for name, one in found.items()} == {"tcp": UNSEEN}
        assert "the far end does not tell" in found["tcp"].detail
        near = {**blind, "peer": END["peer"], "local": END["local"]}
        assert list(tcp({"near": near, "far": blind}, {"near": near, "far": blind})) == ["tcp"]
        looks = between_tcp.filled({**PLAIN, "far": blind})
        assert (looks["far"]["pmtu"], looks["near"]) == (1500, END)
        assert between_tcp.largest(looks["near"], looks["far"]) == between_tcp.largest(END, FAR)
    # a translator is seen all the same
    assert set(tcp({"far": {**blind, "peer": "198.51.100.7:1024"}})) == {"nat here", "tcp"}


def test_half_a_window_is_no_clamp():
    end = {"mss": [32_768, 65_483], "pmtu": 65_535}
    assert tcp({"near": {**END, **end}, "far": {**FAR, **end}}) == {}, "over loopback"
    clamped = {
        "near": {**END, "mss": [8_000, 8_948], "pmtu": 9_000},
        "far": {**FAR, "mss": [8_948, 8_948], "pmtu": 9_000},
    }
    assert tcp(clamped)["segments"].status == NOTED


def test_timestamps_that_a_middlebox_rewrites_are_found_in_either_direction_also_when_they_wrap():
    for timestamps, way in (([900_000_000, 5_000], "in"), ([70_001, 2**31], "out")):
        found = tcp({"timestamps": timestamps})["timestamps"]
        assert found.status == FAULT
        assert f"direction {way}" in found.detail
    wrapped = {"near": {**END, "timestamp": 3}, "timestamps": [70_000, 2**32 - 2]}
    assert tcp(wrapped) == {}
    assert tcp({"timestamps": None}) == {}, "nobody may look at segments"
    old = {"far": {**FAR, "timestamp": None}, "timestamps": [900_000_000, 5_000]}
    assert tcp(old) == {}, "the far end is too old to say what it sent"


def test_a_join_that_fails_is_the_networks_fault_only_where_the_far_end_accepts_any():
    silent = {"join": {"outcome": "silent", "reason": "no answer"}}
    assert tcp(multi=silent)["mptcp join"].status == FAULT
    for joins in (0, None):
        assert tcp({"far": {**FAR, "joins": joins}}, silent)["mptcp join"].status == NOTED
    assert tcp(multi={"join": {"outcome": "untried", "reason": "not permitted"}}) == {}


def test_a_connection_that_asks_for_ecn():
    def status(outcome, able=31):
        seen = {"outcome": outcome, "reason": "not permitted"}
        return between_tcp.notification("p", seen, {**FAR, "able": able}).status

    told = [status(word) for word in ("agreed", "declined", "refused", "silent", "untried")]
    assert told == [OK, NOTED, FAULT, FAULT, UNSEEN]
    assert (
        "the far end has ECN switched off"
        in between_tcp.notification("p", {"outcome": "declined"}, {"able": 23}).detail
    )


def test_what_is_too_large_is_a_fault_only_where_nobody_says_so_and_tcp_runs_into_it():
    seen = {**ECHO, "out": {**WAY, "passes": 1400}}

    def told(before, after):
        [one] = [f for f in between_udp.packets("p", seen, before, after) if f.name == "mtu"]
        return one.status, "1400 B" in one.detail

    assert told(PLAIN, PLAIN) == (FAULT, True)
    knows = {**PLAIN, "near": {**END, "pmtu": 1400}}
    assert told(PLAIN, knows) == (NOTED, True)
    clamped = {**PLAIN, "near": {**END, "mss": [1348, 1448]}}
    assert told(clamped, clamped) == (NOTED, True)
    assert told(PLAIN, {"outcome": "lost", "near": None}) == (FAULT, True)
    none = {**ECHO, "plain": 0, "small": {"asked": 32, "answered": 8}}
    assert {one.name: one.status for one in between_udp.packets("p", none, PLAIN, PLAIN)} == {
        "loss": NOTED,
        "packets": UNSEEN,
    }


def test_marks_that_come_to_some_packets_are_no_rewriting():
    seen = copy.deepcopy(ECHO)
    [ect] = [mark for mark in seen["out"]["marks"] if mark["sent"] == 2]
    ect["came"] = [3, 2, 3]  # congestion
    assert all(one.status == OK for one in between_udp.packets("p", seen, PLAIN, PLAIN))
    ect["came"] = [3, 3, 3]
    [found] = [one for one in between_udp.packets("p", seen, PLAIN, PLAIN) if one.status != OK]
    assert (found.name, found.status) == ("ecn", NOTED)
    assert "ECT(0) becomes CE" in found.detail


def test_clocks_apart_drifting_and_set_meanwhile():
    def told(clock=None, after=None):
        seen = {**ECHO, "clock": {**CLOCK, "synchronised": False, **(clock or {})}}
        return [(one.status, one.detail) for one in between_udp.clocks("p", seen, PLAIN, after or PLAIN)]

    [(status, detail)] = told({"offset_s": -3600.0, "error_s": 0.01})
    assert status == NOTED
    assert "behind" in detail
    assert told({"offset_s": 0.05, "error_s": 0.01})[0][0] == OK
    [(status, detail)] = told({"offset_s": 0.0, "error_s": 1e-5, "skew_ppm": 350.0})
    assert (status, "350 ppm faster" in detail) == (NOTED, True)
    assert told({"offset_s": None, "error_s": None}) == [], "no exchange, no word"
    asked = [103 * SECOND - 1_000_000, 103 * SECOND + 1_000_000]
    even = {**PLAIN, "far": {**FAR, "time_of_day": 103 * SECOND}, "asked": asked}
    assert told(after=even)[0][0] == OK
    for step in (0.5, -0.5):
        moved = {**even, "far": {**FAR, "time_of_day": round((103 + step) * SECOND)}}
        assert told(after=moved)[0][0] == FAULT
    slewed = {**even, "far": {**FAR, "time_of_day": 103 * SECOND + 4_000_000}}
    assert told(after=slewed)[0][0] == OK
    assert told(after={"outcome": "lost"})[0][0] == OK


def test_an_older_far_end_is_said_to_be_one():
    plain = {"outcome": "old", "near": None, "far": None}
    [found] = between_tcp.judge("p", plain, None)
    assert (found.name, found.status) == ("far end", UNSEEN)
    for outcome, status in (
        ("answered", OK),
        ("silent", FAULT),
        ("lost", FAULT),
        ("busy", UNSEEN),
        ("refused", UNSEEN),
    ):
        assert between_udp.port("p", 5275, {"outcome": outcome, "message": "too many"}).status == status


FALLEN = {"near": {**END, "transport": "fallen"}, "far": {**FAR, "transport": "tcp"}}
HALF = Loss(32, 16)


def test_mptcp_that_is_dropped_held_back_by_this_kernel_and_taken_out_are_told_apart():
    taken = tcp(multi=FALLEN)["mptcp"]
    assert (taken.status, "takes MPTCP's options out" in taken.detail) == (FAULT, True)
    dropped = tcp(multi=FALLEN, fallback=Fallback(dropped=True, timeout_s=600))["mptcp"]
    assert (dropped.status, "SYNs with MPTCP are dropped" in dropped.detail) == (FAULT, True)
    held = tcp(multi=FALLEN, fallback=Fallback(held=True, timeout_s=600))["mptcp"]
    assert (held.status, "not tried" in held.detail) == (UNSEEN, True)
    for one in (dropped, held):
        assert "sysctl -w net.mptcp.blackhole_timeout=0 net.mptcp.blackhole_timeout=600" in one.mend
        assert "600 s or longer" in one.detail
        assert "middlebox" not in one.detail
    # other connections of this host count there as well
    assert tcp(fallback=Fallback(dropped=True, held=True)) == {}


def test_the_kernels_counters_tell_what_it_did(tmp_path, monkeypatch):
    file = tmp_path / "netstat"
    monkeypatch.setattr(between_here, "_COUNTERS", file)
    assert between_here.counters() == {}
    file.write_text("TcpExt: A\nTcpExt: 1\nMPTcpExt: MPCapableSYNTXDrop MPCapableSYNTXDisabled\nMPTcpExt: 2 7\n")
    before = between_here.counters()
    assert before == {"MPCapableSYNTXDrop": 2, "MPCapableSYNTXDisabled": 7}
    held = between_here.fallback(before, {**before, "MPCapableSYNTXDisabled": 8})
    assert (held.dropped, held.held) == (False, True)
    assert between_here.fallback({}, {}).held is False, "an older kernel"


def test_silence_that_loss_explains_is_no_filter():
    for one in (
        *tcp(multi={"outcome": "silent"}, loss=HALF, tries=3).values(),
        *tcp(multi={"join": {"outcome": "silent", "reason": None}}, loss=HALF, tries=3).values(),
        *tcp(multi=FALLEN, fallback=Fallback(dropped=True), loss=HALF).values(),
        between_tcp.notification("p", {"outcome": "silent"}, FAR, HALF, 4),
    ):
        assert (one.status, "16 of 32 small packets" in one.detail) == (UNSEEN, True), one
    assert tcp(multi={"outcome": "refused"}, loss=HALF, tries=3)["mptcp"].status == FAULT, "no silence"
    seen = copy.deepcopy({**ECHO, "small": {"asked": 32, "answered": 16}})
    seen["out"] |= {"passes": 900, "asked": 8}
    seen["in"]["marks"][0] |= {"asked": 8, "came": []}
    found = {one.name: one for one in between_udp.packets("p", seen, PLAIN, PLAIN)}
    assert {name: one.status for name, one in found.items()} == {
        "loss": NOTED,
        "mtu": UNSEEN,
        "ecn": UNSEEN,
        "dscp": OK,
    }
    assert found["loss"].detail == "16 of 32 small packets or their answers were lost"
    # without loss, and with little, the same silence is a filter's
    for answered in (32, 31):
        seen["small"]["answered"] = answered
        found = {one.name: one.status for one in between_udp.packets("p", seen, PLAIN, PLAIN)}
        assert (found["mtu"], found["ecn"]) == (FAULT, FAULT)


def test_loss_explains_what_is_likely_by_chance():
    assert not Loss().explains(1)
    assert not Loss(33, 33).explains(1)
    assert Loss(33, 0).explains(1000)
    assert [Loss(33, 32).explains(tries) for tries in (1, 2, 8)] == [True, False, False]
    assert [syns(patience_s) for patience_s in (0.2, 1.0, 4.0, 8.0)] == [1, 2, 3, 4]


def test_a_path_mtu_that_the_kernel_keeps_is_said_to_be_no_measurement():
    kept = copy.deepcopy({**ECHO, "out": {**WAY, "largest": 1380, "passes": 1380}})
    [found] = [one for one in between_udp.packets("p", kept, PLAIN, PLAIN, 1380) if one.name == "mtu"]
    assert (found.status, "larger packets were not tried" in found.detail) == (NOTED, True)
    assert "ip route flush cache" in found.mend
    smaller = copy.deepcopy(kept)
    smaller["out"]["passes"] = 1300
    assert FAULT in [one.status for one in between_udp.packets("p", smaller, PLAIN, PLAIN, 1380) if one.name == "mtu"]
    there = {**PLAIN, "far": {**FAR, "pmtu": 1380}}
    [found] = [one for one in between_udp.packets("p", ECHO, there, there) if one.name == "mtu"]
    assert (found.status, "the far end's kernel sends none larger" in found.detail) == (OK, True)


def test_what_blocks_a_port_is_told_as_far_as_it_is_known():
    became, mend = between_tcp.blocked("silent", 5275, None)
    assert "nothing answers" in became
    assert "TCP port 5275" in mend
    said = "192.0.2.9 says: administratively prohibited"
    became, mend = between_tcp.blocked("unreachable", 5275, said)
    assert (became, "is up" in mend) == (f"is unreachable: {said}", False)
    assert "is up" in between_tcp.blocked("unreachable", 5275, "192.0.2.9 says: host unreachable")[1]
    assert "nobody listens there" in between_tcp.blocked("refused", 5275, None)[0]
    udp = between_udp.port("p", 5275, {"outcome": "silent"}, said)
    assert (udp.status, "is rejected (192.0.2.9" in udp.detail, "UDP port 5275" in udp.mend) == (FAULT, True, True)
