"""What the worlds' tests have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pathcast.worlds.results import Subflow, Transfer


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
