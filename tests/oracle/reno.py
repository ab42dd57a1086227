"""Reno. RFC 5681 section 3.1.

Slow start: cwnd += acked up to ssthresh. Congestion avoidance: cwnd += acked / cwnd. Loss: ssthresh = max(cwnd / 2, 2).
These are the rules that every oracle inherits, see `tcp.Control`.
"""

from oracle.tcp import Control


class Reno(Control):
    pass
