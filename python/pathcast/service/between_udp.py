"""What packets of several sizes and traffic classes say of what lies between, and what the clocks at both ends do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathcast.service.between_loss import AGAIN, Loss
from pathcast.service.between_tcp import announced, header
from pathcast.service.findings import FAULT, NOTED, OK, UNSEEN, Finding
from pathcast.units import seconds

# congestion marks (RFC 3168, RFC 9331) and code points (RFC 2474, 3246, 8622) by their traffic classes
_ECN = {2: "ECT(0)", 1: "ECT(1)", 3: "CE"}
_DSCP = {46 << 2: "EF", 1 << 2: "LE", 8 << 2: "CS1"}
CLASSES = (*_ECN, *_DSCP)
_WAYS = ("out", "in")
# TCP timestamps in every segment [byte]
_STAMPS = 12
# what clocks may be apart, and drift, before it is worth a word
_OFF_S, _DRIFT_PPM = 0.1, 200.0
# two readings of one clock: steps below this are none [s], and a clock that is slewed goes off by so much
_STEP_S, _SLEWED = 0.005, 1e-3


def port(path: str, number: int, seen: Mapping[str, Any], icmp: str | None = None) -> Finding:
    """Whether the UDP port of measurements answered. icmp: what the network said of it."""
    outcome, mend = seen["outcome"], f"open or forward UDP port {number}, as TCP port {number} is"
    if outcome in ("silent", "lost"):
        word = "is silent" if outcome == "silent" else "falls silent"
        became = word if icmp is None else f"is rejected ({icmp})"
        detail = f"UDP port {number} of measurements {became}, the TCP port is open"
        return Finding(path, "udp port", FAULT, detail, mend)
    if outcome == "answered":
        return Finding(path, "udp port", OK, "open")
    why = {"busy": "others measure there all the time", "refused": seen["message"], "other-version": seen["message"]}
    return Finding(
        path, "udp port", UNSEEN, f"open, and what arrives of packets is not told: {why[outcome]}", "try again"
    )


def packets(
    path: str, seen: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], kept: int | None = None
) -> list[Finding]:
    """What became of sizes and marks, and what was lost.

    before, after: looks at TCP, with what the kernels believe of the path. kept: the path MTU that this kernel kept
    before from a router's word [IP bytes]; None: it kept none.
    """
    loss = Loss.of(seen)
    lost = [loss.finding(path)] if loss.asked else []
    if not seen["plain"]:
        detail = "no question what arrives of a packet was answered"
        return [*lost, Finding(path, "packets", UNSEEN, detail, "try again")]
    return [
        *lost,
        *_sizes(path, seen, before, after, kept),
        *_marks(path, "ecn", seen, _ECN),
        *_marks(path, "dscp", seen, _DSCP),
    ]


def _sizes(
    path: str, seen: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], kept: int | None
) -> list[Finding]:
    found, loss = [], Loss.of(seen)
    if kept is not None and kept <= seen["out"]["largest"] == seen["out"]["passes"]:
        detail = f"direction out: the path takes {kept} B, as a router said before; this kernel keeps that for some "
        detail += "10 minutes, and sends nothing larger: larger packets were not tried"
        mend = "to try larger ones, forget it (`ip route flush cache`; `ip -6`) and look again"
        found.append(Finding(path, "mtu", NOTED, detail, mend))
    for way, end in zip(_WAYS, ("near", "far"), strict=True):
        largest, passes = seen[way]["largest"], seen[way]["passes"]
        if passes is None or passes >= largest:
            continue
        tcp, believed = before[end], after[end]["pmtu"] if after["outcome"] == "answered" else largest
        segment = tcp["mss"][0] + header(tcp) + (_STAMPS if tcp["options"] & 1 else 0)
        detail = f"direction {way}: packets of up to {passes} B pass, those of {largest} B vanish"
        if believed <= passes:
            found.append(Finding(path, "mtu", NOTED, f"direction {way}: the path takes {passes} B, as routers say"))
        elif loss.explains(seen[way]["asked"]):
            detail = f"direction {way}: packets of {largest} B do not come{loss.why}"
            found.append(Finding(path, "mtu", UNSEEN, detail, AGAIN))
        elif segment <= passes:
            detail += "; TCP's segments are clamped to fit, other packets are not"
            found.append(Finding(path, "mtu", NOTED, detail, f"give the route at that end an MTU of {passes}"))
        else:
            mend = (
                "let ICMP pass that says a packet is too large, clamp TCP's segments on the way, or give the route at "
            )
            mend += f"that end an MTU of {passes}: ip route change … mtu {passes}"
            detail += ", and no router says so: TCP stalls on what is large (a black hole)"
            found.append(Finding(path, "mtu", FAULT, detail, mend))
    sizes = " and ".join(f"{seen[way]['passes']} B {way}" for way in _WAYS)
    return found or [Finding(path, "mtu", OK, f"packets of {sizes} pass{_untried(before)}")]


def _untried(before: Mapping[str, Any]) -> str:
    """Of packets that this end would take and the far end does not send."""
    near, far = before["near"], before["far"]
    if far["pmtu"] >= announced(near) + header(near):
        return ""
    return "; the far end's kernel sends none larger (its device's MTU, or a path MTU that it keeps)"


def _marks(path: str, name: str, seen: Mapping[str, Any], known: Mapping[int, str]) -> list[Finding]:
    found, loss = [], Loss.of(seen)
    for way in _WAYS:
        lost: list[str] = []
        unseen: list[str] = []
        changed: dict[str, list[str]] = {}
        for mark in seen[way]["marks"]:
            word = known.get(mark["sent"])
            if word is None or mark["sent"] in mark["came"]:
                continue
            if mark["came"]:
                changed.setdefault(_word(name, mark["came"][0]), []).append(word)
            elif loss.explains(mark["asked"]):
                unseen.append(word)
            else:
                lost.append(word)
        if unseen:
            detail = f"direction {way}: none of the packets marked {_list(unseen)} came{loss.why}"
            found.append(Finding(path, name, UNSEEN, detail, AGAIN))
        if lost:
            detail = f"direction {way}: packets marked {_list(lost)} vanish, unmarked ones pass"
            kind = "congestion mark" if name == "ecn" else "code point"
            mend = f"let a firewall on the way pass packets with that {kind}"
            found.append(Finding(path, name, FAULT, detail, mend))
        if changed:
            became = "; ".join(f"{_list(words)} become{'s' * (len(words) == 1)} {to}" for to, words in changed.items())
            found.append(Finding(path, name, NOTED, f"direction {way}: a router rewrites marks: {became}", _CARE[name]))
    return found or [Finding(path, name, OK, f"{_list(list(known.values()))} arrive as they were sent, both ways")]


_CARE = {
    "ecn": "none for pathcast; who relies on ECN looks for a router that clears the whole traffic class",
    "dscp": "none, unless the provider has promised to keep code points",
}


def _word(name: str, traffic_class: int) -> str:
    if name == "ecn":
        return _ECN.get(traffic_class & 3, "unmarked")
    return _DSCP.get(traffic_class & ~3, f"code point {traffic_class >> 2}" if traffic_class >> 2 else "the default")


def _list(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]


def clocks(path: str, seen: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Finding]:
    """What the clocks do: apart, drifting, or set between the looks before and after."""
    found, clock = [], seen["clock"]
    if step := _step(before, after):
        detail = f"a clock was set by {seconds(abs(step))} while this ran"
        mend = "let it be slewed (chrony's makestep at the start only): measurements and plans run by it"
        found.append(Finding(path, "clock", FAULT, detail, mend))
    offset, error, skew = clock["offset_s"], clock["error_s"], clock["skew_ppm"]
    if offset is None or error is None:
        return found
    if abs(offset) - error > _OFF_S:
        which = "ahead of" if offset > 0 else "behind"
        detail = f"the far end's clock is {seconds(abs(offset))} {which} this one (within {seconds(error)})"
        found.append(Finding(path, "clock", NOTED, detail, "run chrony or ptp4l at both ends"))
    if skew is not None and abs(skew) > _DRIFT_PPM:
        detail = f"the far end's clock goes {abs(skew):.0f} ppm {'faster' if skew > 0 else 'slower'} than this one"
        found.append(
            Finding(path, "clock", NOTED, detail, "one of them is being slewed, or is broken: see `chronyc tracking`")
        )
    drift = "" if skew is None else f", and drift by {abs(skew):.0f} ppm"
    said = f"apart by {seconds(abs(offset))} (within {seconds(error)}){drift}"
    return found or [Finding(path, "clock", OK, "both ends agree" if clock["synchronised"] else said)]


def _step(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """By how much the clocks' difference changed between two looks [s], beyond what the round trips leave open."""
    bounds: list[tuple[int, int]] = []
    for one in (before, after):
        if one["outcome"] != "answered" or one["far"]["time_of_day"] is None:
            return None
        asked, answered = one["asked"]
        bounds.append((one["far"]["time_of_day"] - answered, one["far"]["time_of_day"] - asked))
    (low, high), (later_low, later_high) = bounds
    room = _STEP_S * 1e9 + _SLEWED * abs(after["asked"][0] - before["asked"][0])
    if later_low > high + room:
        return (later_low - high) / 1e9
    return (later_high - low) / 1e9 if later_high < low - room else None
