"""The `pathcast` command: one command a file, imports that cost time only inside the command that needs them."""

from __future__ import annotations

import os
import sys

from pathcast.cli.signals import Signals, hand_over


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status (and exits with it as a console script)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: nothing else may get its number, nor our words go elsewhere
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    with Signals() as signals:  # before anything that takes time
        from pathcast.cli.runner import run

        status = run(sys.argv[1:] if arguments is None else arguments, signals)
    hand_over()  # the interpreter's own end is not to be interrupted by a traceback
    return status
