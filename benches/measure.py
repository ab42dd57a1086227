"""How right and how cheap `measure` is over emulated links, and the other tools in the same networks in the same run.

Every row is judged by the worst of its runs (20, or $PATHCAST_RUNS); the bars stand in
`pathcast.lab.measuring.rows`. Other tools are run where their programs are found, in $PATHCAST_PEERS or the PATH; of
the others the stored figures are printed, marked as such.
"""

from __future__ import annotations

import os
import secrets
import sys

from pathcast.lab.measuring import bars, peers
from pathcast.lab.measuring.network import Cross, Link, toml, truth
from pathcast.lab.measuring.rows import ROWS
from pathcast.worlds.emu import Emu, Topology

CROSS = (0, 0.5, 1.5, 3.0)


def ours(runs: int) -> bool:
    """All rows; whether every bar holds."""
    print(f"| {' | '.join(bars.HEADER)} |\n|{'---|' * len(bars.HEADER)}", flush=True)
    verdicts = bars.run(
        ROWS, "emu", range(1, runs + 1), done=lambda verdict, _: print(bars.markdown(verdict), flush=True)
    )
    return all(verdict.holds for verdict in verdicts if "emu" in verdict.row.worlds)


def theirs() -> None:
    """The tools that are here, once for each rate of cross traffic; what is stored of the others."""
    here, missing = peers.find()
    print("\n| tool | cross | true | said | error | time | |\n|---|---|---|---|---|---|---|", flush=True)
    for peer in here:
        for rate in CROSS:
            cross = (Cross("constant", f"{rate}Mbit"),) if rate else ()
            link = Link('{ ab = "5Mbit", ba = "100Mbit" }', cross=cross)
            with Emu(Topology.parse(toml((link,))), f"peer-{secrets.token_hex(3)}") as network:
                hosts = {host: f"pc-{network.name}-{host}" for host in ("client", "server")}
                path = network.paths[0]
                before = network.ledger()
                said, elapsed_s = peers.run(peer, hosts, {"client": path.local[0], "server": path.remote})
                true = truth(before, network.ledger(), "out").available_bps
            words = "none", "-"
            if said is not None:
                shown = (
                    f"{said.low / 1e6:.2f}" if said.low == said.high else f"{said.low / 1e6:.2f}-{said.high / 1e6:.2f}"
                )
                words = f"{shown} Mbit/s", f"{(said.value / true - 1) * 100:+.1f} %"
            line = (peer.name, f"{rate} Mbit/s", f"{true / 1e6:.2f} Mbit/s", *words, f"{elapsed_s:.1f} s", "")
            print(f"| {' | '.join(line)} |", flush=True)
    print(f"\nnot here: {', '.join(peer.name for peer in missing) or 'none'}")
    print("\nStored, measured once over another emulated link on a busy machine:\n")
    print("| tool | capacity | true | said | time | data |\n|---|---|---|---|---|---|")
    for row in peers.stored():
        said = "none" if row["low_mbps"] is None else f"{row['low_mbps']:g}-{row['high_mbps']:g} Mbit/s"
        line = (
            row["tool"],
            f"{row['capacity_mbps']:g} Mbit/s",
            f"{row['true_mbps']:g} Mbit/s",
            said,
            f"{row['elapsed_s']:g} s",
            f"{row['data_mb']:g} MB",
        )
        print(f"| {' | '.join(line)} |")


def main() -> int:
    """Prints everything; the exit status says nothing of the bars, which are results."""
    held = ours(int(os.environ.get("PATHCAST_RUNS", "20")))
    print(f"\nbars: {'all held' if held else 'not all held'}")
    theirs()
    return 0


if __name__ == "__main__":
    sys.exit(main())
