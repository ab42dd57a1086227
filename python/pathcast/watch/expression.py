"""What an alert asks for: `cable.available < 70% for 15m`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pathcast import _native
from pathcast.errors import PathcastError, usage

EVERY = "*"
RATES, TIMES = ("available", "capacity"), ("rtt", "queue")
QUANTITIES = (*RATES, *TIMES, "loss", "down")
# whose usual value is known
OF_USUAL = ("available", "capacity", "rtt")
FORM = "NAME.available < 70% for 15m"
_HINT = (
    f"NAME is a path or *, NAME.in its way back; allowed are {', '.join(QUANTITIES)}, each with < or > and a value "
    "(rates 5Mbit, times 200ms, of the usual 70%, of packets 2%; down without), then how long: for 15m"
)
_WHOLE = re.compile(
    r"\s*(?P<name>\S+?)(?:\.(?P<way>in|out))?\.(?P<what>[a-z]+)"
    r"(?:\s*(?P<sign><|>)\s*(?P<value>[^\s<>=][^<>=]*?))?(?:\s*\bfor\s+(?P<time>\S.*?))?\s*"
)


@dataclass(frozen=True)
class Expression:
    """text: as it was written. name: a path's, or `*`. below: whether less than the threshold is bad. of_usual: whether
    the threshold is a share of what is usual, else it is in bit/s, s or a share of the packets. for_s: how long it is
    to last."""

    text: str
    name: str
    direction: str
    what: str
    below: bool = False
    threshold: float = 0.0
    of_usual: bool = False
    for_s: float = 0.0


def parse(text: str) -> Expression:
    """Raises PathcastError (exit 2) that names what is allowed."""
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise usage(f"--alert `{text}`: write it as `{FORM}`", _HINT)
    what, sign, value = found["what"], found["sign"], found["value"]
    if what not in QUANTITIES:
        raise usage(f"--alert `{text}`: there is no `{what}`; allowed are {', '.join(QUANTITIES)}", _HINT)
    for_s = _duration(text, found["time"]) if found["time"] else 0.0
    about = (text.strip(), found["name"], found["way"] or "out", what)
    if what == "down":
        if sign:
            raise usage(f"--alert `{text}`: `down` has no value", _HINT)
        return Expression(*about, for_s=for_s)
    if not sign:
        raise usage(f"--alert `{text}`: `{what}` needs < or > and a value", _HINT)
    threshold, of_usual = _threshold(text, what, value)
    if of_usual and (threshold >= 1) == (sign == "<"):
        more = "less" if sign == "<" else "more"
        raise usage(f"--alert `{text}`: {sign} {value} of the usual is always so; allowed is {more} than 100%", _HINT)
    return Expression(*about, sign == "<", threshold, of_usual, for_s)


def _threshold(text: str, what: str, value: str) -> tuple[float, bool]:
    share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value, re.ASCII)
    if share:
        number = float(share[1]) / 100
        if what == "queue" or (number == 0 and what != "loss") or (what == "loss" and number >= 1):
            raise usage(f"--alert `{text}`: `{value}` is no value of `{what}`", _HINT)
        return number, what in OF_USUAL
    if what == "loss":
        raise usage(f"--alert `{text}`: `{value}` is no share of packets, such as 2%", _HINT)
    if what in TIMES:
        return _duration(text, value), False
    try:
        return float(_native.parse_rate(value)), False
    except PathcastError as error:
        raise usage(f"--alert `{text}`: {error.message}", _HINT) from None


def _duration(text: str, written: str) -> float:
    try:
        return float(_native.parse_duration(written)) / 1e9
    except PathcastError as error:
        raise usage(f"--alert `{text}`: {error.message}", _HINT) from None
