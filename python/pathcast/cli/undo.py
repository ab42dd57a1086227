"""`pathcast undo`: removes what pathcast has left on this host."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pathcast.cli.output import Json, print_json
from pathcast.errors import PathcastError

_NOTHING = "nothing was left behind"


def undo(
    json: Json = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also end the networks, far ends and controllers that still run.")
    ] = False,
) -> None:
    """Remove what dead processes of pathcast left, and pinned controllers (with --all: also end the living ones)."""
    from pathcast.control import kernel
    from pathcast.lines import routes
    from pathcast.runtime import daemon, state
    from pathcast.steer import left as left_in_switches

    removed = state.clean() + kernel.unpin_all()
    try:
        removed += routes.remove()
    except PathcastError as error:
        removed.append(f"not removed: {error.message}; {error.hint}")
    removed += left_in_switches.remove(state.run_dir(), [record.id for record in state.records("steer")])
    if everything:
        for record in state.records():
            removed += daemon.Daemon(record).down()
            removed.append(f"{record.kind} {record.id}")
    left = [f"{r.kind} {r.id} (process {r.pid})" for r in state.records() if r.alive]
    kept = [what for what in removed if what.startswith(state.KEPT)]
    if json:
        gone = [what for what in removed if what not in kept]
        print_json("undo", {"removed": gone, "not_removed": kept, "running": left})
    else:
        print(
            "\n".join(what if what.startswith((state.ENDED, state.KEPT)) else f"removed {what}" for what in removed)
            or _NOTHING
        )
        for what in left:
            print(f"running, left alone: {what}")
        if left:
            print("hint: `pathcast undo --all` ends these, too", file=sys.stderr)
        if (roots := state.hidden()) is not None:
            print(f"what root's commands left is recorded in {roots}: sudo pathcast undo", file=sys.stderr)
    if kept:
        raise _failed(kept)


def _failed(kept: list[str]) -> PathcastError:
    """What was not removed is still recorded: it can be tried again."""
    told = kept[0] if len(kept) == 1 else f"{len(kept)} things were not removed"
    return PathcastError("not-removed", told, "try again where it was made: in its network namespace, by its user")
