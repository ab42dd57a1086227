"""How right and how cheap `measure` is over emulated links, and other tools in the same networks in the same run.

5 Mbit/s beside constant traffic; ours in 5 runs each, or $PATHCAST_RUNS (the bars: `pathcast lab run measuring`). Other
tools are run where their programs are found, in $PATHCAST_PEERS or the PATH; of the others the stored figures are
printed, marked as such.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from statistics import median

from pathcast.lab import worker
from pathcast.lab.experiment import Experiment
from pathcast.worlds.emu import Emu, Topology

EXPERIMENT = Experiment(Path(__file__).parents[1] / "experiments" / "measuring")
NETWORK, PEERS = EXPERIMENT.module("network"), EXPERIMENT.module("peers")
CROSS = (0, 0.5, 1.5, 3.0)


def row(*cells: str) -> None:
    """Prints a row of a Markdown table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def ours(runs: int) -> None:
    """Medians of the runs that the emulator kept its time in, and the worst of them."""
    for cross in CROSS:
        point = {
            "grid": "bench",
            "network": "5",
            "kind": "constant",
            "cross": cross,
            "budget": "own",
            "direction": "out",
        }
        found = []
        for seed in range(1, runs + 1):
            scenario = EXPERIMENT.module("samples").scenario({**point, "seed": seed}, EXPERIMENT.plan.setup, "emu")
            _, outcome = worker.compute(str(EXPERIMENT.directory), EXPERIMENT.code, "emu", "-", scenario)
            if outcome["error"] is None and outcome["values"]["relative_error"] is not None:
                found.append(outcome["values"])
        told = ["-"] * 5
        if found:
            errors = [run["relative_error"] * 100 for run in found]
            rate, true, time_s = (median(run[key] for run in found) for key in ("value_bps", "truth_bps", "seconds"))
            told = [f"{true / 1e6:.2f} Mbit/s", f"{rate / 1e6:.2f} Mbit/s", f"{median(errors):+.1f} %"]
            told += [f"{time_s:.1f} s", f"worst of {len(found)}: {max(errors, key=abs):+.1f} %"]
        row("pathcast measure", f"{cross} Mbit/s", *told)


def theirs() -> None:
    """The tools that are here, once for each rate of cross traffic."""
    here, missing = PEERS.find()
    for peer in here:
        for rate in CROSS:
            cross = (NETWORK.Cross("constant", f"{rate}Mbit"),) if rate else ()
            link = NETWORK.Link('{ ab = "5Mbit", ba = "100Mbit" }', cross=cross)
            with Emu(Topology.parse(NETWORK.toml((link,))), f"peer-{secrets.token_hex(3)}") as network:
                hosts = {host: f"pc-{network.name}-{host}" for host in ("client", "server")}
                path = network.paths[0]
                before = network.ledger()
                said, elapsed_s = PEERS.run(peer, hosts, {"client": path.local[0], "server": path.remote})
                true = NETWORK.truth(before, network.ledger(), "out").available_bps
            words = "none", "-"
            if said is not None:
                shown = f"{said.low / 1e6:.2f}" + (f"-{said.high / 1e6:.2f}" if said.high > said.low else "")
                words = f"{shown} Mbit/s", f"{(said.value / true - 1) * 100:+.1f} %"
            row(peer.name, f"{rate} Mbit/s", f"{true / 1e6:.2f} Mbit/s", *words, f"{elapsed_s:.1f} s", "")
    print(f"\nnot here: {', '.join(peer.name for peer in missing) or 'none'}")


def stored() -> None:
    """What was measured of tools elsewhere."""
    print("\nStored, measured once over another emulated link on a busy machine:\n")
    print("| tool | capacity | true | said | time | data |\n|---|---|---|---|---|---|")
    for one in PEERS.stored():
        said = "none" if one["low_mbps"] is None else f"{one['low_mbps']:g}-{one['high_mbps']:g} Mbit/s"
        rates = (f"{one['capacity_mbps']:g} Mbit/s", f"{one['true_mbps']:g} Mbit/s")
        row(one["tool"], *rates, said, f"{one['elapsed_s']:g} s", f"{one['data_mb']:g} MB")


if __name__ == "__main__":
    print("| tool | cross | true | said | error | time | |\n|---|---|---|---|---|---|---|", flush=True)
    ours(int(os.environ.get("PATHCAST_RUNS", "5")))
    theirs()
    stored()
