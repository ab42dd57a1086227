"""What a user wants of a plan, as options that `plan`, `run` and `job` share."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathcast.cli import quantity
from pathcast.errors import PathcastError, usage

if TYPE_CHECKING:
    from pathcast.cli.deadline import Deadline
    from pathcast.plan.terms import Wish

Size = Annotated[str | None, typer.Option("--size", help="Bytes of the job, for example 300GB.", show_default=False)]
By = Annotated[
    str | None,
    typer.Option(help="When it is to be done: 06:00, 2027-03-01T06:00, or 8h from now.", show_default=False),
]
Most = Annotated[
    list[str] | None,
    typer.Option("--max", metavar="LINE=BYTES", help="The most that this job puts on a line; may be repeated."),
]
Budget = Annotated[
    str | None, typer.Option(help="The most that it may cost, by the lines' prices.", show_default=False)
]
MaxRate = Annotated[str | None, typer.Option("--max-rate", help="Never faster, for example 5Mbit.", show_default=False)]
Cheap = Annotated[
    bool, typer.Option("--cheap", help="As little money as the deadline allows: dear lines only as far as needed.")
]
Hurry = Annotated[
    bool, typer.Option("--hurry", help="With --background: full speed for as long as the deadline needs it.")
]


AUTO = "auto"


@dataclass(frozen=True)
class Asked:
    """What was asked for, as it was written. late: whether `by` may be past."""

    size: str | None
    by: str | None
    max: list[str] | None
    budget: str | None
    max_rate: str | None
    cheap: bool
    background: bool
    hurry: bool
    to: str | None = None
    key_file: Path | None = None
    late: bool = False

    def given(self) -> str | None:
        """The first option that goes with a plan only."""
        options = ("size", "by", "max", "budget", "max_rate", "cheap", "hurry", "to", "key_file")
        return next((f"--{name.replace('_', '-')}" for name in options if getattr(self, name)), None)

    def checked(self) -> tuple[Wish, dict[str, int], Deadline | None]:
        """The wish without its deadline (of one byte where no size is given), the most of each line, the deadline."""
        from pathcast.cli.deadline import deadline
        from pathcast.plan.terms import Wish

        bytes = 1 if self.size is None else bytes_of(self.size)
        bounds, money, bits = most(self.max), budget(self.budget), rate(self.max_rate)
        if self.hurry and not (self.background and self.by):
            raise usage("--hurry goes with --background and --by: full speed for as long as the deadline needs it")
        limit = None if self.by is None else deadline(self.by, late=self.late)
        return Wish(bytes, None, money, bits, self.cheap, self.background, self.hurry), bounds, limit


def most(values: list[str] | None) -> dict[str, int]:
    """`cable=50GB` by line. Refuses what is none."""
    from pathcast import _native

    found: dict[str, int] = {}
    for text in values or ():
        line, sign, bytes = (part.strip() for part in text.partition("="))
        if not line or not sign:
            raise usage(f"--max `{text}`: write LINE=BYTES, for example cable=50GB")
        if line in found:
            raise usage(f"--max {text}: {line} is named twice")
        try:
            found[line] = _native.parse_bytes(bytes)
        except PathcastError as error:
            raise usage(f"--max {text}: {error.message}", error.hint) from None
    return found


def known(most: dict[str, int], names: Collection[str]) -> None:
    """Refuses a bound on a line that is not there."""
    for line in most:
        if line not in names:
            raise usage(f"--max: there is no line `{line}`; lines are {', '.join(names)}")


def budget(text: str | None) -> float | None:
    """An amount of money in the currency of the lines' prices."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise usage(f"--budget `{text}`: allowed is an amount of money, 0 or more, for example 10 or 2.50")
    return value


def rate(text: str | None) -> float | None:
    """Bits per second."""
    if text is None:
        return None
    from pathcast import _native

    try:
        value = _native.parse_rate(text)
    except PathcastError as error:
        raise usage(f"--max-rate {text}: {error.message}", error.hint) from None
    if value <= 0:
        raise usage(f"--max-rate {text}: allowed is a rate above zero, for example 5Mbit")
    return float(value)


def bytes_of(text: str) -> int:
    """Of --size."""
    found = quantity.size("--size", text)
    if found < 1:
        raise usage(f"--size {text}: a transfer has at least one byte")
    return found
