"""Quantities of options, whose refusal names the option."""

from __future__ import annotations

from collections.abc import Callable

from pathcast.errors import PathcastError, usage


def size(option: str, text: str) -> int:
    """Bytes. Raises PathcastError (exit 2)."""
    from pathcast import _native

    return _of(option, text, _native.parse_bytes)


def duration_s(option: str, text: str) -> float:
    """Seconds. Raises PathcastError (exit 2)."""
    from pathcast import _native

    return _of(option, text, _native.parse_duration) / 1e9


def _of(option: str, text: str, parse: Callable[[str], int]) -> int:
    try:
        return parse(text)
    except PathcastError as error:
        raise usage(f"{option} {error.message}", error.hint) from None
