"""`pathcast run`: any program's sending under a controller, over Multipath TCP where asked."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from pathcast.cli import planoptions
from pathcast.cli.historyoptions import HistoryUrl, NoHistory, recorder
from pathcast.cli.paths import KeyFile
from pathcast.cli.planoptions import AUTO, Asked
from pathcast.errors import PathcastError, usage
from pathcast.say import say
from pathcast.units import bits, size, span

_BACKGROUND = "gleaner"


def run(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, after `--`.")],
    control: Annotated[
        str | None,
        typer.Option(
            help="A controller (`pathcast control list`), or one that the kernel has; or auto.", show_default=False
        ),
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
        typer.Option(
            help="Lines (`pathcast line`), local addresses, or paths of `steer`, for subflows, with commas between; "
            "with --mptcp. Or auto: by a plan, renewed while it runs.",
            show_default=False,
        ),
    ] = None,
    size: planoptions.Size = None,
    by: planoptions.By = None,
    max: planoptions.Most = None,
    budget: planoptions.Budget = None,
    max_rate: planoptions.MaxRate = None,
    cheap: planoptions.Cheap = False,
    hurry: planoptions.Hurry = False,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="HOST", help="With --paths auto: forecast by a `pathcast serve` there first."),
    ] = None,
    key_file: KeyFile = None,
    user: Annotated[
        str | None, typer.Option(help="Run it as this user (default: who called sudo).", show_default=False)
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write what its TCP did to this file, as JSON.")] = None,
    job: Annotated[str | None, typer.Option("--job", hidden=True, help="Recorded as a run of this job.")] = None,
    history: HistoryUrl = None,
    no_history: NoHistory = False,
) -> None:
    """Run any program with its TCP under a controller. Output and exit status are the program's own."""
    from pathcast import _native
    from pathcast.cli.closest import no_option
    from pathcast.control.launch import launch

    if command[0].startswith("-"):
        raise no_option(command[0], context)

    asked = Asked(size, by, max, budget, max_rate, cheap, background, hurry, to, key_file, late=job is not None)
    automatic = paths == AUTO
    if control == AUTO and not automatic:
        raise usage("--control auto goes with --paths auto", "or name a controller: `pathcast control list`")
    if not automatic and (wrong := asked.given()):
        raise usage(f"{wrong} goes with --paths auto")
    if background and not automatic:
        if control not in (None, _BACKGROUND):
            raise usage(f"--background means --control {_BACKGROUND}, and --control {control} is given: choose one")
        control = _BACKGROUND
    into = recorder(history, no_history, "run")
    prepared, network = None, None
    if automatic:
        from pathcast.cli.auto import prepare

        prepared = prepare(asked, control, bool(set), into)
        control, mptcp = prepared.control, True
        addresses = prepared.addresses
    else:
        network = _steered(paths) if mptcp else None
        addresses = _addresses(paths) if paths is not None and network is None else []
    if into is not None:
        into.close()  # until the end of the program
    # now, rather than after an hour of copying; and before the program can put something else in its place
    file, alone = None, False
    if report is not None:
        descriptor, alone = _native.open_report(report, user)
        file = os.fdopen(descriptor, "w")
    steer = prepared.auto if prepared is not None else None
    ended = None
    if job is not None:
        from pathcast.service import jobrun

        if prepared is None:
            ended = jobrun.ran(job, {}, None)
        else:
            auto = prepared.auto
            ended = jobrun.ran(job, prepared.lines, prepared.expected_s, lambda paths: auto.left(paths, ahead=True))
            auto.keep = jobrun.keeps(job, auto.left([], ahead=True))
    status, document = launch(
        command,
        control,
        set or [],
        mptcp=mptcp,
        paths=addresses,
        user=user,
        steer=steer,
        network=network,
        ended=ended,
        job=job,
    )
    if addresses:
        _booked()
    if prepared is not None:
        document["auto"] = prepared.document(document)
    if file is not None and (problem := _written(document, file, alone)):
        say(f"cannot write the report to `{report}`: {problem}")
    for line in summary(document):
        say(line)
    if into is not None:
        from pathcast.forecast.foreign import ran

        with suppress(OSError):  # whatever becomes of it, the status is the program's
            into.attempt(lambda: ran(into, document, job))
            into.close()
    raise typer.Exit(status)


def _booked() -> None:
    """What the lines have carried, while their devices are there; a fault of it is not the program's."""
    from pathcast.lines import carried, config

    with suppress(OSError, PathcastError):
        carried.look(config.load())


def _steered(paths: str | None) -> tuple[Any, list[str]] | None:
    """The controller of the switches around, and its paths that are named: in an emulated network of switches all of
    them where none is named. None where nothing steers, or addresses and lines are named."""
    from pathcast.runtime import steered
    from pathcast.steer.fabric import Fabric

    wanted = None if paths is None else [part.strip() for part in paths.split(",")]
    for one in steered.controllers():
        if wanted is None and not one.own:
            continue
        names = one.paths if wanted is None else wanted
        if set(names) <= set(one.paths) and names:
            if len(set(names)) < len(names):
                raise usage(f"--paths {paths}: name each once")
            return Fabric(one.client), names
        if one.own and wanted is not None:
            raise usage(f"--paths {paths}: the paths of network `{one.name}` are {', '.join(one.paths)}")
    return None


def _addresses(paths: str) -> list[str]:
    """Of every address and line that is named; a line without an address now is left out with a word."""
    from pathcast.cli.closest import closest
    from pathcast.lines import config, here

    found: list[str] = []
    lines = None
    for text in (part.strip() for part in paths.split(",")):
        with suppress(ValueError):
            found.append(str(ipaddress.ip_address(text)))
            continue
        lines = config.load() if lines is None else lines
        if text not in lines:
            known = f"; lines are {', '.join(lines)}" if lines else ""
            nearest = closest(text, [*lines, AUTO])
            raise usage(
                f"--paths `{text}` is not an address of this host, such as 192.0.2.1, and no line{known}",
                f"did you mean `{nearest}`?" if nearest else None,
            )
        own = here.used(lines[text], here.addresses())
        if not own:
            say(f"{text} is down: it has no address now")
        found += [one.local for one in own]
    if not found:
        raise usage(f"--paths {paths}: none of them has an address now")
    return found


def _written(document: dict[str, Any], file: IO[str], alone: bool) -> str | None:
    """Writes the report, over what the file holds where it is the report's alone; what has kept it from that."""
    try:
        with file:
            if alone and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                file.truncate(0)
            file.write(json.dumps(document, indent=1) + "\n")
    except OSError as error:
        return error.strerror
    return None


def summary(document: dict[str, Any]) -> list[str]:
    """A run's report in lines for people."""
    lines = []
    if document["counted"] and document["connections"]:
        under = document["control"] or "the system's controller"
        count = document["connections"]
        took, acked = span(document["elapsed_s"]), span(document["acked_s"])
        if acked != took:  # by which the rate is, since the kernel may send on after the program's end
            took += f" (its last byte was acknowledged after {acked})"
        lines.append(
            f"sent {size(document['bytes_sent'])} at {bits(document['sent_bps'])} under {under}, "
            f"received {size(document['bytes_received'])} at {bits(document['received_bps'])}, "
            f"in {took} over {count} connection{'' if count == 1 else 's'}"
        )
        # addresses that only were tried carried nothing
        paths = [path for path in document["paths"] if path["bytes_sent"] or path["bytes_received"]]
        for path in paths if len(paths) > 1 or any(p["available_bps"] for p in paths) else []:
            measured = f", measured available bandwidth {bits(path['available_bps'])}" if path["available_bps"] else ""
            lines.append(
                f"{path['local']} > {path['remote']}: {100 * path['share']:.1f} % "
                f"({size(path['bytes_sent'])} sent, {size(path['bytes_received'])} received){measured}"
            )
    if steered := document.get("steered"):
        lines.append("subflows: " + ", ".join(f"{one['path']} {one['subflows']}" for one in steered))
    if auto := document.get("auto"):
        lines.append(auto["sentence"])
    return [*lines, *document["notes"]]
