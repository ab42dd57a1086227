"""World `emu`: an emulated network between two namespaces, with the real kernel's TCP and Multipath TCP."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from pathcast.control.kernel import Controls
from pathcast.errors import PathcastError
from pathcast.runtime import daemon, steered
from pathcast.steer.fabric import Fabric
from pathcast.worlds import arguments, flows_emu
from pathcast.worlds.ends import EMULATED, Ends
from pathcast.worlds.flows import FlowsResult, check_every, plans
from pathcast.worlds.late import again
from pathcast.worlds.results import Path, Verdict
from pathcast.worlds.topology import Topology, folded
from pathcast.worlds.turns import turn
from pathcast.worlds.verbs import Verbs
from pathcast.worlds.world import T

if TYPE_CHECKING:
    from pathcast import _native

__all__ = ["PORT", "Emu", "Topology"]

PORT = 5275


class Emu(Verbs):
    """An emulated network and a far end on its server, both ended with this object. Use it in a `with`."""

    world = "emu"
    _client: _native.Client
    _controls: Controls

    def __init__(self, topology: Topology, name: str | None = None) -> None:
        self._topology = arguments.network(topology)
        self._stack = ExitStack()
        self._name = name or f"{_stem(topology.scenario['name'])}-{secrets.token_hex(3)}"

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
            # all of its flows are one client's
            limits = [f"{name}=64" for name in ("sessions", "sessions-per-key", "sessions-per-source")]
            server = {"bind": [], "port": PORT, "keys": [key], "addresses": remotes, "limits": limits}
            stack.enter_context(
                daemon.start("serve", {"name": self._name, "namespace": hosts["server"], "server": server})
            )
            self._fabric = Fabric(steered.of_net(self._net.record, about)) if "switch" in hosts else None
            self._session = (hosts["client"], [self.paths[0].remote], PORT, key["id"], key["secret"], self._fabric)
            self._client = _native.Client(*self._session)
            stack.callback(self._client.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def name(self) -> str:
        """The network's name, as `pathcast net list` shows it."""
        return self._net.record.id

    @property
    def ends(self) -> Ends:
        return EMULATED

    def session(self) -> _native.Client:
        """A further session with the far end; whoever asks for it closes it."""
        from pathcast import _native

        return _native.Client(*self._session)

    def controller(self, name: str) -> daemon.Daemon:
        """The process that holds a controller of the register in the kernel; loads it if it is not there yet."""
        return self._controls.part(name)

    def set(self, link: str, direction: str | None = None, **changes: str) -> None:
        """Changes a link from now on: `set("wan1", delay="10ms")`."""
        with arguments.changed(changes):
            self._net.ask("set", link=link, direction=direction, changes=list(changes.items()))

    def ledger(self, reset: bool = False) -> dict[str, Any]:
        """What every link carried, dropped and released late; `reset` starts the release errors afresh."""
        found: dict[str, Any] = self._net.ask("ledger", reset=reset)
        return found

    def flows(
        self,
        names: Sequence[str] | None = None,
        until: float | None = None,
        every_s: float = 0.1,
        controls: Mapping[str, str] | None = None,
    ) -> FlowsResult:
        """Runs the scenario's `[[flow]]`s at once, all or the named ones, as real TCP and MPTCP connections.

        The scenario's time begins anew: changes and cross traffic are those of time zero, with every `set` in them.
        Nothing else may go on in this world meanwhile; what earlier transfers left in the links is waited for.

        until: the end of the run [s] in place of the scenario's. every_s: time between two samples.
        controls: what the kernel is to be asked for in place of a controller of the scenario; those of the register are
        loaded into it anyway.
        """
        began = time.monotonic()
        check_every(every_s)
        wanted = plans(self._topology.scenario, names, until)

        def kernel_name(control: str) -> str:
            return (controls or {}).get(control) or self._controls.kernel_name(control) or control

        flows_emu.await_empty(self.ledger)
        opening = time.monotonic()
        made = flows_emu.runners(wanted, self.path, self.session, kernel_name)
        # each session took three round trips and a little work, and needs one more before its flow can connect
        lead_s = 0.2 + (time.monotonic() - opening) / len(made)
        try:
            with self.judged() as verdict:
                before = self.ledger()
                zero_ns = self._net.ask("restart", lead_ns=round(lead_s * 1e9))
                flows_emu.carry(made, zero_ns, every_s, lambda: self.cancelled)
                ended_s = flows_emu.since(zero_ns)
                links = flows_emu.link_uses(self._topology.scenario["links"], before, self.ledger())
        finally:
            flows_emu.close(made)
        scenario, wall_s = self._topology.scenario, time.monotonic() - began
        head = (self.world, scenario["name"], scenario["seed"], every_s, ended_s)
        return FlowsResult(*head, tuple(runner.flow(ended_s) for runner in made), links, verdict, wall_s)

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

    def _native_work(self, call: Callable[[Any], T], poll: Callable[[Any], None] = lambda job: None) -> T:
        try:
            return super()._native_work(call, poll)
        except PathcastError as error:
            # the addresses are the network's: where they are away, it is
            if error.code == "not-local":
                self._net.ask("describe")
            raise

    def turn(self, alone: bool = False) -> AbstractContextManager[None]:
        return turn(alone, lambda: self.cancelled)

    def again(self, work: Callable[[], T], good: Callable[[T], bool] = lambda _: True) -> tuple[T, int]:
        return again(work, good, lambda: self.cancelled)


def _stem(name: str) -> str:
    """A scenario's name as the start of a network's."""
    return folded(name, 12)


def _unmodelled(ledger: dict[str, Any]) -> int:
    """Packets lost outside of the model."""
    dropped = sum(d["dropped"] for d in ledger["devices"])
    return int(dropped + sum(g["write_failures"] for g in ledger["groups"]))
