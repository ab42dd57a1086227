"""The demo's network, what it sends, and the change that comes in the middle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pathcast.errors import usage
from pathcast.forecast.controls import Controls, controls

PATHS = ("cable", "dsl")
# alternatives that are forecast to take longer are not sent [s]
PATIENCE_S = 15.0
# of the whole demo, after which nothing is repeated though the emulator was late, and nothing is sent for comparison
TIME_S = 75.0


@dataclass(frozen=True)
class Change:
    """What becomes of a line, in words and as keys of the link's direction `ab`."""

    link: str = "dsl"
    told: str = "the DSL line falls from 10 to 1 Mbit/s"
    set: Mapping[str, str] = field(default_factory=lambda: {"rate": "1Mbit"})


@dataclass(frozen=True)
class Plan:
    """One demo: its seed, the transfer's size, the controller (None: cubic over one path, LIA over both), how
    thoroughly is measured; change: None: only one round."""

    seed: int = 1
    size_bytes: int = 16_000_000
    control: str | None = None
    effort: str = "usual"
    change: Change | None = Change()

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= 2**63 - 1:
            raise usage(f"--seed {self.seed}: allowed are 0 to 2^63-1")
        if self.control is not None:
            controls((self.control,), (self.control,))

    def controls(self, here: Collection[str]) -> Controls:
        """Of those that the world's TCP has."""
        if self.control is not None:
            return Controls((self.control,), (self.control,))
        return Controls(("cubic",), ("lia" if "lia" in here else "cubic",))

    def topology(self) -> str:
        """Two lines as a home has them, upwards: 40 Mbit/s with neighbours' bursts, 10 Mbit/s over PPPoE."""
        return f"""name = "demo"
seed = {self.seed}

[[link]]
name   = "cable"
a      = "client"
b      = "server"
rate   = {{ ab = "40Mbit", ba = "100Mbit" }}
delay  = "12ms"
queue  = "500KB"
chunk  = "250us"

[[link]]
name     = "dsl"
a        = "client"
b        = "server"
rate     = {{ ab = "10Mbit", ba = "50Mbit" }}
delay    = "18ms"
queue    = "125KB"
overhead = "34B"
chunk    = "250us"

[[path]]
name  = "cable"
links = ["cable"]

[[path]]
name  = "dsl"
links = ["dsl"]

[[traffic]]
name      = "neighbours"
kind      = "pareto-onoff"
link      = "cable"
direction = "ab"
rate      = "12Mbit"
peak      = "20Mbit"
on        = "20ms"

[[traffic]]
name      = "household"
kind      = "poisson"
link      = "dsl"
direction = "ab"
rate      = "300kbit"
packet    = "1000B"
"""
