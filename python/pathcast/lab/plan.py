"""An experiment's plan.toml: its grids of points, and what is claimed, with statistic, threshold and seeds.

The plan is data. `[setup]` belongs to the experiment alone; all else is checked here. docs/lab.md has the format.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathcast.errors import usage
from pathcast.files import read_file

SCHEMA = "pathcast.plan/1"
WORLDS = ("sim", "emu")
_LARGEST_BYTES = 1 << 20
_TOP = ("schema", "title", "paper", "worlds", "reconstruction", "setup", "grid", "claim")
_GRID = ("name", "worlds", "over", "quick", *WORLDS)
_CLAIM = ("id", "kind", "text", "paper", "statistic", "threshold", "samples", "seeds", "worlds", "uncounted")
# paper: the paper says it; calibrated: it does, and something here was fitted to it; ours: it does not
KINDS = ("paper", "calibrated", "ours")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")

# in place of values: `{ from = "name" }`, a list that samples.py makes
_FROM = "from"

# the values of one sample's keys; "grid" is the grid's name
Point = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """A finding as it is judged; it stands here before the whole run."""

    id: str
    # one of KINDS by world
    kind: Mapping[str, str]
    text: str
    # what the paper says
    paper: str
    # what is computed from the results, and what it is held against
    statistic: str
    threshold: Any
    seeds: tuple[int, ...]
    worlds: tuple[str, ...]
    # why it is not counted, for example since it holds by construction; None: it is
    uncounted: str | None = None
    # values by key (`grid` too) of the samples that it is judged on; a key that is not here has any
    samples: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def of(self, key: str, value: Any) -> bool:
        """Whether it is judged on samples with this value of a key."""
        return value in self.samples.get(key, (value,))

    def about(self, point: Point) -> bool:
        """Whether it is judged on a sample."""
        if self.seeds and "seed" in point and point["seed"] not in self.seeds:
            return False
        return all(point[key] in values for key, values in self.samples.items() if key in point)


def _nobody(name: str) -> Sequence[Any]:
    raise usage(f"the plan's list `{name}` is of samples.py, which was not read")


@dataclass(frozen=True)
class Plan:
    """A checked plan.toml."""

    title: str
    paper: str
    worlds: tuple[str, ...]
    setup: Mapping[str, Any]
    grids: tuple[Mapping[str, Any], ...]
    claims: tuple[Claim, ...]
    # what the paper leaves open so far that it is here by our reconstruction only
    reconstruction: tuple[str, ...]
    # the text of the file
    text: str
    # the list that samples.py has by a name; raises PathcastError
    named: Callable[[str], Sequence[Any]] = field(default=_nobody, compare=False)

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Reads a file; raises PathcastError (exit 2) that names it and what is wrong."""
        try:
            return cls.parse(read_file(path, _LARGEST_BYTES).decode())
        except OSError as error:
            raise usage(f"cannot read `{path}`: {error.strerror}") from None
        except (ValueError, TypeError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
            raise usage(f"`{path}`: {error}", "the format is in docs/lab.md") from None

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Raises ValueError."""
        data = tomllib.loads(text)
        _known("the plan", data, _TOP, _TOP[:4])
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is `{data['schema']}`; this version reads `{SCHEMA}`")
        worlds = _worlds("the plan", data["worlds"], WORLDS)
        grids = tuple(data.get("grid", ()))
        for grid in grids:
            _known("a [[grid]]", grid, _GRID, ("name", "over"))
            where = f"grid `{grid['name']}`"
            _worlds(where, grid.get("worlds", worlds), worlds)
            over, quick = tuple(grid["over"]), grid.get("quick", {})
            tables = [grid["over"], *(grid.get(world, {}) for world in WORLDS)]
            if quick is not False:
                _known(f"{where}, quick", quick, (*over, *WORLDS), ())
                tables += [_without(quick, WORLDS), *(quick[w] for w in WORLDS if quick.get(w, False) is not False)]
            for table in tables:
                _known(where, table, over, ())
                for key, values in table.items():
                    if not _values(values):
                        raise ValueError(f"{where}: `{key}` has no value")
                    if isinstance(values, dict) and not (_is_named(values) and isinstance(values[_FROM], str)):
                        raise ValueError(f'{where}: `{key}` is {values!r}; values or {{ {_FROM} = "name" }} are wanted')
        _one_type(grids)
        names = [grid["name"] for grid in grids]
        if not names or len(set(names)) < len(names):
            raise ValueError("a plan needs one [[grid]] or more, each with a name of its own")
        claims = tuple(_claim(one, worlds, grids) for one in data.get("claim", ()))
        if len({claim.id for claim in claims}) < len(claims):
            raise ValueError("two claims have the same id")
        rebuilt = data.get("reconstruction", [])
        if not isinstance(rebuilt, list) or not all(isinstance(one, str) for one in rebuilt):
            raise ValueError(f"reconstruction is {rebuilt!r}; a list of names is wanted")
        return cls(data["title"], data["paper"], worlds, data.get("setup", {}), grids, claims, tuple(rebuilt), text)

    def points(self, world: str, quick: bool = False) -> Iterator[Point]:
        """All samples of a world, grid by grid, the last key changing fastest; quick: the quick subset.

        Raises PathcastError where a list of samples.py cannot be made.
        """
        for grid in self.grids:
            own = _quick(grid, world) if quick else {}
            if world not in grid.get("worlds", self.worlds) or own is None:
                continue
            over = {**grid["over"], **grid.get(world, {}), **own}
            for values in itertools.product(*(self._values(value) for value in over.values())):
                yield {"grid": grid["name"], **dict(zip(over, values, strict=True))}

    def seeds(self, world: str, claim: Claim) -> set[Any]:
        """Those of the samples that a claim is judged on, in the whole plan."""
        found: set[Any] = set()
        for grid in self.grids:
            if world in grid.get("worlds", self.worlds) and claim.of("grid", grid["name"]):
                found |= set(self._values({**grid["over"], **grid.get(world, {})}.get("seed", [])))
        return {seed for seed in found if claim.about({"seed": seed})}

    def lists(self) -> list[str]:
        """Names of the lists that its grids take from samples.py."""
        names: dict[str, None] = {}
        for grid in self.grids:
            quick = grid.get("quick", {}) or {}
            tables = (grid["over"], quick, *(of.get(world, {}) or {} for of in (grid, quick) for world in WORLDS))
            names |= dict.fromkeys(v[_FROM] for table in tables for v in table.values() if _is_named(v))
        return list(names)

    def _values(self, written: Any) -> Sequence[Any]:
        return self.named(written[_FROM]) if _is_named(written) else _values(written)


def _is_named(written: Any) -> bool:
    return isinstance(written, dict) and set(written) == {_FROM}


def _one_type(grids: Sequence[Mapping[str, Any]]) -> None:
    """A key is a column of the results, which is of text or of numbers."""
    text: dict[str, bool] = {}
    for grid in grids:
        for key, written in grid["over"].items():
            for value in () if _is_named(written) else _values(written):
                if text.setdefault(key, isinstance(value, str)) != isinstance(value, str):
                    raise ValueError(f"`{key}` is text in one place and a number in another: {value!r}")


def _quick(grid: Mapping[str, Any], world: str) -> dict[str, Any] | None:
    """What the quick subset has in place of a grid's values; None: nothing of the grid."""
    quick = grid.get("quick", {})
    own = quick is not False and quick.get(world, {})
    return None if own is False else {**_without(quick, WORLDS), **own}


def _without(table: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _values(written: Any) -> tuple[Any, ...]:
    """A list as it is; `"1..8"` is 1 to 8; anything else is one value."""
    if isinstance(written, list):
        return tuple(written)
    if isinstance(written, str) and (both := _RANGE.fullmatch(written)):
        return tuple(range(int(both[1]), int(both[2]) + 1))
    return (written,)


def _known(where: str, table: Any, allowed: tuple[str, ...], needed: tuple[str, ...]) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{where} is not a table")
    for key in table:
        if key not in allowed:
            raise ValueError(f"{where} has no key `{key}`; allowed: {', '.join(allowed)}")
    for key in needed:
        if key not in table:
            raise ValueError(f"{where} lacks `{key}`")


def _worlds(where: str, written: Any, allowed: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(written, list | tuple) or not written or any(one not in allowed for one in written):
        raise ValueError(f"{where}: worlds is {written!r}; a list of {', '.join(allowed)} is wanted")
    return tuple(written)


def _claim(data: Any, worlds: tuple[str, ...], grids: Sequence[Mapping[str, Any]]) -> Claim:
    where = f"claim `{data.get('id', '?')}`" if isinstance(data, dict) else "a [[claim]]"
    _known(where, data, _CLAIM, _CLAIM[:6])
    seeds = tuple(one for part in _values(data.get("seeds", [])) for one in _values(part))
    own = _worlds(where, data.get("worlds", worlds), worlds)
    if "uncounted" in data and not (isinstance(data["uncounted"], str) and data["uncounted"]):
        raise ValueError(f"{where}: uncounted is {data['uncounted']!r}; the reason is wanted")
    samples = _samples(where, data.get("samples", {}), grids)
    kinds = _kinds(where, data["kind"], own)
    return Claim(**{**data, "kind": kinds, "seeds": seeds, "worlds": own, "samples": samples})


def _samples(where: str, written: Any, grids: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Every value must be one that a grid has."""
    known: dict[str, set[Any]] = {"grid": {grid["name"] for grid in grids}}
    for grid in grids:
        for table in (grid["over"], *(grid.get(world, {}) for world in WORLDS)):
            for key, values in table.items():
                known.setdefault(key, set()).update(() if _is_named(values) else _values(values))
    _known(f"{where}, samples", written, tuple(known), ())
    found = {key: _values(values) for key, values in written.items()}
    for key, values in found.items():
        for value in values:
            if value not in known[key]:
                raise ValueError(f"{where}: no sample has {key} = {value!r}")
    return found


def _kinds(where: str, written: Any, worlds: tuple[str, ...]) -> dict[str, str]:
    """One kind for all worlds of the claim, or a table with one for each."""
    kinds = written if isinstance(written, dict) else dict.fromkeys(worlds, written)
    if set(kinds) != set(worlds):
        raise ValueError(f"{where}: kind is for {', '.join(kinds) or 'no world'}; the claim's are {', '.join(worlds)}")
    for kind in kinds.values():
        if kind not in KINDS:
            raise ValueError(f"{where}: kind is {kind!r}; allowed: {', '.join(KINDS)}")
    return dict(kinds)
