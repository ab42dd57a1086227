"""Many transfers in the simulator on all processors: in networks drawn around one text, or around several, or in one
network's futures.

A result hangs on nothing but its own network, transfer and seed: it is the same one by one, in any number of threads,
and by the world's verbs. Memory is that of two networks a thread.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pathcast import limits
from pathcast.errors import Exit, PathcastError, usage
from pathcast.interruptible import interruptible
from pathcast.worlds.results import Transfer
from pathcast.worlds.topology import Topology

if TYPE_CHECKING:
    from pathcast import _native

# what became of a transfer
Outcome = Transfer | PathcastError


@dataclass(frozen=True)
class Future:
    """A transfer in a copy of a network. Over one path it is plain TCP, unless `multipath` says otherwise.

    seed: of the random numbers from the copy on; None: the network's own. every_s: time between two of its `samples`,
    of which there are at most 2000 (then half as often); None: none. plain: as of the worlds' `transfer`.
    """

    paths: tuple[str, ...]
    bytes: int
    control: str | None = None
    seed: int | None = None
    every_s: float | None = None
    multipath: bool | None = None
    plain: bool = False

    def document(self) -> dict[str, Any]:
        """For the extension."""
        if self.bytes < 0 or (self.seed is not None and not 0 <= self.seed < 1 << 64):
            raise usage(f"bytes {self.bytes}, seed {self.seed}: allowed are 0 and more, and 0 to 2^64-1")
        if self.every_s is not None and not 1e-6 <= self.every_s <= 1e6:
            raise usage(f"every_s {self.every_s}: allowed are 1e-6 to 1e6 s")
        multipath = len(self.paths) > 1 if self.multipath is None else self.multipath
        if not multipath and len(self.paths) > 1:
            raise usage(f"paths {', '.join(self.paths)}: plain TCP takes one")
        every_ns = None if self.every_s is None else round(self.every_s * 1e9)
        about = {"paths": self.paths, "bytes": self.bytes, "control": self.control, "seed": self.seed}
        return {**about, "multipath": multipath, "every_ns": every_ns, "plain": self.plain}


@dataclass(frozen=True)
class Draw:
    """A network, by what it has over the topology's text (`--set` keys and values, its seed among them), and transfers
    in it, which begin when it has stood for `wait_s`, each in a copy of its own."""

    sets: tuple[tuple[str, str], ...]
    transfers: tuple[Future, ...]
    wait_s: float = 0.0


def draws(
    topology: Topology,
    wanted: Sequence[Draw],
    threads: int | None = None,
    events: int | None = None,
    keep_errors: bool = False,
) -> list[list[Outcome]]:
    """The outcomes of every draw, in their order; the text is read once.

    threads: None: one a processor. events: the most of each transfer, and of each wait. keep_errors: what fails is an
    outcome, as a transfer whose paths do not answer; of a draw that is refused, each of its. Else the first that failed
    is raised, with its place.
    """
    [found] = several([(topology, wanted)], threads, events, keep_errors)
    return found


def several(
    asked: Sequence[tuple[Topology, Sequence[Draw]]],
    threads: int | None = None,
    events: int | None = None,
    keep_errors: bool = False,
) -> list[list[list[Outcome]]]:
    """As `draws`, of several texts side by side; threads: of all together."""
    from pathcast import _native

    _threads(threads)
    # a text of many draws and others of one are then as much work for every thread
    pieces = list(asked) if len(asked) == 1 else [(text, [draw]) for text, wanted in asked for draw in wanted]
    many = threads or _processors()
    at_once = max(1, min(many, len(pieces)))
    calls = [
        (text.text, text.base, _native.Job(), _asked(text, wanted), events or limits.events(), many // at_once)
        for text, wanted in pieces
    ]

    def work() -> list[str]:
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(lambda of: _native.draws(*of), calls))

    def cancel() -> None:
        for of in calls:
            of[2].cancel()

    documents = iter([one for of in interruptible(work, cancel) for one in json.loads(of)])
    return [_drawn(wanted, list(islice(documents, len(wanted))), keep_errors) for _, wanted in asked]


def _asked(topology: Topology, wanted: Sequence[Draw]) -> str:
    """For the extension."""
    asked = []
    for draw in wanted:
        if not 0 <= draw.wait_s <= 3.6e6:
            raise usage(f"wait_s {draw.wait_s}: allowed are 0 to 3600000 s")
        transfers = [one.document() for one in draw.transfers]
        sets = [*topology.sets, *draw.sets]
        asked.append({"sets": sets, "wait_ns": round(draw.wait_s * 1e9), "transfers": transfers})
    return json.dumps(asked)


def _drawn(wanted: Sequence[Draw], documents: list[Any], keep_errors: bool) -> list[list[Outcome]]:
    found = []
    for n, (draw, document) in enumerate(zip(wanted, documents, strict=True)):
        where = f"draw {n}" + (f" ({', '.join('='.join(pair) for pair in draw.sets)})" if draw.sets else "")
        each = document if isinstance(document, list) else [document] * len(draw.transfers)
        if not draw.transfers and not isinstance(document, list) and not keep_errors:
            raise _error(document["error"], where)
        found.append(_outcomes(draw.transfers, each, where, keep_errors))
    return found


def futures(
    world: _native.World, wanted: Sequence[Future], threads: int | None = None, keep_errors: bool = False
) -> list[Outcome]:
    """Of one network as it stands, which stays as it is; else as `draws`."""
    from pathcast import _native

    _threads(threads)
    job = _native.Job()
    asked = json.dumps([one.document() for one in wanted])
    document = json.loads(interruptible(lambda: world.continuations(job, asked, threads), job.cancel))
    return _outcomes(wanted, document, "", keep_errors)


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _threads(threads: int | None) -> None:
    if threads is not None and threads < 1:
        raise usage(f"threads {threads}: allowed are 1 and more")


def _outcomes(wanted: Sequence[Future], found: Sequence[dict[str, Any]], where: str, keep: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for n, (one, document) in enumerate(zip(wanted, found, strict=True)):
        if "report" in document:
            outcomes.append(Transfer.read(list(one.paths), document["report"]))
            continue
        error = _error(document["error"], f"{where}{', ' if where else ''}transfer {n}")
        if not keep or error.exit == Exit.INTERRUPTED:
            raise error
        outcomes.append(error)
    return outcomes


def _error(error: dict[str, Any], where: str) -> PathcastError:
    return PathcastError(error["code"], f"{where}: {error['message']}", error["hint"], error["exit"])
