"""Runs a command and maps whatever it raises to one message, one JSON document and one exit status."""

from __future__ import annotations

import errno
import json
import os
import sys
from contextlib import nullcontext, suppress

import typer
from typer.main import get_command

from pathcast.cli import output
from pathcast.cli.closest import closest, meant
from pathcast.cli.signals import Signals, Terminated
from pathcast.errors import Exit, PathcastError, usage

# what the scripts of `pathcast completion` set
COMPLETE = "_PATHCAST_COMPLETE"
# what is wrong with a path that somebody named, be it by a variable
_ON_THE_WAY = (errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR)


def run(arguments: list[str], signals: Signals | None = None) -> int:
    """The exit status of `pathcast ARGUMENTS`."""
    output.printed = False
    if COMPLETE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        with signals.raising() if signals else nullcontext():
            status = get_command(_app(arguments)).main(args=arguments, prog_name="pathcast", standalone_mode=False)
            sys.stdout.flush()
            if status == Exit.INTERRUPTED:  # Typer turns a KeyboardInterrupt into this status
                raise KeyboardInterrupt
            return int(status or 0)
    except (Exception, KeyboardInterrupt, Terminated) as error:
        return _report(_ended(error) or _known(error), arguments)


def _ended(error: BaseException) -> PathcastError | None:
    """By a signal, which Python wraps where a class is made."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return PathcastError("interrupted", "interrupted", None, Exit.INTERRUPTED)
    if isinstance(error, Terminated):
        terminated = PathcastError("terminated", f"ended by signal {error.number}")
        terminated.exit = 128 + error.number  # type: ignore[assignment] # as a shell has it; no code of ours
        return terminated
    cause = None if isinstance(error, PathcastError) else error.__cause__
    return None if cause is None else _ended(cause)


def _app(arguments: list[str]) -> typer.Typer:
    """With the command that is asked for alone, where that is plain: all of them take a third of a second to load."""
    from pathcast.cli import app

    if COMPLETE not in os.environ and arguments and arguments[0] in (*app.COMMANDS, *app.GROUPS):
        return app.build(arguments[0])
    whole: typer.Typer = app.app
    return whole


def _known(error: BaseException) -> PathcastError:
    if isinstance(error, PathcastError):
        if error.exit == Exit.USAGE and (word := meant(error.message)):
            error.hint = " ".join(filter(None, (f"did you mean `{word}`?", error.hint)))
        return error
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "pathcast"
        if type(error).__name__ == "NoArgsIsHelpError":
            return usage(f"`{where}` needs a command", f"try `{where} --help`")
        if options := getattr(error, "possibilities", None):
            nearest = closest(str(getattr(error, "option_name", "")), options) or options[0]
            return usage(str(error.message).strip(), f"did you mean `{nearest}`? try `{where} --help`")
        return usage(_value(error) or error.format_message().strip(), f"try `{where} --help`")
    if isinstance(error, BrokenPipeError):  # the reader of our output has gone: nobody is left to tell
        _discard_output()
        return PathcastError("broken-pipe", "the output was closed")
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        _flush_output()  # the full disc may be another one
        return PathcastError("no-space", "no space left to write to", "make room, or write elsewhere")
    if isinstance(error, OSError) and error.filename is not None and error.errno in _ON_THE_WAY:
        return PathcastError("system", f"cannot use `{error.filename}`: {error.strerror}")
    if os.environ.get("PATHCAST_DEBUG"):
        raise error
    return PathcastError(
        "internal",
        f"{type(error).__name__}: {error}",
        "a fault of pathcast: run it again with PATHCAST_DEBUG=1 and report what it prints",
    )


def _value(error: BaseException) -> str | None:
    """Of a value that its option's type refuses: option, value, and what it must be."""
    param, found = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if param is None or found is None:
        return None
    first = found()[0]
    must = first["msg"].split(", unable")[0].replace("Input should", "it must", 1)
    return f"{[*param.opts, param.name][0]} `{first['input']}`: {must}"


def _flush_output() -> None:
    """Writes what is buffered; where that fails it is thrown away, else it would fail again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: PathcastError, arguments: list[str]) -> int:
    before_rest = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in before_rest and error.code != "broken-pipe" and not output.printed:
        try:
            print(json.dumps(error.document(), indent=1), flush=True)
        except OSError:  # nobody can read it: a full disc, a reader that has gone
            _discard_output()
    with suppress(OSError):  # as above
        print(f"pathcast: {output.printable(error.message)}", file=sys.stderr)
        if error.hint:
            print(f"hint: {output.printable(error.hint)}", file=sys.stderr)
    return int(error.exit)
