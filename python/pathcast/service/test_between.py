"""What is said of what both ends see, where no router can be made to do it, or no clock."""

from __future__ import annotations

import copy
from typing import Any

from pathcast.service import between_tcp, between_udp
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
    "marks": [{"sent": c, "asked": 3, "came": [c] * 3} for c in between_udp.CLASSES],
}
CLOCK = {"synchronised": True, "offset_s": 0.0, "error_s": 0.0, "skew_ppm": 0.0}
ECHO: dict[str, Any] = {"outcome": "answered", "plain": 1, "out": WAY, "in": copy.deepcopy(WAY), "clock": CLOCK}


def tcp(plain=None, multi=None):
    found = between_tcp.judge("p", {**PLAIN, **(plain or {})}, {**MULTI, **(multi or {})})
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
    assert [one.status for one in between_udp.packets("p", {**ECHO, "plain": 0}, PLAIN, PLAIN)] == [UNSEEN]


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
        assert between_udp.port("p", {"outcome": outcome, "message": "too many"}).status == status
