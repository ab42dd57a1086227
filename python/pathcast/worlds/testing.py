"""What the worlds' tests have in common."""

from __future__ import annotations


def two_paths(rate: str, delays: tuple[str, str], queue: str) -> str:
    """Links `wan1` and `wan2` between the hosts, and `path1` and `path2` over one each."""
    text = ""
    for n, delay in enumerate(delays, 1):
        text += f'[[link]]\nname = "wan{n}"\na = "client"\nb = "server"\nrate = "{rate}"\n'
        text += f'delay = "{delay}"\nqueue = "{queue}"\n[[path]]\nname = "path{n}"\nlinks = ["wan{n}"]\n'
    return text
