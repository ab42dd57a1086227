"""`pathcast run`: any program's sending under a controller, over Multipath TCP where asked."""

from __future__ import annotations

import ipaddress
import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.errors import usage
from pathcast.units import bits, size

_BACKGROUND = "imtcp_bg"


def run(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, after `--`.")],
    control: Annotated[
        str | None,
        typer.Option(help="A controller (`pathcast control list`), or one that the kernel has.", show_default=False),
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help=f"Yield to everybody else: --control {_BACKGROUND}.")
    ] = False,
    set: Annotated[
        list[str] | None, typer.Option("--set", help="PARAMETER=VALUE of the controller; may be repeated.")
    ] = None,
    mptcp: Annotated[bool, typer.Option("--mptcp", help="Multipath TCP in the place of TCP.")] = False,
    paths: Annotated[
        str | None,
        typer.Option(help="Local addresses for subflows, separated by commas; with --mptcp.", show_default=False),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Run it as this user (default: who called sudo).", show_default=False)
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write what its TCP did to this file, as JSON.")] = None,
) -> None:
    """Run any program with its TCP under a controller. Output and exit status are the program's own."""
    from pathcast.control.launch import launch

    if background:
        if control not in (None, _BACKGROUND):
            raise usage(f"--background means --control {_BACKGROUND}, and --control {control} is given: choose one")
        control = _BACKGROUND
    addresses = [_address(text) for text in paths.split(",")] if paths is not None else []
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so in the program
        signal.signal(number, signal.SIG_DFL)
    if report is not None:
        _touch(report)  # now, rather than after an hour of copying
    status, document = launch(command, control, set or [], mptcp=mptcp, paths=addresses, user=user)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a reader that has gone must not cost the report
    if report is not None:
        report.write_text(json.dumps(document, indent=1) + "\n")
    for line in summary(document):
        print(f"pathcast: {line}", file=sys.stderr)
    raise typer.Exit(status)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise usage(f"--paths `{text.strip()}` is not an address of this host, such as 192.0.2.1") from None


def _touch(report: Path) -> None:
    try:
        report.touch()
    except OSError as error:
        raise usage(f"cannot write the report to `{report}`: {error.strerror}") from None


def summary(document: dict[str, Any]) -> list[str]:
    """A run's report in lines for people."""
    lines = []
    if document["counted"]:
        under = document["control"] or "the system's controller"
        lines.append(
            f"sent {size(document['bytes_sent'])} at {bits(document['sent_bps'])} under {under}, "
            f"received {size(document['bytes_received'])} at {bits(document['received_bps'])}, "
            f"in {document['elapsed_s']:.3g} s over {document['connections']} connections"
        )
        paths = document["paths"]
        for path in paths if len(paths) > 1 or any(p["available_bps"] for p in paths) else []:
            measured = f", measured available bandwidth {bits(path['available_bps'])}" if path["available_bps"] else ""
            lines.append(
                f"{path['local']} > {path['remote']}: {100 * path['share']:.1f} % "
                f"({size(path['bytes_sent'])} sent, {size(path['bytes_received'])} received){measured}"
            )
    return [*lines, *document["notes"]]
