"""The rows of one act - a measurement, a transfer, a forecast, an event - with all that they refer to."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pathcast.history.clock import Moment
from pathcast.history.identity import PathKey, digest, fresh, host_id
from pathcast.overhead import ip_bytes
from pathcast.zone import zone

DIRECTIONS = ("out", "in")
_HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class Origin:
    """Where an act happened. target, command: labels. circumstances: plain data."""

    world: str
    target: str | None = None
    command: str | None = None
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    host_id: str = field(default_factory=host_id)
    host_name: str = field(default_factory=socket.gethostname)


class Act:
    """Rows by table, filled by the methods, each of which gives the key of what it has added."""

    def __init__(self, at: Moment, origin: Origin) -> None:
        self.at, self.origin = at, origin
        self.id = fresh(at)
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._once("host", {"id": origin.host_id, "name": origin.host_name, "added_us": at.utc_us})

    def line(self, line_id: str) -> str:
        """A line of this host."""
        id = digest("line", self.origin.host_id, line_id)
        row = {"id": id, "host_id": self.origin.host_id, "line_id": line_id, "added_us": self.at.utc_us}
        return self._once("line", {**row, "retired_us": None})

    def path(self, key: PathKey, direction: str = "out") -> str:
        """A direction of a path."""
        line = self.line(key.line_id)
        row = {"line": line, "remote_id": key.remote_id, "local": key.local, "remote": key.remote}
        id = digest("path", line, key.remote_id, key.local, key.remote, direction)
        about = {"direction": direction, "added_us": self.at.utc_us, "retired_us": None}
        return self._once("path", {"id": id, **row, **about})

    def measurement(
        self,
        found: Mapping[str, Any],
        keys: Mapping[str, PathKey],
        directions: Sequence[str],
        valid: bool | None = None,
    ) -> str:
        """A measurement's document (`pathcast.measure/2`); keys: its paths by name. directions: that were asked for."""
        for path in found["paths"]:
            key = keys[path["name"]]
            pair = {name: path.get(name) for name in ("rtt_s", "shared_with", "down")}
            pair["notes"] = found.get("notes")
            for direction in path["directions"] or directions:
                knowledge = path["directions"].get(direction)
                row = {
                    "id": digest("measurement", self.id, path["name"], direction),
                    "act": self.id,
                    **self._common(),
                    "path": self.path(key, direction),
                    "name": path["name"],
                    "method": found["method"],
                    "effort": found.get("effort"),
                    "elapsed_s": found["elapsed_s"],
                    "probe_bytes": (knowledge or {}).get("bytes") or 0,
                    "down": path.get("down") is not None,
                    "valid": valid,
                    **_graphed(knowledge or {}, path),
                    "knowledge": knowledge,
                    "pair": pair,
                }
                self._add("measurement", row)
                away, here = (row["probe_bytes"], 0) if direction == "out" else (0, row["probe_bytes"])
                self.usage(key.line_id, away, here, elapsed_s=found["elapsed_s"])
        return self.id

    def transfer(
        self,
        report: Mapping[str, Any],
        over: Sequence[tuple[PathKey, str | None, int, int]],
        kind: str = "transfer",
        direction: str = "out",
        valid: bool | None = None,
        job: str | None = None,
        forecast_id: str | None = None,
    ) -> str:
        """A transfer's report, or that of a run. over: of every path its key, name, payload carried and sent again."""
        row = {
            "id": self.id,
            **self._common(),
            "kind": kind,
            "direction": direction,
            "bytes": report["bytes"],
            "elapsed_s": report["elapsed_s"],
            "throughput_bps": report.get("throughput_bps"),
            "control": report.get("control"),
            "protocol": report.get("protocol"),
            "valid": valid,
            "job": job,
            "forecast_id": forecast_id,
            "report": dict(report),
        }
        self._add("transfer", row)
        used: dict[str, tuple[int, int]] = {}
        for ordinal, (key, name, carried, resent) in enumerate(over):
            path = {"path": self.path(key, direction), "name": name, "bytes": carried, "resent_bytes": resent}
            self._add("transfer_path", {"transfer_id": self.id, "ordinal": ordinal, **path})
            there, back = ip_bytes(carried + resent)
            away, here = used.get(key.line_id, (0, 0))
            used[key.line_id] = (away + there, here + back) if direction == "out" else (away + back, here + there)
        self.used(used, report["elapsed_s"])
        return self.id

    def forecast(
        self,
        answer: Mapping[str, Any],
        keys: Mapping[str, PathKey],
        size_bytes: int,
        direction: str = "out",
        made_from: Sequence[str] = (),
    ) -> str:
        """A forecast's document (`pathcast.predict`). made_from: keys of the measurements and transfers behind it."""
        row = {
            "id": self.id,
            **self._common(),
            "direction": direction,
            "size_bytes": size_bytes,
            "chosen": answer.get("chosen"),
            "chosen_control": answer.get("chosen_control"),
            "made_from": list(made_from),
            "answer": dict(answer),
        }
        self._add("forecast", row)
        for ordinal, (name, key) in enumerate(keys.items()):
            path = {"path": self.path(key, direction), "name": name}
            self._add("forecast_path", {"forecast_id": self.id, "ordinal": ordinal, **path})
        return self.id

    def used(self, bytes: Mapping[str, tuple[int, int]], elapsed_s: float) -> None:
        """What lines carried out and in [IP byte], in so long from this moment on."""
        for line_id, (out, back) in bytes.items():
            self.usage(line_id, out, back, elapsed_s=elapsed_s)

    def usage(
        self,
        line_id: str,
        out: int,
        back: int,
        source: str = "pathcast",
        hour_us: int | None = None,
        elapsed_s: float = 0.0,
    ) -> None:
        """What a line carried [IP byte] in the hour that begins at `hour_us`, or in so long from this moment on, evenly
        then, by who has counted it."""
        begin_us, end_us = self.at.utc_us, self.at.utc_us + round(max(0.0, elapsed_s) * 1e6)
        before = 0, 0
        for hour, until_us in _hours(begin_us, end_us) if hour_us is None else [(hour_us, end_us)]:
            upto = out, back
            if until_us < end_us:
                share = (until_us - begin_us) / (end_us - begin_us)
                upto = round(share * out), round(share * back)
            part, before = (upto[0] - before[0], upto[1] - before[1]), upto
            if not any(part):
                continue
            row = {"line": self.line(line_id), "hour_us": hour, "source": source}
            row |= {"bytes_out": part[0], "bytes_in": part[1], "at_us": self.at.utc_us}
            number = len(self.rows.get("usage", ()))
            self._add("usage", {"id": digest("usage", self.id, str(number)), **row})

    def event(
        self, kind: str, text: str, key: PathKey | None = None, line_id: str | None = None, about: Any = None
    ) -> str:
        """Something worth knowing: a line that went down, a transfer that failed, a clock that was set."""
        number = len(self.rows.get("event", ()))
        # what an act measured or sent has its key
        alone = not number and not any(table in self.rows for table in ("measurement", "transfer", "forecast"))
        line = key.line_id if key else line_id
        row = {
            "id": self.id if alone else digest("event", self.id, str(number)),
            **self._common(),
            "kind": kind,
            "line": self.line(line) if line else None,
            "path": self.path(key) if key else None,
            "text": text,
            "about": about,
        }
        self._add("event", row)
        return str(row["id"])

    def _common(self) -> dict[str, Any]:
        of = self.origin
        when = {"at_us": self.at.utc_us, "boot_us": self.at.boot_us, "boot": self.at.boot, "host_id": of.host_id}
        about = {"world": of.world, "target": of.target, "command": of.command}
        return {**when, **about, "circumstances": dict(of.circumstances)}

    def _add(self, table: str, row: dict[str, Any]) -> None:
        self.rows.setdefault(table, []).append(row)

    def _once(self, table: str, row: dict[str, Any]) -> str:
        id: str = row["id"]
        if all(one["id"] != id for one in self.rows.get(table, ())):
            self._add(table, row)
        return id


def _hours(begin_us: int, end_us: int) -> Iterator[tuple[int, int]]:
    """The hours from then to then: when each begins, and until when it counts. They are those of the machine's zone, as
    its days are: none is of two days."""
    tz = zone()

    def hour(at_us: int) -> int:
        off_us = (datetime.fromtimestamp(at_us / 1e6, tz).utcoffset() or timedelta()) // timedelta(microseconds=1)
        return at_us - (at_us + off_us) % _HOUR_US

    at_us = hour(begin_us)
    while (following_us := hour(at_us + _HOUR_US)) < end_us:
        yield at_us, following_us
        at_us = following_us
    yield at_us, end_us


def _graphed(knowledge: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, float | None]:
    """What graphs and lists show: values that nothing is said against."""
    delay, loss = knowledge.get("delay_s") or {}, knowledge.get("loss") or {}
    return {
        "capacity_bps": _trusted(knowledge.get("capacity_bps")),
        "available_bps": _trusted(knowledge.get("available_bps"), None, "too-short"),
        "rtt_s": _trusted(path.get("rtt_s")),
        "delay_s": _trusted(delay.get("median")),
        "loss": loss["lost"] / loss["packets"] if loss.get("packets") else None,
    }


def _trusted(value: Mapping[str, Any] | None, *whys: str | None) -> float | None:
    # a gentle look tells what was left just then
    return None if not value or value.get("why") not in (whys or (None,)) else value.get("value")
