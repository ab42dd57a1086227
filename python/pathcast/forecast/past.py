"""What the history holds of the paths of a forecast: earlier measurements, transfers, and forecasts that were judged.

Plain records without a database: `recall` fills them, everything else takes them as an argument.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

from pathcast import codec
from pathcast.history.identity import PathKey
from pathcast.history.link import held_back
from pathcast.worlds.measurement import PathMeasured
from pathcast.worlds.results import Transfer

if TYPE_CHECKING:
    from pathcast.history.read import Reader
    from pathcast.history.records import Measured, Sent

# what is older says nothing of today, and as many records are read at most
_OLDEST_S = 30 * 86_400.0
_MOST_MEASURED, _MOST_SENT = 200, 300
# a transfer counts half as much after so long [s]; all together count as so many packets at most
_HALF_S, _MOST_PACKETS = 86_400.0, 1e6
# of a path, to tell what is usual
_MOST_LATELY = 1_000


@dataclass(frozen=True)
class Earlier:
    """A path as it was measured so long ago, under its name of today; the key of the measurement."""

    age_s: float
    path: PathMeasured
    effort: str | None
    id: str = ""


@dataclass(frozen=True)
class Carried:
    """A transfer so long ago, over paths by their names of today. packets, resent: that it sent, and sent again."""

    age_s: float
    paths: frozenset[str]
    control: str | None
    size_bytes: int
    duration_s: float
    packets: int = 0
    resent: int = 0
    id: str = ""

    @property
    def weight(self) -> float:
        """The less the longer ago."""
        return float(0.5 ** (self.age_s / _HALF_S))


@dataclass(frozen=True)
class Judged:
    """A transfer that followed a forecast; option: what the forecast said of this choice, for so many bytes."""

    carried: Carried
    option: Mapping[str, Any]
    size_bytes: int


@dataclass(frozen=True)
class Past:
    """Of one direction of some paths, everything the newest first."""

    measured: Mapping[str, tuple[Earlier, ...]] = field(default_factory=dict)
    carried: tuple[Carried, ...] = ()
    judged: tuple[Judged, ...] = ()

    def of(self, name: str) -> tuple[Earlier, ...]:
        """The earlier measurements of a path."""
        return self.measured.get(name, ())

    def packets(self, name: str, since_s: float = math.inf) -> tuple[float, float]:
        """That transfers over this path alone have sent, and sent again: of those that are younger than `since_s`, each
        as much as its age leaves, and no more in all than say enough."""
        alone = [one for one in self.carried if one.paths == {name} and one.packets and one.age_s < since_s]
        sent = math.fsum(one.weight * one.packets for one in alone)
        resent = math.fsum(one.weight * one.resent for one in alone)
        share = min(1.0, _MOST_PACKETS / sent) if sent else 1.0
        return share * sent, share * resent


def recall(reader: Reader, keys: Mapping[str, PathKey], direction: str, only: Collection[str] | None = None) -> Past:
    """What a history says of these paths, which may have had other names and addresses. only: of some of them, where
    `keys` are of all that there are: what went over another one of the same line is not taken for theirs.

    Raises PathcastError where the history cannot be read.
    """
    wanted = frozenset(keys if only is None else only)
    pairs = [(key.local, key.remote) for key in keys.values()]
    measured: dict[str, tuple[Earlier, ...]] = {}
    for name in (name for name in keys if name in wanted):
        key = keys[name]
        others = [pair for pair in pairs if pair != (key.local, key.remote)]
        rows = reader.measurements(key, _OLDEST_S, _MOST_MEASURED, others)
        found = [_earlier(row, name) for row in rows if row.valid is not False and direction in row.path["directions"]]
        measured[name] = tuple(one for one in found if one is not None)
    names = {key: name for name, key in keys.items()}

    def carried(row: Sent) -> Carried | None:
        one = _carried(row, names, direction)
        return one if one is not None and one.paths <= wanted else None

    sent = reader.transfers(list(keys.values()), _OLDEST_S, _MOST_SENT)
    judged = [
        Judged(one, came.option, of.size_bytes)
        for of in reader.forecasts(list(keys.values()), _OLDEST_S, _MOST_SENT)
        for came in of.came
        if _of_twin(came.option) and (one := carried(came.sent)) is not None
    ]
    return Past(
        measured,
        tuple(_by_age([one for row in sent if (one := carried(row)) is not None])),
        tuple(sorted(judged, key=lambda one: one.carried.age_s)),
    )


def lately(
    reader: Reader, keys: Mapping[str, PathKey], newer_than_s: float, apart_s: float
) -> dict[str, list[Earlier]]:
    """How these paths were measured in a time, by name, the newest first: no more than stand for all of it.

    Raises PathcastError where the history cannot be read.
    """
    pairs, found = [(key.local, key.remote) for key in keys.values()], {}
    for name, key in keys.items():
        others = [pair for pair in pairs if pair != (key.local, key.remote)]
        rows = reader.thinned(key, newer_than_s, apart_s, _MOST_LATELY, others)
        earlier = [_earlier(row, name) for row in rows if row.valid is not False]
        found[name] = [one for one in earlier if one is not None]
    return found


def _by_age(records: Sequence[Carried]) -> list[Carried]:
    return sorted(records, key=lambda one: one.age_s)


def _earlier(row: Measured, name: str) -> Earlier | None:
    if row.age_s is None:
        return None
    try:
        path = codec.read(PathMeasured, {**row.path, "name": name, "shared_with": row.path.get("shared_with") or []})
    except ValueError:
        return None  # of another version
    return Earlier(row.age_s, path, row.effort, row.id)


def _carried(row: Sent, names: Mapping[PathKey, str], direction: str) -> Carried | None:
    over = _named(row.keys, names)
    if row.age_s is None or row.direction != direction or row.valid is False or row.elapsed_s <= 0 or over is None:
        return None
    if row.kind == "run" and held_back(row.report):
        return None  # how long it took says nothing of its lines
    packets = resent = 0
    if row.kind == "transfer":
        with suppress(ValueError):  # of another version: how long it took is known all the same
            packets, resent = _packets(codec.read(Transfer, row.report))
    return Carried(row.age_s, over, row.control, row.bytes, row.elapsed_s, packets, resent, row.id)


def _of_twin(option: Mapping[str, Any] | None) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is the twin's word: a learnt model names a duration without its interval."""
    return option is not None and isinstance(option.get("duration_s") or {}, Mapping)


def _packets(report: Transfer) -> tuple[int, int]:
    """Full packets that were sent, and sent again."""
    sent = sum(one.bytes_sent for one in report.subflows)
    return sent // _MSS, sum(one.bytes_retransmitted for one in report.subflows) // _MSS


_MSS = 1448


def _named(keys: Collection[PathKey], names: Mapping[PathKey, str]) -> frozenset[str] | None:
    """Of paths as they were then their names of today; by the line alone where only one path of today has it."""
    found = set()
    for key in keys:
        name = names.get(key) or next((of for own, of in names.items() if _pair(own) == _pair(key)), None)
        if name is None:
            same = [
                of
                for own, of in names.items()
                if (own.line_id, own.family, own.way) == (key.line_id, key.family, key.way)
            ]
            name = same[0] if len(same) == 1 else None
        if name is None:
            return None
        found.add(name)
    return frozenset(found)


def _pair(key: PathKey) -> tuple[str, str, str, str]:
    return key.line_id, key.local, key.remote, key.way
