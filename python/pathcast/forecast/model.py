"""A learnt model: one file of measured rounds and of the predictors that were fitted on them, one a transfer size.

The file is a sealed archive (`predict/sealed.py`) of

    model.json             schema "pathcast.learnt/1": world, target, paths with their address pairs, bytes of a probe,
                           controller, further choices of paths
    rounds.jsonl           every round, one a line, in the order in which they were measured
    predictor-BYTES.model  what `predict/store.py` writes: the PathChoice for transfers of that size

The rounds are the truth. A predictor that was not fitted on exactly these is fitted again.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathcast.errors import Exit, PathcastError, missing, usage
from pathcast.predict.errors import ModelFileError
from pathcast.predict.sealed import LEARN_AGAIN, read, seal, unseal, write

SCHEMA = "pathcast.learnt/1"
OTHER_FILE = "give another --model FILE for it"
MINIMUM_ROUNDS = 8
# what predictors take of a round
_FEATURES = ("probes_bps", "mptcp_probe_bps", "actual_bps", "tcp_bps", "subset_bps")


def default_file(world: str, target: str) -> Path:
    """`$XDG_DATA_HOME/pathcast/models/<host>.model`; of a network from a file `<world>-<topology>.model`."""
    home = os.environ.get("XDG_DATA_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share"
    name = re.sub(r"[^A-Za-z0-9._-]", "_", target).lstrip(".") or "_"
    return base / "pathcast" / "models" / f"{name if world == 'host' else f'{world}-{name}'}.model"


def check_packages() -> None:
    """Refuses (exit 5) where the packages that predict are not installed."""
    from importlib.util import find_spec

    lacking = [name for name in ("numpy", "sklearn", "skops") if find_spec(name) is None]
    if lacking:
        raise missing(f"no Python package {', '.join(lacking)}", "pip install 'pathcast[predict]'")


@dataclass(frozen=True)
class Pair:
    """A path of the model: its name when it was learnt, and the addresses that it is known by."""

    name: str
    local: str
    remote: str

    def __str__(self) -> str:
        return f"{self.name} ({self.local} to {self.remote})"


@dataclass
class Learnt:
    """What is known of the paths to one target.

    control: the controller of every probe and transfer; None until the first round says which one was in use.
    choices: further choices of paths that every round measures, beside each path alone and all together.
    rounds: documents as `rounds.measure` makes them. predictors: stored bytes by transfer size.
    """

    world: str
    target: str
    paths: tuple[Pair, ...]
    probe_bytes: int
    control: str | None = None
    choices: tuple[tuple[str, ...], ...] = ()
    rounds: list[dict[str, Any]] = field(default_factory=list)
    predictors: dict[int, bytes] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The paths' names, in the order of the probes."""
        return tuple(p.name for p in self.paths)

    def training(self, bytes: int) -> list[dict[str, Any]]:
        """The rounds with transfers of that size that count."""
        return [r for r in self.rounds if r["bytes"] == bytes and r["left_out"] is None]

    def sizes(self) -> dict[int, int]:
        """Rounds that count, by transfer size."""
        sizes = sorted({r["bytes"] for r in self.rounds})
        return {size: len(self.training(size)) for size in sizes if self.training(size)}

    def fit(self, bytes: int) -> Any:
        """The PathChoice for transfers of that size and the warnings about it; fitted now if it is not up to date."""
        from pathcast.predict import PathChoice, training_hash
        from pathcast.predict.store import dumps, loads

        rounds = [features(r) for r in self.training(bytes)]
        stored = self.predictors.get(bytes)
        if stored is not None:
            found = loads(stored, f"predictor-{bytes}.model")
            if found.training_sha256 == training_hash(rounds) and isinstance(found.predictor, PathChoice):
                return found.predictor, found.warnings
        choice = PathChoice(self.names, min_rounds=MINIMUM_ROUNDS).fit(rounds)
        about = {"bytes": bytes, "probe_bytes": self.probe_bytes, "control": self.control, "world": self.world}
        self.predictors[bytes] = dumps(choice, about, rounds=rounds)
        return choice, []

    def trained_on(self, bytes: int) -> list[tuple[float, float]]:
        """Per path, the probes [bit/s] between which a prediction is trusted: the range that was trained on, widened.

        Another draw from the conditions of n rounds lies outside of their range in two of n + 1 cases, without anything
        having changed. So the range is widened, on the logarithmic scale, by twice the mean distance of neighbours,
        and by 5 % at least.
        """
        ranges = []
        for probes in zip(*(r["probes_bps"] for r in self.training(bytes)), strict=True):
            low, high = math.log(min(probes)), math.log(max(probes))
            margin = max(math.log(1.05), 2 * (high - low) / max(1, len(probes) - 1))
            ranges.append((math.exp(low - margin), math.exp(high + margin)))
        return ranges

    def save(self, file: Path) -> None:
        """Writes everything, whole or not at all; makes the directory."""
        header = {
            "schema": SCHEMA,
            "world": self.world,
            "target": self.target,
            "paths": [vars(p) for p in self.paths],
            "probe_bytes": self.probe_bytes,
            "control": self.control,
            "choices": self.choices,
        }
        members = {
            "model.json": json.dumps(header, indent=1).encode(),
            "rounds.jsonl": "".join(json.dumps(r, allow_nan=False) + "\n" for r in self.rounds).encode(),
            **{f"predictor-{size}.model": data for size, data in sorted(self.predictors.items())},
        }
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, seal(members, "learnt"))
        except OSError as error:
            raise PathcastError(
                "model-file",
                f"cannot write the model `{file}`: {error.strerror}",
                "make room or mend the permissions, or give another --model FILE",
                Exit.RUNTIME,
            ) from None

    @classmethod
    def load(cls, file: Path) -> Learnt:
        """Reads what `save` wrote. Raises ModelFileError. Predictors are looked at when they are asked for."""
        members = unseal(file, read(file), "learnt")
        try:
            header = json.loads(members.pop("model.json"))
            schema = header.pop("schema")
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ModelFileError(file, f"has no readable model.json ({error!r})", LEARN_AGAIN) from None
        if schema != SCHEMA:
            raise ModelFileError(
                file,
                f"has schema {schema!r}, this version reads {SCHEMA!r}",
                f"use the version that wrote it, or {LEARN_AGAIN}",
            )
        try:
            paths = tuple(Pair(**p) for p in header.pop("paths"))
            choices = tuple(tuple(c) for c in header.pop("choices"))
            rounds = [json.loads(line) for line in members.pop("rounds.jsonl").splitlines()]
            predictors = {int(re.fullmatch(r"predictor-(\d+)\.model", n)[1]): data for n, data in members.items()}
            found = cls(paths=paths, choices=choices, rounds=rounds, predictors=predictors, **header)
            found.sizes()
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ModelFileError(file, f"lacks a part that the schema asks for ({error!r})", LEARN_AGAIN) from None
        return found


def written(bytes: int) -> str:
    """A size as it can be given to `--size`: `64MB`."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if bytes >= size and bytes % size == 0:
            return f"{bytes // size}{unit}"
    return f"{bytes}B"


def features(round: dict[str, Any]) -> dict[str, Any]:
    """What predictors take of a stored round."""
    return {key: round.get(key) for key in _FEATURES}


def present(model: Learnt, world: Any, only: Sequence[str] | None = None) -> tuple[dict[str, str], list[str]]:
    """What the paths of a model are called now, by their address pairs, and notes about what has changed.

    Names of paths go by their order, which a new default route may change; the address pair is what a path is known by.
    only: names of now, the paths that are wanted. Raises PathcastError (exit 2) when a wanted one is gone or unknown.
    """
    now = {(p.local[0], p.remote): p.name for p in world.paths}
    known = {(p.local, p.remote) for p in model.paths}
    for name in only or ():
        path = world.path(name)
        if (path.local[0], path.remote) not in known:
            raise usage(
                f"path `{name}` is not in the model, which knows {', '.join(map(str, model.paths))}", OTHER_FILE
            )
    names = {p.name: now[p.local, p.remote] for p in model.paths if (p.local, p.remote) in now}
    if only is not None:
        names = {old: new for old, new in names.items() if new in only}
    elif len(names) < len(model.paths):
        gone = ", ".join(str(p) for p in model.paths if p.name not in names)
        there = ", ".join(f"{name} ({local} to {remote})" for (local, remote), name in now.items()) or "none"
        raise usage(
            f"the model knows {gone}, not there now; there are: {there}",
            "bring it up again, or learn into another --model FILE"
            + (f"; predict without it: --paths {','.join(names.values())}" if names else ""),
        )
    notes = [f"{old} of the model is called {new} now" for old, new in names.items() if old != new]
    return names, notes
