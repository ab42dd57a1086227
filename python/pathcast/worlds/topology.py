"""Scenario files on their way into a world: an emulated network or a simulated one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from pathcast.runtime import daemon
from pathcast.runtime.state import check_id
from pathcast.scenario import Scenario, pair

NAME = "scenario"


@dataclass(frozen=True)
class Topology:
    """A checked scenario file with its `--set`s."""

    text: str
    sets: tuple[tuple[str, str], ...]
    source: str
    scenario: dict[str, Any]
    base: str | None = None
    called: str = NAME

    @classmethod
    def parse(
        cls,
        text: str,
        sets: Sequence[str] = (),
        source: str = "<text>",
        base: str | None = None,
        called: str = NAME,
    ) -> Topology:
        """Checks `text`, which names files relative to `base`; raises with the line, the value and the allowed ones.

        called: the name of a scenario that does not say it.
        """
        from pathcast import _native

        pairs = [pair("--set", item) for item in sets]
        return cls(text, tuple(pairs), source, json.loads(_native.scenario(text, pairs, base, called)), base, called)

    @classmethod
    def load(cls, file: Path | str, sets: Sequence[str] = ()) -> Topology:
        """Reads and checks a file."""
        read = Scenario.load(file)
        source = str(read.source)
        return cls.parse(read.text, sets, source, read.base, Path(source).stem)

    def about(self) -> dict[str, Any]:
        """Its first sentence, and of every path the rates [bit/s] and the round trip of an empty network [s]."""
        from pathcast import _native

        head = takewhile(lambda line: line.startswith("#") and line.strip("# "), self.text.splitlines())
        first = re.split(r"(?<=\.)\s", " ".join(line.strip("# ") for line in head))[0]
        links = self.scenario["links"]
        paths = []
        for path in self.scenario["paths"]:
            ends = {end: [links[hop["link"]][_way(hop, end)] for hop in path["hops"]] for end in ("up", "down")}
            rtt_s = sum(_native.parse_duration(link["delay"]) for of in ends.values() for link in of) / 1e9
            rates = {f"{end}_bps": _least(of) for end, of in ends.items()}
            paths.append({"name": path["name"], **rates, "rtt_s": rtt_s})
        return {"about": first, "paths": paths}

    def traces(self) -> dict[str, str]:
        """The SHA-256 of every trace that its links name, by the name of the file."""
        ends = (link[end] for link in self.scenario["links"] for end in ("ab", "ba"))
        found = (end["trace"] for end in ends if "trace" in end)
        return {Path(trace["file"]).name: trace["sha256"] for trace in found}

    def start(self, name: str | None = None) -> daemon.Daemon:
        """Builds the network in a process of its own, which ends with this one, or is detached."""
        said = self.scenario["name"]
        name = check_id(name or (folded(said) if said == self.called else said))
        config = {"name": name, "text": self.text, "sets": self.sets, "source": self.source, "base": self.base}
        return daemon.start("net", {**config, "called": self.called, "scenario": self.scenario})


def folded(name: str, most: int = 24) -> str:
    """A scenario's name as a network's: those may hold less."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:most].strip("-") or NAME


def _way(hop: dict[str, Any], end: str) -> str:
    same: str = hop["direction"]
    return same if end == "up" else {"ab": "ba", "ba": "ab"}[same]


def _least(links: list[dict[str, Any]]) -> float | None:
    """The smallest mean rate of these directions of links [bit/s]."""
    from pathcast import _native

    rates: list[float] = []
    for link in links:
        if "trace" in link:
            rates.append(link["trace"]["mean_bps"] * link["trace"]["scale"])
        written = [link.get("rate"), *(link.get(key, {}).get("rate") for key in ("policer", "bucket"))]
        rates += [_native.parse_rate(rate) for rate in written if rate is not None]
    return min(rates, default=None)
