"""Alerts that were told and are not over, as a watch that begins anew knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pathcast.history.records import Event


@dataclass
class Firing:
    """about: as it was told. since_s: from when on, by the watch's clock. line_id: of its line in the history."""

    about: Mapping[str, Any]
    since_s: float
    line_id: str | None


def firing(alerted: Iterable[Event], now_s: float) -> dict[tuple[str, str, str], Firing]:
    """By target, path and what was asked for; alerted: the newest first."""
    found: dict[tuple[str, str, str], Firing | None] = {}
    for event in alerted:
        of = event.about
        if event.kind != "alert" or not isinstance(of, dict) or event.age_s is None:
            continue
        key = (str(of.get("target")), str(of.get("path")), str(of.get("alert")))
        since_s = now_s - float(of.get("lasted_s") or 0.0) - event.age_s
        found.setdefault(key, Firing(of, since_s, event.line_id) if of.get("state") == "firing" else None)
    return {key: of for key, of in found.items() if of is not None}
