"""How a sender tells the controller its flows: JSON lines over a unix socket, one request, one answer.

    {"verb": "begin", "flows": [{"local": "10.0.0.2", "remote": "10.0.1.1", "local_port": 40001, "remote_port": 5275,
                                 "protocol": "tcp", "path": "path2"}], "owner": {"pid": 7, "started": 123}}
    {"result": {"paths": ["path2"]}}                           in force: every switch has answered its barrier
    {"verb": "end", "flows": [{"local": …}]}                   {"result": {"ended": 1}}
    {"verb": "state"}, {"verb": "counters"}                    {"result": {…}}
    {"error": {"code": "switch", "message": …, "hint": …, "exit": 1}}     and nothing of the request is in force

`begin` of a flow that there is moves it, without a lost byte. A flow ends by `end`, or when the process that `owner`
names has ended; without an owner it stays. The ports are told before the SYN leaves: bind first, then begin, then
connect.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pathcast import codec
from pathcast.errors import PathcastError, usage
from pathcast.processes import start_time
from pathcast.steer.rules import Flow

# longer than a switch may take to answer
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Owner:
    """A process, by its pid and when it started, in clock ticks since boot."""

    pid: int
    started: int

    @classmethod
    def this_process(cls) -> Owner:
        pid = os.getpid()
        return cls(pid, start_time(pid) or 0)

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started


def flow_of(document: Any) -> Flow:
    """A flow as the messages have it. Raises PathcastError (exit 2) for what is none."""
    try:
        return codec.read(Flow, document)
    except (ValueError, TypeError) as error:
        raise usage(f"no flow: {error}") from None


def owner_of(document: Any) -> Owner | None:
    """The `owner` of a `begin`. Raises PathcastError (exit 2) for what is none."""
    try:
        return None if document is None else codec.read(Owner, document)
    except ValueError as error:
        raise usage(f"no owner: {error}") from None


def plan_of(flows: Any) -> dict[Flow, str]:
    """The `flows` of a `begin`. Raises PathcastError (exit 2) for what is no plan, or names a flow twice."""
    if not isinstance(flows, list) or not flows:
        raise usage("`flows` is a list of at least one flow")
    plan: dict[Flow, str] = {}
    for one in flows:
        flow = flow_of(one)
        if not isinstance(one.get("path"), str):
            raise usage(f"flow {flow}: no path")
        if flow in plan:
            raise usage(f"flow {flow}: twice")
        plan[flow] = one["path"]
    return plan


class Client:
    """The controller behind a socket; every request is a connection of its own, so that any thread may ask."""

    def __init__(self, path: Path | str, patience_s: float = PATIENCE_S) -> None:
        self.path, self.patience_s = Path(path), patience_s

    def begin(self, plan: Mapping[Flow, str], *, owner: Owner | None = None, keep: bool = False) -> dict[Flow, str]:
        """Has flows carried, or moved, by a plan of flows and names of paths; all of them or none.

        Returns when every switch has them: the paths in force, others than asked only where those are down. owner: the
        process with which they end (None: this one); keep: they stay until `end`. Raises PathcastError: exit 2 for a
        path that there is not, 1 (`switch`, with the switch, the entry and the reason) where a switch says no or is
        away, 1 (`topology`) where no path is left, 1 (`gone`) without a controller.
        """
        whose = None if keep else asdict(owner or Owner.this_process())
        flows = [{**asdict(flow), "path": name} for flow, name in plan.items()]
        found = self._ask("begin", flows=flows, owner=whose)
        return dict(zip(plan, found["paths"], strict=True))

    def end(self, flows: Iterable[Flow]) -> None:
        """Flows that have ended; those that there are not are passed over."""
        self._ask("end", flows=[asdict(flow) for flow in flows])

    @contextmanager
    def carried(self, plan: Mapping[Flow, str]) -> Iterator[dict[Flow, str]]:
        """`begin`, and `end` after the block."""
        paths = self.begin(plan)
        try:
            yield paths
        finally:
            self.end(plan)

    def state(self) -> dict[str, Any]:
        """Switches, links, hosts, paths, flows, and what is wrong."""
        return dict(self._ask("state"))

    def counters(self) -> dict[str, Any]:
        """Bytes and packets by path and by flow, of this moment."""
        return dict(self._ask("counters"))

    def _ask(self, verb: str, **arguments: Any) -> Any:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(self.patience_s)
                s.connect(str(self.path))
                s.sendall(json.dumps({"verb": verb, **arguments}).encode() + b"\n")
                with s.makefile() as lines:
                    line, why = lines.readline(), "it closed the connection"
        except OSError as error:
            line, why = "", error.strerror or str(error)
        if not line:
            told = f"no controller answers at {self.path}: {why}"
            raise PathcastError("gone", told, "start one: pathcast steer up; the flows in the switches stay")
        answer = json.loads(line)
        if "error" in answer:
            e = answer["error"]
            raise PathcastError(e["code"], e["message"], e["hint"], e["exit"])
        return answer["result"]
