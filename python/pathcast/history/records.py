"""What is read from a history: plain records, the newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pathcast.history.identity import PathKey


@dataclass(frozen=True)
class Measured:
    """One path of one measurement.

    at: when it began, UTC, ISO 8601. age_s: how long ago, however the clock was set since; None: its clock was wrong.
    key: what the path was then; renumbered: its addresses are others now. valid: False where the emulator was late.
    path: the document of a `worlds.measurement.PathMeasured`.
    """

    id: str
    at: str
    age_s: float | None
    key: PathKey
    renumbered: bool
    name: str
    world: str
    target: str | None
    method: str
    effort: str | None
    elapsed_s: float
    valid: bool | None
    path: dict[str, Any]
    notes: tuple[str, ...]
    circumstances: dict[str, Any]


@dataclass(frozen=True)
class Sent:
    """A transfer, or what a program of `run` has sent (kind: run). names, bytes_by_path: in the order of `keys`.

    report: the document of a `worlds.results.Transfer`, or of `pathcast.run`.
    """

    id: str
    at: str
    age_s: float | None
    kind: str
    direction: str
    keys: tuple[PathKey, ...]
    names: tuple[str | None, ...]
    bytes_by_path: tuple[int | None, ...]
    bytes: int
    elapsed_s: float
    throughput_bps: float | None
    control: str | None
    protocol: str | None
    valid: bool | None
    world: str
    target: str | None
    job: str | None
    forecast_id: str | None
    report: dict[str, Any]
    circumstances: dict[str, Any]


@dataclass(frozen=True)
class Came:
    """A transfer that followed a forecast, and the option of the forecast that it has carried out."""

    sent: Sent
    option: dict[str, Any] | None


@dataclass(frozen=True)
class Forecasted:
    """A forecast, and what came. answer: the document of `pathcast.predict`. made_from: keys of measurements and
    transfers."""

    id: str
    at: str
    age_s: float | None
    direction: str
    size_bytes: int
    keys: tuple[PathKey, ...]
    names: tuple[str | None, ...]
    chosen: list[str] | None
    chosen_control: str | None
    made_from: tuple[str, ...]
    answer: dict[str, Any]
    world: str
    target: str | None
    came: tuple[Came, ...]


@dataclass(frozen=True)
class Event:
    """Something worth knowing."""

    id: str
    at: str
    age_s: float | None
    kind: str
    text: str
    line_id: str | None
    world: str
    target: str | None
    about: Any


@dataclass(frozen=True)
class Hour:
    """What a line carried in the hour that begins `at` [byte]."""

    at: str
    line_id: str
    source: str
    bytes_out: int
    bytes_in: int
