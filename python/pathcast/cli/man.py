"""`pathcast man`: a manual page of every command, made from the commands themselves (man(7))."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.errors import usage

EXITS = (
    ("0", "done"),
    ("1", "runtime or network failure"),
    ("2", "wrong usage"),
    ("3", "measured, but not to be trusted"),
    ("4", "refused by policy"),
    ("5", "a kernel feature, a package or a privilege is missing"),
    ("130", "interrupted"),
    ("128 + n", "ended by signal n: 129 by SIGHUP, 143 by SIGTERM"),
)
# of those that end as the program does that they start
_PROGRAMS = ("pathcast-run", "pathcast-net-exec", "pathcast-job-run")
_PROGRAM_EXITS = (
    ("any", "the program's own, as soon as it runs; before that those of pathcast(1)"),
    ("126", "the program is there and cannot be started"),
    ("127", "there is no such program"),
    ("128 + n", "signal n ended the program, or pathcast"),
)


def man(
    directory: Annotated[Path, typer.Argument(help="Where the pages go, for example ~/.local/share/man/man1.")],
) -> None:
    """Write the manual pages of all commands."""
    from importlib.metadata import version

    from typer.main import get_command

    from pathcast.cli.app import app

    count = 0
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for names, command in _commands(get_command(app), ("pathcast",)):
            (directory / f"{'-'.join(names)}.1").write_text(page(names, command, version("pathcast")))
            count += 1
    except OSError as error:
        raise usage(f"cannot write to `{error.filename or directory}`: {error.strerror}") from None
    print(f"{count} pages in {directory}; try: man -l {directory / 'pathcast.1'}")


def _commands(command: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield names, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from _commands(below, (*names, name))


def page(names: tuple[str, ...], command: Any, version: str) -> str:
    """The page of one command."""
    first, _, rest = _plain(command.help or "").partition("\n")
    parameters = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    below = getattr(command, "commands", {})
    synopsis = [f".B {' '.join(names)}"]
    synopsis += ["[\\fIOPTIONS\\fR]"] if options else []
    synopsis += [_argument(one) for one in arguments] or (["\\fICOMMAND\\fR \\&..."] if below else [])
    name = "-".join(names)
    lines = [f'.TH {name.upper()} 1 "" "pathcast {version}" "pathcast"', ".SH NAME", f"{name} \\- {_text(first)}"]
    lines += [".SH SYNOPSIS", *synopsis]
    if rest.strip():
        lines += [".SH DESCRIPTION", _text(rest.strip()).replace("\n\n", "\n.PP\n")]
    if arguments and any(one.help for one in arguments):
        lines.append(".SH ARGUMENTS")
        for one in arguments:
            lines += [".TP", _argument(one), _text(_plain(one.help or ""))]
    if options:
        lines.append(".SH OPTIONS")
        for one in options:
            lines += [".TP", _option(one), _text(_plain(one.help or "")) + _default(one)]
    if below:
        lines.append(".SH COMMANDS")
        for verb, of in sorted(below.items()):
            lines += [
                ".TP",
                f"\\fB{name}-{verb}\\fR(1)",
                _text(_plain(of.help or of.short_help or "").partition("\n")[0]),
            ]
    exits = EXITS if len(names) == 1 else _PROGRAM_EXITS if name in _PROGRAMS else ()
    if exits:
        lines.append(".SH EXIT STATUS")
        for status, means in exits:
            lines += [".TP", f"\\fB{status}\\fR", means]
    if len(names) > 1:
        lines += [".SH SEE ALSO", ", ".join(f"\\fB{'-'.join(names[:n])}\\fR(1)" for n in range(1, len(names)))]
    return "\n".join(line for line in lines if line) + "\n"


def _kind(one: Any) -> str:
    """What an option takes."""
    return str(one.metavar or one.opts[-1].lstrip("-").upper())


def _argument(one: Any) -> str:
    name = f"\\fI{_text(one.name.strip('_').upper())}\\fR" + (" \\&..." if one.nargs == -1 else "")
    return name if one.required else f"[{name}]"


def _option(one: Any) -> str:
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in (*one.opts, *one.secondary_opts))
    return names if one.is_flag else f"{names} \\fI{_text(_kind(one))}\\fR"


def _default(one: Any) -> str:
    shown = one.default
    if one.is_flag or not one.show_default or shown in (None, [], ()) or callable(shown):
        return ""
    return f" Default: {_text(str(shown))}."


def _plain(text: str) -> str:
    """Without Rich's marks."""
    return re.sub(r"\[/?(?:bold|italic|dim)?\]", "", text).strip()


def _text(text: str) -> str:
    """As roff takes it."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in escaped)
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n"))
