"""Profiles of paths: a bottleneck's rate, queue and one-way delay, and its cross traffic second by second.

A file of JSON lines, gzipped or not. Ashok et al., "iBox: Internet in a Box", HotNets 2020, fitted such profiles to
packet traces of the Pantheon (Yan et al., USENIX ATC 2018).
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import math
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.errors import usage
from pathcast.files import read_file

LARGEST_BYTES = 64 << 20
# mean cross traffic over the rate, from which on a path is reported and not judged: what is left is no path to speak of
OVERLOADED = 0.9
# paths in `emu`, each of another source, and in a quick run
EMULATED, QUICK = 30, 8
_GZIP = b"\x1f\x8b"
# field: least, most, what it is; the scenario's own bounds are wider
_NUMBERS = {
    "rate_kbps": (0.1, 1e7, "a number of kbit/s"),
    "queue_packets": (1, 1e6, "a whole number of packets"),
    "one_way_ms": (0, 60_000, "a number of milliseconds"),
}
_CROSS_MOST_KBPS, _CROSS_MOST_VALUES = 1e8, 3600


@dataclass(frozen=True)
class Profile:
    """A line of the file. cross_kbps: mean rate of each second; source: the experiment that it comes from."""

    id: str
    source: str
    rate_kbps: float
    queue_packets: int
    one_way_ms: float
    cross_kbps: tuple[float, ...]

    @property
    def load(self) -> float:
        """Mean cross traffic over the rate; above 1 where more is offered than fits."""
        return math.fsum(self.cross_kbps) / len(self.cross_kbps) / self.rate_kbps

    @property
    def judged(self) -> bool:
        """Whether it counts for the claims."""
        return self.load < OVERLOADED

    @property
    def half(self) -> str:
        """`a` or `b`, by the source: what is tuned on the one is judged on the other."""
        return "ab"[hashlib.sha256(self.source.encode()).digest()[0] % 2]


def load(name: str) -> dict[str, Profile]:
    """By id, in the file's order; a relative name is one from here, else from the checkout.

    Raises PathcastError (exit 2) for a file that cannot be read or is not such a one, with the line and the value.
    """
    path = Path(name)
    checkout = Path(__file__).resolve().parents[2] / path
    return _load(path if path.exists() or not checkout.exists() else checkout)


@functools.lru_cache(maxsize=2)
def _load(path: Path) -> dict[str, Profile]:
    found: dict[str, Profile] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            profile = parse(line)
            if profile.id in found:
                raise ValueError(f"id is {profile.id!r}, which an earlier line has too")
        except ValueError as error:
            hint = "what a profile is: experiments/real-paths/README.md"
            raise usage(f"`{path}`, line {number}: {error}", hint) from None
        found[profile.id] = profile
    if not found:
        raise usage(f"`{path}` has no profile", "give another with --set profiles=FILE")
    return found


def _lines(path: Path) -> list[str]:
    try:
        data = read_file(path, LARGEST_BYTES)
        if data.startswith(_GZIP):
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(LARGEST_BYTES + 1)
            if len(data) > LARGEST_BYTES:
                raise usage(f"`{path}` has more than {LARGEST_BYTES} bytes unpacked")
        return data.decode().splitlines()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise usage(f"`{path}` cannot be unpacked: {error}") from None
    except OSError as error:
        hint = "give a file of profiles with --set profiles=FILE"
        raise usage(f"cannot read the profiles `{path}`: {error.strerror}", hint) from None
    except UnicodeDecodeError as error:
        raise usage(f"`{path}` is not text: {error}") from None


def parse(line: str) -> Profile:
    """Of one line; keys that are not needed may be there too. Raises ValueError that names what is wrong."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ValueError(f"no JSON ({error}): {line.strip()[:40]!r}") from None
    if not isinstance(data, dict):
        raise ValueError(f"a JSON object is wanted, not {line.strip()[:40]!r}")
    wanted = ("id", "source", *_NUMBERS, "cross_kbps")
    if lacking := [key for key in wanted if key not in data]:
        raise ValueError(f"{', '.join(lacking)} not there; a profile has {', '.join(wanted)}")
    for key in ("id", "source"):
        if not isinstance(data[key], str) or not data[key]:
            raise ValueError(f"{key} is {data[key]!r}; text is wanted")
    for key, (least, most, what) in _NUMBERS.items():
        value = data[key]
        whole = key != "queue_packets" or isinstance(value, int)
        if not (_number(value) and whole and least <= value <= most):
            raise ValueError(f"{key} is {value!r}; {what} of {least:g} to {most:g} is wanted")
    cross = data["cross_kbps"]
    if not isinstance(cross, list) or not 1 <= len(cross) <= _CROSS_MOST_VALUES:
        raise ValueError(f"cross_kbps is {str(cross)[:40]}; a list of 1 to {_CROSS_MOST_VALUES} numbers is wanted")
    for second, value in enumerate(cross):
        if not (_number(value) and 0 <= value <= _CROSS_MOST_KBPS):
            told = f"a number of kbit/s of 0 to {_CROSS_MOST_KBPS:g} is wanted"
            raise ValueError(f"cross_kbps[{second}] is {value!r}; {told}")
    return Profile(**{key: data[key] for key in wanted if key != "cross_kbps"}, cross_kbps=tuple(cross))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def drawn(profiles: Sequence[Profile], count: int) -> list[Profile]:
    """So many that are judged, each of another source (fewer where there are fewer sources); always the same."""
    of: dict[str, list[Profile]] = {}
    for profile in profiles:
        if profile.judged:
            of.setdefault(profile.source, []).append(profile)
    draw = random.Random("real paths")  # a str seeds by SHA-512
    sources = draw.sample(sorted(of), min(count, len(of)))
    return [draw.choice(of[source]) for source in sources]
