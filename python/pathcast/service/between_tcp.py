"""What two TCP connections over one path say of what lies between, by what both ends see of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathcast.service.between_here import NO_FALLBACK, Fallback
from pathcast.service.between_loss import AGAIN, NO_LOSS, Loss
from pathcast.service.findings import FAULT, NOTED, OK, UNSEEN, Finding

# as crates/net/src/look.rs has them
_MPTCP, _ECN = 16, 8
_OPTIONS = ((1, "timestamps", "TCP timestamps"), (2, "sack", "SACK"), (4, "window scaling", "window scaling"))
_COST = {
    "timestamps": "round trips are measured less often, and late packets may be taken for new ones",
    "sack": "every burst of losses costs many round trips",
    "window scaling": "at most 64 kB a round trip get through",
}
# TCP timestamps in every segment [byte]
_STAMPS = 12
# no packet is larger [IP bytes]
_LARGEST = 65_535
_HALF_WINDOW = 32_768
# clocks of timestamps tick every millisecond or microsecond; between the two readings lies a round trip
_TICKS = 10_000_000
NEWER = "install this version there, too"
BLOCKED = {
    "refused": "is refused: nobody listens there, or a firewall or a translator says no",
    "silent": "is silent: a firewall drops it, or a translator forwards it to nobody",
    "unreachable": "is unreachable: there is no route, or a router or a firewall says so",
    "lost": "breaks off",
    "foreign": "is answered by something else than this far end",
}
# a kernel gives MPTCP up after so many SYNs with it (net.mptcp.syn_retrans_before_tcp_fallback)
_DROPPED_SYNS = 2


def blocked(outcome: str, port: int, icmp: str | None) -> tuple[str, str]:
    """What became of a TCP connection, where none is answered, and the mend. icmp: what the network said."""
    mend = f"open or forward TCP port {port} to the far end, and let `pathcast serve` run there"
    up = f"see that the host is up and its line stands; {mend}"
    if outcome == "silent":
        why = "is silent: nothing answers, no host and no router (the host or a line is down, there is no way back, "
        return why + "or a firewall drops it)", up
    if icmp is not None:
        return f"is {outcome}: {icmp}", up if outcome == "unreachable" and "prohibited" not in icmp else mend
    return BLOCKED[outcome], mend


def judge(
    path: str,
    plain: Mapping[str, Any],
    multi: Mapping[str, Any] | None,
    fallback: Fallback = NO_FALLBACK,
    loss: Loss = NO_LOSS,
    tries: int = 1,
) -> list[Finding]:
    """What the two connections of one answered path say. multi: None, where this kernel has no MPTCP.

    fallback: what the kernel did to the second one; loss: of the path; tries: SYNs that are sent before it is silence.
    """
    if plain["outcome"] == "old":
        detail = "it is of an older version and does not say what it sees of TCP"
        return [Finding(path, "far end", UNSEEN, detail, NEWER)]
    near, far = plain["near"], plain["far"]
    open_, between = Finding(path, "tcp port", OK, f"open, at {near['peer']}"), _translated(path, near, far)
    blind = [where for where, end in (("this host", near), ("the far end", far)) if not _tells(end)]
    if blind:
        detail = f"the system of {' and of '.join(blind)} does not tell what became of TCP's options: {_BLIND}"
        return [open_, *between, Finding(path, "tcp", UNSEEN, detail, "look from and to hosts that are not emulated")]
    return [
        open_,
        *between,
        *_options(path, near, far),
        *_altered(path, plain),
        _segments(path, near, far),
        _multipath(path, multi, far["joins"], fallback, loss, tries),
    ]


# qemu passes no more than four bytes of TCP_INFO, and of MPTCP_INFO nothing
_BLIND = "as under an emulator of another processor; options, segments and MPTCP cannot be judged"


def filled(look: Mapping[str, Any]) -> Mapping[str, Any]:
    """A look whose end that is told nothing has the sizes of the other one: what packets are to be tried with."""
    if look["outcome"] != "answered":
        return look
    near, far = look["near"], look["far"]
    sizes = {name: (near if _tells(near) else far)[name] for name in ("mss", "pmtu", "options")}
    return {
        **look,
        **{which: end if _tells(end) else {**end, **sizes} for which, end in (("near", near), ("far", far))},
    }


def _tells(end: Mapping[str, Any]) -> bool:
    """Whether an end was told of its connection by its kernel: no open one is without a largest segment."""
    return bool(end["mss"][0])


def notification(
    path: str, seen: Mapping[str, Any], far: Mapping[str, Any], loss: Loss = NO_LOSS, tries: int = 1
) -> Finding:
    """What became of a connection that asks for explicit congestion notification. far: what the far end can.

    loss: of the path; tries: SYNs that were sent.
    """
    if seen["outcome"] == "untried":
        return Finding(path, "tcp ecn", UNSEEN, f"segments cannot be made here ({seen['reason']})", "run as root")
    if seen["outcome"] == "agreed":
        return Finding(path, "tcp ecn", OK, "agreed upon")
    if seen["outcome"] == "declined" and not far["able"] & _ECN:
        return Finding(path, "tcp ecn", NOTED, "the far end has ECN switched off", "sysctl net.ipv4.tcp_ecn=2 there")
    if seen["outcome"] == "declined":
        detail = "a middlebox takes the request for ECN out: congestion is told by losses only"
        return Finding(path, "tcp ecn", NOTED, detail, "look for a firewall that clears ECE and CWR")
    if seen["outcome"] == "silent" and loss.explains(tries):
        return _doubt(path, "tcp ecn", "SYNs that ask for ECN have", loss)
    detail = f"a TCP connection that asks for ECN {BLOCKED[seen['outcome']]}, one that does not is answered"
    return Finding(path, "tcp ecn", FAULT, detail, "let a firewall on the way pass SYNs with ECE and CWR")


def _altered(path: str, plain: Mapping[str, Any]) -> list[Finding]:
    near, far = plain["near"], plain["far"]
    if plain["timestamps"] is None or not near["options"] & far["options"] & 1:
        return []
    for way, came, said in zip(("in", "out"), plain["timestamps"], (far["timestamp"], near["timestamp"]), strict=True):
        if said is not None and _TICKS < (came - said) % 2**32 < 2**32 - _TICKS:
            detail = f"direction {way}: a middlebox rewrites TCP timestamps: {said} was sent, {came} arrives"
            mend = "take such a firewall's timestamp randomisation off, or go around it"
            return [Finding(path, "timestamps", FAULT, detail, mend)]
    return []


def _translated(path: str, near: Mapping[str, Any], far: Mapping[str, Any]) -> list[Finding]:
    found = []
    if far["peer"] != near["local"]:
        detail = f"a translator before this host: the far end sees {near['local']} as {far['peer']}"
        found.append(Finding(path, "nat here", NOTED, detail, "none is needed: this end opens every connection"))
    if far["local"] != near["peer"]:
        detail = f"a translator before the far end: {near['peer']} leads to {far['local']}"
        mend = f"forward TCP and UDP of {near['peer']} to {far['local']}; name the outer address there with --announce"
        found.append(Finding(path, "nat there", NOTED, detail, mend))
    return found or [Finding(path, "nat", OK, "both ends see the same addresses and ports")]


def _options(path: str, near: Mapping[str, Any], far: Mapping[str, Any]) -> list[Finding]:
    found = []
    able = near["able"] & far["able"]
    for bit, name, words in _OPTIONS:
        here, there = bool(near["options"] & bit), bool(far["options"] & bit)
        if not able & bit:
            end = "this host" if not near["able"] & bit else "the far end"
            found.append(
                Finding(path, name, NOTED, f"{end} has {words} switched off", f"sysctl net.ipv4.tcp_* at {end}")
            )
        elif here and there:
            found.append(Finding(path, name, OK, "agreed upon by both ends"))
        else:
            way = "out of SYN/ACKs, on the way back" if there else "out of SYNs, on the way there"
            detail = f"a middlebox takes {words} {way}: {_COST[name]}"
            found.append(Finding(path, name, FAULT, detail, "look for a firewall that normalises TCP on the way"))
    scaled = near["options"] & far["options"] & 4
    if scaled and (near["scales"][0], near["scales"][1]) != (far["scales"][1], far["scales"][0]):
        detail = f"the ends have unlike scales of windows: {near['scales']} here, {far['scales']} there"
        mend = "a proxy ends TCP on the way, or a middlebox rewrites options: go around it"
        found.append(Finding(path, "proxy", FAULT, detail, mend))
    return found


def header(end: Mapping[str, Any]) -> int:
    """IP and TCP without options [byte]."""
    return 60 if ":" in end["local"].rpartition(":")[0] else 40


def announced(end: Mapping[str, Any]) -> int:
    """The largest segment that an end takes [byte]."""
    # once timestamps are agreed upon, Linux takes their room off what it says that it has announced
    return int(end["mss"][1]) + (_STAMPS if end["options"] & 1 else 0)


def largest(sender: Mapping[str, Any], taker: Mapping[str, Any]) -> int:
    """The largest packet that the one would send and the other says that it takes [IP bytes]."""
    return min(int(sender["pmtu"]), announced(taker) + header(taker), _LARGEST)


def _segments(path: str, near: Mapping[str, Any], far: Mapping[str, Any]) -> Finding:
    for sender, taker, way in ((near, far, "out"), (far, near, "in")):
        due = min(announced(taker), sender["pmtu"] - header(sender)) - (_STAMPS if sender["options"] & 1 else 0)
        # Linux sends no segment of more than half a window, and the first window is of 64 kB
        if 0 < sender["mss"][0] < min(due, _HALF_WINDOW):
            detail = f"direction {way}: segments of {sender['mss'][0]} B, and {due} B would do: a router clamps them"
            return Finding(path, "segments", NOTED, detail, "none, if a tunnel is on the way: it is for its sake")
    return Finding(path, "segments", OK, f"{near['mss'][0]} B out, {far['mss'][0]} B in, as announced")


def _doubt(path: str, name: str, what: str, loss: Loss) -> Finding:
    """Of silence that the path's loss explains."""
    return Finding(path, name, UNSEEN, f"{what} no answer{loss.why}", AGAIN)


def _multipath(
    path: str, multi: Mapping[str, Any] | None, joins: int | None, fallback: Fallback, loss: Loss, tries: int
) -> Finding:
    if multi is None:
        return Finding(path, "mptcp", UNSEEN, "this kernel makes no MPTCP sockets", "sysctl -w net.mptcp.enabled=1")
    if multi["outcome"] != "answered":
        if multi["outcome"] == "silent" and loss.explains(tries):
            return _doubt(path, "mptcp", "SYNs with MPTCP have", loss)
        detail = f"an MPTCP connection {BLOCKED.get(multi['outcome'], multi['outcome'])}, a TCP one is answered"
        return Finding(path, "mptcp", FAULT, detail, "let a firewall on the way pass TCP option 30")
    near, far = multi["near"], multi["far"]
    if not far["able"] & _MPTCP:
        return Finding(path, "mptcp", NOTED, "the far end has no MPTCP", "sysctl -w net.mptcp.enabled=1 there")
    if near["transport"] == far["transport"] == "mptcp":
        return _join(path, multi["join"], joins, loss, tries)
    if fallback.dropped:
        return _dropped(path, fallback, loss)
    if fallback.held:
        detail = "not tried: this kernel makes plain TCP of MPTCP for now, since SYNs with MPTCP had no answer "
        detail += f"before, here or elsewhere (MPTCP blackhole detection, for {fallback.timeout_s} s or longer)"
        return Finding(path, "mptcp", UNSEEN, detail, f"let it try again, and look again: {fallback.clear}")
    detail = "a middlebox takes MPTCP's options out: transfers fall back to plain TCP over one path"
    return Finding(path, "mptcp", FAULT, detail, "let it pass TCP option 30, or begin with another path")


def _dropped(path: str, fallback: Fallback, loss: Loss) -> Finding:
    """SYNs with MPTCP had no answer, and then a plain one had."""
    after = (
        f"; this host's kernel now makes plain TCP of MPTCP for {fallback.timeout_s} s or longer (blackhole detection)"
    )
    clear = f"then let the kernel try again: {fallback.clear}"
    if loss.explains(_DROPPED_SYNS):
        doubt = _doubt(path, "mptcp", "SYNs with MPTCP had", loss)
        return Finding(path, "mptcp", UNSEEN, doubt.detail + after, f"{AGAIN}; before, {clear.removeprefix('then ')}")
    detail = f"SYNs with MPTCP are dropped, plain ones are answered{after}"
    return Finding(path, "mptcp", FAULT, detail, f"let a firewall on the way pass TCP option 30 in SYNs; {clear}")


def _join(path: str, join: Mapping[str, Any], joins: int | None, loss: Loss, tries: int) -> Finding:
    """MPTCP is answered; whether a further subflow is. joins: how many the far end accepts, if it says so."""
    if join["outcome"] == "joined":
        return Finding(path, "mptcp", OK, "answered, kept with data, and a further subflow joined")
    if join["outcome"] == "untried":
        detail = f"answered, and kept with data; a further subflow was not tried ({join['reason']})"
        return Finding(path, "mptcp", OK, detail)
    if not joins:
        detail = "answered, and a further subflow is not: the far end accepts none, or is too old to say how many"
        return Finding(path, "mptcp join", NOTED, detail, "ip mptcp limits set subflows 8, at the far end")
    if join["outcome"] == "silent" and loss.explains(tries):
        return _doubt(path, "mptcp join", "MPTCP is answered, and SYNs of a further subflow (MP_JOIN) have", loss)
    became = "has no answer" if join["outcome"] == "silent" else f"is refused ({join['reason'] or 'without a reason'})"
    detail = f"MPTCP is answered, and a further subflow (MP_JOIN) {became}: transfers use one path"
    mend = "let a firewall on the way pass TCP option 30 in SYNs of further connections, too"
    return Finding(path, "mptcp join", FAULT, detail, mend)
