"""A controller without switches, for tests of who speaks to one: it keeps the plan and answers alike."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.steer.client import flow_of, plan_of
from pathcast.steer.rules import Flow


class Fake:
    """In a `with`: serves the socket at `path`. `refuse`: what the next `begin` is answered with."""

    def __init__(self, path: Path, names: tuple[str, ...] = ("path1", "path2")) -> None:
        self.path, self.names = path, names
        self.plan: dict[Flow, str] = {}
        self.asked: list[dict[str, Any]] = []
        self.refuse: PathcastError | None = None

    def begin(self, flows: Any, owner: Any) -> dict[str, Any]:
        plan = plan_of(flows)
        if wrong := [name for name in plan.values() if name not in self.names]:
            raise usage(f"there is no path `{wrong[0]}`; allowed: {', '.join(self.names)}")
        refuse, self.refuse = self.refuse, None
        if refuse is not None:
            raise refuse
        self.plan.update(plan)
        return {"paths": list(plan.values())}

    def end(self, flows: Any) -> dict[str, Any]:
        return {"ended": sum(self.plan.pop(flow_of(one), None) is not None for one in flows)}

    def state(self) -> dict[str, Any]:
        return {"paths": [{"name": name, "stands": True} for name in self.names]}

    def counters(self) -> dict[str, Any]:
        return {"paths": [], "flows": []}

    def __enter__(self) -> Fake:
        self._listener = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        self._listener.bind(str(self.path))
        os.umask(mask)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self.path.unlink()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rw") as stream:
                for line in stream:
                    request = json.loads(line)
                    self.asked.append(dict(request))
                    try:
                        answer = {"result": getattr(self, request.pop("verb"))(**request)}
                    except PathcastError as error:
                        answer = error.document()
                    stream.write(json.dumps(answer) + "\n")
                    stream.flush()
