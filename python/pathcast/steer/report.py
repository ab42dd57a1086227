"""The controller's state and counters as plain data, for `steer status` and for senders."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pathcast.steer import entries
from pathcast.steer.rules import PROTOCOLS, Flow, Port, Rule

if TYPE_CHECKING:
    from pathcast.steer.machine import Machine


def flow(one: Flow) -> str:
    """For people: `tcp 10.0.0.2:40001 > 10.0.1.1:5275`."""
    if one.protocol not in PROTOCOLS:
        return f"{one.protocol} {one.local} > {one.remote}"
    local, remote = (f"[{end}]" if ":" in end else end for end in (one.local, one.remote))
    return f"{one.protocol} {local}:{one.local_port or '*'} > {remote}:{one.remote_port or '*'}"


def entry(rule: Rule) -> str:
    """An entry for people."""
    return f"`{flow(rule.flow)}` from port {rule.in_port} to port {rule.out}"


def state(machine: Machine) -> dict[str, Any]:
    """Switches, links, hosts, paths, flows, the entries that are there, and what is wrong."""
    links, hosts = machine.discovery.about()
    believed, network = machine.discovery.believed(), machine.discovery.network()
    return {
        "listen": machine.config.listen,
        "switches": [
            {
                "name": one.name or f"{one.id:x}",
                "id": one.id,
                "connected": one.ready,
                "ports": [{"port": p.number, "name": p.name, "up": p.up} for p in one.ports.values()],
                "entries": sum(rule.switch == one.id for rule in machine.tables.have.values()),
                "others_entries": one.foreign,
            }
            for one in machine.switches.by_id.values()
        ],
        "links": [
            {"ends": [machine.switches.port(a), machine.switches.port(b)], "known": how, "stands": stands}
            for a, b, how, stands in links
        ],
        "hosts": [
            {"address": address, "at": machine.switches.port(port), "known": how, "up": up}
            for address, port, how, up in hosts
        ],
        "paths": [
            {
                "name": name,
                "via": [machine.switches.port(port) for port in chain],
                "stands": all(port in network.links for port in chain),
                "known": all(port in believed.links for port in chain),
            }
            for name, chain in machine.plan.paths.items()
        ],
        "flows": [
            {
                **asdict(one),
                "planned": name,
                "path": machine.plan.chosen.get(one),
                "owner": asdict(owner) if owner is not None else None,
            }
            for one, (name, owner) in machine.plan.flows.items()
        ],
        "without_path": [flow(one) for one in machine.plan.lost],
        "notes": list(machine.notes),
    }


def counters(machine: Machine) -> dict[str, Any]:
    """Of every path what its links' ports have carried; of every flow what its entries have, by switch too."""
    links = machine.discovery.believed().links
    carried: dict[tuple[int, Flow, int], entries.Stats] = {}
    for switch in machine.switches.by_id.values():
        for one in switch.stats:
            rule = entries.rule_of(switch.id, one) if one.cookie == machine.cookie else None
            if rule is not None:
                carried[rule.switch, rule.flow, rule.in_port] = one
    flows = [_flow(machine, one, carried) for one in machine.plan.flows]
    paths = []
    for name, chain in machine.plan.paths.items():
        mine = [one for one in flows if one["path"] == name]
        paths.append(
            {
                "name": name,
                "flows": len(mine),
                "sent_bytes": sum(one["sent_bytes"] for one in mine),
                "received_bytes": sum(one["received_bytes"] for one in mine),
                "links": [
                    {
                        "ends": [machine.switches.port(out), machine.switches.port(far)],
                        "there": _port(machine, out),
                        "back": _port(machine, far),
                    }
                    for out, far in ((port, links[port]) for port in chain if port in links)
                ],
            }
        )
    return {"paths": paths, "flows": flows}


def _flow(machine: Machine, one: Flow, carried: dict[tuple[int, Flow, int], entries.Stats]) -> dict[str, Any]:
    hosts = machine.discovery.believed().client
    at, end = hosts.get(one.local), hosts.get(one.remote)
    there = carried.get((at.switch, one, at.port)) if at else None
    back = carried.get((end.switch, one.back(), end.port)) if end else None
    return {
        **asdict(one),
        "path": machine.plan.chosen.get(one),
        "sent_bytes": there.bytes if there else 0,
        "sent_packets": there.packets if there else 0,
        "received_bytes": back.bytes if back else 0,
        "received_packets": back.packets if back else 0,
        "switches": _by_switch(machine, one, carried),
    }


def _by_switch(
    machine: Machine, one: Flow, carried: dict[tuple[int, Flow, int], entries.Stats]
) -> list[dict[str, Any]]:
    """What the entries of a flow have counted along its path, in both directions; nothing of a path that is down."""
    name, network = machine.plan.chosen.get(one), machine.discovery.network()
    # a link may have failed since the path was chosen
    if name is None or not network.stands(machine.plan.paths[name], one):
        return []
    found: dict[int, dict[str, Any]] = {}
    for rule in machine.plan.rules(one, network):
        at = found.setdefault(rule.switch, {"switch": machine.switches.name(rule.switch)})
        stats, way = carried.get((rule.switch, rule.flow, rule.in_port)), "out" if rule.flow == one else "in"
        at[f"{way}_packets"] = stats.packets if stats else 0
        at[f"{way}_bytes"] = stats.bytes if stats else 0
    return list(found.values())


def _port(machine: Machine, port: Port) -> dict[str, int] | None:
    """What has left by a port."""
    switch = machine.switches.by_id.get(port.switch)
    found = switch.counters.get(port.port) if switch is not None else None
    if found is None:
        return None
    return {
        "bytes": found.sent_bytes,
        "packets": found.sent_packets,
        "dropped": found.sent_dropped,
        "errors": found.sent_errors,
    }
