"""What the history knows the paths of a world by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pathcast.history import identity
from pathcast.history.identity import PathKey
from pathcast.lines.ids import line_ids
from pathcast.runtime.keys import OPEN_ID, read_key

Keys = Callable[[Any], Mapping[str, PathKey]]


def of_host(key_file: Path | None, passing: bool = False) -> Keys:
    """Of a far end by the key that both ends share. passing: the key is of this session only, so by its address."""

    def keys(world: Any) -> dict[str, PathKey]:
        key = read_key(key_file)
        known = not passing and key.id != OPEN_ID
        remote = identity.remote_of_key(key.secret) if known else identity.remote_of_address(world.address)
        pairs = [(pair["name"], pair["local"], pair["remote"], pair.get("interface")) for pair in world.candidates]
        lines = line_ids([(local, device) for _, local, _, device in pairs])
        found = {name: PathKey(lines[local], remote, local, far) for name, local, far, _ in pairs}
        for path in world.paths:
            if way := world.way(path.name):
                local = path.local[0]
                found[path.name] = PathKey(lines[local], identity.over(remote, way), local, path.remote)
        return found

    return keys


def of_network(world_name: str, name: str, text: str) -> Keys:
    """Of an emulated or simulated network, which is nothing but its file and what was set over it (`text`)."""
    far = identity.network_id(world_name, name, text)

    def keys(world: Any) -> dict[str, PathKey]:
        of = Counter((path.local[0], path.remote) for path in world.paths)

        def key(path: Any) -> PathKey:
            local = path.local[0]
            remote = far if of[local, path.remote] == 1 else identity.over(far, path.name)
            return PathKey(f"{far}/{local}", remote, local, path.remote)

        return {path.name: key(path) for path in world.paths}

    return keys
