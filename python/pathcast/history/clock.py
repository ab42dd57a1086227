"""When something was: UTC, and beside it the time since this boot, which nobody sets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

# UTC less the time since boot is the same all along, but where the clock was set: more than that was no adjustment
STEP_US = 2_000_000


@dataclass(frozen=True)
class Moment:
    """utc_us: since 1970. boot_us: since the boot whose id is `boot`, sleep included. Microseconds."""

    utc_us: int
    boot_us: int
    boot: str


def now() -> Moment:
    """By this machine's clocks."""
    return Moment(time.time_ns() // 1000, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000, _boot())


def before(of: Moment, seconds: float) -> Moment:
    """So long before a moment."""
    step = round(seconds * 1e6)
    return Moment(of.utc_us - step, of.boot_us - step, of.boot)


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def age_s(of: Moment, at: Moment) -> float | None:
    """How old it is, however the clock was set in this boot; None: it comes from the future, so a clock was wrong."""
    if of.boot and of.boot == at.boot:
        return max(0.0, (at.boot_us - of.boot_us) / 1e6)
    age = (at.utc_us - of.utc_us) / 1e6
    return age if age >= 0 else None


def stepped_s(before: Moment, at: Moment) -> float | None:
    """By how much the clock was set between two moments of one boot; None: it was not, or that cannot be known."""
    if not at.boot or before.boot != at.boot:
        return None
    step = (at.utc_us - at.boot_us) - (before.utc_us - before.boot_us)
    return step / 1e6 if abs(step) > STEP_US else None


def iso(utc_us: int) -> str:
    """As ISO 8601, in UTC."""
    try:
        return datetime.fromtimestamp(utc_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{utc_us} us"
