"""Rounds into a model: every round is stored as soon as it is measured, so that an interruption loses none."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pathcast.errors import Exit, PathcastError, usage
from pathcast.forecast.model import MINIMUM_ROUNDS, OTHER_FILE, Model, ModelPath, present, written
from pathcast.forecast.rounds import MINIMUM_SHARE, Round, Task, measure, too_many
from pathcast.runtime.state import run_dir
from pathcast.worlds.world import World

if TYPE_CHECKING:
    from pathcast.predict import PathChoice

# so many rounds left out, and too many: the rest would fare no better
STOP_AT = 3
GO_ON = "the same command goes on from there"

OpenWorld = Callable[[], AbstractContextManager[World]]


class Listener(Protocol):
    """Who is told how far the learning is."""

    def begin(self, task: Task, rounds: int) -> None: ...
    def progress(self, bytes: int) -> None: ...
    def round(self, number: int, round: Round) -> None: ...


@dataclass(frozen=True)
class LearnOptions:
    """What was asked for. None: as the model has it, or the default."""

    bytes: int
    rounds: int = 12
    probe_bytes: int | None = None
    paths: tuple[str, ...] | None = None
    choices: tuple[tuple[str, ...], ...] = ()
    control: str | None = None
    pause_s: float = 0.0
    set: dict[str, str] | None = None

    PROBE_BYTES: ClassVar[int] = 64_000

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= 10_000:
            raise usage(f"--rounds {self.rounds}: allowed are 1 to 10000")
        if self.probe_bytes is not None and self.probe_bytes < 1:
            raise usage("--probe: a probe has at least one byte")


def learn(
    file: Path, world_name: str, target: str, open_world: OpenWorld, options: LearnOptions, listener: Listener
) -> Learning:
    """One run, for `untrustworthy` to judge. `open_world` is called for every round: a session each.

    Raises PathcastError: exit 2 when the model in `file` is of something else, 3 or 1 when it stops early since too
    many rounds had to be left out, 130 when interrupted. In every case the rounds that were measured are in the file.
    """
    with _alone(file):
        model = Model.load(file) if file.exists() else None
        notes: list[str] = []
        with open_world() as world:
            options = _named(options, world)
            if model is None:
                model = _new(world_name, target, world, options, notes)
            else:
                of(model, file, world_name, target)
            # where draws are repeatable, these rounds must not be those that the model has
            world.fresh(len(model.rounds))
            names, changed = present(model, world)
            notes += changed
            wait = world.wait
            extra = [p.name for p in world.paths if p.name not in names.values()]
        if options.paths is None and extra:
            notes.append(f"not in the model: {', '.join(extra)}; to learn them too, give another --model FILE")
        _check(model, file, names, options)
        model.choices = tuple(dict.fromkeys((*model.choices, *_choices(options, names))))
        if options.bytes <= model.probe_bytes:
            raise usage(
                f"--size {written(options.bytes)} is not larger than a probe of {written(model.probe_bytes)}",
                "give a larger --size, or a smaller --probe to a new model",
            )
        run = Learning(file, model, options, notes)
        try:
            run.measure(open_world, listener, wait)
            run.fit()
        except BaseException as error:
            run.keep()
            if not isinstance(error, KeyboardInterrupt):
                raise
            raise PathcastError("interrupted", f"interrupted; {run.kept()}", run.go_on, Exit.INTERRUPTED) from None
    return run


@dataclass
class Learning:
    """One run over a model. rounds: those that it has measured. fitted: predictors by size, where rounds suffice."""

    file: Path
    model: Model
    options: LearnOptions
    notes: list[str]
    rounds: list[Round] = field(default_factory=list)
    fitted: dict[int, PathChoice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stored = len(self.model.rounds)

    def measure(self, open_world: OpenWorld, listener: Listener, wait: Callable[[float], object]) -> None:
        """Measures and stores every round."""
        wanted = self.options.rounds
        listener.begin(self._task(), wanted)
        for number in range(1, wanted + 1):
            if number > 1 and self.options.pause_s:
                wait(self.options.pause_s)
            round = self._round(open_world, listener)
            self.model.rounds.append(round)
            self.rounds.append(round)
            if round.left_out is None:
                self.model.control = round.control
            self.keep()
            listener.round(number, round)
            if len(self.left_out) >= STOP_AT and (error := self.untrustworthy()):
                raise error

    def _task(self) -> Task:
        m, o = self.model, self.options
        return Task(m.names, o.bytes, m.probe_bytes, m.control, m.choices, o.set)

    def _round(self, open_world: OpenWorld, listener: Listener) -> Round:
        task = self._task()
        try:
            with open_world() as world:
                names, _ = present(self.model, world)
                if silent := world.silent(list(names.values())):
                    down = "; ".join(f"{path} is down: {why}" for path, why in silent.items())
                    return replace(task.round(), left_out=down, error="path-down")
                return measure(world, names, task, listener.progress)
        except PathcastError as error:
            if error.exit != Exit.RUNTIME and error.code != "path-gone":
                raise PathcastError(error.code, f"{error.message}; {self.kept()}", error.hint, error.exit) from None
            # the session did not come about
            return replace(task.round(), left_out=error.message, error=error.code)

    def keep(self) -> None:
        """Stores what is not stored yet. A model without any round that counts is not worth a file."""
        if self._stored < len(self.model.rounds) and self.model.sizes():
            self.model.save(self.file)
            self._stored = len(self.model.rounds)

    def kept(self) -> str:
        """What the file holds, for people."""
        if not self.model.sizes():
            return "no round is kept"
        count = len(self.model.rounds)
        return f"{count} {'rounds are' if count > 1 else 'round is'} kept in {self.file}"

    @property
    def go_on(self) -> str | None:
        """What to do after its early end; None where there is nothing to go on from."""
        return GO_ON if self.model.sizes() else None

    def fit(self) -> None:
        """Fits what can be predicted now: what a prediction does too."""
        ready = [size for size, count in self.model.sizes().items() if count >= MINIMUM_ROUNDS]
        self.fitted = {size: self.model.fit(size) for size in ready}

    @property
    def left_out(self) -> list[Round]:
        """The rounds of this run that do not count."""
        return [r for r in self.rounds if r.left_out is not None]

    def untrustworthy(self) -> PathcastError | None:
        """The error that a run ends with when more than one in ten of its rounds had to be left out.

        Exit 1 when the last of them failed, else 3.
        """
        out = self.left_out
        if not too_many(len(out), self.options.rounds):
            return None
        last, some = out[-1], f"{len(out)} of {len(self.rounds)} rounds"
        if last.error:
            return PathcastError(last.error, f"{some} failed, the last: {last.left_out}; {self.kept()}", self.go_on)
        return PathcastError(
            "untrustworthy",
            f"{some} had to be left out, the last because {last.left_out}; {self.kept()}",
            "leave the machine alone while it measures; where Multipath TCP falls back, learn single paths by --paths",
            Exit.UNTRUSTWORTHY,
        )

    def document(self) -> dict[str, Any]:
        """For JSON."""
        model, left_out = self.model, len(self.left_out)
        sizes = []
        for size, count in model.sizes().items():
            predictors = self.fitted[size].predictors_ if size in self.fitted else {}
            choices = [{"paths": list(paths), "rmse_bps": p.best_rmse_bps_} for paths, p in predictors.items()]
            needed = max(0, MINIMUM_ROUNDS - count)
            sizes.append({"bytes": size, "rounds": count, "needed": needed, "choices": choices})
        return {
            "world": model.world,
            "target": model.target,
            "model": {
                "file": str(self.file),
                "paths": [vars(p) for p in model.paths],
                "control": model.control,
                "probe_bytes": model.probe_bytes,
                "choices": [list(c) for c in model.choices],
                "rounds": len(model.rounds),
                "sizes": sizes,
            },
            "size_bytes": self.options.bytes,
            "rounds": [r.document() for r in self.rounds],
            "counted": {
                "measured": len(self.rounds) - left_out,
                "left_out": left_out,
                "repeated": sum(r.attempts - 1 for r in self.rounds),
            },
            "kept": self.kept(),
            "sent_bytes": sum(r.sent_bytes for r in self.rounds),
            "warnings": [*self.notes, *self._warnings()],
        }

    def _warnings(self) -> list[str]:
        counted = [r for r in self.rounds if r.left_out is None]
        found = list(dict.fromkeys(note for r in counted for note in r.notes))
        carried = [r.subflow_bytes for r in counted if r.subflow_bytes is not None]
        for i, path in enumerate(self.model.names):
            idle = sum(of[i] < MINIMUM_SHARE * sum(of) for of in carried)
            if 2 * idle > len(counted):
                found.append(f"{path} carried next to nothing in {idle} of {len(counted)} transfers over all paths")
        return found


def _named(options: LearnOptions, world: World) -> LearnOptions:
    """With the paths' own names; of words that name none it is said where they are looked at."""

    def own(word: str) -> str:
        with suppress(PathcastError):
            return world.path(word).name
        return word

    paths = None if options.paths is None else tuple(map(own, options.paths))
    return replace(options, paths=paths, choices=tuple(tuple(map(own, choice)) for choice in options.choices))


def _new(world_name: str, target: str, world: World, options: LearnOptions, notes: list[str]) -> Model:
    paths = [world.path(name) for name in options.paths] if options.paths else list(world.paths)
    if paths and not options.paths:
        silent = world.silent()
        notes += [f"{path} is down and not learnt: {why}" for path, why in silent.items()]
        paths = [path for path in paths if path.name not in silent] or paths
    if not paths:
        raise PathcastError("no-path", f"there is no usable path to {target}", "see `pathcast paths`")
    if len(set(options.paths or ())) < len(options.paths or ()):
        raise usage(f"--paths {','.join(options.paths or ())}: name each path once")
    pairs = tuple(ModelPath(p.name, p.local[0], p.remote) for p in paths)
    return Model(world_name, target, pairs, options.probe_bytes or LearnOptions.PROBE_BYTES, options.control)


def _check(model: Model, file: Path, names: dict[str, str], options: LearnOptions) -> None:
    """Refuses to add rounds of one thing to a model of another."""
    if options.paths is not None and options.paths != (has := tuple(names.values())):
        raise usage(
            f"the model `{file}` is of the paths {','.join(has)}, asked for are {','.join(options.paths)}", OTHER_FILE
        )
    if options.probe_bytes not in (None, model.probe_bytes):
        asked, learnt = written(options.probe_bytes), written(model.probe_bytes)
        raise usage(f"the model `{file}` was learnt with --probe {learnt}, asked for is {asked}", OTHER_FILE)
    of_control(model, file, options.control)


def of_control(model: Model, file: Path, control: str | None) -> None:
    """Refuses a model of another controller."""
    if control not in (None, model.control):
        raise usage(f"the model `{file}` was learnt with --control {model.control}, asked for is {control}", OTHER_FILE)


def of(model: Model, file: Path, world_name: str, target: str) -> None:
    """Refuses a model of another world or, but in `host`, of another topology; hosts are told apart by addresses."""
    if model.world != world_name or (world_name != "host" and model.target != target):
        raise usage(
            f"the model `{file}` was learnt of {model.target} in world {model.world}, asked for is {target} in world "
            f"{world_name}",
            OTHER_FILE,
        )


def _choices(options: LearnOptions, names: dict[str, str]) -> list[tuple[str, ...]]:
    """The further choices by the model's names; `names` are those of now."""
    learnt = {new: old for old, new in names.items()}
    for choice in options.choices:
        unknown = [p for p in choice if p not in learnt]
        if unknown:
            raise usage(f"--choice {','.join(choice)}: no path `{unknown[0]}`; allowed: {', '.join(learnt)}")
        if len(set(choice)) < len(choice) or len(choice) < 2 or choice == tuple(learnt):
            raise usage(
                f"--choice {','.join(choice)}: give some of the paths, two at least, each once",
                "single paths and all paths together are always measured",
            )
    return [tuple(learnt[p] for p in choice) for choice in options.choices]


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """One `learn` at a time on a file: two would each overwrite the other's rounds."""
    name = hashlib.sha256(os.fsencode(file.absolute().resolve())).hexdigest()[:16]
    lock = run_dir() / f"learn.{name}"
    while True:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise PathcastError("busy", f"another `pathcast learn` is adding to {file}", "wait for its end") from None
        if _names(lock, fd):
            break
        os.close(fd)  # its holder has just ended, and removed it
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()  # before it comes free: nobody else may hold it then
        os.close(fd)


def _names(path: Path, fd: int) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False
