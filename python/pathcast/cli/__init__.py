"""The `pathcast` command: one command a file, imports that cost time only inside the command that needs them."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status (and exits with it as a console script)."""
    from pathcast.cli.runner import run

    return run(sys.argv[1:] if arguments is None else arguments)
