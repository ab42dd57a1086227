"""The option that ends simulated work which would take for ever."""

from __future__ import annotations

from typing import Annotated

import typer

LimitEvents = Annotated[
    int | None,
    typer.Option(
        "--limit-events",
        metavar="N",
        min=1,
        max=2**64 - 1,
        help="In the simulator: end with an error a transfer or measurement that takes more events of the engine.",
        show_default=False,
    ),
]
