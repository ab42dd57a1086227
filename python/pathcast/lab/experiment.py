"""An experiment: a folder with plan.toml, samples.py, claims.py, show.py and README.md. docs/lab.md has the contract.

samples.py   scenario(point, setup, world) -> all that a sample depends on; sample(scenario, world) -> its columns;
             LISTS = {name: function(setup) -> values}, where the plan takes some from there
claims.py    CLAIMS = {id: function(results, claim) -> Finding}
show.py      TABLES = {name: function(results) -> (header, rows)}, FIGURES = {name: function(results) -> a figure};
             ONLY = {name: world}, where one is not of every world
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pathcast.errors import Exit, PathcastError, usage
from pathcast.files import trusted_users
from pathcast.lab import version
from pathcast.lab.coverage import Coverage, covered
from pathcast.lab.plan import Claim, Plan
from pathcast.lab.sets import over

if TYPE_CHECKING:
    import pandas as pd

Value = TypeVar("Value")
# what the modules of all experiments are under
_ALL = "pathcast_experiments_"
# header, rows
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


class Undecided(Exception):
    """Raised by a claim's function where the results do not suffice; the text is the reason."""


@dataclass(frozen=True)
class Finding:
    """What a claim's function found. `holds`: true, false, or None (undecided); the latter two need the reason.

    ours, reason: a few words each, for a table; `details`: all figures and why, a line each, for the page.
    """

    ours: str
    holds: bool | None
    reason: str | None = None
    details: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.holds is not True and not self.reason:
            raise ValueError("a claim that does not hold, or is undecided, needs its reason")


@dataclass(frozen=True, eq=False)
class Results:
    """Finished samples as rows: the point's keys, the sample's columns, `error` (None: it did not fail), `key`."""

    rows: Sequence[Mapping[str, Any]]
    plan: Plan
    world: str
    quick: bool
    _memory: dict[Any, Any] = field(default_factory=dict)

    @property
    def frame(self) -> pd.DataFrame:
        """The samples that did not fail."""
        import pandas as pd

        return self.once(lambda _: pd.DataFrame([row for row in self.rows if row["error"] is None]), "frame")

    def once(self, function: Callable[[Results], Value], name: str | None = None) -> Value:
        """What `function` makes of the results, computed once for all claims, tables and figures that ask."""
        found = name or function
        if found not in self._memory:
            self._memory[found] = function(self)
        return cast(Value, self._memory[found])

    def swapped(self, column: str, a: Any, b: Any) -> Results:
        """The same samples with two labels of a column exchanged: what no claim about the two may survive."""
        other = {a: b, b: a}
        rows = [{**row, column: other.get(row[column], row[column])} if column in row else row for row in self.rows]
        return Results(rows, self.plan, self.world, self.quick)


class _AsWritten(SourceFileLoader):
    """Python's own cache takes a file of the same second and size for the same: what ran would not be what is named."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder:
    """Of the modules of experiments, on `sys.meta_path`."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not fullname.startswith(_ALL) or path is None:
            return None
        finders = (FileFinder(one, (_AsWritten, [".py"])) for one in path)
        return next((spec for finder in finders if (spec := finder.find_spec(fullname))), None)


class Experiment:
    """One folder. Its modules are imported when they are asked for."""

    def __init__(self, directory: Path, sets: Sequence[tuple[str, str]] = ()) -> None:
        """sets: values over those of the plan's setup (`sets.over`)."""
        self.directory = directory.resolve()
        self.name = directory.name
        self.sets = tuple(sets)
        plan = Plan.load(directory / "plan.toml")
        self.plan = replace(plan, setup=over(plan.setup, sets), named=functools.cache(self._named))

    @functools.cached_property
    def code(self) -> str:
        """What samples depend on beside their scenarios: the extension, the worlds' verbs, samples.py and its imports.

        Raises PathcastError (exit 2) as `module`.
        """
        packages = getattr(self.module("samples"), "PACKAGES", ())
        own = version.files(version.imported(self.directory / "samples.py") | version.packages(packages))
        return "-".join(part[:16] for part in (version.code(), version.worlds(), own))

    def lists(self) -> dict[str, list[Any]]:
        """The lists that the plan takes from samples.py. Raises PathcastError."""
        return {name: list(self.plan.named(name)) for name in self.plan.lists()}

    def _named(self, name: str) -> Sequence[Any]:
        made = getattr(self.module("samples"), "LISTS", {})
        if name not in made:
            raise usage(f"{self.name}: samples.py has no list `{name}`; LISTS has: {', '.join(made) or 'none'}")
        with self.blamed():
            return tuple(made[name](self.plan.setup))

    def module(self, name: str) -> ModuleType:
        """`samples`, `claims` or `show`, as a module of a package of its own, so that it may import its neighbours.

        Raises PathcastError (exit 2) if it is not there, or Python does not understand it.
        """
        if not (self.directory / f"{name}.py").exists():
            raise usage(f"{self.name} has no {name}.py", "what an experiment owes is in docs/lab.md")
        try:
            with self.blamed():
                return import_module(f"{self._package}.{name}")
        except SyntaxError as error:
            raise usage(f"{self.name}: {name}.py, line {error.lineno}: {error.msg}") from None

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """What the experiment's own code raises names its file and line, since it is no fault of pathcast (exit 1)."""
        try:
            yield
        except (PathcastError, Undecided, SyntaxError):
            raise
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == self.directory]
            if not frames or os.environ.get("PATHCAST_DEBUG"):
                raise
            where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
            told = f"{self.name}: {where}: {type(error).__name__}: {error}"
            hint = "a fault of the experiment; PATHCAST_DEBUG=1 shows how it came to it"
            raise PathcastError("experiment", told, hint) from error

    @functools.cached_property
    def _package(self) -> str:
        """The folder as a package in one of all folders beside it, of which its modules may import too."""
        above = _ALL + "".join(c if c.isalnum() else "_" for c in str(self.directory.parent))
        own = f"{above}.{self.name.replace('-', '_')}"
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, cast(Any, _Finder))
        for name, path in ((above, self.directory.parent), (own, self.directory)):
            if name not in sys.modules:
                sys.modules[name] = package = ModuleType(name)
                package.__path__ = [str(path)]
        return own

    def findings(self, results: Results, only: Collection[str] | None = None) -> list[dict[str, Any]]:
        """Every claim of the results' world with its verdict, as the command's document has it; of `only`, if given."""
        functions = self.module("claims").CLAIMS
        planned = {claim.id for claim in self.plan.claims}
        if planned != set(functions):
            odd = ", ".join(sorted(planned ^ set(functions)))
            raise usage(f"{self.name}: plan.toml and claims.py do not have the same claims: {odd}")
        ours = [one for one in self.plan.claims if results.world in one.worlds and (only is None or one.id in only)]
        there = covered(results, ours)
        with self.blamed():
            return [_judged(functions[one.id], results, one, there[one.id]) for one in ours]


def _judged(
    function: Callable[[Results, Claim], Finding],
    results: Results,
    claim: Claim,
    there: Coverage,
) -> dict[str, Any]:
    try:
        found = there.judged(function(results, claim))
    except Undecided as reason:
        found = Finding("undecided", None, str(reason))
    return {
        "id": claim.id,
        "kind": claim.kind[results.world],
        "text": claim.text,
        "paper": claim.paper,
        "statistic": claim.statistic,
        "ours": found.ours,
        "holds": found.holds,
        "reason": found.reason,
        "details": list(found.details),
        "uncounted": claim.uncounted,
    }


def experiments(directory: Path | None = None) -> dict[str, Path]:
    """Folders of experiments by name: of `directory`, else of the checkout that this process runs in or comes from.

    Raises PathcastError (exit 2) where there are none; (exit 4) where the current directory, or one above it, has some
    that somebody else may have put there: an experiment is code, and is run.
    """
    own = Path(__file__).resolve().parents[3] / "experiments"
    if directory is not None:
        places = [directory]
    else:
        here = Path.cwd()
        places = [*(place / "experiments" for place in (here, *here.parents)), own]
    for place in places:
        found = {path.parent.name: path.parent for path in sorted(place.glob("*/plan.toml"))}
        if found and place not in (directory, own) and not _ours(place, *found.values()):
            told = f"the experiments in `{place}` may be another user's, and they are code"
            raise PathcastError("experiments", told, f"if you trust them: --experiments {place}", Exit.REFUSED)
        if found:
            return found
    hint = "run it inside a checkout of pathcast, or give --experiments DIR"
    raise usage(f"no experiments in `{places[0]}`" + ("" if directory else " or above it"), hint)


def _ours(*folders: Path) -> bool:
    """Whether nobody but us, root and who called sudo can have put or changed something there."""
    trusted = trusted_users()
    inside = (file for folder in folders for file in (folder, *folder.glob("*.py"), *folder.glob("*.toml")))
    return all(
        about.st_uid in trusted
        and not about.st_mode & stat.S_IWOTH
        and (not about.st_mode & stat.S_IWGRP or _private(about))
        for about in (file.stat() for file in inside)
    )


def _private(about: os.stat_result) -> bool:
    """Whether the group is the owner's own, as most systems give everybody one by the same name."""
    import grp
    import pwd

    try:
        group, owner = grp.getgrgid(about.st_gid), pwd.getpwuid(about.st_uid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}


def find(name: str, directory: Path | None = None, sets: Sequence[tuple[str, str]] = ()) -> Experiment:
    """The experiment of that name; raises PathcastError (exit 2) that names those that there are."""
    known = experiments(directory)
    if name not in known:
        raise usage(f"there is no experiment `{name}`; known: {', '.join(known)}", "see `pathcast lab list`")
    return Experiment(known[name], sets)
