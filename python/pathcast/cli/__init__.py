"""The `pathcast` command: one command a file, imports that cost time only inside the command that needs them."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # the interpreter's own: `signal` takes milliseconds
import os
import sys

if os.path.basename(sys.argv[0]) == "pathcast" and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:

    def _early(*_: object) -> None:
        """Nothing is made yet: a Ctrl-C from now on until `Signals` needs no traceback."""
        os.write(2, b"pathcast: interrupted\n")
        os._exit(130)

    _signal.signal(_signal.SIGINT, _early)

import codecs
import io

from pathcast.cli.signals import Signals, hand_over

# what an output that cannot show it gets instead
_PLAIN = {"±": "+/-", "…": "...", "–": "-", "—": "-", "→": "->", "µ": "u", "×": "x", "≤": "<=", "≥": ">="}


def _plain() -> None:
    """Lets no character that the terminal's encoding lacks end a command (PYTHONIOENCODING=ascii, LC_ALL of old)."""
    codecs.register_error("pathcast", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="pathcast")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one, "?") for one in lacking), error.end


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status (and exits with it as a console script)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: nothing else may get its number, nor our words go elsewhere
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    _plain()
    with Signals() as signals:  # before anything that takes time
        from pathcast.cli.runner import run

        status = run(sys.argv[1:] if arguments is None else arguments, signals)
    hand_over()  # the interpreter's own end is not to be interrupted by a traceback
    return status
