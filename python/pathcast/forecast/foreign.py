"""Acts that no world's verb has done: what a program sent under `pathcast run`, what a STAMP reflector answered."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from pathcast.forecast.record import Recorder
from pathcast.history.identity import PathKey, remote_of_address
from pathcast.lines import config
from pathcast.lines.ids import line_ids
from pathcast.overhead import ip_bytes
from pathcast.worlds.measurement import Clock, Delay, Direction, Loss, PathMeasured, Value

_UNKNOWN = Value(None, why="not-looked-for")
# a program that was done sooner is not to be slowed by a database: what it sent goes there with the next act
_SHORT_S = 5.0


def ran(recorder: Recorder, report: Mapping[str, Any], job: str | None = None) -> str | None:
    """Keeps what a program sent and received: its key; None where it had no connections that were counted. job: whose
    run it was.

    Of the program nothing but its name: what its arguments say may be secret.
    """
    if not report["counted"] or not report["paths"]:
        return None
    program = PurePath(report["command"][0]).name
    act = recorder.act("host", {"program": program, "status": report["status"]}, report["elapsed_s"])
    out = report["bytes_sent"] >= report["bytes_received"]
    there, back = ("sent", "received") if out else ("received", "sent")
    about = {name: value for name, value in report.items() if name != "command"}
    whole = {
        **about,
        "bytes": report[f"bytes_{there}"],
        # the time that these bytes took, be it that the program ended before the last of them was through
        "elapsed_s": report["acked_s"] if out else report["elapsed_s"],
        "throughput_bps": report[f"{there}_bps"],
        "protocol": "mptcp" if report["mptcp_connections"] else "tcp",
    }
    # addresses that only were tried are no part of it
    paths = [path for path in report["paths"] if path["bytes_sent"] or path["bytes_received"]] or report["paths"]
    lines = _lines(tuple(path["local"] for path in paths))
    names = {line.id: line.name for line in config.load().values()}
    over = []
    used: dict[str, tuple[int, int]] = {}
    for path in paths:
        key = PathKey(lines[path["local"]], remote_of_address(path["remote"]), path["local"], path["remote"])
        again = path["bytes_retransmitted"]
        over.append((key, names.get(key.line_id), path[f"bytes_{there}"], again if out else 0))
        on, acks = ip_bytes(path[f"bytes_{back}"] + (0 if out else again))
        away, here = used.get(key.line_id, (0, 0))
        used[key.line_id] = (away + acks, here + on) if out else (away + on, here + acks)
    act.used(used, whole["elapsed_s"])
    act.transfer(whole, over, kind="run", direction="out" if out else "in", job=job)
    recorder.keep(act, soon=report["elapsed_s"] >= _SHORT_S)
    return act.id


def answered(recorder: Recorder, found: Mapping[str, Any], elapsed_s: float) -> str:
    """Keeps the delays and the loss to a STAMP reflector: its key."""
    local = _local(found["remote"])
    key = PathKey(_lines((local,))[local], remote_of_address(found["remote"]), local, found["remote"])
    directions = {
        "out": _way(found["out_s"], found["lost_out"], found["sent"]),
        "in": _way(found["in_s"], found["lost_in"], found["sent"] - (found["lost_out"] or 0)),
    }
    trip = found["round_trip_s"]
    rtt = _UNKNOWN if trip is None else Value(trip["minimum"])
    path = PathMeasured("path1", local, found["remote"], directions, rtt)
    document = {"paths": [asdict(path)], "method": "stamp", "effort": None, "elapsed_s": elapsed_s, "notes": []}
    act = recorder.act("host", {"warnings": found["warnings"], "port": found["port"]}, elapsed_s)
    act.measurement(document, {"path1": key}, ("out", "in"))
    recorder.keep(act)
    return act.id


def _way(delay: Mapping[str, Any] | None, lost: int | None, packets: int) -> Direction:
    """One direction as `measure` has it."""
    loss = Loss(0, 0) if lost is None else Loss(lost, packets)
    if delay is None or delay["minimum"] is None:
        unknown = Value(None, why="not-seen")
        return Direction(_UNKNOWN, _UNKNOWN, Delay(unknown, unknown, unknown, None, Clock(False, None)), loss, 0)
    least = delay["minimum"]
    median, p95 = (Value(least + delay[name]) for name in ("median_above_minimum", "p95_above_minimum"))
    known = Delay(Value(least), median, p95, delay["error"], Clock(delay["synchronised"], None))
    return Direction(_UNKNOWN, _UNKNOWN, known, loss, 0)


def _local(remote: str) -> str:
    """The address from which this host reaches another one."""
    family = socket.AF_INET6 if ":" in remote else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.connect((remote, 9))  # sends nothing
        return str(asking.getsockname()[0])


def _lines(locals: tuple[str, ...]) -> dict[str, str]:
    """The lines of addresses of this host, as `pathkeys` tells them."""
    devices = _devices()
    return line_ids([(local, devices.get(local)) for local in locals])


def _devices() -> dict[str, str]:
    """The device of every address of this host, where ip(8) tells it."""
    try:
        shown = subprocess.run(["ip", "-json", "address"], capture_output=True, check=True, timeout=5).stdout
        devices = json.loads(shown)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    return {
        address["local"]: device["ifname"]
        for device in devices
        for address in device.get("addr_info", ())
        if "local" in address
    }
