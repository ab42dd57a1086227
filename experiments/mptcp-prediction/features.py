"""Columns that are made of a sample's columns: round trips as throughputs, so that they stand beside probes.

A round trip time is given as what an initial window (RFC 6928) a round trip is [bit/s]: small for long paths, as a
probe is.
"""

from __future__ import annotations

import pandas as pd

from pathcast.lab.experiment import Results

ROUND_BITS = 8 * 10 * 1448


def featured(results: Results) -> pd.DataFrame:
    """The samples that did not fail, with `handshakeN_bps` and `mptcp_SIZE_roundN_bps` where there are RTTs."""
    return results.once(lambda results: with_rounds(results.frame, results.plan.setup["probes"]), "featured")


def with_rounds(frame: pd.DataFrame, sizes: list[str]) -> pd.DataFrame:
    """The frame with those columns; sizes: of the Multipath TCP probes whose subflows' RTTs are to be taken.

    Subflow 2 has no RTT where it had not joined before the end. It joins after two round trips of each path (MP_CAPABLE
    and the first data, MP_JOIN and its last ACK), so that RTT 2 is then known to be more than half of the probe's time
    less RTT 1, which is what stands for it.
    """
    from pathcast import _native

    made = {}
    for n in (1, 2):
        name = f"tcp{n}_{sizes[0]}_connect_s"
        if name in frame:
            made[f"handshake{n}_bps"] = ROUND_BITS / frame[name]
    for size in sizes:
        names = (f"mptcp_{size}_rtt1_s", f"mptcp_{size}_rtt2_s")
        if all(name in frame for name in names):
            first, second = (frame[name].astype(float) for name in names)
            took = 8 * _native.parse_bytes(size) / frame[f"mptcp_{size}_bps"]
            made[f"mptcp_{size}_round1_bps"] = ROUND_BITS / first
            made[f"mptcp_{size}_round2_bps"] = ROUND_BITS / second.fillna(took / 2 - first)
    return frame.assign(**made)
