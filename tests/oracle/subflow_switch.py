"""Switching by the number of subflows. Kojima, Kimura (University of Tsukuba): n <= N_th: slow start and LIA; above:
GSAM.

n is the number of subflows at each ACK; a subflow in GSAM's smooth transition stays in it.
"""

from oracle.gsam import Gsam


class SubflowSwitch(Gsam):
    def allowed(self) -> bool:
        return len(self.flow.peers) > self.p["subflows"] and super().allowed()
