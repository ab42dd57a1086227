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
# zsh looks at the first line only, and calls the file as a function of its name
_ZSH = """\
#compdef pathcast
# pathcast completion zsh > {where}

_pathcast_completion() {{
  eval "$(env _TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {variable}=complete_zsh pathcast)"
}}

if [[ $funcstack[1] == _pathcast ]]; then
  _pathcast_completion "$@"
else
  compdef _pathcast_completion pathcast
fi"""


def completion(shell: Annotated[str, typer.Argument(help=f"{', '.join(SHELLS)}.")]) -> None:
    """Print the shell's completion script; write it to where the shell looks for it."""
    from typer._completion_shared import get_completion_script

    from pathcast.cli.runner import COMPLETE

    if shell not in SHELLS:
        raise usage(f"completion `{shell}`: allowed are {', '.join(SHELLS)}")
    if shell == "zsh":
        print(_ZSH.format(where=_WHERE[shell], variable=COMPLETE))
        return
    print(f"# pathcast completion {shell} > {_WHERE[shell]}")
    print(get_completion_script(prog_name="pathcast", complete_var=COMPLETE, shell=shell))
