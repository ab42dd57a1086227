"""`--set KEY=VALUE` of `lab run`: a value in place of one of the plan's [setup]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathcast.errors import usage


def over(setup: Mapping[str, Any], sets: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A setup with other values; a key names one by dots, and a value is read as what stands there: text, a
    number, true or false. Raises PathcastError (exit 2) for a key that is not there, and a value of another type.
    """
    found = dict(setup)
    for key, text in sets:
        *tables, last = key.split(".")
        table = found
        for name in tables:
            inner = table.get(name)
            if not isinstance(inner, dict):
                raise _unknown(key, text, table)
            table[name] = table = dict(inner)
        if last not in table or isinstance(table[last], dict | list):
            raise _unknown(key, text, table)
        table[last] = _read(key, text, table[last])
    return found


def _read(key: str, text: str, old: Any) -> Any:
    words = {"true": True, "false": False}
    try:
        return words[text] if isinstance(old, bool) else type(old)(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(old)]
        raise usage(f"--set {key}={text}: {kind} is wanted, as {old}") from None


def _unknown(key: str, text: str, table: Mapping[str, Any]) -> Exception:
    known = ", ".join(table) or "nothing, this plan has no [setup]"
    return usage(f"--set {key}={text}: no single value of the plan's [setup] has this key; there are: {known}")
