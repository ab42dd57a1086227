"""The same transfers by the real kernel: several controllers, one after the other, over one emulated bottleneck.

TCP is the kernel's own, so [setup.tcp] does not reach it. What of it the kernel lets set, [setup.kernel] sets in both
namespaces: sysctls, metrics of the routes, and the initial ssthresh as a parameter of the controllers.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pathcast import _native
from pathcast.errors import PathcastError, usage
from pathcast.worlds.emu import Emu
from pathcast.worlds.results import Transfer
from pathcast.worlds.topology import Topology

PATH = "path1"
# what a transfer has left in its sockets when all has arrived, it sends again meanwhile
_PATIENCE_S = 30.0
# the table that a network's own source addresses are looked up in
_TABLE = "100"
# the client's counters, by what a column calls them
_COUNTERS = {
    "timeouts": "TcpExtTCPTimeouts",
    "retransmits": "TcpRetransSegs",
    "tail_probes": "TcpExtTCPLossProbes",
    "reinjections": "MPTcpExtMPTCPRetrans",
}


def controls(labels: Sequence[str], setup: Mapping[str, Any], kernel: Mapping[str, Any]) -> list[tuple[str, str, dict]]:
    """Label, controller and its parameters; raises PathcastError for two labels of the same controller."""
    found = []
    for label in labels:
        parameters = dict(setup["control"][label])
        control = parameters.pop("control")
        if control in (one for _, one, _ in found):
            raise usage(f"plan.toml: two labels of a sample are both `{control}`, which has one set of parameters")
        found.append((label, control, {**parameters, **kernel.get("control", {})}))
    return found


def sample(scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each controller: completion time [s], drops at the bottleneck, and what the kernel counted meanwhile.

    Raises PathcastError: `late`, `fallback`, `join`, `settings`, `busy`, or a transfer's own.
    """
    topology = Topology.parse(scenario["text"], scenario["sets"])
    draw = random.Random(scenario["draws"])
    order = list(scenario["controls"].items())
    draw.shuffle(order)
    rows = []
    with Emu(topology) as net:
        for host in ("client", "server"):
            _settings(f"pc-{net.name}-{host}", scenario["kernel"])
        with net.judged() as verdict:
            for label, control in order:
                net.wait(draw.uniform(*scenario["pause_s"]))
                rows.append({"control": label, **_sent(net, control, scenario)})
        verdict.check()
    return rows


def _settings(namespace: str, kernel: Mapping[str, Any]) -> None:
    """Sysctls, and metrics of every route; raises PathcastError where the kernel does not take them."""
    for key, value in kernel.get("sysctl", {}).items():
        _in(namespace, "sysctl", "-qw", f"{key}={value}")
    if "route" not in kernel:
        return
    for route in _in(namespace, "ip", "route", "show", "table", _TABLE).splitlines():
        if not route.startswith("unreachable"):
            _in(namespace, "ip", "route", "change", *route.split(), "table", _TABLE, *kernel["route"].split())


def _in(namespace: str, *command: str) -> str:
    done = subprocess.run(["ip", "netns", "exec", namespace, *command], capture_output=True, text=True)
    if done.returncode:
        raise PathcastError("settings", f"{' '.join(command)}: {done.stderr.strip()}", "iproute2 and procps are needed")
    return done.stdout


def _sent(net: Emu, control: str, scenario: Mapping[str, Any]) -> dict[str, Any]:
    before, counted, open_before = net.ledger(), _counters(net), _open(net)
    done = net.transfer([PATH] * scenario["subflows"], _native.parse_bytes(scenario["bytes"]), control, plain=True)
    done.check(scenario["subflows"])
    deadline = time.monotonic() + _PATIENCE_S
    while _open(net) > open_before:
        if time.monotonic() > deadline:
            raise PathcastError("busy", f"sockets of {control} were still sending after {_PATIENCE_S:.0f} s")
        net.wait(0.05)
    return {
        "completion_s": done.elapsed_s,
        "drops": _drops(net.ledger()) - _drops(before),
        **{name: value - counted[name] for name, value in _counters(net).items()},
        "first_share": _carried(done)[0] / sum(_carried(done)),
    }


def _carried(done: Transfer) -> list[int]:
    return [one.bytes_sent - one.bytes_retransmitted for one in done.subflows]


def _drops(ledger: Mapping[str, Any]) -> int:
    """Packets of the client that found the bottleneck's queue full."""
    links = (link for group in ledger["groups"] for link in group["links"])
    return sum(link["counters"]["dropped"]["queue"]["packets"] for link in links if link["name"] == "bottleneck/ab")


def _open(net: Emu) -> int:
    """The client's sockets that may still send data."""
    states = ("established", "fin-wait-1", "close-wait", "last-ack", "closing")
    wanted = [word for state in states for word in ("state", state)]
    return len(_in(f"pc-{net.name}-client", "ss", "-Htn", *wanted).splitlines())


def _counters(net: Emu) -> dict[str, int]:
    found = json.loads(_in(f"pc-{net.name}-client", "nstat", "-aszj", *_COUNTERS.values()))["kernel"]
    return {name: found[counter] for name, counter in _COUNTERS.items()}
