"""What the verbs of every world return. Written as JSON with `"schema": "pathcast.<verb>/1"` first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pathcast import codec
from pathcast.errors import Exit, PathcastError


@dataclass(frozen=True)
class Path:
    """An address pair. `local` holds the path's own client address first, then further ones for repeated subflows.

    also: what it may be called beside its name.
    """

    name: str
    local: tuple[str, ...]
    remote: str
    also: tuple[str, ...] = ()

    def pair(self, repetition: int = 0) -> dict[str, str]:
        """One address pair of it."""
        return {"name": self.name, "local": self.local[repetition], "remote": self.remote}


@dataclass(frozen=True)
class Subflow:
    """One subflow at the end of a transfer; of a plain TCP transfer the only one."""

    path: str | None
    local: str
    remote: str
    bytes_sent: int
    bytes_acked: int
    bytes_retransmitted: int
    retransmits: int
    rtt_s: float | None
    min_rtt_s: float | None
    cwnd_packets: int
    joined_s: float | None
    alive: bool
    note: str | None
    # retransmission timeouts, and losses repaired without one; None: the world does not tell
    timeouts: int | None = None
    recoveries: int | None = None


@dataclass(frozen=True)
class SubflowProgress:
    """A subflow at one time: payload acknowledged [byte], window [packet], smoothed RTT [s]."""

    bytes_acked: int
    cwnd_packets: int
    srtt_s: float | None


@dataclass(frozen=True)
class Progress:
    """A transfer `at_s` seconds after connect(): application bytes that had arrived in order; its subflows by then."""

    at_s: float
    bytes: int
    subflows: tuple[SubflowProgress, ...]


@dataclass(frozen=True)
class Transfer:
    """A transfer or a probe. Throughput is application bytes over the time from connect() to the receiver's receipt.

    elapsed_s: that time on the world's clock. wall_s: how long the verb took on the machine's.
    """

    paths: tuple[str, ...]
    bytes: int
    elapsed_s: float
    throughput_bps: float
    connect_s: float
    protocol: str
    control: str
    fallback: str | None
    path_manager: str | None
    notes: tuple[str, ...]
    subflows: tuple[Subflow, ...]
    wall_s: float | None = None
    samples: tuple[Progress, ...] = ()

    @classmethod
    def read(cls, paths: list[str], document: dict[str, Any]) -> Transfer:
        """From the native report."""
        fallback = (document["fallback_reason"] or "reason unknown") if document["fallback"] else None
        return codec.read(cls, {**document, "paths": list(dict.fromkeys(paths)), "fallback": fallback})

    @property
    def timeouts(self) -> int | None:
        """Retransmission timeouts of all subflows; None where the world does not tell."""
        return _sum([one.timeouts for one in self.subflows])

    @property
    def recoveries(self) -> int | None:
        """Losses repaired without a timeout, of all subflows; None where the world does not tell."""
        return _sum([one.recoveries for one in self.subflows])

    def bytes_by_path(self, paths: Sequence[str]) -> list[int]:
        """Bytes that each path carried (sent less sent again), in the order of `paths`."""
        return [sum(s.bytes_sent - s.bytes_retransmitted for s in self.subflows if s.path == path) for path in paths]

    def check(self, subflows: int = 1) -> None:
        """Raises PathcastError (`fallback`, `join`) where it was no Multipath TCP, or of fewer subflows."""
        if self.fallback is not None:
            raise PathcastError("fallback", f"Multipath TCP fell back to TCP: {self.fallback}")
        if len(joined := [one for one in self.subflows if one.joined_s is not None]) < subflows:
            notes = "; ".join(filter(None, (*self.notes, *(one.note for one in self.subflows))))
            raise PathcastError("join", f"{len(joined)} of {subflows} subflows: {notes or 'no reason is known'}")

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


@dataclass
class Verdict:
    """Whether the emulator kept its own time during some work. Filled when the work is done."""

    release_error: dict[str, float] = field(default_factory=dict)
    dropped_unmodelled: int = 0
    realtime: bool = True

    LIMIT_S = 1e-3

    @property
    def valid(self) -> bool:
        """The 99th percentile of the release error is at most 1 ms, and no packet was lost outside of the model."""
        return self.release_error.get("p99_s", 0.0) <= self.LIMIT_S and self.dropped_unmodelled == 0

    @property
    def fault(self) -> str | None:
        """What makes it not valid, in words."""
        if self.valid:
            return None
        late_ms, lost = self.release_error.get("p99_s", 0.0) * 1e3, self.dropped_unmodelled
        return f"the emulator was late: p99 {late_ms:.2f} ms, {lost} packets lost beside the links"

    def check(self) -> None:
        """Raises PathcastError (`late`, exit 3) unless it is valid."""
        if self.fault is not None:
            hint = "leave the machine alone while it measures; `pathcast doctor` shows its wake-ups"
            raise PathcastError("late", self.fault, hint, Exit.UNTRUSTWORTHY)

    def document(self) -> dict[str, float | bool] | None:
        """For JSON; None where nothing can be late."""
        return {**self.release_error, "realtime": self.realtime} if self.release_error else None
