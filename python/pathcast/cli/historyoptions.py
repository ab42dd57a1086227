"""--history and --no-history: where a command records what it measures and sends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathcast.errors import PathcastError, usage
from pathcast.say import say

if TYPE_CHECKING:
    from pathcast.forecast.record import Recorder
    from pathcast.history.place import Place

HistoryUrl = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="URL",
        help="Where this is recorded: a FILE, or postgresql://… (default: $PATHCAST_HISTORY, or the state directory).",
        show_default=False,
    ),
]
NoHistory = Annotated[bool, typer.Option("--no-history", help="Record nothing.")]


def place(history: str | None, no_history: bool) -> Place | None:
    """Where to record; None: nowhere. What is wrong with a place that nobody named is said and forgotten."""
    from pathcast.history.place import ENVIRONMENT, find

    if no_history:
        if history is not None:
            raise usage(f"--history {history} and --no-history exclude each other")
        return None
    try:
        return find(history)
    except PathcastError as error:
        if history is not None or ENVIRONMENT in os.environ:
            raise
        say(f"not recorded: {error.message}")
        return None


def recorder(
    history: str | None, no_history: bool, command: str, circumstances: Mapping[str, Any] | None = None
) -> Recorder | None:
    """What records the acts of a command; refuses a --history that cannot be one before anything is measured."""
    found = place(history, no_history)
    if found is None:
        return None
    from pathcast.errors import Exit
    from pathcast.forecast.record import Recorder

    made = Recorder(found, command, None, circumstances or {}, say)
    if found.given:
        try:
            with made.journal.store.asking():
                pass
        except PathcastError as error:
            if error.exit in (Exit.USAGE, Exit.MISSING):
                raise
    return made
