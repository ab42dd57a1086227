"""The controllers in this kernel: held by processes of their own, or pinned so that they outlive whoever loaded them.

A controller is called by the name of its header (`imtcp_bg`). The kernel has it under another (`pc_imtcpbg`, or
`pc_imtcpbg_2` for a second one), for the socket option TCP_CONGESTION. `reno`, `cubic`, `bbr` are the kernel's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from pathcast.errors import PathcastError, usage
from pathcast.runtime import state

if TYPE_CHECKING:
    from pathcast.runtime.daemon import Daemon

KERNELS_OWN = ("reno", "cubic", "bbr")
# how often one with another run directory may take the name that we were about to register
_RACES = 5

Params = Mapping[str, int]
T = TypeVar("T")


def register() -> list[dict[str, Any]]:
    """Every controller with its parameters, as the headers have them."""
    from pathcast import _native

    found: list[dict[str, Any]] = json.loads(_native.controllers())
    return found


def loadable() -> list[str]:
    """The controllers that can be loaded into a kernel."""
    from pathcast import _native

    return _native.controllers_in_kernel()


def available() -> tuple[str, ...]:
    """The controllers of the register that this kernel has, by whomever, or that this process could load."""
    from pathcast import _native

    try:
        _native.kernel_ready()
        ready = set(loadable())
    except PathcastError:
        ready = set()
    try:
        ready |= set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())
        ready |= {one.name for one in instances() if one.name}
    except (OSError, PathcastError):
        pass  # what is not seen cannot be named
    return tuple(one["name"] for one in register() if one["name"] in ready)


def parse_sets(control: str, sets: Sequence[str]) -> dict[str, int]:
    """Parameters from `delta=1300` or `imtcp_bg.delta=1300`; refuses what is no value and other controllers' keys.

    Of one in bytes it is a size too (`10KB`), of one in microseconds a duration, as in a scenario. Whether the
    controller has them, and in which range, is for the loader to say.
    """
    from pathcast import _native

    params = {}
    for item in sets:
        key, equals, text = item.partition("=")
        owner, dot, name = key.strip().rpartition(".")
        if not equals or not name:
            raise usage(f"--set `{item}` is not PARAMETER=VALUE, for example {control}.PARAMETER=1")
        if dot and owner not in (control, f"control.{control}"):
            raise usage(f"--set `{item}` is of `{owner}`, and the controller is `{control}`")
        try:
            params[name] = _native.parse_parameter(name, text)
        except PathcastError as error:
            raise usage(f"--set `{item}`: {error.message}") from None
    return params


def check(control: str) -> None:
    """Refuses a controller that cannot be loaded, with those that can."""
    names = loadable()
    if control in names:
        return
    known = control in {c["name"] for c in register()}
    what = f"`{control}` is for the simulator only" if known else f"there is no controller `{control}`"
    raise usage(f"{what}; allowed: {', '.join(names)}")


def hold(control: str, params: Params | None = None) -> Daemon:
    """Loads a controller into the kernel, in a process of its own that ends with ours; use it in a `with`.

    Its record's `about["kernel_name"]` is its name there. Raises `missing` (exit 5) without privilege or feature.
    """
    from pathcast.runtime import daemon

    check(control)
    config = {"control": control, "params": dict(params or {})}
    with state.locked("control"):  # a name that is free now must be so when it is registered
        return _unless_taken(lambda: daemon.start("control", config))


def pin(control: str, params: Params | None = None) -> dict[str, Any]:
    """Loads a controller that stays until it is unloaded, or the machine starts anew; returns what it is."""
    from pathcast import _native

    check(control)
    _native.kernel_ready()
    root = _native.pin_root(pins_name())
    values = list((params or {}).items())
    with state.locked("control"):
        loaded = _unless_taken(
            lambda: _native.Controller.load(control, values, _native.free_controller_name(control), root)
        )
    try:
        found: dict[str, Any] = json.loads(loaded.describe())
        return found
    finally:
        loaded.close()


def _unless_taken(load: Callable[[], T]) -> T:
    """Tries again where one with another run directory took the name."""
    for _ in range(_RACES):
        try:
            return load()
        except PathcastError as error:
            if error.code != "controller-in-use":
                raise
    return load()


def pins_name() -> str:
    """The directory below the bpffs for what is pinned: one of its own for each run directory, as for records."""
    path = str(state.run_dir())
    own = "" if path == "/run/pathcast" else "-" + hashlib.sha256(path.encode()).hexdigest()[:12]
    return f"pathcast{own}"


@dataclass(frozen=True)
class Instance:
    """One controller of ours in this kernel. `path` where it is pinned, `pid` where a process holds it.

    name, version: None for what is stale: pinned, but without a controller in force.
    """

    kernel_name: str
    name: str | None
    version: str | None
    path: str | None = None
    pid: int | None = None

    @property
    def stale(self) -> bool:
        """Nothing is in force; only its pins are left."""
        return self.name is None

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """`describe`, `flows` or `set` (`params`), of the process that holds it or through its pinned maps."""
        from pathcast import _native
        from pathcast.runtime import daemon

        if self.path is None:
            answer: dict[str, Any] = daemon.Daemon(self._record()).ask(verb, **arguments)
            return answer
        loaded = _native.Controller.open(Path(self.path))
        try:
            answer = json.loads(getattr(loaded, verb)(*(list(params.items()) for params in arguments.values())))
            return answer
        finally:
            loaded.close()

    def unload(self) -> None:
        """Takes it out of the kernel. Sockets that use it keep it until they end."""
        from pathcast import _native
        from pathcast.runtime import daemon

        if self.path is not None:
            _native.unpin(Path(self.path))
        else:
            daemon.Daemon(self._record()).down()

    def _record(self) -> Any:
        for record in state.records("control"):
            if record.alive and record.about.get("kernel_name") == self.kernel_name:
                return record
        raise PathcastError("gone", f"nothing holds `{self.kernel_name}` any more", "see `pathcast control list`")


def instances() -> list[Instance]:
    """What is held or pinned in this kernel, by kernel name. Without root, what other users hold is not seen."""
    from pathcast import _native

    held = [
        Instance(r.about["kernel_name"], r.about["control"], r.about["version"], pid=r.pid)
        for r in state.records("control")
        if r.alive
    ]
    pins = json.loads(_native.pinned(pins_name()))
    pinned = [Instance(p["kernel_name"], p["name"], p["version"], path=p["path"]) for p in pins]
    return sorted(held + pinned, key=lambda i: i.kernel_name)


def unpin_all() -> list[str]:
    """Unloads every pinned controller and removes what is left of others; returns what was removed."""
    removed = []
    for instance in instances():
        if instance.path is not None:
            try:
                instance.unload()
                removed.append(f"controller {instance.kernel_name} ({instance.path})")
            except PathcastError as error:  # we may lack the privilege
                removed.append(f"not removed: controller {instance.kernel_name}: {error}")
    return removed


def find(name: str) -> Instance:
    """The one of that kernel name, or the only one of that controller; refuses others with what there is."""
    here = instances()
    by_kernel = [i for i in here if i.kernel_name == name]
    found = by_kernel or [i for i in here if i.name == name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(i.kernel_name for i in (found or here)) or "none"
    if found:
        raise usage(f"`{name}` is loaded {len(found)} times; choose one: {names}")
    if not here:
        state.see("controllers", "pathcast control …")
    raise usage(f"`{name}` is not loaded by pathcast; loaded: {names}", f"load it: pathcast control load {name}")


class Controls:
    """The names under which the kernel has the controllers that are asked for.

    What it lacks is loaded at the first question, and held until `close`.
    """

    def __init__(self, params: Mapping[str, Params] | None = None) -> None:
        self._params = params or {}
        self._stack = ExitStack()
        self._parts: dict[str, Daemon] = {}
        self._lock = Lock()

    def kernel_name(self, control: str | None) -> str | None:
        """For the socket option; None stays None, the system's own. Raises as `hold` does."""
        if control is None or control in KERNELS_OWN:
            return control
        if control not in {c["name"] for c in register()}:
            return control  # one that somebody else brought, or the kernel refuses it
        return str(self.part(control).record.about["kernel_name"])

    def part(self, control: str) -> Daemon:
        """The process that holds a controller of the register, for what it has to tell; loaded if it is not yet."""
        with self._lock:
            if control not in self._parts:
                self._parts[control] = self._stack.enter_context(hold(control, self._params.get(control)))
            return self._parts[control]

    def name(self, kernel_name: str) -> str:
        """Back from a kernel's name to the header's."""
        parts = self._parts.items()
        return next((name for name, part in parts if part.record.about["kernel_name"] == kernel_name), kernel_name)

    def close(self) -> None:
        """Unloads what was loaded. Sockets that use it keep it until they end."""
        self._stack.close()
        self._parts.clear()
