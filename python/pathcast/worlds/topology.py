"""Scenario files on their way into a world: an emulated network or a simulated one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pathcast import daemon
from pathcast.errors import usage
from pathcast.state import check_id


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

        pairs = []
        for item in sets:
            key, equals, value = item.partition("=")
            if not equals:
                raise usage(f"--set `{item}` is not KEY=VALUE, for example link.wan1.rate=5Mbit")
            pairs.append((key.strip(), value.strip()))
        scenario = json.loads(_native.scenario(text, pairs))
        return cls(text, tuple(pairs), source, scenario)

    @classmethod
    def load(cls, file: FilePath | str, sets: Sequence[str] = ()) -> Topology:
        """Reads and checks a file."""
        try:
            text = FilePath(file).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise usage(f"cannot read the scenario `{file}`: {reason}") from None
        return cls.parse(text, sets, str(file))

    def start(self, name: str | None = None) -> daemon.Daemon:
        """Builds the network in a process of its own, which ends with this one, or is detached."""
        name = check_id(name or self.scenario["name"])
        config = {"name": name, "text": self.text, "sets": self.sets, "source": self.source}
        return daemon.start("net", config)
