"""`--set KEY=VALUE` of `lab run`: a value in place of one of the plan's [setup]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pathcast.errors import usage


def over(setup: Mapping[str, Any], sets: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A setup with other values; a key names one by dots, and a value is read as what stands there: text, a
    finite number, true or false. Raises PathcastError (exit 2) for a key that is not there, a value of another type,
    and a date or time, which are changed in the plan.
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
    kinds = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text"}
    if type(old) not in kinds:
        raise usage(f"--set {key}={text}: the plan has a date or time, {old}; it can be changed in plan.toml only")
    words = {"true": True, "false": False}
    try:
        found = words[text] if isinstance(old, bool) else type(old)(text)
        if not isinstance(found, float) or math.isfinite(found):
            return found
    except (KeyError, ValueError):
        pass
    raise usage(f"--set {key}={text}: {kinds[type(old)]} is wanted, as {old}")


def _unknown(key: str, text: str, table: Mapping[str, Any]) -> Exception:
    known = ", ".join(table) or "nothing, this plan has no [setup]"
    return usage(f"--set {key}={text}: no single value of the plan's [setup] has this key; there are: {known}")
