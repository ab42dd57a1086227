"""Others' TCP in an emulated network, which starts none by itself: real transfers beside the measurement."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pathcast.errors import PathcastError
from pathcast.worlds import flows_emu
from pathcast.worlds.emu import Emu
from pathcast.worlds.flows import Plan

# not in step with each other; a sample of theirs every so often [s], of which nobody asks
STAGGER_S, EVERY_S = 0.13, 1.0
# as the simulator's
CONTROL = "cubic"


@contextmanager
def beside(network: Emu, count: int) -> Iterator[None]:
    """So many transfers over the first path towards the server; raises PathcastError if one does not last as long."""
    path = network.paths[0].name
    wanted = [
        Plan(f"tcp{k}", CONTROL, (path,), bytes=None, web=False, start_s=k * STAGGER_S, stop_s=None)
        for k in range(count)
    ]
    made = flows_emu.runners(wanted, network.path, network.session, lambda control: control)
    zero_ns = time.monotonic_ns()
    threads = [threading.Thread(target=r.run, args=(zero_ns, round(EVERY_S * 1e9)), daemon=True) for r in made]
    try:
        for thread in threads:
            thread.start()
        yield
        for runner, thread in zip(made, threads, strict=True):
            if not thread.is_alive():
                raise PathcastError("broken", f"{runner.plan.name} ended early: {runner.error}", None)
    finally:
        for runner in made:
            runner.cancel()
        for thread in threads:
            thread.join()
        flows_emu.close(made)
