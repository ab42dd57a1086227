"""The networks of ns3/dumbbell.cc, ns3/short.cc and ns3/managed.cc as scenarios of ours.

`python tests/reference/networks.py` writes scenarios/ anew. A single run is one of these files and `--set` values.
"""

from __future__ import annotations

from pathlib import Path

SCENARIOS = Path(__file__).with_name("scenarios")
DUMBBELL_FLOWS = (1, 2, 4, 8)
SHORT_FLOWS = tuple(range(1, 9))

# ns-3's values, all written out; PPP adds 2 bytes to every packet
TCP = {
    "preset": '"ns3"',
    "mss": '"1448B"',
    "initial_window": "10",
    "sack": "true",
    "delayed_ack": "2",
    "delayed_ack_timeout": '"200ms"',
    "min_rto": '"1s"',
    "initial_rto": '"3s"',
    "limited_transmit": "true",
    "pacing": "false",
    "recovery": '"prr"',
    "receive_buffer": '"4MiB"',
    "send_buffer": '"4MiB"',
}
# what the setting `paper` of ns3/short.cc has in place of those
PAPER = {
    "mss": "1400B",
    "initial_window": "1",
    "initial_ssthresh": "65535B",
    "sack": "false",
    "delayed_ack": "1",
}


def _link(name: str, a: str, b: str, rate: str, delay: str, queue: str) -> str:
    return (
        f'[[link]]\nname = "{name}"\na = "{a}"\nb = "{b}"\n'
        f'rate = "{rate}"\ndelay = "{delay}"\nqueue = "{queue}"\noverhead = "2B"\n'
    )


def _path(name: str, *links: str) -> str:
    chain = ", ".join(f'"{link}"' for link in links)
    return f'[[path]]\nname = "{name}"\nlinks = [{chain}]\n'


def _flow(number: int, path: str, bytes: int | None = None) -> str:
    limit = f'bytes = "{bytes}B"\n' if bytes is not None else ""
    return f'[[flow]]\nname = "f{number}"\npaths = ["{path}"]\ncontrol = "reno"\n{limit}start = "0us"\n'


def _file(head: str, parts: list[str]) -> str:
    tcp = "[tcp]\n" + "".join(f"{key} = {value}\n" for key, value in TCP.items())
    return "\n".join([f"# Written by tests/reference/networks.py.\n{head}", *parts, tcp])


def shares(bytes: int, flows: int) -> list[int]:
    """How ns3/short.cc splits a transfer: the first flows carry a byte more where it does not divide."""
    return [bytes // flows + (number < bytes % flows) for number in range(flows)]


def dumbbell(flows: int) -> str:
    """Bulk flows over one bottleneck for 60 s, each with access links of its own; beyond eight they share these."""
    own = min(flows, 8)
    parts = [_link("bottleneck", "r1", "r2", "100Mbit", "8ms", "100 packets")]
    for k in range(1, own + 1):
        parts.append(_link(f"c-{k}", "client", "r1", "1Gbit", "1ms", "1000 packets"))
        parts.append(_link(f"s-{k}", "r2", "server", "1Gbit", "1ms", "1000 packets"))
    for k in range(1, own + 1):
        parts.append(_path(f"path{k}", f"c-{k}", "bottleneck", f"s-{k}"))
    parts += [_flow(k, f"path{(k - 1) % own + 1}") for k in range(1, flows + 1)]
    return _file(f'name = "dumbbell-{flows}"\nseed = 1\nend = "60s"\n', parts)


# the discs of ns3/managed.cc; nothing is marked, since nothing is ECN-capable. One packet waits at ns-3's device,
# behind the disc, which so sees a packet less and its 240 us
MANAGED = {
    "codel": '{ kind = "codel", target = "5240us" }',
    "fq_codel": '{ kind = "fq_codel", quantum = "1502B", target = "5240us" }',
    "pie": '{ kind = "pie", target = "15240us" }',
    "red": '{ kind = "red", min = 31, max = 91, limit = 301, probability = 0.1, ecn = true }',
}


def managed(disc: str, flows: int, offset_us: int = 1000, seconds: int = 30) -> str:
    """The network of ns3/managed.cc: `dumbbell` at 50 Mbit/s, with a queue of MANAGED on the way to the servers."""
    text = dumbbell(flows).replace('"100Mbit"', '"50Mbit"').replace('end = "60s"', f'end = "{seconds}s"')
    text = text.replace('queue = "100 packets"', f'queue = {{ ab = {MANAGED[disc]}, ba = "1000 packets" }}')
    first, *rest = text.split('start = "0us"')
    return first + "".join(f'start = "{number * offset_us}us"{part}' for number, part in enumerate(rest))


def short(flows: int, bytes: int = 1_000_000) -> str:
    """One transfer split evenly over flows between the same two nodes."""
    parts = [
        _link("c-r1", "client", "r1", "100Mbit", "1ms", "1000 packets"),
        _link("bottleneck", "r1", "r2", "5Mbit", "73ms", "50 packets"),
        _link("r2-s", "r2", "server", "100Mbit", "1ms", "1000 packets"),
        _path("path1", "c-r1", "bottleneck", "r2-s"),
    ]
    parts += [_flow(k, "path1", share) for k, share in enumerate(shares(bytes, flows), 1)]
    return _file(f'name = "short-{flows}"\nseed = 1\n', parts)


def files() -> dict[str, str]:
    """Name and text of every file of scenarios/."""
    return {f"dumbbell-{n}.toml": dumbbell(n) for n in DUMBBELL_FLOWS} | {
        f"short-{k}.toml": short(k) for k in SHORT_FLOWS
    }


def sets(run: dict) -> tuple[str, list[str]]:
    """The file and the `--set` values of one run of ns-3, a line of data/."""
    flows, offset = run["flows"], run["offset_us"]
    values = [f"flow.f{k}.start={(k - 1) * offset}us" for k in range(2, flows + 1)] if offset else []
    if "setting" not in run:
        return f"dumbbell-{flows}.toml", [*values, *(["tcp.recovery=classic"] if run["recovery"] == "classic" else [])]
    values += [f"flow.f{k}.bytes={share}B" for k, share in enumerate(shares(run["bytes"], flows), 1)]
    if run["setting"] == "paper":
        values += [f"tcp.{key}={value}" for key, value in PAPER.items()]
    return f"short-{flows}.toml", values


if __name__ == "__main__":
    SCENARIOS.mkdir(exist_ok=True)
    for name, text in files().items():
        (SCENARIOS / name).write_text(text)
