"""Policy routing: packets from a line's address leave by that line. A table of its own and a rule for each address.

Linux chooses a route by the destination; without a rule, packets from the second line's address leave by the first.
What is missing is told as commands of iproute2; what pathcast sets is written down beside its other records, and
removed by `undo`. A reboot removes rules and records alike.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, missing, usage
from pathcast.lines import here
from pathcast.lines.config import Line
from pathcast.runtime.state import locked, network_namespace, run_dir

# tables and priorities of ours begin here
FIRST = 7700
# nobody's addresses (RFC 5737, RFC 3849): they are reached as any stranger's is
_STRANGER = {4: "192.0.2.1", 6: "2001:db8::1"}


def gateways(words: Iterable[str]) -> dict[int, str]:
    """Of `--gateway`: by version of IP. Raises PathcastError (exit 2) for what is no address, or one too many."""
    found: dict[int, str] = {}
    for word in words:
        try:
            version = ipaddress.ip_address(word).version
        except ValueError:
            raise usage(f"--gateway {word}: that is no address") from None
        if found.setdefault(version, word) != word:
            raise usage(f"--gateway {word}: {found[version]} is one of IPv{version} already; allowed is one of each")
    return found


def lacking(line: Line, gateways: Mapping[int, str] | None = None) -> list[list[str]]:
    """The commands that are missing for the line's addresses; a gateway that is not known is written `GATEWAY`.

    gateways: of the line, by version of IP; else as the routes of its device have it. Raises PathcastError where the
    line has no address.
    """
    own = here.of_line(line, here.addresses())
    if not own:
        raise usage(f"line `{line.name}` has no address on this host now", "bring its device up first")
    found: list[list[str]] = []
    for one in own:
        if not _leaves(one):
            found += _commands(one, gateways or {}, len(found) // 3)
    return found


def _leaves(one: here.Address) -> bool:
    """Whether strangers' packets from there leave by its device, or it has a rule of its own."""
    version = ipaddress.ip_address(one.local).version
    try:
        [route] = here.ip("route", "get", _STRANGER[version], "from", one.local)
    except (PathcastError, ValueError):
        return any(rule.get("src") == one.local for rule in here.ip(f"-{version}", "rule", "show"))
    return bool(route.get("dev") == one.dev)


def _commands(one: here.Address, gateways: Mapping[int, str], ahead: int) -> list[list[str]]:
    of = ipaddress.ip_address(one.local).version
    version = f"-{of}"
    table = str(_free(version, ahead))
    network = ipaddress.ip_network(f"{one.local}/{one.prefix}", strict=False)
    via = gateways.get(of) or _gateway(version, one)
    # a link without a gateway: everybody is at its other end
    onward = ["via", via] if via else []
    words = [version, "route", "replace"]
    from_here = ["dev", one.dev, "src", one.local, "table", table]
    return [
        [*words, str(network), *from_here],
        [*words, "default", *onward, *from_here],
        [version, "rule", "add", "from", one.local, "lookup", table, "priority", table],
    ]


def _gateway(version: str, one: here.Address) -> str | None:
    """The gateway of a device, by whatever default route has it; None for one that needs none."""
    for route in here.ip(version, "route", "show", "table", "all", "dev", one.dev):
        if route.get("dst") == "default" and route.get("gateway"):
            return str(route["gateway"])
    links = here.ip("link", "show", "dev", one.dev)
    if links and "POINTOPOINT" in links[0].get("flags", ()):
        return None
    return "GATEWAY"


def _free(version: str, ahead: int) -> int:
    """The first table and priority of ours that nobody uses, after as many such ones as are `ahead`."""
    rules = here.ip(version, "rule", "show")
    used = {str(rule.get(key)) for rule in rules for key in ("table", "priority")}
    with suppress(PathcastError):  # setting routes says it
        used |= {word for made in _read() for word in made["command"] if word.isdigit()}
    free = (number for number in range(FIRST, FIRST + 1000) if str(number) not in used)
    return next(islice(free, ahead, None))


def shown(commands: Sequence[Sequence[str]]) -> list[str]:
    """As they are copied into a shell."""
    return [" ".join(["ip", *words]) for words in commands]


@contextmanager
def with_set(line: Line, commands: Sequence[Sequence[str]]) -> Iterator[None]:
    """Set by `set_up`; taken back where what is done with them fails."""
    if commands:
        set_up(line, commands)
    try:
        yield
    except BaseException:
        if commands:
            with locked("routes"):
                _take_back(line.name, commands)
        raise


def set_up(line: Line, commands: Sequence[Sequence[str]]) -> None:
    """Runs the commands; each is recorded before. Raises PathcastError, with what was set until then taken back."""
    if unknown := next((words for words in commands if "GATEWAY" in words), None):
        hint = "name it: --gateway ADDRESS, the router's address on that line"
        raise PathcastError("gateway", f"the IPv{unknown[0][1:]} gateway of line `{line.name}` is not known", hint, 2)
    if os.geteuid() != 0:
        raise missing("setting routes and rules needs root", f"sudo pathcast line set {line.name} --routes")
    with locked("routes"):
        try:
            for words in commands:
                record = {"line": line.name, "namespace": network_namespace(), "command": list(words)}
                _write([*_read(), record])
                _ip(words)
        except PathcastError:
            _take_back(line.name, commands)
            raise


def remove(name: str | None = None) -> list[str]:
    """Takes back what was set for a line, or all lines, in this network namespace; sentences about it.

    Raises PathcastError where what was set cannot be read.
    """
    if not _file().exists():
        return []
    with locked("routes"):
        return _take_back(name)


def recorded() -> list[dict[str, Any]]:
    """What was set: `line`, `command`."""
    return _read()


def _take_back(name: str | None, commands: Sequence[Sequence[str]] | None = None) -> list[str]:
    ours: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for made in _read():
        mine = made["namespace"] == network_namespace() and name in (None, made["line"])
        mine = mine and (commands is None or made["command"] in commands)
        (ours if mine else rest).append(made)
    said = []
    for made in reversed(ours):
        words = ["del" if word in ("add", "replace") else word for word in made["command"]]
        try:
            _ip(words)
        except PathcastError:
            continue  # it is gone with its device already
        said.append(f"{words[1]} of line {made['line']}: ip {' '.join(made['command'])}")
    _write(rest)
    return said


def _ip(words: Sequence[str]) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=10)
    if done.returncode:
        raise PathcastError("ip", f"`ip {' '.join(words)}`: {done.stderr.strip()}")


def _file() -> Path:
    return run_dir() / "routes.list"


def _read() -> list[dict[str, Any]]:
    """Raises PathcastError: what cannot be read is not nothing, and is not written over."""
    path = _file()
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise _broken(path, str(error)) from None
    if not isinstance(found, list) or not all(map(_is_record, found)):
        raise _broken(path, "it is no list of what was set")
    return found


def _is_record(of: object) -> bool:
    if not isinstance(of, dict) or not {"line", "namespace", "command"} <= of.keys():
        return False
    words = of["command"]
    return isinstance(words, list) and len(words) > 1 and all(isinstance(word, str) for word in words)


def _broken(path: Path, why: str) -> PathcastError:
    hint = f"remove the rules and routes of tables {FIRST} to {FIRST + 999} that `ip rule` shows, and then this file"
    return PathcastError("routes", f"cannot read `{path}`, which says what routes were set: {why}", hint)


def _write(made: list[dict[str, Any]]) -> None:
    path = _file()
    if not made:
        path.unlink(missing_ok=True)
        return
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(made))
    os.replace(temporary, path)
