"""`pathcast predict --model FILE`: what a model of `pathcast learn` says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pathcast.cli.output import brief, print_json, show
from pathcast.cli.target import Target
from pathcast.errors import Exit, PathcastError, need
from pathcast.units import bits, seconds
from pathcast.units import size as written


def trained(
    far: Target,
    bytes: int,
    size: str,
    file: Path,
    only: tuple[str, ...] | None,
    control: str | None,
    json: bool,
) -> None:
    """Probes every path once, and prints throughput and duration for every choice of paths, the best first.

    size: as it was written.
    """
    from pathcast.forecast.predict import predict, untrustworthy

    if not file.exists():
        learn = f"pathcast learn {far.command} --size {size} --model {file}"
        raise PathcastError("no-model", f"there is no model `{file}`", f"learn one: {learn}", Exit.USAGE)
    need("numpy", "sklearn")
    document = predict(file, far.world, far.name, far.open, bytes, only, control)
    if far.recorder:
        keys = {path["name"]: far.recorder.keys[path["name"]] for path in document["paths"]}
        far.recorder.forecast(far.world, document, keys)
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
    show(table)
    print(
        f"by probes of {written(document['probe_bytes'])} in all; learnt from {model['rounds']} rounds of "
        f"{written(model['size_bytes'])} with {model['control']}: {model['file']}"
    )
    for note in brief([*document["notes"], *model["warnings"]]):
        print(f"note: {note}", file=sys.stderr)
