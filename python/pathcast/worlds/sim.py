"""World `sim`: a simulated network with simulated TCP and Multipath TCP, for any user, on a clock of its own."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pathcast import limits
from pathcast.control.kernel import register
from pathcast.errors import usage
from pathcast.worlds import arguments, flows_sim
from pathcast.worlds.ends import Ends, of_scenario
from pathcast.worlds.flows import FlowsResult, check_every
from pathcast.worlds.many import Future, Outcome, futures
from pathcast.worlds.results import Path
from pathcast.worlds.topology import Topology
from pathcast.worlds.verbs import Verbs

if TYPE_CHECKING:
    from pathcast import _native


class Sim(Verbs):
    """A simulated network that stands: its time passes during transfers and in `wait`, and only then.

    Threads may share it, but transfers follow each other. Use it in a `with`. A transfer may take an hour of simulated
    time, or ten times what its bytes need on the slowest link if that is longer: exit 1 beyond that, and beyond
    `events` events of the engine in one verb (default: `pathcast.limits`).
    """

    world = "sim"
    real_time = False
    _client: _native.World
    # nobody else has to be told
    _patience_s = 0.3
    # it stands already
    _copied = False
    # measurements since the network stands, and a copy's own seed
    _measured = 0
    _own: int | None = None

    def __init__(self, topology: Topology, name: str | None = None, events: int | None = None) -> None:
        if events is not None and not 1 <= events < 1 << 64:
            raise usage(f"a limit of {events} events: allowed are 1 to 2^64-1")
        self._topology = arguments.network(topology)
        self._events = limits.events() if events is None else events
        self.name = name or topology.scenario["name"]

    def __enter__(self) -> Sim:
        if not self._copied:
            self._begin(list(self._topology.sets))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, Exception):
            self._client.close()
            return
        # interrupted: what goes on holds it, and may compute for seconds
        closing = threading.Thread(target=self._client.close, daemon=True)
        closing.start()
        closing.join(self._patience_s)

    def fresh(self, index: int) -> None:
        """Begins again at time zero: `set`s are gone, random draws are those of the scenario's seed and `index`.

        0: the scenario's own seed.
        """
        arguments.whole("index", index)
        self._client.close()
        seed = self._topology.scenario["seed"]
        if index:
            seed = random.Random(f"pathcast sim {seed} {index}").getrandbits(62)  # a str seeds by SHA-512
        self._begin([*self._topology.sets, ("seed", str(seed))])

    def _begin(self, sets: list[tuple[str, str]]) -> None:
        from pathcast import _native

        self._sets, self._measured, self._own = sets, 0, None
        self._client = _native.World(self._topology.text, sets, self._topology.base, self._topology.called)
        self._client.limit(self._events)
        self.paths = tuple(Path(p["name"], tuple(p["local"]), p["remote"]) for p in json.loads(self._client.paths()))

    def set(self, link: str, direction: str | None = None, **changes: str) -> None:
        """Changes a link from now on: `set("wan1", delay="10ms")`."""
        with arguments.changed(changes):
            self._sets += self._client.set(link, direction, list(changes.items()))

    @property
    def controls(self) -> tuple[str, ...]:
        return tuple(one["name"] for one in register())

    @property
    def ends(self) -> Ends:
        return of_scenario(self._topology.scenario)

    def now(self) -> float:
        """The simulated time since the network stands [s]."""
        return self._client.now()

    def wait(self, time_s: float) -> None:
        """Lets simulated time pass."""
        self._native_work(lambda job: self._client.wait(job, time_s))

    def copy(self, seed: int | None = None) -> Sim:
        """The same network as it stands: what happens in one does not happen in the other. Use it in a `with`, too.

        seed: the random numbers from now on are others; None: the same in both.
        """
        if seed is not None:
            arguments.whole("seed", seed)
        made = Sim(self._topology, self.name, self._events)
        made._sets, made.paths = list(self._sets), self.paths
        made._measured, made._own = self._measured, self._own if seed is None else seed
        made._client, made._copied = self._client.copy(seed), True
        return made

    def futures(self, wanted: Sequence[Future], threads: int | None = None, keep_errors: bool = False) -> list[Outcome]:
        """Transfers, each in a copy of this network as it stands, on all processors; in the order of `wanted`.

        Nothing happens in this one. threads: None: one a processor. keep_errors: a transfer that fails is an outcome;
        else the first that failed is raised, with its place.
        """
        return futures(self._client, wanted, threads, keep_errors)

    def _probing_seed(self) -> int:
        """Of the scenario's seed and of how often was measured: what is simulated can be repeated."""
        self._measured += 1
        scenario = next(
            (value for key, value in reversed(self._sets) if key == "seed"), self._topology.scenario["seed"]
        )
        return random.Random(f"pathcast measure {scenario} {self._own} {self._measured}").getrandbits(62)

    def ledger(self) -> dict[str, Any]:
        """What every link carried and dropped since the network stands."""
        found: dict[str, Any] = json.loads(self._client.ledger())
        return found

    def flows(
        self, names: Sequence[str] | None = None, until: float | None = None, every_s: float = 0.1
    ) -> FlowsResult:
        """Runs the scenario's `[[flow]]`s at once, all or the named ones, and the cross traffic beside them.

        It happens in a network of its own that begins at time zero with every `set` of this one in it; this one stays
        as it is.

        until: the end of the run [s] in place of the scenario's. every_s: time between two samples.
        """
        check_every(every_s)
        return flows_sim.run(self._topology, self._sets, names, until, every_s, self._events)
