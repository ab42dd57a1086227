"""`pathcast predict`: throughput and duration for every choice of paths, the best first."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from pathcast.cli.learn import ModelFile
from pathcast.cli.limits import LimitEvents
from pathcast.cli.output import Json, console, print_json
from pathcast.cli.target import Host, KeyFile, Paths, Set, TopologyFile, World, names, target
from pathcast.errors import Exit, PathcastError, need
from pathcast.units import bits, seconds
from pathcast.units import size as written


def predict(
    host: Host = None,
    size: Annotated[str, typer.Option("--size", help="Bytes of the transfer, for example 256MB.")] = ...,  # type: ignore[assignment] # Typer: required
    paths: Paths = None,
    control: Annotated[
        str | None, typer.Option(help="Refuse a model of another congestion controller.", show_default=False)
    ] = None,
    key_file: KeyFile = None,
    model: ModelFile = None,
    world: World = "host",
    topology: TopologyFile = None,
    set: Set = None,
    limit_events: LimitEvents = None,
    json: Json = False,
) -> None:
    """Probe every path once, and predict throughput and duration for every choice of paths, the best first."""
    from pathcast import _native
    from pathcast.forecast.model import default_file
    from pathcast.forecast.predict import predict as run
    from pathcast.forecast.predict import untrustworthy

    bytes = _native.parse_bytes(size)
    only = None if paths is None else names("--paths", paths)
    far = target(host, world, topology, set, key_file, limit_events)
    file = model or default_file(far.world, far.name)
    if not file.exists():
        learn = f"pathcast learn {far.command} --size {size}" + (f" --model {model}" if model else "")
        raise PathcastError("no-model", f"there is no model `{file}`", f"learn one: {learn}", Exit.USAGE)
    need("numpy", "sklearn", extra="predict")
    document = run(file, far.world, far.name, far.open, bytes, only, control)
    if json:
        print_json("predict", document)
    else:
        _summary(document)
    error = untrustworthy(document)
    if error:
        raise error


def _summary(document: dict[str, Any]) -> None:
    from rich.table import Table

    model = document["model"]
    title = f"a transfer of {written(document['size_bytes'])} to {document['target']}"
    table = Table("paths", "predicted", "expected error", "duration", "", title=title)
    for o in document["options"]:
        name = " + ".join(o["paths"])
        chosen = o["paths"] == document["chosen"]
        table.add_row(
            f"[bold]{name}[/] (best)" if chosen else name,
            bits(o["predicted_bps"]),
            f"± {bits(o['rmse_bps'])}",
            seconds(o["duration_s"]),
            "" if o["within_training_range"] else "outside of what was trained on",
        )
    console().print(table)
    print(
        f"by probes of {written(document['probe_bytes'])} in all; learnt from {model['rounds']} rounds of "
        f"{written(model['size_bytes'])} with {model['control']}: {model['file']}"
    )
    for note in [*document["notes"], *model["warnings"]]:
        print(f"note: {note}", file=sys.stderr)
