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
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def read(kind: type[T], value: Any) -> T:
    """`value` as a dataclass `kind`: keys that it does not have are ignored, one that may be None may be missing.

    Its fields may be dataclasses, str, bool, int, float (finite; whole numbers too), list[X], tuple[X, ...],
    dict[str, X], X | Y, X | None, Any. Raises ValueError that names the field and the value.
    """
    try:
        reader: Callable[[Any], T] = _reader(kind)  # type: ignore[arg-type] # a class is hashable
        return reader(value)
    except _Wrong as wrong:
        raise ValueError(f"{kind.__name__}{''.join(reversed(wrong.where))} {wrong.told}") from None


class _Wrong(ValueError):
    """A value that is not what its annotation says. where: the way to it, innermost first."""

    def __init__(self, kind: Any, value: Any) -> None:
        super().__init__()
        self.where: list[str] = []
        self.told = f"is {value!r:.80}, not {getattr(kind, '__name__', kind)}"

    def inside(self, step: str) -> _Wrong:
        self.where.append(step)
        return self


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What reads a value as `kind`: annotations are looked at once, for values come by the thousand."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (types.UnionType, typing.Union):
        return _union(arguments)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    if origin in (list, tuple):
        return _sequence(kind, origin, arguments[0])
    if origin is dict:
        return _mapping(kind, arguments[1])
    return _plain(kind)


def _union(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    *others, last = (_reader(one) for one in arguments if one is not types.NoneType)
    may_be_none = types.NoneType in arguments

    def read(value: Any) -> Any:
        if value is None and may_be_none:
            return None
        for other in others:
            with contextlib.suppress(ValueError):
                return other(value)
        return last(value)

    return read


def _dataclass(kind: Any) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Wrong(kind, value)
        given, name = {}, ""
        try:
            for name, of, default in _known(kind):
                if name in value or not default:
                    given[name] = of(value.get(name))
        except _Wrong as wrong:
            raise wrong.inside(f".{name}") from None
        return kind(**given)

    return read


def _sequence(kind: Any, origin: Any, of: Any) -> Callable[[Any], Any]:
    one = _reader(of)

    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _Wrong(kind, value)
        found: list[Any] = []
        try:
            for each in value:
                found.append(one(each))  # its length says where
        except _Wrong as wrong:
            raise wrong.inside(f"[{len(found)}]") from None
        return origin(found)

    return read


def _mapping(kind: Any, of: Any) -> Callable[[Any], Any]:
    one = _reader(of)

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Wrong(kind, value)
        found, key = {}, None
        try:
            for key, each in value.items():
                found[str(key)] = one(each)
        except _Wrong as wrong:
            raise wrong.inside(f"[{key!r}]") from None
        return found

    return read


def _plain(kind: Any) -> Callable[[Any], Any]:
    if kind is float:

        def number(value: Any) -> float:
            if type(value) in (int, float) and abs(value) <= sys.float_info.max:
                return float(value)
            raise _Wrong(kind, value)

        return number

    def same(value: Any) -> Any:
        if kind in (str, bool, int) and type(value) is kind:
            return value
        raise _Wrong(kind, value)

    return same


@functools.cache
def _known(kind: Any) -> list[tuple[str, Callable[[Any], Any], bool]]:
    """Of every field its name, what reads it, and whether it has a default: those without are filled in any case."""
    hints, missing = typing.get_type_hints(kind), (dataclasses.MISSING, dataclasses.MISSING)
    return [
        (f.name, _reader(hints[f.name]), (f.default, f.default_factory) != missing) for f in dataclasses.fields(kind)
    ]
