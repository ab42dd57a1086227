"""`pathcast completion`: what a shell needs to complete commands, options and names."""

from __future__ import annotations

from typing import Annotated

import typer

from pathcast.errors import usage

SHELLS = ("bash", "zsh", "fish")
_WHERE = {
    "bash": "~/.local/share/bash-completion/completions/pathcast",
    "zsh": "a directory of $fpath, as _pathcast",
    "fish": "~/.config/fish/completions/pathcast.fish",
}


def completion(shell: Annotated[str, typer.Argument(help=f"{', '.join(SHELLS)}.")]) -> None:
    """Print the shell's completion script; write it to where the shell looks for it."""
    from typer._completion_shared import get_completion_script

    from pathcast.cli.runner import COMPLETE

    if shell not in SHELLS:
        raise usage(f"completion `{shell}`: allowed are {', '.join(SHELLS)}")
    print(f"# pathcast completion {shell} > {_WHERE[shell]}")
    print(get_completion_script(prog_name="pathcast", complete_var=COMPLETE, shell=shell))
