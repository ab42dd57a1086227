"""The commands by name."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

# each is a module of its name; of those below, its function of that name is the command, else its `app` is a group
GROUPS = ("control", "history", "job", "lab", "line", "net", "steer")
COMMANDS = (
    "completion",
    "demo",
    "doctor",
    "learn",
    "man",
    "measure",
    "paths",
    "plan",
    "predict",
    "run",
    "schema",
    "serve",
    "sim",
    "undo",
    "watch",
    "web",
)
_SETTINGS = {"run": {"ignore_unknown_options": True}}


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"pathcast {version('pathcast')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def build(only: str | None = None) -> typer.Typer:
    """All commands, or `only` that one, so that the others need not be loaded."""
    made = typer.Typer(
        name="pathcast",
        help="Measure the paths between two hosts, predict how fast Multipath TCP will go over them, choose, send.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    made.callback()(_root)
    for name in COMMANDS if only is None else {only} & set(COMMANDS):
        module = _module(name)
        # `watch` has a command of its own kind
        of = getattr(module, "Command", None)
        made.command(name, cls=of, context_settings=_SETTINGS.get(name))(getattr(module, name))
    for name in GROUPS if only is None else {only} & set(GROUPS):
        made.add_typer(_module(name).app, name=name)
    return made


def _module(name: str) -> Any:
    return import_module(f"pathcast.cli.{name}")


def __getattr__(name: str) -> Any:
    """`app`: all commands, made when somebody asks."""
    if name != "app":
        raise AttributeError(name)
    globals()["app"] = made = build()
    return made
