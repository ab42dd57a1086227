"""The bars: networks, what may be used, and how far the worst of twenty runs may be off.

None of the estimators was told more than the host; budgets are the command's `--budget` and `--time` where a row names
them, and else its own choice, which `bytes` and `time_s` then bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pathcast.lab.measuring.network import Cross, Link, toml
from pathcast.worlds.measurement import Request


@dataclass(frozen=True)
class Row:
    """One case. limit: largest relative error, of `delay` in seconds. bytes, time_s: what a run may cost in all."""

    name: str
    links: tuple[Link, ...]
    limit: float
    quantity: str = "available"
    direction: str = "out"
    access: str = '"100Mbit"'
    request: Request = field(default_factory=Request)
    bytes: int | None = None
    time_s: float | None = None
    # worlds in which the bar holds; in others it is only reported
    worlds: tuple[str, ...] = ("sim", "emu")

    def scenario(self, seed: int) -> str:
        """Its network with random draws of their own."""
        return toml(self.links, self.access, seed)


def _cross(kind: str, mbit: float, more: str = "") -> tuple[Cross, ...]:
    return (Cross(kind, f"{mbit}Mbit", more=more),) if mbit else ()


def _out(rate: str, queue: str = '"50 packets"', cross: tuple[Cross, ...] = ()) -> Link:
    """A bottleneck towards the server only, as in the paper's emulators."""
    return Link(f'{{ ab = "{rate}", ba = "100Mbit" }}', queue, cross=cross)


def _request(**more) -> Request:
    return Request(directions=("out",), **more)


_SHORT = _request(bytes=350_000, time_s=1.5)
_LONG = _request()

ROWS: tuple[Row, ...] = (
    *(
        Row(
            f"5 Mbit/s, constant {c}",
            (_out("5Mbit", cross=_cross("constant", c)),),
            0.02,
            request=_LONG,
            bytes=10**6,
            time_s=3,
        )
        for c in (0, 0.5, 1.5, 3.0)
    ),
    *(
        Row(
            f"5 Mbit/s, constant {c}, short",
            (_out("5Mbit", cross=_cross("constant", c)),),
            0.04,
            request=_SHORT,
            bytes=350_000,
            time_s=1.5,
        )
        for c in (0, 0.5, 1.5, 3.0)
    ),
    Row("100 kbit/s", (_out("100kbit"),), 0.03, request=_LONG, bytes=150_000, time_s=20),
    Row(
        "100 kbit/s, constant 0.03",
        (_out("100kbit", cross=_cross("constant", 0.03)),),
        0.03,
        request=_LONG,
        bytes=150_000,
        time_s=20,
    ),
    Row(
        "100 Mbit/s, constant 30",
        (Link('"100Mbit"', cross=_cross("constant", 30)),),
        0.02,
        access='"1Gbit"',
        request=_LONG,
        time_s=1,
    ),
    *(
        Row(f"5 Mbit/s, Poisson {c}", (_out("5Mbit", cross=_cross("poisson", c)),), 0.08, request=_LONG)
        for c in (1.5, 3.0)
    ),
    *(
        Row(
            f"3 Mbit/s, then 5 with {kind} 3",
            (_out("3Mbit"), _out("5Mbit", cross=_cross(kind, 3))),
            0.07,
            request=_LONG,
        )
        for kind in ("constant", "poisson")
    ),
    *(
        Row(
            f"5 Mbit/s, 8 packets, constant {c}",
            (_out("5Mbit", '"8 packets"', _cross("constant", c)),),
            0.08,
            request=_LONG,
        )
        for c in (1.5, 3.0)
    ),
    Row(
        "1 Gbit/s, constant 300",
        (Link('"1Gbit"', '"1000 packets"', cross=_cross("constant", 300)),),
        0.05,
        access='"2500Mbit"',
        request=_LONG,
        worlds=("sim",),
    ),
    Row("capacity of 5 Mbit/s", (_out("5Mbit", cross=_cross("constant", 1.5)),), 0.01, "capacity", request=_LONG),
    Row(
        "capacity of a bucket of 5 Mbit/s",
        (Link('"100Mbit"', more='bucket = { rate = "5Mbit", burst = "1600B" }\n'),),
        0.01,
        "capacity",
        request=_LONG,
    ),
    *(
        Row(
            f"1 and 24 Mbit/s, {direction}",
            (Link('{ ab = "1Mbit", ba = "24Mbit" }'),),
            0.03,
            direction=direction,
            request=Request(directions=(direction,)),
            worlds=(),
        )
        for direction in ("out", "in")
    ),
    *(
        Row(
            f"delay over 5 Mbit/s, constant {c}",
            (_out("5Mbit", cross=_cross("constant", c)),),
            50e-6,
            "delay",
            request=_LONG,
        )
        for c in (0, 1.5)
    ),
)
