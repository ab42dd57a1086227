"""Scenario files on their way into a world: an emulated network or a simulated one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.runtime import daemon
from pathcast.runtime.state import check_id
from pathcast.scenario import Scenario, pair


@dataclass(frozen=True)
class Topology:
    """A checked scenario file with its `--set`s."""

    text: str
    sets: tuple[tuple[str, str], ...]
    source: str
    scenario: dict[str, Any]

    @classmethod
    def parse(cls, text: str, sets: Sequence[str] = (), source: str = "<text>") -> Topology:
        """Checks `text`; raises with the line, the value and the allowed ones."""
        from pathcast import _native

        pairs = [pair("--set", item) for item in sets]
        return cls(text, tuple(pairs), source, json.loads(_native.scenario(text, pairs)))

    @classmethod
    def load(cls, file: Path | str, sets: Sequence[str] = ()) -> Topology:
        """Reads and checks a file."""
        return cls.parse(Scenario.load(file).text, sets, str(file))

    def start(self, name: str | None = None) -> daemon.Daemon:
        """Builds the network in a process of its own, which ends with this one, or is detached."""
        name = check_id(name or self.scenario["name"])
        config = {"name": name, "text": self.text, "sets": self.sets, "source": self.source}
        return daemon.start("net", config)
