"""What TCP payload comes to on a line, as providers count it: IP packets, both ways."""

from __future__ import annotations

# IP bytes for a byte of payload, at most: 1408 of 1500 bytes are payload over IPv6 with the options of Multipath TCP
# (RFC 8684) and timestamps; and on the way back every other packet has an ACK of 92 bytes
DATA, ACKS = 1500 / 1408, 92 / 2 / 1408


def ip_bytes(payload: int) -> tuple[int, int]:
    """Of so many bytes of payload, with what was sent again: IP bytes on their way, and of their ACKs on the way
    back."""
    return round(payload * DATA), round(payload * ACKS)
