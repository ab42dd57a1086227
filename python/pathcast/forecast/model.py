"""A model: the rounds that were measured on the paths to one target, in one file. What predicts is fitted from them.

The file is one JSON document, `Model` as it stands here with "schema": "pathcast.learnt/2" before it. The same rounds
give the same predictors.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast import codec
from pathcast.errors import Exit, PathcastError, usage
from pathcast.files import read_file
from pathcast.forecast.rounds import Round
from pathcast.worlds.world import World

if TYPE_CHECKING:
    from pathcast.predict import PathChoice

SCHEMA = "pathcast.learnt/2"
# some 30,000 rounds; a file of this size that is made for it takes twenty times as much memory to read
LARGEST_BYTES = 16 * 1024 * 1024
OTHER_FILE = "give another --model FILE for it"
LEARN_AGAIN = "learn again, with `pathcast learn`: into another --model FILE, or with this one out of the way"
MINIMUM_ROUNDS = 8
# of more rounds of a size the newest count: conditions change, and every prediction fits them again
NEWEST_ROUNDS = 200


class ModelFileError(PathcastError):
    """A model file that is missing, damaged, foreign or of another schema. Exit 2."""

    def __init__(self, path: Path, problem: str, hint: str) -> None:
        super().__init__("model-file", f"model file '{path}': {problem}", hint, Exit.USAGE)


def default_file(world: str, target: str) -> Path:
    """`$XDG_DATA_HOME/pathcast/models/<host>.model`; of a network from a file `<world>-<topology>.model`."""
    home = os.environ.get("XDG_DATA_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share"
    name = re.sub(r"[^A-Za-z0-9._-]", "_", target).lstrip(".") or "_"
    return base / "pathcast" / "models" / f"{name if world == 'host' else f'{world}-{name}'}.model"


@dataclass(frozen=True)
class ModelPath:
    """A path of the model: its name when it was learnt, and the addresses that it is known by."""

    name: str
    local: str
    remote: str

    def __str__(self) -> str:
        return f"{self.name} ({self.local} to {self.remote})"


@dataclass
class Model:
    """What is known of the paths to one target.

    control: the controller of every probe and transfer; None until the first round says which one was in use.
    choices: further choices of paths that every round measures, beside each path alone and all together.
    rounds: all that were measured, in their order, also those that do not count.
    """

    world: str
    target: str
    paths: tuple[ModelPath, ...]
    probe_bytes: int
    control: str | None = None
    choices: tuple[tuple[str, ...], ...] = ()
    rounds: list[Round] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """The paths' names, in the order of the probes."""
        return tuple(path.name for path in self.paths)

    def counted(self, bytes: int) -> list[Round]:
        """The rounds with transfers of that size that count."""
        return [r for r in self.rounds if r.bytes == bytes and r.left_out is None]

    def sizes(self) -> dict[int, int]:
        """Rounds that count, by transfer size."""
        counts = {size: len(self.counted(size)) for size in sorted({r.bytes for r in self.rounds})}
        return {size: count for size, count in counts.items() if count}

    def fit(self, bytes: int) -> PathChoice:
        """The predictors for transfers of that size, fitted on the newest rounds that count."""
        from pathcast.predict import PathChoice

        training = [r.features() for r in self.counted(bytes)[-NEWEST_ROUNDS:]]
        return PathChoice(self.names, min_rounds=MINIMUM_ROUNDS).fit(training)

    def save(self, file: Path) -> None:
        """Writes it, whole or not at all; makes the directory."""
        header = {**vars(self), "paths": [vars(path) for path in self.paths]}
        del header["rounds"]
        rounds = ",\n".join(json.dumps(r.document(), allow_nan=False) for r in self.rounds)
        text = f'{json.dumps({"schema": SCHEMA, **header})[:-1]}, "rounds": [\n{rounds}\n]}}\n'.encode()
        if len(text) > LARGEST_BYTES:
            raise PathcastError("model-file", f"the model `{file}` is full: {len(self.rounds)} rounds", OTHER_FILE)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, text)
        except OSError as error:
            raise PathcastError(
                "model-file",
                f"cannot write the model `{file}`: {error.strerror}",
                "make room or mend the permissions, or give another --model FILE",
                Exit.RUNTIME,
            ) from None

    @classmethod
    def load(cls, file: Path) -> Model:
        """Reads what `save` wrote. Raises ModelFileError."""
        data = _bytes(file)
        if data.startswith(b"PK"):
            raise ModelFileError(file, "is of an older pathcast, which stored predictors", LEARN_AGAIN)
        try:
            document = json.loads(data, parse_constant=_no_number)
            schema = document["schema"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ModelFileError(file, f"is no pathcast model, or is cut off ({error!r:.80})", LEARN_AGAIN) from None
        if schema != SCHEMA:
            problem = f"has schema {schema!r:.80}, this version reads {SCHEMA!r}"
            raise ModelFileError(file, problem, f"use the version that wrote it, or {LEARN_AGAIN}")
        try:
            found = codec.read(cls, document)
            found._check()
        except (ValueError, RecursionError) as error:
            raise ModelFileError(file, f"holds what no model does: {error}", LEARN_AGAIN) from None
        return found

    def _check(self) -> None:
        """Raises ValueError where parts do not fit each other; a round that counts is checked by `as_round`."""
        from pathcast.predict.features import as_round

        texts = [text for path in self.paths for text in vars(path).values()]
        if not all(text.isprintable() for text in (self.world, self.target, self.control or "", *texts)):
            raise ValueError("a name that cannot be printed")
        if any(set(choice) - set(self.names) for choice in self.choices):
            raise ValueError(f"a choice of paths other than {', '.join(self.names)}")
        names, sizes = self.names, [self.probe_bytes, *(r.bytes for r in self.rounds)]
        if not names or len(set(names)) < len(names) or min(sizes) < 1:
            raise ValueError("no paths, two of one name, or a size below 1 B")
        for number, of in enumerate(self.rounds):
            if of.left_out is not None:
                continue
            where = f"round {number}"
            checked = as_round(of.features(), where)
            if len(checked.probes_bps) != len(names) or checked.tcp_bps is None:
                raise ValueError(f"{where} is not of the paths {', '.join(names)}")
            if len(names) > 1 and checked.actual_bps is None:
                raise ValueError(f"{where} has no transfer over all paths")
            if any(set(choice) - set(names) or len(set(choice)) < len(choice) for choice in checked.subset_bps):
                raise ValueError(f"{where} has a choice of other paths")


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _bytes(file: Path) -> bytes:
    try:
        return read_file(file, LARGEST_BYTES)
    except FileNotFoundError:
        raise ModelFileError(file, "there is no such file", "make one with `pathcast learn`") from None
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise ModelFileError(file, problem, "check the path and its permissions") from None


def _write(file: Path, data: bytes) -> None:
    """Beside the target, then renamed over it: whoever reads sees the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def written(bytes: int) -> str:
    """A size as it can be given to `--size`: `64MB`."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if bytes >= size and bytes % size == 0:
            return f"{bytes // size}{unit}"
    return f"{bytes}B"


def _known(paths: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """Names by address pair; of several paths of one pair, which switches tell apart, by the name, too."""
    pairs = Counter(path[1:] for path in paths)
    return {(local, remote, name if pairs[local, remote] > 1 else ""): name for name, local, remote in paths}


def present(model: Model, world: World, only: Sequence[str] | None = None) -> tuple[dict[str, str], list[str]]:
    """What the paths of a model are called now, by their address pairs, and notes about what has changed.

    Names of paths go by their order, which a new default route may change; the address pair is what a path is known by.
    only: names of now, the paths that are wanted. Raises PathcastError (exit 2) when a wanted one is gone or unknown.
    """
    now = _known([(p.name, p.local[0], p.remote) for p in world.paths])
    known = _known([(p.name, p.local, p.remote) for p in model.paths])
    wanted = None if only is None else tuple(world.path(name).name for name in only)
    for name in wanted or ():
        if next(ends for ends, called in now.items() if called == name) not in known:
            raise usage(
                f"path `{name}` is not in the model, which knows {', '.join(map(str, model.paths))}", OTHER_FILE
            )
    names = {name: now[ends] for ends, name in known.items() if ends in now}
    if wanted is not None:
        names = {old: new for old, new in names.items() if new in wanted}
    elif len(names) < len(model.paths):
        gone = ", ".join(str(p) for p in model.paths if p.name not in names)
        there = ", ".join(f"{name} ({local} to {remote})" for (local, remote, _), name in now.items()) or "none"
        raise PathcastError(
            "path-gone",
            f"the model knows {gone}, not there now; there are: {there}",
            "bring it up again, or learn into another --model FILE"
            + (f"; predict without it: --paths {','.join(names.values())}" if names else ""),
            Exit.USAGE,
        )
    notes = [f"{old} of the model is called {new} now" for old, new in names.items() if old != new]
    return names, notes
