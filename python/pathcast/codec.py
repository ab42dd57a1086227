"""Plain data, such as JSON holds, as dataclasses; `dataclasses.asdict` is the way back.

Nothing but what the annotations name is ever built, so that a file from anywhere may be read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def read(kind: type[T], value: Any) -> T:
    """`value` as a dataclass `kind`: keys that it does not have are ignored, one that may be None may be missing.

    Its fields may be dataclasses, str, bool, int, float (finite; whole numbers too), list[X], tuple[X, ...],
    dict[str, X], X | Y, X | None, Any. Raises ValueError that names the field and the value.
    """
    found: T = _read(kind, value, kind.__name__)
    return found


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        if value is None and types.NoneType in arguments:
            return None
        *others, last = (one for one in arguments if one is not types.NoneType)
        for other in others:
            with contextlib.suppress(ValueError):
                return _read(other, value, where)
        return _read(last, value, where)
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        make: Any = kind
        return make(**{name: _read(of, value.get(name), f"{where}.{name}") for name, of in _fields(kind, value)})
    if origin in (list, tuple) and isinstance(value, (list, tuple)):
        return origin(_read(arguments[0], one, f"{where}[{n}]") for n, one in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {str(key): _read(arguments[1], one, f"{where}[{key!r}]") for key, one in value.items()}
    if kind is float and type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    if kind in (str, bool, int) and type(value) is kind:
        return value
    raise ValueError(f"{where} is {value!r:.80}, not {getattr(kind, '__name__', kind)}")


def _fields(kind: Any, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and type of every field that `value` is to fill: those without a default in any case."""
    for name, (of, default) in _known(kind).items():
        if name in value or not default:
            yield name, of


@functools.cache
def _known(kind: Any) -> dict[str, tuple[Any, bool]]:
    hints, missing = typing.get_type_hints(kind), (dataclasses.MISSING, dataclasses.MISSING)
    return {f.name: (hints[f.name], (f.default, f.default_factory) != missing) for f in dataclasses.fields(kind)}
