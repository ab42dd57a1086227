"""World `emu`: an emulated network between two namespaces, with the real kernel's TCP and Multipath TCP."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pathcast import daemon
from pathcast.control.kernel import Controls
from pathcast.worlds.results import Path, Verdict
from pathcast.worlds.topology import Topology
from pathcast.worlds.verbs import Verbs

__all__ = ["PORT", "Emu", "Topology"]

PORT = 5275


class Emu(Verbs):
    """An emulated network and a far end on its server, both ended with this object. Use it in a `with`."""

    world = "emu"

    def __init__(self, topology: Topology, name: str | None = None) -> None:
        self._stack = ExitStack()
        self._name = name or f"{_stem(topology.scenario['name'])}-{secrets.token_hex(3)}"
        self._topology = topology

    def __enter__(self) -> Emu:
        from pathcast import _native

        with ExitStack() as stack:
            self._controls = Controls(self._topology.scenario.get("control") or {})
            stack.callback(self._controls.close)
            self._net = stack.enter_context(self._topology.start(self._name))
            about = self._net.ask("describe")
            self.paths = tuple(Path(p["name"], tuple(p["local"]), p["remote"]) for p in about["paths"])
            hosts = self._net.record.about["hosts"]
            key = {"id": "emu", "secret": secrets.token_hex(32)}  # both ends are ours; it never leaves this host
            remotes = list(dict.fromkeys(p.remote for p in self.paths))
            server = {"bind": [], "port": PORT, "keys": [key], "addresses": remotes}
            stack.enter_context(
                daemon.start("serve", {"name": self._name, "namespace": hosts["server"], "server": server})
            )
            self._client = _native.Client(hosts["client"], self.paths[0].remote, PORT, key["id"], key["secret"])
            stack.callback(self._client.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def name(self) -> str:
        """The network's name, as `pathcast net list` shows it."""
        return self._net.record.id

    def controller(self, name: str) -> daemon.Daemon:
        """The process that holds a controller of the register in the kernel; loads it if it is not there yet."""
        return self._controls.part(name)

    def set(self, link: str, direction: str | None = None, **changes: str) -> None:
        """Changes a link from now on: `set("wan1", delay="10ms")`."""
        self._net.ask("set", link=link, direction=direction, changes=list(changes.items()))

    def ledger(self, reset: bool = False) -> dict[str, Any]:
        """What every link carried, dropped and released late; `reset` starts the release errors afresh."""
        return self._net.ask("ledger", reset=reset)

    @contextmanager
    def judged(self) -> Iterator[Verdict]:
        """Judges whether the emulator kept its time during the block."""
        verdict = Verdict()
        before = _unmodelled(self.ledger(reset=True))
        yield verdict
        after = self.ledger()
        errors = [g["release_error"] for g in after["groups"] if g["release_error"]["n"]]
        verdict.release_error = {k: max((e[k] for e in errors), default=0.0) for k in ("p50_s", "p99_s", "max_s")}
        verdict.dropped_unmodelled = _unmodelled(after) - before
        verdict.realtime = all(g["realtime"] for g in after["groups"])


def _stem(name: str) -> str:
    """A scenario's name as the start of a network's: those may hold less."""
    return re.sub("[^a-z0-9]+", "-", name.lower())[:12].strip("-")


def _unmodelled(ledger: dict[str, Any]) -> int:
    """Packets lost outside of the model."""
    dropped = sum(d["dropped"] for d in ledger["devices"])
    return dropped + sum(g["write_failures"] for g in ledger["groups"])
