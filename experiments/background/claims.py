"""Each claim is about one controller's share of all judged paths."""

from __future__ import annotations

import math

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.parts import judged
from pathcast.lab.plan import Claim

from .cells import KEPT, shares

CONTROLS = ("imtcp_bg", "nice", "lp", "ledbatpp", "lp/least_share=333", "ledbatpp/target_us=10000")


def share(results: Results, claim: Claim) -> Finding:
    """Above the bar on every path with a buffer of `buffer` or more; the foreground's controller counts for `kept`."""
    bar, found = claim.threshold, []
    for (control, path, foreground, quantity), by_seed in shares(results, "pairs").items():
        if (control, quantity) != (bar["control"], bar["share"]) or path.buffer < bar["buffer"]:
            continue
        if quantity != KEPT and foreground != "reno":  # it does not know the foreground
            continue
        beside = f", {foreground}" if quantity == KEPT else ""
        found.append((f"{path}{beside}", by_seed.values()))
    return judged(found, bar["least"], math.inf)


CLAIMS = {
    f"{control.replace('/', '-').replace('=', '-')}-{name}": share
    for control in CONTROLS
    for name in ("kept", "alone", "rest")
    if name != "rest" or not control.startswith("ledbatpp")
}
