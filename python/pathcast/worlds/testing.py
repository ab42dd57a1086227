"""What the worlds' tests have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pathcast.worlds.flows import Flow, FlowsResult, Sample, SubflowSample
from pathcast.worlds.results import Subflow, Transfer, Verdict


def two_paths(rate: str, delays: tuple[str, str], queue: str) -> str:
    """Links `wan1` and `wan2` between the hosts, and `path1` and `path2` over one each."""
    text = ""
    for n, delay in enumerate(delays, 1):
        text += f'[[link]]\nname = "wan{n}"\na = "client"\nb = "server"\nrate = "{rate}"\n'
        text += f'delay = "{delay}"\nqueue = "{queue}"\n[[path]]\nname = "path{n}"\nlinks = ["wan{n}"]\n'
    return text


def sent(paths: Sequence[str], bytes: int = 1, throughput_bps: float = 1e6, **about: Any) -> Transfer:
    """A transfer that nobody made, one subflow a name of `paths`; each carried 400 bytes.

    about: further fields of it; joined: how many of the subflows did (all); subflow: fields of each.
    """
    joined, each = about.pop("joined", len(paths)), about.pop("subflow", {})
    one = Subflow(None, "192.0.2.1", "192.0.2.2", 500, 400, 100, 1, 0.1, 0.1, 10, 0.1, True, None)
    subflows = tuple(
        replace(one, path=path, joined_s=one.joined_s if n < joined else None, **each) for n, path in enumerate(paths)
    )
    protocol, manager = ("mptcp", "userspace") if len(paths) > 1 else ("tcp", None)
    made = Transfer(
        tuple(dict.fromkeys(paths)), bytes, 2.0, throughput_bps, 0.18, protocol, "reno", None, manager, (), subflows
    )
    return replace(made, **about)


def flow(name: str, acked: dict[float, Sequence[int]], **about: Any) -> Flow:
    """A flow that nobody ran; acked: bytes of each subflow by time [s]; about: further fields of it."""
    samples = tuple(
        Sample(t_s, sum(each), tuple(SubflowSample(f"path{n}", of, 0, 10, 0.04) for n, of in enumerate(each, 1)))
        for t_s, each in acked.items()
    )
    total = samples[-1].bytes_acked
    made = Flow(
        *(name, "reno", "reno", "tcp", ("path1",), 0.0, 0.04, None, samples[-1].t_s, total, 0),
        *(total * 8 / samples[-1].t_s, None, None, (), samples),
    )
    return replace(made, **about)


class Ran:
    """In the place of a world in which some flows have run."""

    def __init__(self, *flows: Flow, world: str = "sim") -> None:
        self.result = FlowsResult(world, "made", 1, 0.1, 60.0, flows, (), Verdict(), 0.0)

    def __call__(self, topology: Any) -> Ran:
        return self

    def __enter__(self) -> Ran:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def flows(self) -> FlowsResult:
        return self.result

    def controller(self, name: str) -> str:
        return name
