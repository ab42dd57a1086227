"""What the history knows the lines of this host by."""

from __future__ import annotations

from pathcast.history import identity
from pathcast.lines import config, here
from pathcast.lines.config import Line
from pathcast.runtime.state import namespace_name, network_namespace


def line_ids(locals: list[tuple[str, str | None]]) -> dict[str, str]:
    """The line of every local address: the id that its user's file gives it, else by the device that has it."""
    own = config.load()
    namespace = namespace_name(network_namespace())
    on: dict[tuple[str | None, int], set[str]] = {}
    for local, device in locals:
        on.setdefault((device, 6 if ":" in local else 4), set()).add(local)

    def line(local: str, device: str | None) -> str:
        named = here.named(own, local, device)
        if named is not None and named.id is not None:
            return named.id
        return identity.line_id(local, device, len(on[device, 6 if ":" in local else 4]) == 1, namespace)

    return {local: line(local, device) for local, device in locals}


def of_line(line: Line) -> list[str]:
    """All that the history may know a line by. Raises PathcastError where `ip` does not tell this host's addresses."""
    if line.id is not None:
        return [line.id]
    namespace, found = namespace_name(network_namespace()), here.addresses()
    own = here.of_line(line, found)
    ids = set()
    for one in own:
        ids.add(identity.line_id(one.local, one.dev, False, namespace))
        shared = [of for of in found if of.dev == one.dev and (":" in of.local) == (":" in one.local) and of not in own]
        if not shared:  # else nobody knows over which of them what is noted by the device alone was sent
            ids.add(identity.line_id(one.local, one.dev, True, namespace))
    if not own:
        ids = {identity.line_id(local, None, True, namespace) for local in line.addresses or (line.dev or "",)}
    return sorted(ids)
