"""Rounds from a simple model of TCP and MPTCP transfers, to try a predictor on before there is a network.

The model has the physics that the prediction method lives by (Hamazaki, Abe, Kato, sections 3.2 and 5.1):

* a small TCP probe is a handshake and a few round trips of slow start, so its throughput tells the round-trip
  time;
* subflow k > 1 joins only when the first one has carried data and its own four-way handshake is done, so a
  small MPTCP probe sees the first path and hardly the others;
* a large transfer leaves slow start on every subflow and then runs at what each path allows: the line's free
  rate, or window / RTT where that is less.

It has no loss, no queue and no coupling; it is a test bed for predictors, not a simulator of the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathcast.predict.features import Round

SEGMENT_BYTES = 1448
INITIAL_WINDOW_BYTES = 10 * SEGMENT_BYTES  # RFC 6928


@dataclass(frozen=True)
class Subflow:
    """One subflow: starts sending at `start_s`, one burst a round trip, doubling up to the path's rate."""

    start_s: float
    rtt_s: float
    rate_bps: float
    window_bytes: float | None = None

    def bytes_at(self, time_s: float) -> float:
        """Bytes whose receipt the sender holds at `time_s`."""
        rate = self.rate_bps / 8
        done = 0.0
        burst = float(INITIAL_WINDOW_BYTES)
        begin = self.start_s + self.rtt_s
        while begin < time_s:
            if self.window_bytes is not None:
                burst = min(burst, self.window_bytes)
            if burst >= rate * self.rtt_s:
                return done + (time_s - begin) * rate
            if burst == self.window_bytes:
                return done + (time_s - begin) * burst / self.rtt_s
            done += min(burst, (time_s - begin) * rate)
            burst *= 2
            begin += self.rtt_s
        return done


def throughput_bps(subflows: Sequence[Subflow], transfer_bytes: float) -> float:
    """Application bytes over the time until the receipt of the last one [bit/s], all subflows together."""
    low, high = 0.0, 1.0
    while sum(flow.bytes_at(high) for flow in subflows) < transfer_bytes:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if sum(flow.bytes_at(middle) for flow in subflows) < transfer_bytes:
            low = middle
        else:
            high = middle
    return 8 * transfer_bytes / high


def rounds(
    n: int,
    seed: int,
    *,
    n_paths: int = 2,
    rate_bps: float = 100e6,
    rtt_s: tuple[float, float] = (0.020, 0.180),
    transfer_bytes: float = 16e6,
    probe_bytes: float = 64e3,
    window_bytes: float | None = None,
    jitter: float = 0.02,
    load: float = 0.10,
) -> list[Round]:
    """`n` rounds over `n_paths` disjoint paths whose RTTs are drawn for every round, uniform in `rtt_s`.

    Every transfer of a round sees its own RTT (relative standard deviation `jitter`) and its own free share
    of the line (a share uniform in [0, `load`] is taken by others). The MPTCP probe carries as many bytes as
    the TCP probes together, so that single and multi-probe are compared at equal bytes, as in the paper's
    tables 3 and 4.
    """
    rng = np.random.default_rng(seed)

    def see(base_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        noisy = base_s * np.clip(1 + jitter * rng.standard_normal(n_paths), 0.5, 1.5)
        return noisy, rate_bps * (1 - load * rng.random(n_paths))

    def mptcp(base_s: np.ndarray, size: float) -> float:
        rtt, rate = see(base_s)
        starts = [rtt[0]] + [2 * rtt[0] + 2 * later for later in rtt[1:]]
        return throughput_bps([Subflow(*values, window_bytes) for values in zip(starts, rtt, rate, strict=True)], size)

    def tcp(base_s: np.ndarray, size: float) -> list[float]:
        rtt, rate = see(base_s)
        return [throughput_bps([Subflow(r, r, c, window_bytes)], size) for r, c in zip(rtt, rate, strict=True)]

    result = []
    for _ in range(n):
        base = rng.uniform(*rtt_s, n_paths)
        result.append(
            Round(
                probes_bps=tuple(tcp(base, probe_bytes)),
                mptcp_probe_bps=mptcp(base, n_paths * probe_bytes),
                actual_bps=mptcp(base, transfer_bytes),
                tcp_bps=tuple(tcp(base, transfer_bytes)),
            )
        )
    return result
