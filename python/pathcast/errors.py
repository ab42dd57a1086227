"""The one exception of pathcast, and the exit codes that it maps to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """Exit status of the `pathcast` command."""

    OK = 0
    RUNTIME = 1
    USAGE = 2
    UNTRUSTWORTHY = 3
    REFUSED = 4
    MISSING = 5
    INTERRUPTED = 130


# codes of a far end that is full, or lets others measure: it may be free a little later
BUSY = frozenset({"queue", "sessions", "sessions-per-key", "sessions-per-source", "pause", "time"})


class PathcastError(Exception):
    """Something that a user can act on.

    `code` is a stable word for programs, `hint` says what to do, `exit` is the exit status of a command that ends
    with it. The native extension raises this class too.
    """

    def __init__(self, code: str, message: str, hint: str | None = None, exit: int = Exit.RUNTIME) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit = Exit(exit)

    def document(self) -> dict[str, Any]:
        """The error as `--json` prints it."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "exit": int(self.exit),
            }
        }


def usage(message: str, hint: str | None = None) -> PathcastError:
    """A wrong argument or file: exit 2."""
    return PathcastError("usage", message, hint, Exit.USAGE)


def missing(message: str, hint: str | None = None) -> PathcastError:
    """A privilege or a feature that this machine lacks: exit 5."""
    return PathcastError("missing", message, hint, Exit.MISSING)


# packages that are imported under another name
_PACKAGES = {"sklearn": "scikit-learn", "markdown_it": "markdown-it-py", "prometheus_client": "prometheus-client"}


def on_index(module: str) -> str:
    """What the package that is imported as `module` is called on the index."""
    return _PACKAGES.get(module, module)


def install(modules: Iterable[str]) -> str:
    """The command that installs what is imported so. pathcast's own extras are no names of the index's."""
    return f"pip install {' '.join(map(on_index, modules))}"


def need(*packages: str) -> None:
    """Refuses (exit 5) where Python packages, named as they are imported, are not installed."""
    from importlib.util import find_spec

    lacking = [name for name in packages if find_spec(name) is None]
    if lacking:
        raise missing(f"no Python package {', '.join(map(on_index, lacking))}", install(lacking))
