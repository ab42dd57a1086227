"""Rounds of measurements, and the matrices that predictors eat.

Hamazaki, Abe, Kato, "A study on prediction of network throughput by Linux MPTCP kernel", section 6.1:

    x_j  probes_bps[j]     throughput of one TCP probe on path j = 1..m
    x    mptcp_probe_bps   throughput of one small MPTCP probe (the older method of Lee et al., section 2)
    y    actual_bps        throughput of the large MPTCP transfer over all paths

All throughputs are in bit/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

import numpy as np

from pathcast.predict.errors import RoundError

MEASURE_AGAIN = "leave the round out or measure it again"


@dataclass(frozen=True)
class Round:
    """One round: the probes, and the transfers that they are to predict.

    probes_bps: one TCP probe's throughput per path, in the order of the paths.
    actual_bps: the MPTCP transfer over all paths, the first subflow on the first path; None when only
    probing.
    mptcp_probe_bps: the small MPTCP probe; None if none was sent.
    tcp_bps: a plain TCP transfer per path, in the order of the paths; None if none was sent.
    subset_bps: MPTCP transfers over some of the paths, by the tuple of path names (first subflow first).
    """

    probes_bps: tuple[float, ...]
    actual_bps: float | None = None
    mptcp_probe_bps: float | None = None
    tcp_bps: tuple[float, ...] | None = None
    subset_bps: Mapping[tuple[str, ...], float] = field(default_factory=dict)


def as_round(value: Round | Mapping[str, Any], where: str = "round") -> Round:
    """A checked `Round` from a `Round` or a mapping with its keys (as read from JSON).

    In a mapping, `subset_bps` is a list of `{"paths": [...], "actual_bps": ...}`, or a mapping by tuple of
    names. Raises RoundError, naming `where`, the field and the value: unknown or missing keys, NaN, infinite,
    zero or negative throughputs, anything that is no number, and `tcp_bps` of another length than
    `probes_bps`.
    """
    if isinstance(value, Round):
        raw = {item.name: getattr(value, item.name) for item in fields(Round)}
    elif isinstance(value, Mapping):
        raw = dict(value)
    else:
        raise RoundError(f"{where} is a {type(value).__name__}", "give a Round or a mapping with its keys")
    known = [item.name for item in fields(Round)]
    unknown = sorted(str(key) for key in raw if key not in known)
    if unknown:
        raise RoundError(f"{where} has unknown keys {', '.join(unknown)}", f"allowed are {', '.join(known)}")
    if raw.get("probes_bps") is None:
        raise RoundError(f"{where} has no probes_bps", "give one TCP probe's throughput per path, in bit/s")

    probes = _row(raw["probes_bps"], f"{where}: probes_bps")
    tcp = None if raw.get("tcp_bps") is None else _row(raw["tcp_bps"], f"{where}: tcp_bps")
    if tcp is not None and len(tcp) != len(probes):
        raise RoundError(
            f"{where}: tcp_bps has {len(tcp)} values for {len(probes)} probed paths",
            "give one value per path",
        )
    return Round(
        probes_bps=probes,
        actual_bps=_optional(raw, "actual_bps", where),
        mptcp_probe_bps=_optional(raw, "mptcp_probe_bps", where),
        tcp_bps=tcp,
        subset_bps=_subsets(raw.get("subset_bps"), f"{where}: subset_bps"),
    )


def as_rounds(values: Iterable[Round | Mapping[str, Any]]) -> list[Round]:
    """Checked rounds, all over the same number of paths. Raises RoundError, also when there is no round."""
    result = [as_round(value, f"round {index}") for index, value in enumerate(values)]
    if not result:
        raise RoundError("there is no round", "measure at least one")
    for index, item in enumerate(result):
        if len(item.probes_bps) != len(result[0].probes_bps):
            raise RoundError(
                f"round {index}: probes_bps has {len(item.probes_bps)} paths, round 0 has {len(result[0].probes_bps)}",
                "all rounds of a training set must probe the same paths",
            )
    return result


def single(values: Iterable[Round | Mapping[str, Any]]) -> np.ndarray:
    """X of the single-probe methods: shape (n, 1) [bit/s], the MPTCP probe. Raises RoundError."""
    return np.array([[_present(item, "mptcp_probe_bps", i)] for i, item in enumerate(as_rounds(values))])


def multi(values: Iterable[Round | Mapping[str, Any]]) -> np.ndarray:
    """X of the multi-probe method: shape (n, m) [bit/s], one TCP probe a path. Raises RoundError."""
    return np.array([item.probes_bps for item in as_rounds(values)])


def target(values: Iterable[Round | Mapping[str, Any]]) -> np.ndarray:
    """y: shape (n,) [bit/s], the MPTCP transfers over all paths. Raises RoundError if one is missing."""
    return np.array([_present(item, "actual_bps", i) for i, item in enumerate(as_rounds(values))])


def _present(item: Round, name: str, index: int) -> float:
    value: float | None = getattr(item, name)
    if value is None:
        raise RoundError(f"round {index} has no {name}", MEASURE_AGAIN)
    return value


def _optional(raw: Mapping[str, Any], name: str, where: str) -> float | None:
    return None if raw.get(name) is None else _throughput(raw[name], f"{where}: {name}")


def _row(value: Any, where: str) -> tuple[float, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (Sequence, np.ndarray)):
        raise RoundError(f"{where} is {value!r}", "give a list with one throughput per path, in bit/s")
    if len(value) == 0:
        raise RoundError(f"{where} is empty", "give one throughput per path, in bit/s")
    return tuple(_throughput(item, f"{where}[{index}]") for index, item in enumerate(value))


def _subsets(value: Any, where: str) -> dict[tuple[str, ...], float]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        try:
            pairs = [(item["paths"], item["actual_bps"]) for item in value]
        except (TypeError, KeyError) as error:
            raise RoundError(f"{where} is {value!r}", 'give a list of {"paths": [...], "actual_bps": ...}') from error
    result: dict[tuple[str, ...], float] = {}
    for paths, bps in pairs:
        if isinstance(paths, str) or not all(isinstance(name, str) for name in paths) or not paths:
            raise RoundError(f"{where} has paths {paths!r}", "give a list of path names")
        if tuple(paths) in result:
            raise RoundError(f"{where} has {'+'.join(paths)} twice", "give every subset once a round")
        result[tuple(paths)] = _throughput(bps, f"{where}[{'+'.join(paths)}]")
    return result


def _throughput(value: Any, where: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise RoundError(f"{where} is {value!r}, not a number", "give a throughput in bit/s")
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise RoundError(f"{where} is {number!r}, not a positive finite throughput in bit/s", MEASURE_AGAIN)
    return number
