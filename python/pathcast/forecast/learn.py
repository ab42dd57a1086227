"""Rounds into a model: every round is stored as soon as it is measured, so that an interruption loses none."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pathcast.errors import Exit, PathcastError, usage
from pathcast.forecast.model import MINIMUM_ROUNDS, OTHER_FILE, Learnt, Pair, present, written
from pathcast.forecast.rounds import Task, empty, measure
from pathcast.state import run_dir

# more than one round in so many left out: what is left is not to be trusted
LEFT_OUT_LIMIT = 0.1
# so many rounds left out, and the limit passed: the rest would fare no better
STOP_AT = 3
# a path that carries less than this share of the bytes does not take part
MINIMUM_SHARE = 0.02
GO_ON = "the same command goes on from there"

OpenWorld = Callable[[], AbstractContextManager[Any]]


class Listener(Protocol):
    """Who is told how far the learning is."""

    def begin(self, task: Task, rounds: int) -> None: ...
    def heard(self, bytes: int) -> None: ...
    def round(self, number: int, document: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Wish:
    """What was asked for. None: as the model has it, or the default."""

    bytes: int
    rounds: int = 12
    probe_bytes: int | None = None
    paths: tuple[str, ...] | None = None
    choices: tuple[tuple[str, ...], ...] = ()
    control: str | None = None
    pause_s: float = 0.0
    about: dict[str, Any] | None = None

    PROBE_BYTES: ClassVar[int] = 64_000

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= 10_000:
            raise usage(f"--rounds {self.rounds}: allowed are 1 to 10000")
        if self.probe_bytes is not None and self.probe_bytes < 1:
            raise usage("--probe: a probe has at least one byte")


def learn(file: Path, world_name: str, target: str, open_world: OpenWorld, wish: Wish, listener: Listener) -> dict:
    """The document of one run, for `untrustworthy` to judge. `open_world` is called for every round: a session each.

    Raises PathcastError: exit 2 when the model in `file` is of something else, 3 or 1 when it stops early since too
    many rounds had to be left out, 130 when interrupted. In every case the rounds that were measured are in the file.
    """
    with _alone(file):
        model = Learnt.load(file) if file.exists() else None
        with open_world() as world:
            if model is None:
                model = _new(world_name, target, world, wish)
            else:
                of(model, file, world_name, target)
            # where draws are repeatable, these rounds must not be those that the model has
            world.fresh(len(model.rounds))
            names, notes = present(model, world)
            wait = time.sleep if world.real_time else world.wait
            extra = [p.name for p in world.paths if p.name not in names.values()]
        if wish.paths is None and extra:
            notes.append(f"not in the model: {', '.join(extra)}; to learn them too, give another --model FILE")
        _check(model, file, names, wish)
        model.choices = tuple(dict.fromkeys((*model.choices, *_choices(wish, names))))
        if wish.bytes <= model.probe_bytes:
            raise usage(
                f"--size {written(wish.bytes)} is not larger than a probe of {written(model.probe_bytes)}",
                "give a larger --size, or a smaller --probe to a new model",
            )
        run = _Run(file, model, open_world, wish, listener, wait)
        try:
            run.rounds_()
            run.fit()
        except BaseException as error:
            run.keep()
            if not isinstance(error, KeyboardInterrupt):
                raise
            raise PathcastError("interrupted", f"interrupted; {run.kept()}", GO_ON, Exit.INTERRUPTED) from None
    return run.document(notes)


class _Run:
    """One run over a model."""

    def __init__(
        self,
        file: Path,
        model: Learnt,
        open_world: OpenWorld,
        wish: Wish,
        listener: Listener,
        wait: Callable[[float], object],
    ) -> None:
        self._file, self._model, self._open = file, model, open_world
        self._wish, self._listener, self._wait = wish, listener, wait
        self._done: list[dict[str, Any]] = []
        self._dirty = False

    def rounds_(self) -> None:
        """Measures and stores every round."""
        wish = self._wish
        self._listener.begin(self._task(), wish.rounds)
        for number in range(1, wish.rounds + 1):
            if number > 1 and wish.pause_s:
                self._wait(wish.pause_s)
            round = self._round()
            self._model.rounds.append(round)
            self._dirty = True
            self._done.append(round)
            if round["left_out"] is None:
                self._model.control = round["control"]
            self.keep()
            self._listener.round(number, round)
            if sum(r["left_out"] is not None for r in self._done) >= STOP_AT:
                error = untrustworthy(self._done, wish.rounds, self.kept())
                if error:
                    raise error

    def _task(self) -> Task:
        m, w = self._model, self._wish
        return Task(m.names, w.bytes, m.probe_bytes, m.control, m.choices, w.about)

    def _round(self) -> dict[str, Any]:
        task = self._task()
        try:
            with self._open() as world:
                names, _ = present(self._model, world)
                return measure(world, names, task, self._listener.heard)
        except PathcastError as error:
            if error.exit != Exit.RUNTIME:
                raise PathcastError(error.code, f"{error.message}; {self.kept()}", error.hint, error.exit) from None
            # the session did not come about
            return {**empty(task), "left_out": error.message, "error": error.code}

    def keep(self) -> None:
        """Stores what is not stored yet. A model without any round that counts is not worth a file."""
        if self._dirty and self._model.sizes():
            self._model.save(self._file)
            self._dirty = False

    def kept(self) -> str:
        """What the file holds, for people."""
        if not self._model.sizes():
            return "no round is kept"
        count = len(self._model.rounds)
        return f"{count} {'rounds are' if count > 1 else 'round is'} kept in {self._file}"

    def fit(self) -> None:
        """Fits the predictor of this size, if there are rounds enough."""
        if self._model.sizes().get(self._wish.bytes, 0) >= MINIMUM_ROUNDS:
            before = self._model.predictors.get(self._wish.bytes)
            self._model.fit(self._wish.bytes)
            if self._model.predictors[self._wish.bytes] is not before:
                self._model.save(self._file)

    def document(self, notes: list[str]) -> dict[str, Any]:
        """The result."""
        model, out = self._model, [r for r in self._done if r["left_out"] is not None]
        sizes = []
        for size, count in model.sizes().items():
            about = {"bytes": size, "rounds": count, "needed": max(0, MINIMUM_ROUNDS - count), "choices": []}
            if size in model.predictors:
                choice, _ = model.fit(size)
                about["choices"] = [
                    {"paths": list(paths), "rmse_bps": p.best_rmse_bps_} for paths, p in choice.predictors_.items()
                ]
            sizes.append(about)
        return {
            "world": model.world,
            "target": model.target,
            "model": {
                "file": str(self._file),
                "paths": [vars(p) for p in model.paths],
                "control": model.control,
                "probe_bytes": model.probe_bytes,
                "choices": [list(c) for c in model.choices],
                "rounds": len(model.rounds),
                "sizes": sizes,
            },
            "size_bytes": self._wish.bytes,
            "rounds": self._done,
            "counted": {
                "measured": len(self._done) - len(out),
                "left_out": len(out),
                "repeated": sum(r["attempts"] - 1 for r in self._done),
            },
            "kept": self.kept(),
            "sent_bytes": sum(r["sent_bytes"] for r in self._done),
            "warnings": [*notes, *self._warnings()],
        }

    def _warnings(self) -> list[str]:
        counted = [r for r in self._done if r["left_out"] is None]
        found = list(dict.fromkeys(note for r in counted for note in r["notes"]))
        for i, path in enumerate(self._model.names if len(self._model.paths) > 1 else ()):
            idle = sum(r["subflow_bytes"][i] < MINIMUM_SHARE * sum(r["subflow_bytes"]) for r in counted)
            if 2 * idle > len(counted):
                found.append(f"{path} carried next to nothing in {idle} of {len(counted)} transfers over all paths")
        return found


def untrustworthy(done: Sequence[Mapping[str, Any]], wanted: int, kept: str) -> PathcastError | None:
    """The error that a run ends with when more than one in ten of its rounds had to be left out.

    Exit 1 when the last of them failed, else 3.
    """
    out = [r for r in done if r["left_out"] is not None]
    if len(out) <= LEFT_OUT_LIMIT * wanted:
        return None
    last, some = out[-1], f"{len(out)} of {len(done)} rounds"
    if last["error"]:
        return PathcastError(last["error"], f"{some} failed, the last: {last['left_out']}; {kept}", GO_ON)
    return PathcastError(
        "untrustworthy",
        f"{some} had to be left out, the last because {last['left_out']}; {kept}",
        "leave the machine alone while it measures; where Multipath TCP falls back, learn paths singly with --paths",
        Exit.UNTRUSTWORTHY,
    )


def _new(world_name: str, target: str, world: Any, wish: Wish) -> Learnt:
    paths = [world.path(name) for name in wish.paths] if wish.paths else world.paths
    if not paths:
        raise PathcastError("no-path", f"there is no usable path to {target}", "see `pathcast paths`")
    if len(set(wish.paths or ())) < len(wish.paths or ()):
        raise usage(f"--paths {','.join(wish.paths)}: name each path once")
    pairs = tuple(Pair(p.name, p.local[0], p.remote) for p in paths)
    return Learnt(world_name, target, pairs, wish.probe_bytes or Wish.PROBE_BYTES, wish.control)


def _check(model: Learnt, file: Path, names: dict[str, str], wish: Wish) -> None:
    """Refuses to add rounds of one thing to a model of another."""
    if wish.paths is not None and wish.paths != (has := tuple(names.values())):
        raise usage(
            f"the model `{file}` is of the paths {','.join(has)}, asked for are {','.join(wish.paths)}", OTHER_FILE
        )
    if wish.probe_bytes not in (None, model.probe_bytes):
        asked, has = written(wish.probe_bytes), written(model.probe_bytes)
        raise usage(f"the model `{file}` was learnt with --probe {has}, asked for is {asked}", OTHER_FILE)
    of_control(model, file, wish.control)


def of_control(model: Learnt, file: Path, control: str | None) -> None:
    """Refuses a model of another controller."""
    if control not in (None, model.control):
        raise usage(f"the model `{file}` was learnt with --control {model.control}, asked for is {control}", OTHER_FILE)


def of(model: Learnt, file: Path, world_name: str, target: str) -> None:
    """Refuses a model of another world or, but in `host`, of another topology; hosts are told apart by addresses."""
    if model.world != world_name or (world_name != "host" and model.target != target):
        raise usage(
            f"the model `{file}` was learnt of {model.target} in world {model.world}, asked for is {target} in world "
            f"{world_name}",
            OTHER_FILE,
        )


def _choices(wish: Wish, names: dict[str, str]) -> list[tuple[str, ...]]:
    """The further choices by the model's names; `names` are those of now."""
    learnt = {new: old for old, new in names.items()}
    for choice in wish.choices:
        unknown = [p for p in choice if p not in learnt]
        if unknown:
            raise usage(f"--choice {','.join(choice)}: no path `{unknown[0]}`; allowed: {', '.join(learnt)}")
        if len(set(choice)) < len(choice) or len(choice) < 2 or choice == tuple(learnt):
            raise usage(
                f"--choice {','.join(choice)}: give some of the paths, two at least, each once",
                "single paths and all paths together are always measured",
            )
    return [tuple(learnt[p] for p in choice) for choice in wish.choices]


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """One `learn` at a time on a file: two would each overwrite the other's rounds."""
    name = hashlib.sha256(os.fsencode(file.absolute().resolve())).hexdigest()[:16]
    fd = os.open(run_dir() / f"learn.{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PathcastError("busy", f"another `pathcast learn` is adding to {file}", "wait for its end") from None
        yield
    finally:
        os.close(fd)
