"""`pathcast paths HOST`: the address pairs that Multipath TCP could use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.output import Json, as_file, print_json, show

KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="PATH",
        parser=as_file,
        help="The far end's key file (default: the open key).",
        show_default=False,
    ),
]


def paths(
    host: Annotated[str, typer.Argument(help="HOST or HOST:PORT of a `pathcast serve`.")],
    key_file: KeyFile = None,
    json: Json = False,
) -> None:
    """Show the address pairs that Multipath TCP could use to HOST."""
    from pathcast.cli.progress import busy
    from pathcast.worlds.host import Host

    with busy(f"asking {host} over every pair of addresses", quiet=json), Host(host, key_file) as world:
        found, unusable, silent, idle = world.listed, world.unusable, world.silent(), list(world.idle)
    found = [{**path, "down": silent.get(path["name"])} for path in found]
    if json:
        print_json("paths", {"host": host, "paths": found, "unusable": unusable, "idle": idle})
        return
    from rich.table import Table

    table = Table("path", "local", "remote", "interface", "answers")
    for path in found:
        answers = "yes" if path["down"] is None else "no"
        table.add_row(path["name"], path["local"], path["remote"], path.get("interface") or "", answers)
    show(table)
    for path in found:
        if path["down"] is not None:
            print(f"{path['name']} is down: {path['down']}")
    for pair in unusable:
        local = f"{pair['line']} ({pair['local']})" if pair["line"] else pair["local"]
        print(f"not usable: {local} to {pair['remote']}: {pair['reason']}")
    for sentence in idle:
        print(sentence)
